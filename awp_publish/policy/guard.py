"""`Guard`: all that stands before the handler of one action, in its order, and the record of how a call ended.

authenticate -> audience -> limits -> validate input -> replay -> prerequisites -> confirmation. Who calls is known
before anything is counted, and whoever may not know of the action is told that there is none. A replay is looked up
before the confirmation, because a retried call carries one that is spent; prerequisites come before the confirmation,
so that no person is asked about a call that cannot go through. A caller over the limit costs no more of the input than
a look at whether it conforms.

Most calls need the store once. Where consent or remembered successes are at stake the first round trip only counts and
looks, and the second claims: a call that is refused claims nothing.

* **Limits** (AWAS 1.0 `rateLimit`, agent.json section 9): what is enforced is the value that is published. A window
  opens with its first call. Answers tell how much is left, as RateLimit and RateLimit-Policy
  (draft-ietf-httpapi-ratelimit-headers-10) and as AWAS's X-RateLimit-* (1.1, HTTP behaviour).
* **Idempotency keys** (agent.json section 9): the same key and input give the recorded answer again, and run nothing.
  What is promised when something breaks between the handler and the record is in `CLAIM_AFTER`: a key is free again
  only where running once more does no harm. In every other case it answers `outcome-unknown` until its window ends.
* **Prerequisites** (agent.json section 11): a success is remembered for a caller whom the site knows, by principal or
  session. Anybody else gets a signed receipt to carry, which belongs to the credentials that they show to a route. What
  nobody in particular did, anybody may build upon; that is how signing in can come first.
* **Confirmation** (agent.json section 9): the first call says what would happen, the second brings a signed token. A
  token is bound to its caller, action, input and to what the person has read, expires, and is spent with the call it
  admits, in every process. Where only the route knows who calls, it is bound to the credentials that the caller shows.
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

from awp_publish import media
from awp_publish.model import Action, JsonObject, RateLimit, RouteCredential, utc_text
from awp_publish.policy.authentication import CALLER, AuthenticationGate, Authenticator, challenges_of_route
from awp_publish.policy.botauth import ACCEPT_SIGNATURE, WebBotAuth
from awp_publish.policy.call import (
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
)
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
from awp_publish.redaction import HIDDEN, answer_redactor, input_redactor
from awp_publish.schema import Validator, member_names, named_subschemas, parts_of, subschemas
from awp_publish.stores.store import Add, Count, Counted, Look, Step, Store, Swap, unavailable
from awp_publish.threads import run_in_thread

logger: Final = logging.getLogger("awp_publish.calls")

SITE: Final = "site-wide"
"""The name of the limit of all actions together. No action is called so: ids have no hyphens."""

REPLAYED: Final = (b"idempotent-replayed", b"true")
MARGIN: Final = 10.0
"""Seconds beyond an action's timeout after which its call can no longer be running."""

MAX_ANSWER_BYTES: Final = 1_048_576
MAX_ANONYMOUS_ANSWER_BYTES: Final = 65_536
"""Bytes of an answer that is recorded, for a caller whom we know and for one whom we do not.

A larger answer is given once: its key is free again where the action may run twice, else it answers `answer-not-kept`.
"""

MAX_ANONYMOUS_KEYS: Final = 1000
ANONYMOUS_WINDOW: Final = 3600.0
"""Keys that callers of one address whom we do not know may claim, in so many seconds."""

MAX_RECEIPTS: Final = 50
"""Receipts that one call may carry; more are not read."""

SPENT_MARGIN: Final = 86400.0
"""Seconds that a spent token is remembered beyond its lifetime, so that no clock set back makes it good again."""

MAX_SUMMARY: Final = 2000
"""Characters of what a function of the site's says."""

Fate: TypeAlias = Literal["recorded", "free", "unknown"]

