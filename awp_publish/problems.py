"""Every refusal and failure of a call, as one tree of exceptions.

A problem records what happened; the door that catches it renders it (problem+json, MCP `isError`, ...). `ALL` lists the
concrete classes; the documentation, agent.json's `errors` and the problem pages are generated from it.
"""

import http
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import ClassVar, Final, Literal, Self

from starlette.exceptions import HTTPException

MAX_VIOLATIONS: Final = 20
"""Violations that one problem lists at most, whatever the size of the input."""

MAX_TEXT: Final = 300
"""Characters of a violation's pointer, and of the message that a route gives with its refusal."""

MAX_DETAIL: Final = 1_000
"""Characters of a violation's detail, which may name the values of an enumeration."""

MAX_COMPARED: Final = 300
"""Names that are compared at most when the nearest one is searched."""

MIN_ABBREVIATION: Final = 3
"""Letters that a name needs to count as an abbreviation of a longer one with the same first letter: `qty`,
`quantity`.
"""


def shorten(text: str, most: int = MAX_TEXT) -> str:
    """Return the text, truncated to at most this many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def nearest(word: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return the known names nearest to a misspelt one, the nearest first, or those that it may abbreviate."""
    by_folded = {name[:50].lower(): name for name in islice(names, MAX_COMPARED)}
    folded = word[:50].lower()
    if near := get_close_matches(folded, by_folded, most):
        return [by_folded[folded_name] for folded_name in near]
    short_for = list[str]()
    for folded_name, name in by_folded.items() if len(folded) >= MIN_ABBREVIATION else ():
        letters = iter(folded_name)
        if folded_name[:1] == folded[0] and all(letter in letters for letter in folded):
            short_for.append(name)
    return short_for[:most]


@contextmanager
def noting(place: str) -> Iterator[None]:
    """Note in an error that is raised inside where that was: in which hook of which plug-in."""
    try:
        yield
    except Exception as error:
        error.add_note(f"Raised in {place}.")
        raise


def in_seconds(seconds: float) -> str:
    """Return a time in words: "1 second", "7 seconds", "0.5 seconds"."""
    number = f"{seconds:g}" if isinstance(seconds, float) else str(seconds)
    return f"{number} second{'' if seconds == 1 else 's'}"


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return a question that suggests the nearest name, or "" if none is near."""
    near = nearest(word, names, 1)
    return f'Did you mean "{shorten(near[0])}"?' if near else ""


def end_sentence(text: str) -> str:
    """Return the text with a full stop appended, unless it already ends a sentence."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def below(prefix: str, words: str) -> str:
    """Return the text with `prefix`, the path of the site, put before the paths of documents."""
    return _DOCUMENTS.sub(lambda match: prefix + match[0], words) if prefix else words


_DOCUMENTS: Final = re.compile(r"(?<![\w/])/(?:\.well-known/[\w.-]*\w|agent\.json)")


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with an input or output.

    `pointer` is an RFC 6901 JSON Pointer into the value, "" for the whole value. Long pointers and details are
    truncated.
    """

    pointer: str
    detail: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "pointer", shorten(self.pointer))
        object.__setattr__(self, "detail", shorten(self.detail, MAX_DETAIL))


class Problem(Exception):
    """A reason why a call did not succeed, with the evidence.

    `detail` says what was wrong and where, and is safe to show to the caller. Only the first of `errors` are kept.
    `status` overrides the class's HTTP status, `recovery` its instruction, `code` its machine-readable code (RFC 9457
    leaves codes to the deployment). `headers` belong to the HTTP response (`Allow`, `Retry-After`, ...). `members` are
    further RFC 9457 extension members.
    """

    slug: ClassVar[str] = "problem"
    title: ClassVar[str] = "The call did not succeed"
    default_status: ClassVar[int] = 500
    default_recovery: ClassVar[str] = "Read detail, then retry the call with a corrected request."
    unlinked_recovery: ClassVar[str] = ""
    """What replaces `default_recovery` at a site that leaves out the document which that names."""
    recoveries: ClassVar[Mapping[int, str]] = {}
    """Recovery texts by status, for classes that render answers of the site's own routes with various statuses."""
    is_refusal: bool = False
    """Whether the action was not tried. It is set on what any gate raises."""
    lacks: ClassVar[Literal["", "input", "credentials"]] = ""
    """What the same call needs to go through, for protocols in which a call waits for it."""

    def __init_subclass__(cls) -> None:
        """Derive the slug of our own problems from the class name, `unknown-agent`; subclasses of a problem inherit its
        slug.
        """
        super().__init_subclass__()
        if cls.__module__.startswith("awp_publish.") and Problem in cls.__bases__:
            cls.slug = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()

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
        self.usual_recovery: str | None = None
        """What replaces the class's recovery where the site has none of its own for the code."""
        self.errors = tuple(errors[:MAX_VIOLATIONS])
        self.headers = tuple(headers)
        self.members = dict(members or {})

    def without_frames(self) -> Self:
        """Return this problem without the frames that it came through, and without those of the problem before it.

        They refer to whoever holds it, so that only the garbage collector could free them.
        """
        self.__traceback__ = self.__context__ = None
        return self

    @property
    def advice(self) -> str:
        """Return what the caller should do, from the class, the status and Retry-After (RFC 9110 section 10.2.3)."""
        return self.with_time(self.usual_recovery or self.recoveries.get(self.status, self.default_recovery))

    def with_time(self, words: str) -> str:
        """Return a recovery with the time of Retry-After, for callers that do not see headers."""
        after = next((value[:40] for name, value in self.headers if name.lower() == "retry-after"), None)
        if after is None:
            return words.replace(_AFTER_A_WHILE, "after a minute, then less and less often")
        if not after.isdecimal():
            return words.replace(_AFTER_A_WHILE, f"after {after}")
        time = in_seconds(int(after))
        return words.replace(_SECONDS, f"{time} (Retry-After)").replace(_AFTER_A_WHILE, f"after {time}")

    def __str__(self) -> str:
        return f"{self.code} ({self.status}): {self.detail}"


