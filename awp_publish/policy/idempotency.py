"""Idempotency keys: the same key and input give the recorded answer again, and run nothing (agent.json section 9).

What is promised when something breaks between the handler and the record is in `CLAIM_AFTER`: a key is free again only
where running once more does no harm, or nothing was done. In every other case it answers `outcome-unknown` until its
window ends, so that nothing irreversible is ever done twice under one key.

What is recorded has a most of bytes. It is less for callers of whom nothing is known, whose keys are counted for each
address. An answer that is larger is given once: its key is free again where the action may run twice, else it answers
`answer-not-kept`.
"""

import base64
import hashlib
import json
import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import orjson

from awp_publish.model import Action, Idempotency, JsonObject, RouteCredential
from awp_publish.policy.authentication import Credentials
from awp_publish.policy.call import Call, Claim, Outcome, Result
from awp_publish.problems import (
    AnswerNotKept,
    HandlerFailed,
    HandlerRedirected,
    HandlerTimeout,
    IdempotencyKeyInFlight,
    IdempotencyKeyReused,
    InvalidIdempotencyKey,
    InvalidOutput,
    OutcomeUnknown,
    Problem,
    RateLimited,
    StoreUnavailable,
)
from awp_publish.stores.store import Add, Count, Counted, Seen, Step, Swap, unavailable

logger: Final = logging.getLogger("awp_publish.calls")

REPLAYED: Final = (b"idempotent-replayed", b"true")
MARGIN: Final = 10.0
"""Seconds beyond an action's timeout after which its call can no longer be running."""

MAX_ANSWER_BYTES: Final = 1_048_576
MAX_ANONYMOUS_ANSWER_BYTES: Final = 65_536
"""Bytes of an answer that is recorded, for a caller whom we know and for one whom we do not."""

MAX_ANONYMOUS_KEYS: Final = 1000
ANONYMOUS_WINDOW: Final = 3600.0
"""Keys that callers of one address whom we do not know may claim, in so many seconds."""

_KEY: Final = re.compile(r"[!-~]([ -~]{0,253}[!-~])?")
_QUOTED: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_RECORDED_HEADERS: Final = frozenset({b"location", b"link"})
"""What of an answer's headers is worth repeating. A Set-Cookie is a secret: it is given once."""

Fate: TypeAlias = Literal["recorded", "free", "unknown"]

CLAIM_AFTER: Final[dict[str, tuple[Fate, Fate, Fate]]] = {
    "answered": ("recorded", "recorded", "recorded"),
    "refused": ("free", "free", "free"),
    "failed": ("free", "free", "unknown"),
    "interrupted": ("free", "unknown", "unknown"),
}
"""How the first call ended, and what becomes of its key: for repeatable, other and irreversible actions."""

_IDENTIFYING: Final = re.compile(
    r"(?!.*(csrf|xsrf|user-agent)|idempotency-|sec-|mcp-)"
    r".*(authorization|token|secret|credential|identity|api-?key|(^|-)(key|user|session)(-|$))"
)
"""Names of headers by which a route may know its callers, whether it says so or not."""

FLEETING: Final = re.compile(r"AWSALB|__cf|cf_|_g(a|id|at|cl)|_fbp|csrf|xsrf|messages$", re.IGNORECASE)
"""Names of cookies that say nothing of who calls, and change by themselves."""

_INTERRUPTIONS: Final = (HandlerTimeout, HandlerRedirected, InvalidOutput, StoreUnavailable)