CLAIM_AFTER: Final[dict[str, tuple[Fate, Fate, Fate]]] = {
    "answered": ("recorded", "recorded", "recorded"),
    "refused": ("free", "free", "free"),
    "failed": ("free", "free", "unknown"),
    "interrupted": ("free", "unknown", "unknown"),
}
"""How the first call ended, and what becomes of its key: for repeatable, other and irreversible actions."""

_RECORDED_HEADERS: Final = frozenset({b"location", b"link", media.HEADER})
"""What of an answer's headers is worth repeating. A Set-Cookie is a secret: it is given once."""

_INTERRUPTIONS: Final = (HandlerTimeout, HandlerRedirected, InvalidOutput, StoreUnavailable)
"""A job that the store did not answer for may have been accepted all the same."""

_PUT_OFF: Final = (TooManyJobs, JobQueueFull)
"""Refusals of calls that were admitted, and of which nothing was done."""

_IDENTIFYING: Final = re.compile(
    r"(?!.*(csrf|xsrf|user-agent)|idempotency-|sec-|mcp-)"
    r".*(authorization|token|secret|credential|identity|api-?key|(^|-)(key|user|session)(-|$))"
)
"""Names of headers by which a route may know its callers, whether it says so or not."""

FLEETING: Final = re.compile(r"AWSALB|__cf|cf_|_g(a|id|at|cl)|_fbp|csrf|xsrf|messages$", re.IGNORECASE)
"""Names of cookies that say nothing of who calls, and change by themselves."""


_new: Final = tuple.__new__
"""Makes a named tuple as its class does, without a function of Python in between: each guarded call needs four."""


# --- Signed tokens: confirmations and receipts, each with a salt of its own, under keys that can be rotated ---

EXPIRES: Final = "e"
"""Unix seconds. Our own member and not the serializer's timestamp, which refuses what a clock ahead of ours signed."""


class NotOurs(Exception):
    """A token that none of the site's keys signed, or that was changed since."""


class Expired(Exception):
    """A token past its time."""