_SECONDS: Final = "the seconds in Retry-After"
_AFTER_A_WHILE: Final = "after the time in Retry-After, a minute if it is absent"


def code_of(slug: str) -> str:
    """Return the machine-readable code of a slug: `INVALID_INPUT` for `invalid-input`."""
    return slug.upper().replace("-", "_")


def slug_of(code: str) -> str:
    """Return the slug of a machine-readable code: `invalid-input` for `INVALID_INPUT`."""
    return code.lower().replace("_", "-")


class DeclarationError(Exception):
    """A site or an action is declared wrongly. Raised by the decorators and at start-up, never while a request is
    served.

    `subject` names the declaration (`action "search_books"`), `detail` says what is wrong with it, `remedy` what to do.
    """

    def __init__(self, subject: str, detail: str, remedy: str = "") -> None:
        super().__init__(f"{subject}: {detail}" + (f" {remedy}" if remedy else ""))
        self.subject = subject
        self.detail = detail
        self.remedy = remedy

    @property
    def errors(self) -> "tuple[DeclarationError, ...]":
        """All errors that were found at a time: usually only this one."""
        return (self,)


class DeclarationErrors(DeclarationError):
    """Several declarations are wrong. It speaks for the first of its `errors`, and its text has all of them."""

    def __init__(self, errors: Sequence[DeclarationError]) -> None:
        first = errors[0]
        super().__init__(first.subject, first.detail, first.remedy)
        self.args = ("\n".join(map(str, errors)),)
        self._errors = tuple(errors)

    @property
    def errors(self) -> tuple[DeclarationError, ...]:
        """The errors, in the order of the declarations."""
        return self._errors


class NotJson(Problem):
    """The body is not JSON as RFC 8259 and I-JSON (RFC 7493) define it: syntax, encoding, duplicate names, numbers."""

    title = "The body is not usable JSON"
    default_status = 400
    default_recovery = "Send one JSON object, UTF-8, without duplicate names, NaN or numbers beyond 64 bits."


class EnvelopeNotAnObject(Problem):
    """The body is JSON, but not an object, as the WoA invocation envelope has to be (section 5.1)."""

    title = "The invocation envelope is not an object"
    default_status = 400
    default_recovery = 'Send {"agent": "...", "operation": "...", "input": {...}}.'


class InvalidEnvelope(Problem):
    """A member of the envelope has the wrong type (section 5.1)."""

    title = "A member of the invocation envelope is missing or has the wrong type"
    default_status = 400
    lacks = "input"
    default_recovery = (
        "Correct the member that detail names: input is an object, receipts a list of strings, any other a string. "
        "Send each in one place only."
    )


class UnknownAgent(Problem):
    title = "There is no such agent"
    default_status = 404
    default_recovery = "GET /.well-known/woa.json and use the id of an agent listed there."
    unlinked_recovery = "Use the id of an agent that this site publishes."


class UnknownAction(Problem):
    title = "There is no such action"
    default_status = 404
    default_recovery = "GET /agent.json and use the endpoint of an action listed there."
    unlinked_recovery = "Use the address of an action that this site publishes."