def fingerprint_of(given: JsonObject) -> str:
    """What tells one input from another, whatever the order of its members."""
    return hashlib.sha256(orjson.dumps(given, option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_key(text: str) -> str:
    """A key as it was sent, bare or as a quoted string (draft-ietf-httpapi-idempotency-key-header section 2.1)."""
    key = text.strip()
    if key.startswith('"') and (quoted := _QUOTED.fullmatch(key)):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    if not _KEY.fullmatch(key):
        raise InvalidIdempotencyKey("The idempotency key is empty, too long, or not printable ASCII.")
    return key


class IdempotencyKeys:
    """The idempotency keys of one action: claims them, answers with what is recorded under them, and records."""

    def __init__(self, action: Action, declared: Idempotency, clock: Callable[[], float] = time.time) -> None:
        self._action = action
        self._in_input = declared.key_field if declared.key_field in _properties(action.inputs) else None
        self._longest = action.timeout + MARGIN
        self._window = float(declared.seconds)
        self._keep = self._longest if action.is_repeatable else max(declared.seconds, self._longest)
        self._is_irreversible = action.is_irreversible
        self.clock = clock

    def claim(self, call: Call) -> Claim | None:
        """Return the claim of a call's key, None for a call without one. Raises InvalidIdempotencyKey."""
        sent = call.idempotency_key
        if self._in_input is not None:  # a key may come beside the input or in it
            inside = call.input.get(self._in_input)
            several = {read_key(str(key)) for key in (sent, inside) if key is not None}
            if len(several) > 1:
                detail = f"The idempotency key and the input's member {self._in_input} differ."
                raise InvalidIdempotencyKey(detail)
            key = next(iter(several), None)
        else:
            key = None if sent is None else read_key(sent)
        if key is None:
            return None
        fingerprint, until = _fingerprint_of_call(call), self.clock() + self._longest
        by = orjson.dumps(call.request_id)
        value = b'{"state":"running","for":"%b","until":%a,"by":%b}' % (fingerprint.encode(), until, by)
        # Keys of different callers and actions never meet: a key has no line breaks, and an action's id no colons.
        return Claim(f"key:{self._action.id}:{call.caller_id}\n{key}", value, fingerprint)

    def steps(self, call: Call, claim: Claim) -> list[Step]:
        """Return the steps that claim a key; those of callers of whom nothing is known are counted."""
        add = Add(claim.key, claim.value, self._keep)
        if call.principal is not None:
            return [add]
        return [add, Count(f"keys:ip:{call.address}", MAX_ANONYMOUS_KEYS, ANONYMOUS_WINDOW)]

    def answer(self, claim: Claim, seen: Sequence[Seen], holds: bool) -> Outcome | None:
        """Return what is recorded under a key, None if it is free. Raises the Problem of a key that is neither."""
        if seen and isinstance(seen[0], bytes):
            return _answer_again(seen[0], claim.fingerprint, self.clock())
        if not holds and len(seen) > 1 and isinstance(seen[1], Counted):
            raise _too_many_keys(seen[1])
        return None

    def settle(self, call: Call, claim: Claim, result: Result) -> Step:
        """Return the step that says what becomes of a claim now that its call has ended."""
        fates = CLAIM_AFTER["answered" if isinstance(result, Outcome) else _how(result)]
        fate = fates[0 if self._action.is_repeatable else 2 if self._is_irreversible else 1]
        if fate == "free":
            return Swap(claim.key, claim.value, None)
        if fate == "recorded" and isinstance(result, Outcome):
            headers: list[tuple[str, str]] = []
            for name, value in result.headers:
                if name in _RECORDED_HEADERS:
                    headers.append((name.decode("latin-1"), value.decode("latin-1")))
            # One line of JSON, then the body as it was.
            facts = claim.fingerprint.encode(), result.status, orjson.dumps(headers) if headers else b"[]", result.body
            record = b'{"state":"done","for":"%b","status":%d,"headers":%b}\n%b' % facts
            if len(record) <= (MAX_ANONYMOUS_ANSWER_BYTES if call.principal is None else MAX_ANSWER_BYTES):
                return Swap(claim.key, claim.value, record, self._window)
            logger.warning("an answer of action %s is too large to be recorded under its key", self._action.id)
            if self._action.is_repeatable:
                return Swap(claim.key, claim.value, None, self._window)
            state = b"too large"
        else:
            state = b"unknown"
        ended = b'{"state":"%b","for":"%b"}\n' % (state, claim.fingerprint.encode())
        return Swap(claim.key, claim.value, ended, self._window)


def _fingerprint_of_call(call: Call) -> str:
    """The input's, and of what an unknown caller shows to a route, which may know them by it.

    It is in the fingerprint and not in the key: with other credentials a key is refused, neither replayed to somebody
    else nor run once more for somebody whose token was renewed.
    """
    fingerprint = fingerprint_of(call.input)
    if call.principal is not None or call.action.target is None or call.credentials is None:
        return fingerprint
    # Cookies change by themselves, so they count only if the route says that it knows callers by what they show.
    words = shown_by(call.credentials(), call.action.route_credentials, cookies=call.action.route_authenticates)
    return hashlib.sha256(f"{fingerprint}\n{words}".encode()).hexdigest() if words else fingerprint


def shown_by(
    shown: Credentials, known: Iterable[RouteCredential] = (), *, cookies: bool = False, session: bool = True
) -> str:
    """Return what a caller shows by which a route may know them when we do not, "" for nothing.

    These are the headers that identify somebody by their name or because the route's security scheme looks there
    (`known`), the cookies where that scheme looks, and the application's session. Where the scheme names no cookie,
    `cookies` counts all of them but the session's own, which is signed anew with each answer.
    """
    headers, looked_for = shown.headers, frozenset(known)
    words = [
        f"{name}: {headers[name]}"
        for name in sorted(headers)
        if ("header", name) in looked_for or _IDENTIFYING.match(name)
    ]
    named = any(one.place == "cookie" for one in looked_for)
    for pair in sorted(headers.get("cookie", "").split(";")) if named or cookies else ():
        name, _, value = pair.strip().partition("=")
        if ("cookie", name) in looked_for if named else not (FLEETING.match(name) or _holds(value, shown.session)):
            words += [f"cookie {name}={value}"] if name else []
    if session and shown.session:
        words.append(json.dumps(dict(shown.session), default=str, skipkeys=True))
    return "\n".join(words)


def _holds(cookie: str, session: Mapping[str, object] | None) -> bool:
    """Whether a cookie is the session itself, as Starlette's SessionMiddleware writes it: Base64 before a dot."""
    if not session:
        return False
    try:
        return bool(json.loads(base64.b64decode(cookie.strip('"').partition(".")[0])) == dict(session))
    except (ValueError, RecursionError):
        return False


def _how(problem: Problem) -> str:
    """A job that the store did not answer for may have been accepted all the same."""
    if isinstance(problem, HandlerFailed):
        return "failed"
    return "interrupted" if isinstance(problem, _INTERRUPTIONS) else "refused"


def _properties(schema: JsonObject) -> JsonObject:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _answer_again(found: bytes, fingerprint: str, now: float) -> Outcome:
    try:
        return _replay(found, fingerprint, now)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        logger.error("the record of an idempotency key cannot be read: %s", type(error).__name__)
        raise unavailable("The record of this idempotency key is damaged.") from error


def _replay(found: bytes, fingerprint: str, now: float) -> Outcome:
    line, _, body = found.partition(b"\n")
    facts = orjson.loads(line)
    state, meant_for = facts["state"], facts["for"]
    if not isinstance(meant_for, str):
        raise TypeError
    if meant_for != fingerprint:
        raise IdempotencyKeyReused("This idempotency key came with another input, or other credentials, before.")
    if state == "done":
        headers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in facts["headers"])
        return Outcome(body, orjson.loads(body), int(facts["status"]), (REPLAYED, *headers))
    if state == "too large":
        raise AnswerNotKept("The first call with this idempotency key succeeded; its answer was too large to be kept.")
    if state == "running" and now < facts["until"]:
        raise IdempotencyKeyInFlight(
            "The first call with this idempotency key has not ended yet.", headers=[("Retry-After", "1")]
        )
    raise OutcomeUnknown("The first call with this idempotency key ended without an answer; it may have taken effect.")


def _too_many_keys(seen: Counted) -> RateLimited:
    seconds = max(1, math.ceil(seen.seconds_left))
    return RateLimited(
        f"Callers of one address whom the site does not know may use {MAX_ANONYMOUS_KEYS} idempotency keys an hour; "
        f"the next is possible in {seconds} seconds, or with credentials.",
        headers=[("Retry-After", str(seconds))],
        members={"retry_after": seconds},
    )