class Tokens:
    """Writes and reads tokens of one purpose. `keys` are the newest first: it signs, all verify."""

    def __init__(
        self, keys: Sequence[str], purpose: str, lifetime: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.lifetime = lifetime
        self._clock = clock
        named = f"awp_publish.{purpose}.digest".encode()
        # HMAC (RFC 2104) with both of its pads prepared, which is the half of its cost.
        blocks = [hmac.digest(key.encode(), named, "sha256").ljust(64, b"\0") for key in keys]
        self._keyed = [(sha256(one.translate(hmac.trans_36)), sha256(one.translate(hmac.trans_5C))) for one in blocks]
        self._serializer = URLSafeSerializer(
            list(reversed(keys)),  # itsdangerous signs with the last
            salt=f"awp_publish.{purpose}",
            signer_kwargs={"digest_method": sha256, "key_derivation": "hmac"},
        )

    def digests(self, text: str | bytes) -> tuple[str, ...]:
        """Return digests of a text, one for each key, the newest first: for what a token is bound to and must not show.

        A plain hash of a password or a number of a few digits could be guessed by whoever reads the token or the store.
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
        """A token for these facts, and when it expires, in Unix seconds."""
        expires = int(self._clock() + self.lifetime)
        token = self._serializer.dumps({**facts, EXPIRES: expires})
        return (token if isinstance(token, str) else token.decode("ascii")), expires

    def read(self, token: str) -> JsonObject:
        """The facts of a token. Raises NotOurs, Expired."""
        try:
            facts: object = self._serializer.loads(token)
            signature = token.rpartition(".")[2].encode("ascii")
            if base64_encode(base64_decode(signature)) != signature:  # Base64 can spell the same one in several ways
                raise NotOurs
        except (BadData, ValueError) as error:
            raise NotOurs from error
        if not isinstance(facts, dict) or not isinstance(facts.get(EXPIRES), int):
            raise NotOurs
        if facts[EXPIRES] <= self._clock():
            raise Expired
        return facts


# --- What the guards of a site share ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The parts that the guards of one catalog share.

    `realm` and `metadata_url` stand in challenges (RFC 9110 section 11.5, RFC 9728 section 5.1). `codes` are those that
    the site declares, with what to do. `fingerprints` tell
    inputs under idempotency keys apart; it is None where processes share a store and no key. `confirmations` and
    `receipts` are there where an action needs them; `receipted` are the actions that others require, and
    `credentials` those by which the routes of all actions know callers.
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
        """The gate that tells who makes a request, for what is no call of an action."""
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
        """Return the guard of an action's calls, None for an action that needs none."""
        guard = Guard(action, self, inputs, check=check, rehearse=rehearse)
        return guard if guard.is_needed else None

    async def certify(self, call: Call) -> RawHeaders:
        """Remember a success on which others build, and return the header that proves it."""
        action, receipts = call.action.id, self.receipts
        if receipts is None or action not in self.receipted:
            return ()
        if caller := call.known_as:
            try:
                key, until = f"done:{action}:{caller}", b"%d" % time.time()
                ran = await self.store.run((Add(key, until, receipts.lifetime),))
                if ran.failed is not None and isinstance(ran.seen[0], bytes):
                    await self.store.run((Swap(key, ran.seen[0], until, receipts.lifetime),))
            except StoreUnavailable:  # the answer stands, and the receipt proves it too
                logger.exception("a success of action %s could not be noted (request_id=%s)", action, call.request_id)
        facts = {"action": action, "caller": call.caller_id}
        if shown := self.shown_to_routes(call):
            facts["shown"] = receipts.digests(shown)[0]
        token, _ = receipts.write(facts)
        return ((RECEIPT, token.encode("ascii")),)

    def shown_to_routes(self, call: Call) -> str:
        """Without the session: the very actions that come first change what is in it."""
        if call.principal is not None or call.credentials is None:
            return ""
        return shown_by(call.credentials(), self.credentials, session=False)


@dataclass(frozen=True, slots=True)
class _Limit:
    """One limit under its name: an action's id, or SITE for the limit of all actions together.

    `key` is what its counts begin with, `state` the form of its item in RateLimit: remaining calls and seconds.
    """

    name: str
    rate: RateLimit
    most: int
    seconds: int
    scope: str | None
    key: str
    state: bytes
    told: tuple[bytes, bytes]


class Guard:
    """Admits calls of one action, and settles afterwards what it claimed for them.

    `check` raises InvalidInput for a call that could not be sent to its route, `rehearse` what the route's own security
    says of its caller.
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
        self._durable = action.needs_confirmation or action.is_irreversible  # claims must outlive a loss of power

        self._is_everywhere = action.is_public and action.expose is None
        self._authentication: AuthenticationGate | None = None
        self._agents = next((one for one in guards.authenticators if isinstance(one, WebBotAuth)), None)
        if guards.authenticators:
            # A route with a security scheme of its own asks for credentials itself; ours tell who calls if we know it.
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
        """Return True if anything is declared that it could enforce."""
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
        """Let a call pass (None) or answer it with what is recorded. Raises the Problem of what refuses it."""
        # Who calls, and may they know of the action?
        action, gate, principal = self._action, self._authentication, call.principal
        credentials: Credentials | None = None  # of whom a token alone makes known they are not read
        agents: WebBotAuth | None = None
        if call.credentials is None:
            gate = None
        elif gate is not None:
            known: Principal | None = None
            if gate.find_at_once is not None and call.authorization is not None:
                known = gate.find_at_once(call.authorization)
            if known is not None:
                principal = known
            else:
                credentials, agents = call.credentials(), self._agents
                if agents is not None:
                    with suppress(Problem):  # which is raised again where it decides
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
            # Only an agent that has signed is one of them, however else its caller is known.
            if allowed and (agents is None or credentials is None or agents.names_of(credentials).isdisjoint(allowed)):
                raise InsufficientPermissions(
                    f"Action {action.id} is for {', '.join(allowed)}; this caller is {call.label}.",
                    recovery="Sign the request as Accept-Signature says, if you are one of those agents.",
                    headers=[ACCEPT_SIGNATURE],
                )
        address = ""
        if call.credentials is not None and (principal is None or self._counts_addresses):
            credentials = credentials or call.credentials()
            address = credentials.address

        # What can be said without the store? It is told only if neither limits nor a recorded answer come before it.
        if self._takes_keys and self._key_field in call.input:
            # agent.json names the field beside the inputs, so callers write it there too; a member that the action
            # itself has not is taken out.
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
                        if proof.get("caller") in ("", call.caller_id) and proof.get("shown") in (None, *shown):
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
                counted = f"{limit.key}user:{principal.id}"
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
            # The state of each limit goes on the answer, and that of the one that leaves least in AWAS's fields.
            states: list[bytes] = []
            least: tuple[int, int, float] | None = None
            found: Any
            for limit, found in zip(limits, seen, strict=False):
                events, seconds_left = found
                left = limit.most - events if limit.most > events else 0
                states.append(limit.state % (left, ceil(seconds_left)))
                if least is None or (left, limit.most, seconds_left) < least:
                    least, told = (left, limit.most, seconds_left), limit.told
            if least is not None:
                call.headers += (
                    self._policies,
                    (b"ratelimit", b", ".join(states)),
                    told,
                    (b"x-ratelimit-remaining", b"%d" % least[0]),
                    (b"x-ratelimit-reset", b"%d" % ceil(self.clock() + least[2])),  # in Unix seconds
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
                    detail = f"Action {self._action.id} needs a success of {listed} before, and none is remembered."
                else:
                    detail = f"Action {self._action.id} needs a receipt of {listed}; none that was sent is valid."
                raise PrerequisiteRequired(detail, members={"missing": missing})
            # Confirmation
            if consent is not None:
                is_spent = consent.spend is not None and seen[-1] is not None
                spend = await self._confirm(call, consent, is_spent)
                claims.append(spend)
            failed, seen = await self._store.run(claims, durable=self._durable) if claims else (None, ())
            at = 0

        # Whatever is claimed is the call's own, or refuses it
        if failed is not None:
            refused, found = claims[failed - at], seen[-1]
            if isinstance(refused, Count):
                who = "Callers of one address whom the site does not know may use"
                detail = f"{who} {MAX_ANONYMOUS_KEYS} idempotency keys an hour, others more. The next is possible"
                raise _too_many(detail, cast(Counted, found))
            if refused is claim:
                return await self._answer_again(call, cast(bytes, found))
            raise ConfirmationSpent("The confirmation admitted a call before.")
        call.claim, call.spent = claim, spend
        if claims:
            call.disconnected = never_disconnected  # it is carried to its end, so that it can be recorded
        return None

    async def conclude(self, call: Call, result: Result) -> Result:
        """Record how a call ended under its key, and hand out its receipt. The answer stands even if that fails.

        What was only put off may come again with the same confirmation.
        """
        if (spent := call.spent) is not None and isinstance(result, _PUT_OFF):
            try:
                await self._store.run((Swap(spent.key, spent.value, None),), durable=True)
            except StoreUnavailable:
                which = (self._action.id, call.request_id)
                logger.exception("a confirmation of action %s could not be given back (request_id=%s)", *which)
        if (claim := call.claim) is not None:
            kept: bytes | None = None
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
                told = content = b""
                if result.headers:
                    pairs = [(name, value) for name, value in result.headers if name in _RECORDED_HEADERS]
                    told = orjson.dumps([(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs])
                if result.content is not None:
                    content = b',"content":' + orjson.dumps(list(result.content))
                # One line of JSON, then the body as it was.
                facts = fingerprint, result.status, told or b"[]", content, result.body
                kept = b'{"state":"done","for":"%b","status":%d,"headers":%b%b}\n%b' % facts
                if len(kept) > (MAX_ANONYMOUS_ANSWER_BYTES if call.principal is None else MAX_ANSWER_BYTES):
                    logger.warning("an answer of action %s is too large to be recorded under its key", self._action.id)
                    ended = b'{"state":"too large","for":"%b"}\n' % fingerprint
                    kept = None if self._is_repeatable else ended
            try:
                await self._store.run((_new(Swap, (claim.key, claim.value, kept, self._window)),), durable=True)
            except StoreUnavailable:
                which = (self._action.id, call.request_id)
                logger.exception("the answer of action %s could not be recorded (request_id=%s)", *which)
        if self._certifies and isinstance(result, Outcome):
            call.headers += await self._guards.certify(call)
        return result

    # --- Idempotency keys ---

    def _claim(self, call: Call, credentials: Credentials | None) -> Add | None:
        """Return the claim of a call's key, None for a call without one. Raises InvalidIdempotencyKey."""
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
        # The fingerprint is the input's, and of what an unknown caller shows to a route, which may know them by it. It
        # is not in the key: with other credentials a key is refused, neither replayed to somebody else nor run once
        # more for somebody whose token was renewed.
        told, action, principal = _canonical(call.input), self._action, call.principal
        if principal is None and action.way is not None and credentials is not None:
            # Cookies change by themselves, so they count only if the route knows callers by what they show.
            words = shown_by(credentials, action.route_credentials, cookies=action.route_authenticates)
            told += b"\n" + words.encode("utf-8", "surrogatepass") if words else b""
        tokens = self._guards.fingerprints
        call.fingerprints = fingerprints = (sha256(told).hexdigest(),) if tokens is None else tokens.digests(told)
        # In milliseconds: a fraction takes longer to write than all else here.
        until, by = (self.clock() + self._longest) * 1000, orjson.dumps(call.request_id)
        value = b'{"state":"running","for":"%b","until":%d,"by":%b}' % (fingerprints[0].encode(), until, by)
        # Keys of different callers and actions never meet: a key has no line breaks, and an action's id no colons.
        caller = "" if principal is None else principal.id
        return _new(Add, (f"key:{action.id}:{caller}\n{key}", value, self._keep))

    async def _answer_again(self, call: Call, found: bytes) -> Outcome:
        """Return what is recorded under a key. Raises the Problem of a key that has no answer."""
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
            raise IdempotencyKeyReused("This idempotency key came with another input, or other credentials, before.")
        if state == "too large":
            raise AnswerNotKept(f"{first} succeeded; its answer was too large to be kept.")
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
        """Read the call's token, without a look at whether it was spent and what the person has read."""
        tokens, action = cast(Tokens, self._confirmations), self._action
        if call.confirmation is None:
            return _Consent((ConfirmationRequired, f"Action {action.id} is done only after a person has agreed."))
        try:
            facts = tokens.read(call.confirmation)
        except Expired:
            return _Consent((ConfirmationExpired, "The confirmation is too old."))
        except NotOurs:
            return _Consent(
                (ConfirmationTampered, "The confirmation was not given by this site, or was changed since.")
            )
        if facts.get("action") != action.id or facts.get("caller") != call.caller_id:
            return _Consent((ConfirmationForeign, "The confirmation is another caller's or another action's."))
        if facts.get("shown") not in tokens.digests(self._shown(call)):
            return _Consent((ConfirmationForeign, "The confirmation was asked for with other credentials."))
        if facts.get("input") not in tokens.digests(_canonical(call.input)):
            return _Consent((ConfirmationMismatch, "The input is not the one that was confirmed."))
        spend = Add(f"spent:{facts.get('id')}", b"1", tokens.lifetime + SPENT_MARGIN)
        return _Consent(None, spend, facts.get("summary"))

    def _shown(self, call: Call) -> str:
        """Return what a caller shows whom only the route knows, or a session of ours."""
        if call.principal is not None:
            return ""
        words = f"session {call.session_id}" if call.session_id else ""
        if self._action.way is not None and call.credentials is not None:
            words = shown_by(call.credentials(), self._action.route_credentials, cookies=True) + words
        return words

    async def _confirm(self, call: Call, consent: "_Consent", is_spent: bool) -> Add:
        """Return the step that spends the confirmation of a call. Raises a Problem with the question without one.

        The summary is made again: a person has agreed to what they read, which may no longer be what would happen.
        Nobody is asked by a caller who shows nothing to a route that has to know who calls, or about an input that no
        request can carry to it.
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
            raise ConfirmationSpent("The confirmation admitted a call before.") if is_spent else problem from None
        if is_spent:
            raise self._question(call, summary, ConfirmationSpent, "The confirmation admitted a call before.")
        if consent.refusal is not None or consent.spend is None:
            raise self._question(call, summary, *(consent.refusal or (ConfirmationRequired, "")))
        if consent.summary not in cast(Tokens, self._confirmations).digests(summary):
            detail = "What was confirmed is not what the call would do now."
            raise self._question(call, summary, ConfirmationStale, detail)
        return consent.spend

    def _question(self, call: Call, summary: str, kind: type[Problem], detail: str) -> Problem:
        """Return the refusal of a call, with the question for a person and the token for the answer yes."""
        tokens = cast(Tokens, self._confirmations)
        facts = {
            "id": secrets.token_urlsafe(12),
            "action": self._action.id,
            "caller": call.caller_id,
            "shown": tokens.digests(self._shown(call))[0],
            "input": tokens.digests(_canonical(call.input))[0],
            "summary": tokens.digests(summary)[0],
        }
        token, expires = tokens.write(facts)
        expires_at = utc_text(datetime.fromtimestamp(expires, UTC))
        question = {"token": token, "summary": summary, "expires_at": expires_at}
        return kind(detail, members={"confirmation": question})

    async def _summarize(self, call: Call) -> str:
        """Say what a call would do. Raises HandlerFailed where a function of the site's fails, or takes too long."""
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
            except StopIteration as error:  # no future can carry it: whoever waited for it would wait for ever
                raise RuntimeError("The summary raised StopIteration.") from error

        limit = asyncio.timeout(action.timeout)
        try:
            async with limit:
                said = make() if inspect.iscoroutinefunction(words) else await run_in_thread(make_here)
                summary = await said if inspect.isawaitable(said) else said
            if not isinstance(summary, str) or not summary.strip():
                raise TypeError(f"A summary is a text, not {type(summary).__name__}, and not empty.")
        except Problem:
            raise
        except HTTPException as error:
            raise raised(error, self._guards.codes) from error
        except Exception as error:
            how = "took too long" if limit.expired() else "failed"
            told = (action.id, how, call.request_id)
            logger.exception("the summary of a confirmation of action %s %s (request_id=%s)", *told)
            raise HandlerFailed(f"Nobody could be asked to confirm action {action.id}: its summary {how}.") from error
        return cut(visible, summary, MAX_SUMMARY)


class _Consent(NamedTuple):
    """A call's confirmation: why it is none, or the step that spends it and a digest of what was read."""

    refusal: tuple[type[Problem], str] | None
    spend: Add | None = None
    summary: object = None


def takes_call(summary: Callable[..., object]) -> bool:
    """Return True if a function of the site's makes its summary of the input and the call, not of the input alone."""
    try:
        parameters = inspect.signature(summary).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in positional and one.default is inspect.Parameter.empty for one in parameters) > 1