class UnknownOperation(Problem):
    title = "The agent has no such operation"
    default_status = 400
    lacks = "input"
    default_recovery = "Use one of the operations that the agent lists in /.well-known/woa.json."
    unlinked_recovery = "Use one of the operations that this site publishes for the agent."


class MethodNotAllowed(Problem):
    title = "The method is not allowed here"
    default_status = 405
    default_recovery = "Use a method that the Allow header names."


class UnsupportedMediaType(Problem):
    title = "The body is not declared as JSON"
    default_status = 415
    default_recovery = "Send Content-Type: application/json, UTF-8, without a content encoding."


class BodyTooLarge(Problem):
    title = "The body is too large"
    default_status = 413
    default_recovery = "Send a smaller input; detail names the limit."


class BodyTimeout(Problem):
    title = "The body did not arrive in time"
    default_status = 408
    default_recovery = "Send the whole request at once, then retry."


class AuthenticationRequired(Problem):
    title = "The action requires authentication"
    default_status = 401
    lacks = "credentials"
    default_recovery = (
        "Obtain credentials as the site's manifests and the header WWW-Authenticate describe, then retry with them."
    )


class InvalidCredentials(Problem):
    title = "The credentials are not valid"
    default_status = 401
    lacks = "credentials"
    default_recovery = (
        "Obtain new credentials as the site's manifests and the header WWW-Authenticate describe, then retry with them."
    )


class InvalidProof(InvalidCredentials):
    """A token is bound to a key (RFC 9449), and the request does not prove that its caller has that key."""

    default_recovery = (
        "Send the token as Authorization: DPoP, with one header DPoP: a proof made for this request alone, with its "
        "method, its address, the present time and a new jti, signed with the key that the token is bound to."
    )


class InvalidBinding(InvalidProof):
    """The token is at fault, not the proof: bound to another key, to none or in another way, or sent as a bearer."""


class AuthExpired(Problem):
    title = "The credentials have expired"
    default_status = 401
    lacks = "credentials"
    default_recovery = "Refresh the credentials (auth.refresh_endpoint of /agent.json, if there is one), then retry."
    unlinked_recovery = "Get new credentials, then retry."


class SessionUnknown(Problem):
    """The session does not exist, has ended, or belongs to another caller; the answer does not reveal which."""

    title = "The session is unknown or has ended"
    default_status = 401
    lacks = "credentials"
    default_recovery = (
        "Leave the session out and sign in again or start over, then send the session that the new answer returns."
    )


class InsufficientScope(Problem):
    title = "The credentials do not allow this action"
    default_status = 403
    is_refusal = True
    default_recovery = "Ask for credentials with the scopes that missing_scopes names, then retry with them."


class ForeignHost(Problem):
    """A browser sent a Host that is not the site's: the page may have pointed its own name here (DNS rebinding)."""

    title = "A browser used a host name that is not this site's"
    default_status = 403
    is_refusal = True
    default_recovery = (
        "Open the site at one of its own addresses. If this address is one of them, its owner has to list it: "
        'Site(url=["https://first.example", "https://second.example"]).'
    )


class CrossSiteCookies(Problem):
    """Browsers send cookies automatically, so cookies never authorise a call made by another site's page."""

    title = "Cookies do not authorise calls from other sites"
    default_status = 403
    is_refusal = True
    default_recovery = "Call without cookies, or from a page of this site; identify yourself in Authorization."


class RateLimited(Problem):
    title = "There were too many calls"
    default_status = 429
    is_refusal = True
    default_recovery = f"Wait for {_SECONDS}, then retry."


class InvalidIdempotencyKey(Problem):
    title = "The idempotency key is not usable"
    default_status = 400
    lacks = "input"
    default_recovery = "Send one key of 1 to 255 printable ASCII characters, such as a new UUID, in one place only."


class AnswerNotKept(Problem):
    """The first call with this key succeeded, but its answer was too large to record or may be returned only once."""

    title = "The answer of an earlier call with this idempotency key was not kept"
    default_status = 409
    default_recovery = "The earlier call took effect: do not repeat it. Find out in another way what it did."


class ConfirmationRequired(Problem):
    title = "A person has to confirm this call"
    default_status = 428
    lacks = "input"
    default_recovery = (
        "Show confirmation.summary to your user. Only if they agree, send the same call again with "
        "confirmation.token in the header AWP-Confirmation or the envelope's member confirmation."
    )


class TemporarilyUnavailable(Problem):
    title = "The action does not work at the moment"
    default_status = 503
    default_recovery = f"Wait for {_SECONDS}, look at agent_status in /agent.json, then retry."
    unlinked_recovery = f"Wait for {_SECONDS}, then retry."


