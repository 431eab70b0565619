"""`Guard`: everything that precedes the handler of one action, in order, and the record of how a call ended.

authenticate -> audience -> limits -> validate input -> replay -> prerequisites -> confirmation. The caller is known
before anything is counted, and callers who may not know of the action are told that it does not exist. A replay is
looked up before the confirmation, because a retried call carries a used one; prerequisites precede the confirmation, so
that no person is asked about a call that cannot go through. For a caller over the limit, the input is only tested, and
its faults are not described.

Most calls need the store once. If confirmations or remembered successes are involved, a first round trip only counts
and looks, and a second one claims: a call that is refused claims nothing.

* **Limits** (AWAS 1.0 `rateLimit`, agent.json section 9): the published value is enforced. A window opens with its
  first call. Answers say how much is left, in RateLimit and RateLimit-Policy
  (draft-ietf-httpapi-ratelimit-headers-10) and in AWAS's X-RateLimit-* (1.1, HTTP behaviour).
* **Idempotency keys** (agent.json section 9): the same key and input return the recorded answer without running again.
  `CLAIM_AFTER` defines what happens if something fails between the handler and the record: a key is free again only if
  running once more does no harm. Otherwise it answers `outcome-unknown` until its window ends.
* **Prerequisites** (agent.json section 11): a success is remembered for a known caller, by principal or session. An
  unknown caller gets a signed receipt, which is bound to the credentials that were sent to the route. A success without
  any credentials counts for everybody; that is how signing in can come first.
* **Confirmation** (agent.json section 9): the first call returns what would happen, the second brings a signed token. A
  token is bound to its caller, action and input and to the text that the person read; it expires, and is used up by the
  call that it admits, in every process. If only the route knows the caller, it is bound to the credentials sent to it.
"""

import asyncio
import base64
import hmac
import inspect
import json
import logging
import re
import secrets
import time
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import sha256
from math import ceil
from string import Formatter
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import parse_qsl

import orjson
from itsdangerous import BadData, URLSafeSerializer
from itsdangerous.encoding import base64_decode, base64_encode
from starlette.exceptions import HTTPException

from awp_publish.calls.authentication import (
    CALLER,
    AgentAuthenticator,
    AuthenticationGate,
    Authenticator,
    challenges_of_route,
)
from awp_publish.calls.call import (
    PART_OF_ANSWER,
    RECEIPT,
    Call,
    Content,
    Credentials,
    Outcome,
    Principal,
    RawHeaders,
    Result,
    never_disconnected,
    read_key,
    share_of,
)
from awp_publish.calls.threads import run_in_thread
from awp_publish.model import Action, JsonObject, RateLimit, RouteCredential, utc_text
from awp_publish.problems import (
    AnswerNotKept,
    AuthenticationRequired,
    ConfirmationExpired,
    ConfirmationForeign,
    ConfirmationMismatch,
    ConfirmationRequired,
    ConfirmationSpent,
    ConfirmationStale,
    ConfirmationTampered,
    HandlerFailed,
    HandlerRedirected,
    HandlerTimeout,
    IdempotencyKeyInFlight,
    IdempotencyKeyReused,
    InsufficientPermissions,
    InvalidIdempotencyKey,
    InvalidInput,
    InvalidOutput,
    JobQueueFull,
    OutcomeUnknown,
    PrerequisiteRequired,
    Problem,
    RateLimited,
    StoreUnavailable,
    TooManyJobs,
    raised,
)
from awp_publish.schema import Validator, media, member_names, named_subschemas, parts_of, subschemas
from awp_publish.schema.redaction import HIDDEN, answer_redactor, input_redactor
from awp_publish.stores.store import Add, Count, Counted, Look, Reserve, Step, Store, Swap, unavailable

logger: Final = logging.getLogger("awp_publish.calls")

SITE: Final = "site-wide"
"""The name of the limit for all actions together. No action has this name, because ids have no hyphens."""

REPLAYED: Final = (b"idempotent-replayed", b"true")
MARGIN: Final = 10.0
"""Seconds after an action's timeout from which on its call cannot be running any more."""

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

MAX_RECEIPTS: Final = 50
"""Receipts of one call that are read."""

SPENT_MARGIN: Final = 86400.0
"""Seconds that a used token is remembered beyond its lifetime, so that a clock set back does not revive it."""

MAX_SUMMARY: Final = 2000
"""Characters of a summary by a function of the site."""

Fate: TypeAlias = Literal["recorded", "free", "unknown"]

CLAIM_AFTER: Final[dict[str, tuple[Fate, Fate, Fate]]] = {
    "answered": ("recorded", "recorded", "recorded"),
    "refused": ("free", "free", "free"),
    "failed": ("free", "free", "unknown"),
    "interrupted": ("free", "unknown", "unknown"),
}
"""What becomes of a key, by how its call ended: for repeatable, other and irreversible actions."""

_RECORDED_HEADERS: Final = PART_OF_ANSWER | {b"location", media.HEADER}
"""Headers of an answer that are recorded. A Set-Cookie is secret and given only once."""

_INTERRUPTIONS: Final = (HandlerTimeout, HandlerRedirected, InvalidOutput, StoreUnavailable)
"""StoreUnavailable is one of them because a job may have been accepted although the store did not answer."""

_NOT_STARTED: Final = (TooManyJobs, JobQueueFull)
"""Refusals of calls that had been admitted, but did nothing."""

_IDENTIFYING: Final = re.compile(
    r"(?!.*(csrf|xsrf|user-agent)|idempotency-|sec-|mcp-)"
    r".*(authorization|token|secret|credential|identity|api-?key|(^|-)(key|user|session)(-|$))"
)
"""Names of headers by which a route may identify callers, whether it declares them or not."""