def _too_many(detail: str, seen: Counted) -> RateLimited:
    """The refusal of a call too many; `detail` says up to when."""
    seconds = max(1, ceil(seen.seconds_left))
    return RateLimited(
        f"{detail} in {seconds} seconds.",
        headers=[("Retry-After", str(seconds))],
        members={"retry_after": seconds},
    )


# --- What a call would do, in plain language: what a person reads before they confirm it ---
# In the site's words if it has any, else in ours. Callers write the input, and a person has to see where it begins and
# ends: texts of theirs are quoted as JSON, cut, and hold nothing invisible. What the schema marks as never to be shown
# is hidden, from a function of the site's too. In what that returns the invisible is shown, but only the function knows
# which part is a value.

_SECRET: Final = object()
"""Stands for a secret. A text in its place could be one that a caller has written."""

MISSING: Final = "(not given)"
MAX_VALUE: Final = 200
"""Characters of one input that a summary shows."""

MAX_INPUTS: Final = 20
"""Inputs that a summary of ours shows."""


def in_order(inputs: JsonObject) -> Callable[[JsonObject], JsonObject]:
    """Return what copies an input with its members in the order of the schema, and those it does not name after them.

    Callers write members in any order, and the same input has to make the same summary.
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
    """Return what makes the summary of an input, of the action's template or of its description."""
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
        told = [own, *([f"With {', '.join(shown)}."] if shown else [])]
        return " ".join([*told, *(["This cannot be undone."] if action.is_irreversible else [])])

    return summarize