class StoreUnavailable(Problem):
    """The store, which this call needs for its checks, is slow, full or unreachable."""

    title = "The site cannot process this call at the moment"
    default_status = 503
    is_refusal = True
    default_recovery = f"Wait for {_SECONDS}, then send the same call again, with the same key."


class InvalidInput(Problem):
    title = "The input does not match the action's schema"
    default_status = 422
    lacks = "input"
    default_recovery = "Correct the members that errors points at, following the action's inputs schema, then retry."

    @classmethod
    def of(cls, violations: Sequence[Violation], more: int = 0) -> "InvalidInput":
        """Return the problem of an input with these violations, and `more` that are not listed."""
        first, more = violations[0], more + len(violations) - 1
        listed = f"; the first {MAX_VIOLATIONS} are listed" if more >= MAX_VIOLATIONS else ""
        also = f" (and {more} more{listed})" if more else ""
        return cls(end_sentence(f"{first.pointer or 'The input'}: {first.detail}{also}"), errors=violations)


class Refused(Problem):
    """The handler refused the call. Raise it in a handler to refuse a call with your own message and code."""

    title = "The action refused the call"
    default_status = 409
    default_recovery = "Read detail and code, change the input or the order of calls accordingly, then retry."
    recoveries: ClassVar[Mapping[int, str]] = {
        400: "Correct the input as detail says, then call again.",
        401: "Sign in, or get credentials, as the site's manifests say, then call again with them.",
        402: "Payment is required: ask your user, pay as detail says, then call again.",
        403: "The caller is not allowed to do this: do not repeat the call. Ask your user for other credentials.",
        404: "What the input names does not exist: look it up with an action that lists or searches, then call again.",
        405: "The action cannot be done here: do not repeat the call. Read detail, and choose another action.",
        409: "It conflicts with the current state: read that state first, then change the call or give up.",
        410: "What the input names no longer exists: do not repeat the call. Look for another.",
        412: "It has changed in the meantime: read it again, then call with its current state.",
        413: "Send less at once; detail may name the limit.",
        422: "Correct the input as detail and response say, then call again.",
        423: f"It is locked: call again {_AFTER_A_WHILE}.",
        425: f"It is too early: call again {_AFTER_A_WHILE}.",
        428: "A condition is missing: read detail, meet it, then call again.",
        429: f"Too many calls: call again {_AFTER_A_WHILE}.",
        451: "It is withheld for legal reasons: do not repeat the call.",
    }


class InsufficientPermissions(Problem):
    """The site's own route or handler knows the caller and does not allow this call."""

    title = "The caller is not allowed to do this"
    default_status = 403
    default_recovery = (
        "Do not repeat the call as it is: ask your user for credentials that allow it, or choose another action."
    )


class HandlerRedirected(Problem):
    title = "The action answered with a redirect instead of data"
    default_status = 502
    default_recovery = "The action may have taken effect: read the address in location before you retry."


class HandlerFailed(Problem):
    title = "The action failed"
    default_status = 500
    default_recovery = (
        "An action that only reads may be called once more. For any other, find out first whether it took effect. "
        "If it fails again, report request_id to the site's contact."
    )
    recoveries: ClassVar[Mapping[int, str]] = {
        501: "The site cannot do this: do not repeat the call. Choose another action.",
        507: "The site is out of storage: do not repeat the call, and report request_id to the site's contact.",
    }


class HandlerUnavailable(Problem):
    title = "The action is temporarily unavailable"
    default_status = 503
    default_recovery = f"The action is not ready: call again {_AFTER_A_WHILE}."


class HandlerTimeout(Problem):
    title = "The action took too long"
    default_status = 504
    default_recovery = "The action may have taken effect: check before you retry, and ask for less at a time."


class InvalidOutput(Problem):
    title = "The action's answer does not match its own schema"
    default_status = 500
    default_recovery = "Do not retry: the site has to correct the action. Report request_id to the site's contact."


_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_REASONS: Final = ("detail", "message", "error_description", "error", "errors", "title", "reason", "description", "msg")
"""Members in which applications give the reason of a refusal, the usual ones first."""

_NO_REASONS: Final = frozenset({"code", "status", "statusCode", "status_code", "success", "ok", "type", "url", "input"})
"""Members of a refusal that say nothing of its reason."""

MAX_REASON_DEPTH: Final = 4
MAX_REASONS: Final = 5
"""Items of a list of reasons that are told at most."""


