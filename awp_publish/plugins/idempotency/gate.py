"""Was this call made before? (agent.json section 9)

The same key and input return the recorded answer without running again. `CLAIM_AFTER` defines what happens if something
fails between the handler and the record: a key is free again only if running once more does no harm. Otherwise it
answers `outcome-unknown` until its window ends.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias, cast

import orjson

from awp_publish.calls.call import KNOWN_SHARE, Call, Outcome, Result, read_key, share_of
from awp_publish.calls.fingerprints import canonical, shown_by
from awp_publish.calls.gates.gate import too_many
from awp_publish.calls.tokens import Tokens
from awp_publish.model import Action, Idempotency
from awp_publish.plugin import Ask, Facts, Gate, GateCheck, Setup
from awp_publish.plugins.idempotency.problems import IdempotencyKeyInFlight, IdempotencyKeyReused, OutcomeUnknown
from awp_publish.plugins.idempotency.records import (
    RECORDED_HEADERS,
    answer_again,
    write_answer,
    write_running,
    write_state,
)
from awp_publish.problems import (
    AnswerNotKept,
    HandlerFailed,
    HandlerRedirected,
    HandlerTimeout,
    InvalidIdempotencyKey,
    InvalidOutput,
    StoreUnavailable,
)
from awp_publish.schema import member_names
from awp_publish.schema.redaction import answer_redactor
from awp_publish.stores.store import Add, Count, Counted, Look, Reserve, Seen, Step, Swap

logger: Final = logging.getLogger("awp_publish.calls")

MARGIN: Final = 10.0
"""Seconds after an action's timeout from which on its call cannot be running any more."""

ACCEPTING_SECONDS: Final = 30.0
"""Seconds that accepting a job may take. Its call has ended then, however long the job runs."""

MAX_ANSWER_BYTES: Final = 1_048_576
MAX_ANONYMOUS_ANSWER_BYTES: Final = 65_536
"""Bytes of an answer that is recorded, for a known and for an unknown caller.

A larger answer is given once: afterwards its key is free if the action may run twice, else it answers
`answer-not-kept`.
"""

MAX_ANONYMOUS_KEYS: Final = 1000
ANONYMOUS_WINDOW: Final = 3600.0
"""Keys that unknown callers of one address may claim within so many seconds."""

SMALL_ANSWER_BYTES: Final = 1024
MAX_ANONYMOUS_BYTES: Final = 16 * 1024 * 1024
"""Bytes of larger records that are kept for unknown callers of one address within the window of an action's keys.

Smaller ones are bounded by the number of keys.
"""

MAX_CALLER_BYTES: Final = 128 * 1024 * 1024
"""Bytes of records that are kept for a known caller within the window of an action's keys, smaller ones included."""

RECORD_BYTES: Final = 256
"""Bytes that a record needs in the store besides its value."""

Fate: TypeAlias = Literal["recorded", "free", "unknown"]

CLAIM_AFTER: Final[dict[str, tuple[Fate, Fate, Fate]]] = {
    "answered": ("recorded", "recorded", "recorded"),
    "refused": ("free", "free", "free"),
    "failed": ("free", "free", "unknown"),
    "interrupted": ("free", "unknown", "unknown"),
}
"""What becomes of a key, by how its call ended: for repeatable, other and irreversible actions."""

_INTERRUPTIONS: Final = (HandlerTimeout, HandlerRedirected, InvalidOutput, StoreUnavailable)
"""StoreUnavailable is one of them because a job may have been accepted although the store did not answer."""


class _Claim(Ask):
    """The claim of a call's key. `fingerprints` distinguish its input, one for each key that the site signs with."""

    claim: Add
    fingerprints: tuple[str, ...]

    @property
    def looks(self) -> Sequence[Step]:  # type: ignore[override]  # made only for the few calls that look
        """The record of the key."""
        return (Look(self.claim.key),)