_QUOTES: Final = re.compile(r'["\\]')
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing, which Unicode counts among the visible."""

_LIKE_QUOTES: Final = re.compile("[\u02ba\u02ee\u201c-\u201f\u2033\u2036\u275d\u275e\u301d-\u301f\uff02]")
"""What a person may take for a quotation mark."""


def quoted(text: str) -> str:
    """A text in quotation marks, as JSON has it; look-alikes of the marks and all that is invisible are escaped."""
    escaped = visible(_QUOTES.sub(r"\\\g<0>", text))
    return f'"{_LIKE_QUOTES.sub(_escape, escaped)}"'


def visible(text: str) -> str:
    """A text whose control, format, private and unassigned characters are shown as JSON escapes."""
    if text.isascii() and text.isprintable():
        return text
    shown = (one if one.isprintable() or unicodedata.category(one) == "Zs" else _escaped(one) for one in text)
    return _UNSEEN.sub(_escape, "".join(shown))


def _escape(found: re.Match[str]) -> str:
    return _escaped(found[0])


def _escaped(character: str) -> str:
    """RFC 8259 section 7: two escapes for what is beyond the Basic Multilingual Plane."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def cut(show: Callable[[str], str], text: str, most: int) -> str:
    """The beginning of a text as `show` has it, and how much more there is."""
    more = len(text) - most
    return show(text) if more <= 0 else f"{show(text[:most])} and {more} more characters"