def refusal(kind: type[Problem], status: int, document: object, codes: Mapping[str, str], otherwise: str) -> Problem:
    """Return a problem with the application's own message, a code that the site declares, and the application's body.

    The members of a problem+json body are kept. A status that is no error of HTTP (RFC 9110 section 15) is replaced.
    """
    if not 400 <= status < 600:
        status = kind.default_status
    words = shorten(_reason(document)) or otherwise
    if isinstance(document, Mapping) and isinstance(document.get("type"), str) and "title" in document:
        words = shorten(_reason(document.get("detail"))) or words  # its other members reach the caller as they are
        members = {str(name): value for name, value in document.items() if name not in ("status", "detail", "instance")}
        if document["type"] == "about:blank":
            del members["type"]  # our type is more specific
        return kind(words, status=status, code=_code_in(document), members=members)
    inner = document.get("detail") if isinstance(document, Mapping) else None
    candidates = (_code_in(source) for source in (document, inner))
    code = next((code for code in candidates if code in codes), None)
    answered: dict[str, object] = {"response": document} if isinstance(document, (Mapping, list)) else {}
    if code is not None:
        answered["title"] = Refused.title  # that of `kind` is about the caller, and the type is the site's own
    return kind(words, status=status, code=code, members=answered)


def _code_in(source: object) -> str | None:
    code = source.get("code") if isinstance(source, Mapping) else None
    return code if isinstance(code, str) and _CODE.fullmatch(code) else None


def _reason(source: object, depth: int = MAX_REASON_DEPTH) -> str:
    """Return the reason that a text, a list or an object gives.

    Of an object it is the first text of _REASONS, followed by the first list or object of these that has one, or else
    what all other members say, by name, or else its code.
    """
    if isinstance(source, str):
        return source[: MAX_TEXT + 1].strip()
    if isinstance(source, (int, float)) and not isinstance(source, bool):
        return str(source)[:MAX_TEXT]
    if depth == 0:
        return ""
    if isinstance(source, list):
        return "; ".join(filter(None, (_reason(item, depth - 1) for item in source[:MAX_REASONS])))
    if not isinstance(source, Mapping):
        return ""
    text, single = (_first_reason(source, kinds, depth - 1) for kinds in (str, (list, Mapping)))
    if text or single:
        return f"{text.rstrip('.:')}: {single}" if text and single and single not in text else text or single
    names = [name for name in islice(source, MAX_REASONS * 2) if name not in _NO_REASONS and name not in _REASONS]
    reasons = [(name, _reason(source[name], depth - 1)) for name in names[:MAX_REASONS]]
    code = source.get("code")
    return "; ".join(f"{name}: {words}" for name, words in reasons if words) or (code if isinstance(code, str) else "")


def _first_reason(source: Mapping[str, object], kinds: type | tuple[type, ...], depth: int) -> str:
    """Return the reason in the first member of _REASONS that is of one of these kinds and has one."""
    return next(
        filter(None, (_reason(source[name], depth) for name in _REASONS if isinstance(source.get(name), kinds))), ""
    )


def phrase_of(status: int) -> str:
    try:
        return f"{http.HTTPStatus(status).phrase}."
    except ValueError:
        return f"The action answered with status {status}."


def raised(error: HTTPException, codes: Mapping[str, str]) -> Problem:
    """Return the problem for an HTTPException raised by the application."""
    kind: type[Problem] = Refused if 400 <= error.status_code < 500 else HandlerFailed
    if error.status_code == 503:
        kind = HandlerUnavailable
    elif 300 <= error.status_code < 400:
        kind = HandlerRedirected
    problem = refusal(kind, error.status_code, {"detail": error.detail}, codes, phrase_of(error.status_code))
    headers = error.headers or {}
    location = next((value for name, value in headers.items() if name.lower() == "location"), None)
    if kind is HandlerRedirected and location:
        problem.members = {**problem.members, "location": location}
    problem.headers = (*problem.headers, *headers.items())
    return problem


class JobCancelled(Problem):
    title = "The job was cancelled"
    default_status = 409
    default_recovery = "It may have taken effect in part: check, then call the action again if it is still wanted."


class InvalidUrl(Problem):
    """The value is not a URL, or not that of one of this site's own pages; other sites are never fetched."""

    title = "The address is not a page of this site"
    default_status = 400
    default_recovery = "Give url once, percent-encoded: an address below this site's own."


class PageNotFound(Problem):
    """There is no such page, or it is not public. `status` is the page's own status if that is more specific."""

    title = "There is no such public page"
    default_status = 404
    default_recovery = "Check the address, or ask for the page itself, with Accept: application/som+json."


ALL: tuple[type[Problem], ...] = tuple(
    value
    for value in vars().values()
    if isinstance(value, type) and issubclass(value, Problem) and value.__base__ is Problem
)
"""The problems of the core; a plug-in brings its own."""
