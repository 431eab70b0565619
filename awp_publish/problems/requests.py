"""The envelope or the request around it was wrong."""

from awp_publish.problems.problem import Problem


class NotJson(Problem):
    """The body is not JSON as RFC 8259 and I-JSON (RFC 7493) define it: syntax, encoding, duplicate names, numbers."""

    slug = "not-json"
    title = "The body is not usable JSON"
    default_status = 400
    default_recovery = "Send one JSON object, UTF-8, without duplicate names, NaN or numbers beyond 64 bits."


class EnvelopeNotAnObject(Problem):
    """The body is JSON, but the WoA invocation envelope is an object (section 5.1)."""

    slug = "envelope-not-an-object"
    title = "The invocation envelope is not an object"
    default_status = 400
    default_recovery = 'Send {"agent": "...", "operation": "...", "input": {...}}.'


class InvalidEnvelope(Problem):
    """A member of the envelope has the wrong type (section 5.1)."""

    slug = "invalid-envelope"
    title = "A member of the invocation envelope is missing or has the wrong type"
    default_status = 400
    default_recovery = "Send agent and operation as strings and input as an object."


class MissingInput(Problem):
    """The envelope has no `input`, which is required (section 5.1)."""

    slug = "missing-input"
    title = "The invocation envelope has no input"
    default_status = 400
    default_recovery = "Put the action's input into the envelope's member input; send {} if the action takes none."


class AgentMismatch(Problem):
    """The agent of the URL and the agent of the envelope differ (section 5.2: MUST be 400)."""

    slug = "agent-mismatch"
    title = "The URL and the envelope name different agents"
    default_status = 400
    default_recovery = "Name the same agent in the URL and in the envelope, or leave it out of the envelope."


class UnknownAgent(Problem):
    slug = "unknown-agent"
    title = "There is no such agent"
    default_status = 404
    default_recovery = "GET /.well-known/woa.json and use the id of an agent listed there."


class UnknownOperation(Problem):
    slug = "unknown-operation"
    title = "The agent has no such operation"
    default_status = 400
    default_recovery = "Use one of the operations that the agent lists in /.well-known/woa.json."


class MethodNotAllowed(Problem):
    slug = "method-not-allowed"
    title = "The method is not allowed here"
    default_status = 405
    default_recovery = "Use a method that the Allow header names."


class NotAcceptable(Problem):
    slug = "not-acceptable"
    title = "The answer is JSON, which the request does not accept"
    default_status = 406
    default_recovery = "Send Accept: application/json."


class UnsupportedMediaType(Problem):
    slug = "unsupported-media-type"
    title = "The body is not declared as JSON"
    default_status = 415
    default_recovery = "Send Content-Type: application/json, UTF-8, without a content encoding."


class BodyTimeout(Problem):
    slug = "body-timeout"
    title = "The body did not arrive in time"
    default_status = 408
    default_recovery = "Send the whole request at once, then retry."


class BodyTooLarge(Problem):
    slug = "body-too-large"
    title = "The body is larger than this site accepts"
    default_status = 413
    default_recovery = "Send a smaller input; detail names the limit."
