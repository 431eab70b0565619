"""The handler behind an action: its input, its refusals, its failures."""

from collections.abc import Sequence

from awp_publish.problems.problem import MAX_VIOLATIONS, Problem, Violation


class InvalidInput(Problem):
    slug = "invalid-input"
    title = "The input does not match the action's schema"
    default_status = 422
    default_recovery = "Correct the members that errors points at, following the action's inputs schema, then retry."

    @classmethod
    def of(cls, violations: Sequence[Violation], more: int = 0) -> "InvalidInput":
        """The problem of an input with these violations, and `more` that are not listed."""
        first, more = violations[0], more + len(violations) - 1
        listed = f"; the first {MAX_VIOLATIONS} are listed" if more >= MAX_VIOLATIONS else ""
        also = f" (and {more} more{listed})" if more else ""
        return cls(f"{first.pointer or 'The input'}: {first.detail}{also}.", errors=violations)


class Refused(Problem):
    """The handler itself said no. Raise it in a handler to refuse a call in your own words and with your own code."""

    slug = "refused"
    title = "The action refused the call"
    default_status = 409
    default_recovery = "Read detail and code, change the input or the order of calls accordingly, then retry."


class HandlerRedirected(Problem):
    slug = "handler-redirected"
    title = "The action answered with a redirect instead of data"
    default_status = 502
    default_recovery = "The action may have taken effect: read the address in location before you retry."


class HandlerFailed(Problem):
    slug = "handler-failed"
    title = "The action failed"
    default_status = 500
    default_recovery = "Retry once later; if it fails again, report request_id to the site's contact."


class HandlerUnavailable(Problem):
    slug = "handler-unavailable"
    title = "The action is unavailable for the moment"
    default_status = 503
    default_recovery = "Wait for the time in Retry-After (60 seconds if absent), then retry."


class HandlerTimeout(Problem):
    slug = "handler-timeout"
    title = "The action took too long"
    default_status = 504
    default_recovery = "The action may have taken effect: check before you retry, and ask for less at a time."


class InvalidOutput(Problem):
    slug = "invalid-output"
    title = "The action's answer does not match its own schema"
    default_status = 500
    default_recovery = "Do not retry: the site has to correct the action. Report request_id to the site's contact."
