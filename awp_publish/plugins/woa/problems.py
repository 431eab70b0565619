"""What only callers of the WoA door can get wrong: its envelope, and the form of its answer."""

from awp_publish.problems import Problem


class MissingInput(Problem):
    """The envelope has no `input`, which is required (section 5.1)."""

    title = "The invocation envelope has no input"
    default_status = 400
    default_recovery = "Put the action's input into the envelope's member input; send {} if the action takes none."


class AgentMismatch(Problem):
    """The agent of the URL and the agent of the envelope differ (section 5.2: MUST be 400)."""

    title = "The URL and the envelope name different agents"
    default_status = 400
    default_recovery = "Name the same agent in the URL and in the envelope, or leave it out of the envelope."


class NotAcceptable(Problem):
    title = "The answer is JSON, which the request does not accept"
    default_status = 406
    default_recovery = "Send Accept: application/json."