VOLATILE_COOKIES: Final = re.compile(r"AWSALB|__cf|cf_|_g(a|id|at|cl)|_fbp|csrf|xsrf|messages$", re.IGNORECASE)
"""Names of cookies that do not identify the caller and change on their own."""

_new: Final = tuple.__new__
"""Makes a named tuple without calling its class's Python-level `__new__`: each guarded call makes four."""


# --- Signed tokens: confirmations and receipts, each with a salt of its own, under keys that can be rotated ---

EXPIRES: Final = "e"
"""Unix seconds. Not the serializer's own timestamp, which rejects what was signed by a clock ahead of ours."""


class NotOurs(Exception):
    """A token that was not signed with the site's keys, or was modified."""


class Expired(Exception):
    """A token that has expired."""


class Tokens:
    """Writes and reads tokens for one purpose. `keys` are newest first: the first signs, all verify."""

    def __init__(
        self, keys: Sequence[str], purpose: str, lifetime: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.lifetime = lifetime
        self._clock = clock
        named = f"awp_publish.{purpose}.digest".encode()
        # HMAC (RFC 2104) with both pads prepared, which is half of its cost.
        blocks = [hmac.digest(key.encode(), named, "sha256").ljust(64, b"\0") for key in keys]
        self._keyed = [(sha256(one.translate(hmac.trans_36)), sha256(one.translate(hmac.trans_5C))) for one in blocks]
        self._serializer = URLSafeSerializer(
            list(reversed(keys)),  # itsdangerous signs with the last key
            salt=f"awp_publish.{purpose}",
            signer_kwargs={"digest_method": sha256, "key_derivation": "hmac"},
        )

    def digests(self, text: str | bytes) -> tuple[str, ...]:
        """Return keyed digests of a text, one a key, newest first: for what a token is bound to but must not reveal.

        With plain hashes, readers of the token or the store could guess passwords or short numbers.
        """
        given = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        found: list[str] = []
        for inner, outer in self._keyed:
            digest, whole = inner.copy(), outer.copy()
            digest.update(given)
            whole.update(digest.digest())
            found.append(whole.hexdigest())
        return tuple(found)

    def write(self, facts: JsonObject) -> tuple[str, float]:
        """Return a token for these facts, and when it expires, in Unix seconds."""
        expires = int(self._clock() + self.lifetime)
        token = self._serializer.dumps({**facts, EXPIRES: expires})
        return (token if isinstance(token, str) else token.decode("ascii")), expires

    def read(self, token: str) -> JsonObject:
        """Return the facts of a token. Raises NotOurs, Expired."""
        try:
            facts: object = self._serializer.loads(token)
            signature = token.rpartition(".")[2].encode("ascii")
            if base64_encode(base64_decode(signature)) != signature:  # Base64 can encode it in several ways
                raise NotOurs
        except (BadData, ValueError) as error:
            raise NotOurs from error
        if not isinstance(facts, dict) or not isinstance(facts.get(EXPIRES), int):
            raise NotOurs
        if facts[EXPIRES] <= self._clock():
            raise Expired
        return facts


# --- Facts that the guards of a site share ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Facts that the guards of one catalog share.

    `realm` and `metadata_url` are parts of challenges (RFC 9110 section 11.5, RFC 9728 section 5.1). `codes` are the
    site's own problem codes, with their recovery. `fingerprints` distinguish inputs under an idempotency key; it is
    None if processes share a store but no secret key. `confirmations` and `receipts` are set if an action needs them;
    `receipted` are the actions that others require, and `credentials` those by which the actions' routes identify
    callers.
    """

    store: Store
    authenticators: tuple[Authenticator, ...] = ()
    realm: str = ""
    metadata_url: str | None = None
    codes: Mapping[str, str] = field(default_factory=dict)
    rate_limit: RateLimit | None = None
    fingerprints: Tokens | None = None
    confirmations: Tokens | None = None
    receipts: Tokens | None = None
    receipted: frozenset[str] = frozenset()
    credentials: frozenset[RouteCredential] = frozenset()

    def identify(self, *, required: bool = False, scopes: tuple[str, ...] = ()) -> AuthenticationGate:
        """Return a gate that identifies the caller of a request that is not a call of an action."""
        known = self.authenticators, required, scopes, self.realm, self.metadata_url
        return AuthenticationGate(*known, store=self.store)

    def guard_of(
        self,
        action: Action,
        inputs: Validator,
        *,
        check: Callable[[Call], None] | None = None,
        rehearse: Callable[[Call], Awaitable[None]] | None = None,
    ) -> "Guard | None":
        """Return the guard of an action, None if it needs none."""
        guard = Guard(action, self, inputs, check=check, rehearse=rehearse)
        return guard if guard.is_needed else None

    async def certify(self, call: Call) -> RawHeaders:
        """Remember a success that other actions require, and return the header that proves it."""
        action, receipts = call.action.id, self.receipts
        if receipts is None or action not in self.receipted:
            return ()
        if caller := call.known_as:
            try:
                key, until = f"done:{action}:{caller}", b"%d" % time.time()
                ran = await self.store.run((Add(key, until, receipts.lifetime),))
                if ran.failed is not None and isinstance(ran.seen[0], bytes):
                    await self.store.run((Swap(key, ran.seen[0], until, receipts.lifetime),))
            except StoreUnavailable:  # the answer stands, and the receipt proves the success, too
                logger.exception("a success of action %s could not be noted (request_id=%s)", action, call.request_id)
        facts = {"action": action, "caller": call.caller_key}
        if shown := self.shown_to_routes(call):
            facts["shown"] = receipts.digests(shown)[0]
        token, _ = receipts.write(facts)
        return ((RECEIPT, token.encode("ascii")),)

    def shown_to_routes(self, call: Call) -> str:
        """Return the credentials of an unknown caller, without the session, which the required actions change."""
        if call.principal is not None:
            return ""
        return shown_by(call.credentials(), self.credentials, session=False)


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit and its name: an action's id, or SITE for the limit of all actions together.

    `key` is the prefix of its counts in the store, `state` the format of its item in RateLimit: remaining calls and
    seconds.
    """

    name: str
    rate: RateLimit
    most: int
    seconds: int
    scope: str | None
    key: str
    state: bytes
    header: tuple[bytes, bytes]


class Guard:
    """Admits calls of one action, and afterwards settles what it claimed for them.

    `check` raises InvalidInput for a call that cannot be sent to its route, `rehearse` whatever the route's own
    security raises for its caller.
    """

    def __init__(
        self,
        action: Action,
        guards: Guards,
        inputs: Validator,
        clock: Callable[[], float] = time.time,
        *,
        check: Callable[[Call], None] | None = None,
        rehearse: Callable[[Call], Awaitable[None]] | None = None,
    ) -> None:
        self._action = action
        self._guards = guards
        self._store = guards.store
        self._inputs = inputs
        self._check = check
        self._rehearse = rehearse if action.rehearsal is not None else None
        self.clock = clock

        named = ((SITE, guards.rate_limit), (action.id, action.rate_limit))
        self._limits = tuple(
            _Limit(
                name,
                rate,
                rate.requests,
                rate.seconds,
                rate.scope,
                f"limit:{name}:",
                b'"%b";r=%%d;t=%%d' % name.encode("ascii"),
                (b"x-ratelimit-limit", b"%d" % rate.requests),
            )
            for name, rate in named
            if rate is not None
        )
        self._names_agents = any(one.rate.whom for one in self._limits)
        self._counts_addresses = any(one.scope == "ip" for one in self._limits)
        policies = ", ".join(f'"{one.name}";q={one.most};w={one.seconds}' for one in self._limits)
        self._policies = (b"ratelimit-policy", policies.encode("ascii"))

        keys = action.idempotency
        self._takes_keys = keys is not None
        self._longest = action.timeout + MARGIN
        self._is_repeatable, self._is_irreversible = action.is_repeatable, action.is_irreversible
        if keys is not None:
            self._key_field, self._is_input = keys.key_field, keys.key_field in member_names(action.inputs)
            self._redact = answer_redactor(action.outputs)
            self._window = float(keys.seconds)
            self._keep = self._longest if self._is_repeatable else max(keys.seconds, self._longest)

        self._requires = action.requires if guards.receipts is not None else ()
        self._certifies = action.id in guards.receipted and not action.is_background
        self._confirmations = guards.confirmations if action.needs_confirmation else None
        if self._confirmations is not None:
            self._summary, self._redact_input = summarizer(action), input_redactor(action.inputs)
            self._in_order = in_order(action.inputs)
            words = action.confirmation_summary
            self._summary_takes_call = callable(words) and takes_call(words)
        self._durable = action.needs_confirmation or action.is_irreversible  # claims must survive a power failure

        self._is_everywhere = action.is_public and action.expose is None
        self._authentication: AuthenticationGate | None = None
        self._agents = next((one for one in guards.authenticators if isinstance(one, AgentAuthenticator)), None)
        if guards.authenticators:
            # A route with its own security scheme requires credentials itself; ours only identify callers whom we know.
            ours = action.auth_required and not action.route_authenticates
            self._authentication = AuthenticationGate(
                guards.authenticators,
                required=ours,
                scopes=action.scopes if ours else (),
                realm=guards.realm,
                metadata_url=guards.metadata_url,
                trusts_route=action.route_authenticates,
                store=guards.store,
            )

    @property
    def is_needed(self) -> bool:
        """Return True if there is anything to enforce."""
        action, guards = self._action, self._guards
        return bool(
            self._limits
            or self._takes_keys
            or self._confirmations
            or self._requires
            or self._authentication
            or not self._is_everywhere
            or action.id in guards.receipted
        )

    async def admit(self, call: Call) -> Outcome | None:
        """Admit a call (None), or return its recorded answer. Raises the Problem for which it is refused."""
        # Who is the caller, and may the caller know of the action?
        action, gate, principal = self._action, self._authentication, call.principal
        credentials: Credentials | None = None  # not read if the token alone identifies the caller
        agents: AgentAuthenticator | None = None
        if gate is not None:
            known: Principal | None = None
            if gate.find_at_once is not None and call.authorization is not None:
                known = gate.find_at_once(call.authorization)
            if known is not None:
                principal = known
            else:
                credentials, agents = call.credentials(), self._agents
                if agents is not None:
                    with suppress(Problem):  # raised again where it matters
                        await agents(credentials)
                    call.label = agents.label_of(credentials)
                try:
                    principal = await gate.identify(credentials)
                except Problem:
                    if action.is_public:
                        raise
            if principal is not None and principal.label != call.label:
                principal = replace(principal, label=call.label)
            call.principal = principal
            CALLER.set(principal)
        if not self._is_everywhere:
            scopes = None if principal is None else principal.scopes
            if not (action.is_exposed_at(call.door) and action.is_for(scopes)):
                raise call.unknown()
            if call.objection is not None:
                raise call.objection
        if gate is not None:
            if principal is None or gate.scopes:
                gate.require(principal)
            allowed = action.allow_agents
            # Only an agent that has signed can be one of them, however else the caller is known.
            if allowed and (agents is None or credentials is None or agents.names_of(credentials).isdisjoint(allowed)):
                raise InsufficientPermissions(
                    f"Action {action.id} is only for {', '.join(allowed)}; this caller is {call.label}.",
                    recovery="Sign the request as Accept-Signature says, if you are one of those agents.",
                    headers=getattr(self._agents, "demands", ()),
                )
        address = ""
        if principal is None or self._counts_addresses:
            credentials = credentials or call.credentials()
            address = credentials.address

        # What can be decided without the store? It is raised only if neither a limit nor a recorded answer comes first.
        if self._takes_keys and self._key_field in call.input:
            # agent.json lists the field beside the inputs, so callers also send it there; it is removed unless it is an
            # input of the action.
            call.key_in_input = call.input[self._key_field]
            if not self._is_input:
                call.input = {name: value for name, value in call.input.items() if name != self._key_field}
        is_valid = self._inputs.is_valid(call.input)
        objection: Problem | None = None
        claim: Add | None = None
        consent: _Consent | None = None
        spend: Add | None = None
        claims: list[Step] = []
        missing: list[str] = []
        if is_valid:
            if self._takes_keys:
                try:
                    claim = self._claim(call, credentials)
                except Problem as problem:
                    objection = problem
                if claim is not None:
                    claims.append(claim)
                    if principal is None:
                        claims.append(Count(f"keys:ip:{address}", MAX_ANONYMOUS_KEYS, ANONYMOUS_WINDOW))
            if self._requires:
                receipts, proven = cast(Tokens, self._guards.receipts), set[str]()
                shown = receipts.digests(self._guards.shown_to_routes(call)) if call.receipts else ()
                for receipt in call.receipts[:MAX_RECEIPTS]:
                    with suppress(NotOurs, Expired):
                        proof = receipts.read(receipt)
                        if proof.get("caller") in ("", call.caller_key) and proof.get("shown") in (None, *shown):
                            proven.add(str(proof.get("action")))
                missing = [needed for needed in self._requires if needed not in proven]
            if self._confirmations is not None:
                consent = self._read_confirmation(call)

        # Count, and look or claim
        steps: list[Step] = []
        limits = self._limits
        if self._names_agents and agents is not None and credentials is not None:
            whom = agents.names_of(credentials)
            limits = tuple(one for one in limits if one.rate.whom in whom)
        for limit in limits:
            if limit.scope == "global":
                counted = limit.key
            elif principal is None or limit.scope == "ip":
                counted = f"{limit.key}ip:{address}"
            else:
                counted = f"{limit.key}user:{principal.key}"
            steps.append(_new(Count, (counted, limit.most, limit.seconds)))
        at = done = len(steps)
        only_looks = consent is not None or bool(missing)
        if only_looks:
            steps += [Look(claim.key)] if claim is not None else []
            done = len(steps)
            steps += [Look(f"done:{needed}:{call.known_as}") for needed in missing] if call.known_as else []
            steps += [Look(consent.spend.key)] if consent is not None and consent.spend is not None else []
        else:
            steps += claims
        failed, seen = await self._store.run(steps, durable=self._durable) if steps else (None, ())

        # Limits, input, replay
        if at:
            # The answer has the state of each limit, and in AWAS's fields that of the tightest one.
            states: list[bytes] = []
            least: tuple[int, int, float] | None = None
            found: Any
            for limit, found in zip(limits, seen, strict=False):
                events, seconds_left = found
                left = limit.most - events if limit.most > events else 0
                states.append(limit.state % (left, ceil(seconds_left)))
                if least is None or (left, limit.most, seconds_left) < least:
                    least, limit_header = (left, limit.most, seconds_left), limit.header
            if least is not None:
                call.headers += (
                    self._policies,
                    (b"ratelimit", b", ".join(states)),
                    limit_header,
                    (b"x-ratelimit-remaining", b"%d" % least[0]),
                    (b"x-ratelimit-reset", b"%d" % ceil(self.clock() + least[2])),  # Unix seconds
                )
            if failed is not None and failed < at:
                limit = limits[failed]
                whose = "The site allows" if limit.name == SITE else f"Action {limit.name} allows"
                raise _too_many(f"{whose} {limit.rate}; the next call is possible", cast(Counted, seen[-1]))
        if not is_valid:
            raise InvalidInput.of(*self._inputs.describe(call.input, call.elsewhere))
        if objection is not None:
            raise objection
        if only_looks:
            if claim is not None and isinstance(recorded := seen[at], bytes):
                return await self._answer_again(call, recorded)
            # Prerequisites
            if call.known_as:
                missing = [one for one, found in zip(missing, seen[done:], strict=False) if found is None]
            if missing:
                listed = ", ".join(missing)
                if call.known_as:
                    detail = f"Action {self._action.id} requires a success of {listed} first, and none is remembered."
                else:
                    detail = f"Action {self._action.id} requires a receipt of {listed}; none that was sent is valid."
                raise PrerequisiteRequired(detail, members={"missing": missing})
            # Confirmation
            if consent is not None:
                is_spent = consent.spend is not None and seen[-1] is not None
                spend = await self._confirm(call, consent, is_spent)
                claims.append(spend)
            failed, seen = await self._store.run(claims, durable=self._durable) if claims else (None, ())
            at = 0

        # A claim that another call holds refuses this one
        if failed is not None:
            refused, found = claims[failed - at], seen[-1]
            if isinstance(refused, Count):
                who = "Unknown callers of one address may use"
                detail = f"{who} {MAX_ANONYMOUS_KEYS} idempotency keys an hour, known ones more. The next is possible"
                raise _too_many(detail, cast(Counted, found))
            if refused is claim:
                return await self._answer_again(call, cast(bytes, found))
            raise ConfirmationSpent("This confirmation has already been used.")
        call.claim, call.spent = claim, spend
        if claims:
            call.disconnected = never_disconnected  # it runs to its end, so that it can be recorded
        return None

    async def conclude(self, call: Call, result: Result) -> Result:
        """Record how a call ended under its key, and add its receipt. The answer stands even if that fails.

        A call that was not started may be sent again with the same confirmation.
        """
        if (spent := call.spent) is not None and isinstance(result, _NOT_STARTED):
            try:
                await self._store.run((Swap(spent.key, spent.value, None),), durable=True)
            except StoreUnavailable:
                which = (self._action.id, call.request_id)
                logger.exception("a confirmation of action %s could not be given back (request_id=%s)", *which)
        if (claim := call.claim) is not None:
            kept: bytes | None = None
            instead: bytes | None = None  # what can be recorded where there is no room for an answer
            fingerprint = call.fingerprints[0].encode()
            if not isinstance(result, Outcome):
                if isinstance(result, HandlerFailed):
                    how = "failed"
                else:
                    how = "interrupted" if isinstance(result, _INTERRUPTIONS) else "refused"
                fate = CLAIM_AFTER[how][0 if self._is_repeatable else 2 if self._is_irreversible else 1]
                if fate == "unknown":
                    kept = b'{"state":"unknown","for":"%b"}\n' % fingerprint
            elif self._redact is not None and self._redact(orjson.loads(result.body)) != orjson.loads(result.body):
                kept = b'{"state":"given once","for":"%b"}\n' % fingerprint
            else:
                headers = content = b""
                if result.headers:
                    kept_headers = _RECORDED_HEADERS | self._action.answer_headers
                    pairs = [(name, value) for name, value in result.headers if name in kept_headers]
                    headers = orjson.dumps([(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs])
                if result.content is not None:
                    content = b',"content":' + orjson.dumps(list(result.content))
                # One line of JSON, then the unchanged body.
                facts = fingerprint, result.status, headers or b"[]", content, result.body
                kept = b'{"state":"done","for":"%b","status":%d,"headers":%b%b}\n%b' % facts
                if not self._is_repeatable:
                    instead = b'{"state":"not recorded","for":"%b"}\n' % fingerprint
                if len(kept) > (MAX_ANONYMOUS_ANSWER_BYTES if call.principal is None else MAX_ANSWER_BYTES):
                    logger.warning("an answer of action %s is too large to be recorded under its key", self._action.id)
                    ended = b'{"state":"too large","for":"%b"}\n' % fingerprint
                    kept = None if self._is_repeatable else ended
                elif call.principal is None and len(kept) > SMALL_ANSWER_BYTES:
                    kept = kept if await self._reserve_answer(call, len(kept)) else instead
            try:
                await self._store.run((_new(Swap, (claim.key, claim.value, kept, self._window)),), durable=True)
            except StoreUnavailable:
                which = (self._action.id, call.request_id)
                logger.exception("the answer of action %s could not be recorded (request_id=%s)", *which)
                if isinstance(result, Outcome) and kept != instead:
                    # A full store has room for what is smaller than the claim, which would say that the call runs.
                    with suppress(StoreUnavailable):
                        await self._store.run((Swap(claim.key, claim.value, instead, self._window),), durable=True)
        if self._certifies and isinstance(result, Outcome):
            call.headers += await self._guards.certify(call)
        return result

    # --- Idempotency keys ---

    async def _reserve_answer(self, call: Call, size: int) -> bool:
        """Reserve bytes for an unknown caller's answer. Returns False if its address has none left."""
        address = call.credentials().address
        turn = int(self.clock() // self._window)  # bytes are given back when the records have expired
        key = f"answer-bytes:{self._window:g}:{turn}:{share_of('', address)}"
        try:
            ran = await self._store.run((Reserve(key, size, MAX_ANONYMOUS_BYTES, 2 * self._window),))
        except StoreUnavailable:
            return False
        return ran.failed is None

    def _claim(self, call: Call, credentials: Credentials | None) -> Add | None:
        """Return the step that claims a call's key, or None without a key. Raises InvalidIdempotencyKey."""
        key = call.idempotency_key
        if key is not None:
            key = read_key(key)
        if (inside := call.key_in_input) is not None:
            if isinstance(inside, bool | list | dict):
                raise InvalidIdempotencyKey(f"{self._key_field}: must be a string.")
            if key not in (None, read_key(str(inside))):
                raise InvalidIdempotencyKey(f"The idempotency key and the input's member {self._key_field} differ.")
            key = read_key(str(inside))
        if key is None:
            return None
        # The fingerprint covers the input, and the credentials that an unknown caller sends to a route. They are not
        # part of the key: with other credentials a key is refused, neither replayed to somebody else nor run again for
        # somebody whose token was renewed.
        content, action, principal = _canonical(call.input), self._action, call.principal
        if principal is None and action.way is not None and credentials is not None:
            # Cookies change on their own, so they count only if the route identifies callers by their credentials.
            words = shown_by(credentials, action.route_credentials, cookies=action.route_authenticates)
            content += b"\n" + words.encode("utf-8", "surrogatepass") if words else b""
        tokens = self._guards.fingerprints
        call.fingerprints = fingerprints = (sha256(content).hexdigest(),) if tokens is None else tokens.digests(content)
        # In whole milliseconds: writing a float takes longer than everything else here.
        until, by = (self.clock() + self._longest) * 1000, orjson.dumps(call.request_id)
        value = b'{"state":"running","for":"%b","until":%d,"by":%b}' % (fingerprints[0].encode(), until, by)
        # Keys of different callers and actions cannot collide: a key has no line breaks, and an action's id no colons.
        caller = "" if principal is None else principal.key
        return _new(Add, (f"key:{action.id}:{caller}\n{key}", value, self._keep))

    async def _answer_again(self, call: Call, found: bytes) -> Outcome:
        """Return the answer that is recorded under a key. Raises the Problem of a key without one."""
        line, _, body = found.partition(b"\n")
        try:
            facts = orjson.loads(line)
            state, meant_for = facts["state"], facts["for"]
            if not isinstance(meant_for, str):
                raise TypeError
            is_running = state == "running" and self.clock() * 1000 < facts["until"]
            if state == "done" and meant_for in call.fingerprints:
                headers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in facts["headers"])
                content = Content(*facts["content"]) if "content" in facts else None
                answer = Outcome(body, orjson.loads(body), int(facts["status"]), (REPLAYED, *headers), content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            logger.error("the record of an idempotency key cannot be read: %s", type(error).__name__)
            raise unavailable("The record of this idempotency key is damaged.") from error
        first = "The first call with this idempotency key"
        if meant_for not in call.fingerprints:
            raise IdempotencyKeyReused("This idempotency key was used before with another input or other credentials.")
        if state == "too large":
            raise AnswerNotKept(f"{first} succeeded; its answer was too large to be kept.")
        if state == "not recorded":
            raise AnswerNotKept(f"{first} succeeded; its answer could not be recorded.")
        if state == "given once":
            raise AnswerNotKept(f"{first} succeeded; its answer is given only once.")
        if is_running:
            raise IdempotencyKeyInFlight(f"{first} has not ended yet.", headers=[("Retry-After", "1")])
        if state != "done":
            raise OutcomeUnknown(f"{first} ended without an answer; it may have taken effect.")
        if self._certifies:
            call.headers += await self._guards.certify(call)
        return answer

    # --- Confirmation ---

    def _read_confirmation(self, call: Call) -> "_Consent":
        """Read the call's token, without checking yet whether it was used and what the person read."""
        tokens, action = cast(Tokens, self._confirmations), self._action
        if call.confirmation is None:
            return _Consent((ConfirmationRequired, f"Action {action.id} needs a person's confirmation."))
        try:
            facts = tokens.read(call.confirmation)
        except Expired:
            return _Consent((ConfirmationExpired, "The confirmation has expired."))
        except NotOurs:
            return _Consent((ConfirmationTampered, "The confirmation was not issued by this site, or was modified."))
        if facts.get("action") != action.id or facts.get("caller") != call.caller_key:
            return _Consent((ConfirmationForeign, "The confirmation belongs to another caller or another action."))
        if facts.get("shown") not in tokens.digests(self._shown(call)):
            return _Consent((ConfirmationForeign, "The confirmation was requested with other credentials."))
        if facts.get("input") not in tokens.digests(_canonical(call.input)):
            return _Consent((ConfirmationMismatch, "The input is not the one that was confirmed."))
        spend = Add(f"spent:{facts.get('id')}", b"1", tokens.lifetime + SPENT_MARGIN)
        return _Consent(None, spend, facts.get("summary"))

    def _shown(self, call: Call) -> str:
        """Return the credentials of a caller whom only the route, or a session of ours, identifies."""
        if call.principal is not None:
            return ""
        words = f"session {call.session_id}" if call.session_id else ""
        if self._action.way is not None:
            words = shown_by(call.credentials(), self._action.route_credentials, cookies=True) + words
        return words

    async def _confirm(self, call: Call, consent: "_Consent", is_spent: bool) -> Add:
        """Return the step that uses up a call's confirmation. Without a valid one, raises a Problem with the question.

        The summary is made again, because what the person agreed to may no longer be what would happen. No question is
        returned to a caller without credentials if the route requires some, or for an input that cannot be sent to the
        route.
        """
        if self._action.auth_required and not (call.principal or self._shown(call)):
            headers = [("WWW-Authenticate", kind) for kind in challenges_of_route(self._action)]
            raise AuthenticationRequired("The action needs to know who calls.", headers=headers)
        if self._check is not None:
            self._check(call)
        if self._rehearse is not None and consent.spend is None:
            await self._rehearse(call)
        try:
            summary = await self._summarize(call)
        except Problem as problem:  # a basket is empty once its order is placed
            raise ConfirmationSpent("This confirmation has already been used.") if is_spent else problem from None
        if is_spent:
            raise self._question(call, summary, ConfirmationSpent, "This confirmation has already been used.")
        if consent.refusal is not None or consent.spend is None:
            raise self._question(call, summary, *(consent.refusal or (ConfirmationRequired, "")))
        if consent.summary not in cast(Tokens, self._confirmations).digests(summary):
            detail = "The call would no longer do what was confirmed."
            raise self._question(call, summary, ConfirmationStale, detail)
        return consent.spend

    def _question(self, call: Call, summary: str, kind: type[Problem], detail: str) -> Problem:
        """Return a refusal with the question for a person, and the token to send if they agree."""
        tokens = cast(Tokens, self._confirmations)
        facts = {
            "id": secrets.token_urlsafe(12),
            "action": self._action.id,
            "caller": call.caller_key,
            "shown": tokens.digests(self._shown(call))[0],
            "input": tokens.digests(_canonical(call.input))[0],
            "summary": tokens.digests(summary)[0],
        }
        token, expires = tokens.write(facts)
        expires_at = utc_text(datetime.fromtimestamp(expires, UTC))
        question = {"token": token, "summary": summary, "expires_at": expires_at}
        return kind(detail, members={"confirmation": question})

    async def _summarize(self, call: Call) -> str:
        """Return what a call would do. Raises HandlerFailed if the site's own function fails or takes too long."""
        action, words = self._action, self._action.confirmation_summary
        given = self._in_order(call.input)
        if not callable(words):
            return self._summary(given)
        if self._redact_input is not None:
            given = self._redact_input(given)
        arguments = (given, call) if self._summary_takes_call else (given,)
        make = partial(words, *arguments)

        def make_here() -> object:
            try:
                return make()
            except StopIteration as error:  # a future cannot hold it, so that the caller would wait forever
                raise RuntimeError("The summary raised StopIteration.") from error

        limit = asyncio.timeout(action.timeout)
        try:
            async with limit:
                made = make() if inspect.iscoroutinefunction(words) else await run_in_thread(make_here)
                summary = await made if inspect.isawaitable(made) else made
            if not isinstance(summary, str) or not summary.strip():
                raise TypeError(f"A summary must be a non-empty text, not {type(summary).__name__}.")
        except Problem:
            raise
        except HTTPException as error:
            raise raised(error, self._guards.codes) from error
        except Exception as error:
            how = "took too long" if limit.expired() else "failed"
            where = (action.id, how, call.request_id)
            logger.exception("the summary of a confirmation of action %s %s (request_id=%s)", *where)
            raise HandlerFailed(f"The summary for the confirmation of action {action.id} {how}.") from error
        return cut(visible, summary, MAX_SUMMARY)


class _Consent(NamedTuple):
    """A call's confirmation: why it is refused, or the step that uses it up and a digest of the summary."""

    refusal: tuple[type[Problem], str] | None
    spend: Add | None = None
    summary: object = None


def takes_call(summary: Callable[..., object]) -> bool:
    """Return True if a summary function takes the input and the call, not the input alone."""
    try:
        parameters = inspect.signature(summary).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in positional and one.default is inspect.Parameter.empty for one in parameters) > 1


def _too_many(detail: str, seen: Counted) -> RateLimited:
    """Return the refusal for a limit; `detail` goes on with "in ... seconds"."""
    seconds = max(1, ceil(seen.seconds_left))
    return RateLimited(
        f"{detail} in {seconds} seconds.",
        headers=[("Retry-After", str(seconds))],
        members={"retry_after": seconds},
    )


# --- Summaries: what a person reads before they confirm a call ---
# In the site's own words, or in ours. Callers write the input, and a person must be able to see where it begins and
# ends: their texts are quoted as JSON, cut, and contain nothing invisible. What the schema marks as secret is hidden,
# also from the site's own function. In the text that such a function returns, invisible characters are made visible,
# but only the function knows which parts are values.

_SECRET: Final = object()
"""A placeholder for a secret. A text could have been written by a caller."""

MISSING: Final = "(not given)"
MAX_VALUE: Final = 200
"""Characters of one input that a summary shows."""

MAX_INPUTS: Final = 20
"""Inputs that our own summary shows."""


def in_order(inputs: JsonObject) -> Callable[[JsonObject], JsonObject]:
    """Return a function that copies an input with its members in the schema's order, followed by unnamed ones.

    Callers may send members in any order, and the same input has to give the same summary.
    """
    ranks: dict[str, int] = {}
    for part in (*parts_of(inputs, (inputs,), named_subschemas(inputs)), *subschemas(inputs)):
        if isinstance(properties := part.get("properties"), Mapping):
            for name in properties:
                ranks.setdefault(name, len(ranks))

    def rank(name: str) -> tuple[int, str]:
        return ranks.get(name, len(ranks)), name

    def order(value: object) -> object:
        if isinstance(value, list):
            return [order(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {name: order(value[name]) for name in sorted(value, key=rank)}

    return cast(Callable[[JsonObject], JsonObject], order)


def summarizer(action: Action) -> Callable[[JsonObject], str]:
    """Return a function that summarises an input with the action's template, or with its description."""
    words, values = action.confirmation_summary, _Values(action.inputs)
    pieces = tuple(Formatter().parse(words)) if isinstance(words, str) else ()
    own = f"{action.name}: {action.description.strip().splitlines()[0].rstrip('.')}."

    def summarize(given: JsonObject) -> str:
        given = values.redact(given)
        if pieces:
            fields = (values.show(given, name, spec or "") if name else "" for _, name, spec, _ in pieces)
            return "".join(text + field for (text, *_), field in zip(pieces, fields, strict=True))
        shown = [f"{values.label(name)}: {values.show(given, name)}" for name in list(given)[:MAX_INPUTS]]
        shown += [f"and {len(given) - MAX_INPUTS} more inputs"] if len(given) > MAX_INPUTS else []
        sentences = [own, *([f"With {', '.join(shown)}."] if shown else [])]
        return " ".join([*sentences, *(["This cannot be undone."] if action.is_irreversible else [])])

    return summarize


_QUOTES: Final = re.compile(r'["\\]')
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that are invisible although Unicode counts them as visible."""

_LIKE_QUOTES: Final = re.compile("[\u02ba\u02ee\u201c-\u201f\u2033\u2036\u275d\u275e\u301d-\u301f\uff02]")
"""Characters that a person may take for a quotation mark."""


def quoted(text: str) -> str:
    """Return a text quoted as JSON, with look-alikes of quotation marks and everything invisible escaped."""
    escaped = visible(_QUOTES.sub(r"\\\g<0>", text))
    return f'"{_LIKE_QUOTES.sub(_escape, escaped)}"'


def visible(text: str) -> str:
    """Return a text with its control, format, private and unassigned characters written as JSON escapes."""
    if text.isascii() and text.isprintable():
        return text
    shown = (one if one.isprintable() or unicodedata.category(one) == "Zs" else _escaped(one) for one in text)
    return _UNSEEN.sub(_escape, "".join(shown))


def _escape(found: re.Match[str]) -> str:
    return _escaped(found[0])


def _escaped(character: str) -> str:
    """Return JSON escapes: two beyond the Basic Multilingual Plane (RFC 8259 section 7)."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def cut(show: Callable[[str], str], text: str, most: int) -> str:
    """Return the beginning of a text, rendered by `show`, and how much more there is."""
    more = len(text) - most
    return show(text) if more <= 0 else f"{show(text[:most])} and {more} more characters"


class _Values:
    """Renders values of one action's input. No more of an input is rendered than is shown."""

    def __init__(self, inputs: JsonObject) -> None:
        properties = inputs.get("properties")
        self._named = properties if isinstance(properties, Mapping) else {}
        self.redact = input_redactor(inputs, _SECRET) or (lambda given: given)

    def label(self, name: str) -> str:
        """Return a member's name, quoted if it is not in the schema: it is the caller's own text."""
        return name if name in self._named else cut(quoted, name, MAX_VALUE)

    def show(self, given: JsonObject, name: str, spec: str = "") -> str:
        """Return a member of a redacted input, or its default, for a person to read. `spec` formats numbers."""
        if name not in given:
            schema = self._named.get(name)
            default = schema.get("default") if isinstance(schema, Mapping) else None
            if default is None:
                return MISSING
            given = self.redact({name: default})
        value = given[name]
        if spec and isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                return format(value, spec)
            except (ValueError, OverflowError):
                pass  # 2.0 is an integer in JSON Schema, but not for the format "d"
        return self._show(value, [MAX_VALUE])

    def _show(self, value: object, left: list[int]) -> str:
        """Return JSON text of at most about `left[0]` characters."""
        shown: list[str] = []
        if value is _SECRET:
            left[0] -= len(HIDDEN)
            return HIDDEN
        if isinstance(value, str):
            return self._quote(value, left)
        left[0] -= 2
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if left[0] <= 0:
                    break
                label = self._quote(name, left)
                shown.append(f"{label}: {self._show(inner, left)}")
            return "{" + ", ".join([*shown, *_rest(len(value) - len(shown), "members")]) + "}"
        if isinstance(value, list):
            for inner in value:
                if left[0] <= 0:
                    break
                shown.append(self._show(inner, left))
            return "[" + ", ".join([*shown, *_rest(len(value) - len(shown), "items")]) + "]"
        text = orjson.dumps(value).decode()
        left[0] -= len(text)
        return text

    def _quote(self, text: str, left: list[int]) -> str:
        most = max(left[0], 0)
        left[0] -= min(len(text), most) + 2
        return cut(quoted, text, most)


def _rest(more: int, what: str) -> list[str]:
    return [f"and {more} more {what}"] if more else []


# --- What distinguishes calls ---


def _canonical(given: JsonObject) -> bytes:
    """Return an input as JSON that does not depend on the order of its members."""
    return orjson.dumps(given, option=orjson.OPT_SORT_KEYS)


def shown_by(
    shown: Credentials, known: Iterable[RouteCredential] = (), *, cookies: bool = False, session: bool = True
) -> str:
    """Return the credentials by which a route may identify a caller whom we do not know, "" for none.

    These are headers that are identifying by their name or because the route's security scheme reads them (`known`),
    the cookies that the scheme reads, and the application's session. If the scheme names no cookie, `cookies` includes
    all of them except the session's own, which is signed anew with each answer.
    """
    headers, cookie = shown.headers, shown.headers.get("cookie") or ""
    looked_for: dict[str, set[str]] = {"header": set(), "cookie": set(), "query": set()}
    for one in known:
        looked_for[one.place].add(one.name)
    telling = [name for name in headers if _is_identifying(name) or name in looked_for["header"]]
    words = [f"{name}: {headers[name]}" for name in sorted(telling)]
    if (keys := looked_for["query"]) and shown.query:
        pairs = parse_qsl(shown.query.decode("latin-1"))
        words += [f"query {name}={value}" for name, value in sorted(pairs) if name in keys]
    named = looked_for["cookie"]
    for pair in sorted(cookie.split(";")) if cookie and (named or cookies) else ():
        name, _, value = pair.strip().partition("=")
        if name in named if named else not (VOLATILE_COOKIES.match(name) or _holds(value, shown.session)):
            words += [f"cookie {name}={value}"] if name else []
    if session and shown.session:
        words.append(json.dumps(dict(shown.session), default=str, skipkeys=True))
    return "\n".join(words)


@lru_cache(maxsize=256)
def _is_identifying(header: str) -> bool:
    return _IDENTIFYING.match(header) is not None


def _holds(cookie: str, session: Mapping[str, object] | None) -> bool:
    """Return True if a cookie is the session itself, as Starlette's SessionMiddleware writes it: Base64, then a dot."""
    if not session:
        return False
    try:
        return bool(json.loads(base64.b64decode(cookie.strip('"').partition(".")[0])) == dict(session))
    except (ValueError, RecursionError):
        return False