class _Values:
    """Shows values of one action's input. No more of an input is written out than is shown."""

    def __init__(self, inputs: JsonObject) -> None:
        properties = inputs.get("properties")
        self._named = properties if isinstance(properties, Mapping) else {}
        self.redact = input_redactor(inputs, _SECRET) or (lambda given: given)

    def label(self, name: str) -> str:
        """A member's name; one that the schema does not name is the caller's own word."""
        return name if name in self._named else cut(quoted, name, MAX_VALUE)

    def show(self, given: JsonObject, name: str, spec: str = "") -> str:
        """A member of a redacted input as a person reads it; of one left out its default. `spec` formats numbers."""
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
                pass  # 2.0 is an integer to JSON Schema, and none to the format "d"
        return self._show(value, [MAX_VALUE])

    def _show(self, value: object, left: list[int]) -> str:
        """JSON text, of which `left[0]` characters may be shown."""
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


# --- What tells one call from another ---


def _canonical(given: JsonObject) -> bytes:
    """Return an input as one text, the same whatever the order of its members."""
    return orjson.dumps(given, option=orjson.OPT_SORT_KEYS)


def shown_by(
    shown: Credentials, known: Iterable[RouteCredential] = (), *, cookies: bool = False, session: bool = True
) -> str:
    """Return what a caller shows by which a route may know them when we do not, "" for nothing.

    These are the headers that identify somebody by their name or because the route's security scheme looks there
    (`known`), the cookies where that scheme looks, and the application's session. Where the scheme names no cookie,
    `cookies` counts all of them but the session's own, which is signed anew with each answer.
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
        if name in named if named else not (FLEETING.match(name) or _holds(value, shown.session)):
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
