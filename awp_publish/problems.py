"""Every refusal and failure of a call, as one tree of exceptions.

    Problem
    ├── the envelope or the request around it was wrong
    │   ├── NotJson, EnvelopeNotAnObject, MissingInput, InvalidEnvelope, AgentMismatch
    │   ├── UnsupportedMediaType, NotAcceptable, MethodNotAllowed, BodyTooLarge
    │   └── UnknownAgent, UnknownOperation
    ├── InvalidInput                  the input does not match the action's schema
    └── the handler behind the action
        ├── Refused, HandlerRedirected
        └── HandlerFailed, HandlerTimeout, HandlerUnavailable, InvalidOutput

A problem knows what happened; the door that caught it knows how to say it (problem+json, MCP `isError`, ...). `ALL`
lists the concrete classes, from which the documentation, agent.json's `errors` and the problem pages are made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with an input or output.

    `pointer` is an RFC 6901 JSON Pointer into the value, "" for the value itself.
    """

    pointer: str
    detail: str


class Problem(Exception):
    """Something that kept a call from succeeding, with the evidence.

    `detail` says what was wrong, where, and is safe to show to the caller. `status` overrides the class's HTTP status,
    `recovery` the class's instruction, `code` the machine-readable code (RFC 9457 leaves codes to the deployment).
    `headers` belong to the HTTP answer (`Allow`, `Retry-After`, ...). `members` are further RFC 9457 extension members.
    """

    slug: ClassVar[str] = "problem"
    title: ClassVar[str] = "The call did not succeed"
    default_status: ClassVar[int] = 500
    default_recovery: ClassVar[str] = "Read detail, then retry the call with a corrected request."

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        code: str | None = None,
        recovery: str | None = None,
        errors: Sequence[Violation] = (),
        headers: Sequence[tuple[str, str]] = (),
        members: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = self.default_status if status is None else status
        self.code = code or code_of(self.slug)
        self.recovery = recovery
        self.errors = tuple(errors)
        self.headers = tuple(headers)
        self.members = dict(members or {})

    def __str__(self) -> str:
        return f"{self.code} ({self.status}): {self.detail}"


def code_of(slug: str) -> str:
    """The machine code of a slug: `invalid-input` is `INVALID_INPUT`."""
    return slug.upper().replace("-", "_")


def slug_of(code: str) -> str:
    """The slug of a machine code: `INVALID_INPUT` is `invalid-input`."""
    return code.lower().replace("_", "-")


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


class BodyTooLarge(Problem):
    slug = "body-too-large"
    title = "The body is larger than this site accepts"
    default_status = 413
    default_recovery = "Send a smaller input; detail names the limit."


class InvalidInput(Problem):
    slug = "invalid-input"
    title = "The input does not match the action's schema"
    default_status = 422
    default_recovery = "Correct the members that errors points at, following the action's inputs schema, then retry."


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


ALL: tuple[type[Problem], ...] = (
    NotJson,
    EnvelopeNotAnObject,
    InvalidEnvelope,
    MissingInput,
    AgentMismatch,
    UnknownAgent,
    UnknownOperation,
    MethodNotAllowed,
    NotAcceptable,
    UnsupportedMediaType,
    BodyTooLarge,
    InvalidInput,
    Refused,
    HandlerRedirected,
    HandlerFailed,
    HandlerUnavailable,
    HandlerTimeout,
    InvalidOutput,
)


class DeclarationError(Exception):
    """A site or an action is declared wrongly. Raised at start-up and by the decorators, never in traffic.

    `subject` names what is wrong (`action "search_books"`), `detail` says what, `remedy` what to do.
    """

    def __init__(self, subject: str, detail: str, remedy: str = "") -> None:
        super().__init__(f"{subject}: {detail}" + (f" {remedy}" if remedy else ""))
        self.subject = subject
        self.detail = detail
        self.remedy = remedy