class _Keys(GateCheck[_Claim]):
    def __init__(self, action: Action, keys: Idempotency, facts: Facts, fingerprints: Tokens | None) -> None:
        self._action = action
        self._store = facts.guards.store
        self._tokens = fingerprints
        self._clock = facts.clock
        # Keys of different callers and actions cannot collide: a key has no line breaks, and an action's id no braces.
        self._prefix = f"key:{action.id}\n"
        self._longest = (ACCEPTING_SECONDS if action.is_background else action.timeout) + MARGIN
        self._is_repeatable, self._is_irreversible = action.is_repeatable, action.is_irreversible
        self._key_field, self._is_input = keys.key_field, keys.key_field in member_names(action.inputs)
        self._redact = answer_redactor(action.outputs)
        self._recorded_headers = RECORDED_HEADERS | action.answer_headers
        self._window = float(keys.seconds)
        self._total_name = f"answer-bytes:{self._window:g}"
        self._keep = self._longest if self._is_repeatable else max(keys.seconds, self._longest)

    def enter(self, call: Call) -> None:
        """Take the key out of the input.

        agent.json lists the field beside the inputs, so callers also send it there; it is removed unless it is an input
        of the action.
        """
        if self._key_field in call.input:
            call.key_in_input = call.input[self._key_field]
            if not self._is_input:
                call.input = {name: value for name, value in call.input.items() if name != self._key_field}

    def ask(self, call: Call) -> _Claim | None:
        """Claim the call's key. Raises InvalidIdempotencyKey."""
        key = call.members.idempotency_key
        if key is not None:
            key = read_key(key)
        if call.key_in_input is not None:
            key = self._key_among_inputs(call.key_in_input, key)
        if key is None:
            return None
        fingerprints = self._fingerprints(call)
        until = int((self._clock() + self._longest) * 1000)  # in milliseconds
        running = write_running(fingerprints[0], until, call.request_id)
        principal, ask = call.principal, _Claim()
        ask.fingerprints = fingerprints
        if principal is not None:
            ask.claim = Add(f"{{user:{principal.key}}}{self._prefix}{key}", running, self._keep)
            ask.claims = (ask.claim,)
        else:
            ask.claim = Add(self._prefix + key, running, self._keep)
            most = Count(f"{{ip:{call.presented.address}}}keys", MAX_ANONYMOUS_KEYS, ANONYMOUS_WINDOW)
            ask.claims = (ask.claim, most)
        return ask

    def judge(self, call: Call, ask: _Claim, seen: Sequence[Seen], failed: int | None) -> Outcome | None:
        """Return the recorded answer, where the store was only looked at."""
        recorded = seen[0] if seen else None
        return answer_again(recorded, ask.fingerprints, self._clock()) if isinstance(recorded, bytes) else None

    async def refused(self, call: Call, ask: _Claim, failed: int, seen: Seen) -> Outcome:
        """Return the recorded answer of a key that is claimed. Raises RateLimited if an address has too many keys."""
        if failed == 0:
            return answer_again(cast(bytes, seen), ask.fingerprints, self._clock())
        who = "Anonymous callers from one address may use"
        detail = f"{who} {MAX_ANONYMOUS_KEYS} idempotency keys an hour, others more. The next is possible"
        raise too_many(detail, cast(Counted, seen))

    def needs_answer(self, call: Call, ask: _Claim | None) -> bool:
        """Return True for a call with a key, under which its answer is recorded."""
        return ask is not None

    async def ended(self, call: Call, ask: _Claim | None, result: Result) -> None:
        """Record how the call ended under its key. The answer stands even if that fails."""
        if ask is None:
            return
        record, room = self._record_of(call, ask, result)
        swap = Swap(ask.claim.key, ask.claim.value, record, self._window)
        try:
            # The room comes first: of an unknown caller it may be in another shard than the key.
            if (await self._store.run((*room, swap), durable=True)).failed == 0 and room:
                logger.warning("a caller has no room left for an answer of action %s", self._action.id)
                await self._store.run((self._without_answer(swap, ask),), durable=True)
        except StoreUnavailable:
            where = (self._action.id, call.request_id)
            logger.exception("the answer of action %s could not be recorded (request_id=%s)", *where)
            smaller = self._without_answer(swap, ask)
            if isinstance(result, Outcome) and smaller != swap:
                # A full store has room for what is smaller than the claim, which would say that the call runs.
                with suppress(StoreUnavailable):
                    await self._store.run((smaller,), durable=True)

    def _record_of(self, call: Call, ask: _Claim, result: Result) -> tuple[bytes | None, tuple[Reserve, ...]]:
        """Return what is kept under a key, None to free it, and the step that reserves room for it."""
        if not isinstance(result, Outcome):
            if isinstance(result, HandlerFailed):
                ending = "failed"
            else:
                ending = "interrupted" if isinstance(result, _INTERRUPTIONS) else "refused"
            fate = CLAIM_AFTER[ending][0 if self._is_repeatable else 2 if self._is_irreversible else 1]
            return (write_state("unknown", ask.fingerprints[0]) if fate == "unknown" else None), ()
        if self._redact is not None and self._redact(orjson.loads(result.body)) != orjson.loads(result.body):
            return write_state("given once", ask.fingerprints[0]), ()
        record, principal = write_answer(result, ask.fingerprints[0], self._recorded_headers), call.principal
        size = len(record)
        if size > (MAX_ANONYMOUS_ANSWER_BYTES if principal is None else MAX_ANSWER_BYTES):
            logger.warning("an answer of action %s is too large to be recorded under its key", self._action.id)
            return (None if self._is_repeatable else write_state("too large", ask.fingerprints[0])), ()
        if principal is None and size <= SMALL_ANSWER_BYTES:
            return record, ()

        # The bytes are given back when the records have expired: each window has a total of its own.
        window = self._window
        name = f"{self._total_name}:{int(self._clock() // window)}"
        if principal is None:
            total = f"{{{share_of('', call.presented.address)}}}{name}"
            return record, (Reserve(total, size, MAX_ANONYMOUS_BYTES, 2 * window),)
        total = f"{{{KNOWN_SHARE}{principal.key}}}{name}"
        return record, (Reserve(total, size + RECORD_BYTES, MAX_CALLER_BYTES, 2 * window),)

    def _without_answer(self, swap: Swap, ask: _Claim) -> Swap:
        """Return the step that takes the place of one for whose record there is no room."""
        return swap._replace(new=None if self._is_repeatable else write_state("not recorded", ask.fingerprints[0]))

    def _key_among_inputs(self, sent: object, key: str | None) -> str:
        """Return the key that was sent among the inputs, beside `key`. Raises InvalidIdempotencyKey."""
        if isinstance(sent, bool | list | dict):
            raise InvalidIdempotencyKey(f"{self._key_field}: must be a string.")
        inside = read_key(str(sent))
        if key not in (None, inside):
            raise InvalidIdempotencyKey(f"The idempotency key and the input's member {self._key_field} differ.")
        return inside

    def _fingerprints(self, call: Call) -> tuple[str, ...]:
        """Return digests of the input, and of the credentials that an unknown caller sends to a route.

        These are not part of the key: with other credentials a key is refused, neither replayed to somebody else nor
        run again for somebody whose token was renewed.
        """
        content, action = canonical(call.input), self._action
        if call.principal is None and action.way is not None:
            # Cookies change on their own, so they count only if the route identifies callers by their credentials.
            presented = shown_by(call.presented, action.route_credentials, cookies=action.route_authenticates)
            content += b"\n" + presented.encode("utf-8", "surrogatepass") if presented else b""
        return (sha256(content).hexdigest(),) if self._tokens is None else self._tokens.digests(content)


def idempotency_gate(setup: Setup) -> Gate:
    """Return the gate of a site, with what distinguishes the inputs under a key."""
    site = setup.site
    # Without a secret key, processes that share a store sign with different keys.
    has_keys = bool(site.settings.secret_keys) or not site.store.is_shared
    fingerprints = Tokens(site.keys, f"fingerprint:{site.settings.namespace}", 0.0) if has_keys else None

    def of(action: Action, facts: Facts) -> GateCheck[Any] | None:
        keys = action.idempotency
        return _Keys(action, keys, facts, fingerprints) if keys is not None else None

    return Gate(
        name="idempotency",
        order=600,
        of=of,
        refuses=(InvalidIdempotencyKey, IdempotencyKeyReused, IdempotencyKeyInFlight, OutcomeUnknown, AnswerNotKept),
        options=("idempotency",),
        acts=False,
    )
