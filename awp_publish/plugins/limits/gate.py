"""How often may a caller call? (AWAS 1.0 `rateLimit`, agent.json section 9)

The published value is enforced. A window opens with its first call. Answers say how much is left, in RateLimit and
RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10) and in AWAS's X-RateLimit-* (1.1, HTTP behaviour).
"""

from collections.abc import Sequence
from math import ceil
from typing import Any, Final, cast

from awp_publish.calls.call import Call, Outcome
from awp_publish.calls.gates.gate import GuardedSite, too_many
from awp_publish.calls.gates.identify import agents_of
from awp_publish.model import Action, Catalog, RateLimit
from awp_publish.plugin import Ask, Facts, Gate, GateCheck
from awp_publish.plugins.limits.leases import Lease
from awp_publish.problems import DeclarationError, RateLimited
from awp_publish.stores.store import Count, Counted, Seen

SITE: Final = "site-wide"
"""The name of the limit for all actions together. No action has this name, because ids have no hyphens."""


class _Limit:
    """A limit and its name: an action's id, or SITE for the limit of all actions together.

    `key` ends the names of its counts in the store, `state` the format of its item in RateLimit: remaining calls and
    seconds.
    """

    __slots__ = ("header", "key", "most", "name", "rate", "scope", "seconds", "state", "whom")

    def __init__(self, name: str, rate: RateLimit) -> None:
        self.name = name
        self.rate = rate
        self.most, self.seconds, self.scope, self.whom = rate.requests, rate.seconds, rate.scope, rate.whom
        self.key = f"limit:{name}"
        self.state = b'"%b";r=%%d;t=%%d' % name.encode("ascii")
        self.header = (b"x-ratelimit-limit", b"%d" % rate.requests)


class _Counts(Ask):
    """The limits that concern one call, in the order of its counts."""

    limits: Sequence[_Limit]


class _Limits(GateCheck[_Counts]):
    def __init__(self, limits: tuple[_Limit, ...], facts: Facts) -> None:
        self._limits = limits
        self._agents = agents_of(facts.guards) if any(limit.whom for limit in limits) else None
        policies = ", ".join(f'"{limit.name}";q={limit.most};w={limit.seconds}' for limit in limits)
        self._policies = (b"ratelimit-policy", policies.encode("ascii"))
        self._clock = facts.clock

    def ask(self, call: Call) -> _Counts | None:
        """Count the call under each limit: for all callers, for its address, or for the known caller."""
        limits = self._limits
        if self._agents is not None:
            names = self._agents.names_of(call.presented)
            limits = tuple(limit for limit in limits if limit.whom in names)
        principal, counts = call.principal, list[Count]()
        for limit in limits:
            if limit.scope == "global":
                key = limit.key
            elif principal is None or limit.scope == "ip":
                key = f"{{ip:{call.presented.address}}}{limit.key}"
            else:
                key = f"{{user:{principal.key}}}{limit.key}"
            counts.append(Count(key, limit.most, limit.seconds))
        ask = _Counts()
        ask.limits, ask.counts = limits, counts
        return ask

    def judge(self, call: Call, ask: _Counts, seen: Sequence[Seen], failed: int | None) -> Outcome | None:
        """Put the state of each limit on the answer. Raises RateLimited."""
        self._show(call, ask.limits, seen)
        if failed is not None:
            raise _one_too_many(ask.limits[failed], cast(Counted, seen[-1]))
        return None

    def _show(self, call: Call, limits: Sequence[_Limit], seen: Sequence[Seen]) -> None:
        """Put the state of each limit on the answer, and in AWAS's fields that of the tightest."""
        states: list[bytes] = []
        tightest: tuple[int, int, float] | None = None
        counted: Any  # a Counted each
        for limit, counted in zip(limits, seen, strict=False):
            events, seconds_left = counted
            left = limit.most - events if limit.most > events else 0
            states.append(limit.state % (left, ceil(seconds_left)))
            if tightest is None or (left, limit.most, seconds_left) < tightest:
                tightest, header = (left, limit.most, seconds_left), limit.header
        if tightest is not None:
            call.headers += (
                self._policies,
                (b"ratelimit", b", ".join(states)),
                header,
                (b"x-ratelimit-remaining", b"%d" % tightest[0]),
                (b"x-ratelimit-reset", b"%d" % ceil(self._clock() + tightest[2])),  # Unix seconds
            )


def _one_too_many(limit: _Limit, counted: Counted) -> RateLimited:
    whose = "The site allows" if limit.name == SITE else f"Action {limit.name} allows"
    return too_many(f"{whose} {limit.rate}; the next call is possible", counted)


class _LeasedLimits(_Limits):
    """Limits of which some are leased: these are taken from first, and cost a trip only where nothing is left."""

    def __init__(self, limits: tuple[_Limit, ...], facts: Facts) -> None:
        super().__init__(limits, facts)
        self._limits = tuple(limit for limit in limits if not limit.rate.lease)
        self._leased = [
            (limit, Lease(limit.key, limit.most, limit.seconds, limit.rate.lease, facts.guards.store, facts.clock))
            for limit in limits
            if limit.rate.lease
        ]

    async def enter(self, call: Call) -> None:
        """Take the call from each lease. Raises RateLimited."""
        for limit, lease in self._leased:
            if self._agents is not None and limit.whom not in self._agents.names_of(call.presented):
                continue
            is_taken = lease.take() or await lease.renew()
            if not self._limits:
                self._show(call, [limit], [lease.counted])
            if not is_taken:
                raise _one_too_many(limit, lease.counted)


def _check(catalog: Catalog, site: GuardedSite) -> None:
    if agents_of(site) is not None:
        return
    for action in catalog.actions:
        for limit in (site.facts.rate_limit, action.rate_limit):
            if limit is not None and limit.whom:
                wrong = f"rate_limit: no authenticator of the site identifies {limit.whom} callers."
                raise DeclarationError(f'action "{action.id}"', wrong, "Give Site(authenticate=WebBotAuth(...)).")


def limits_gate(of_site: RateLimit | None) -> Gate:
    """Return the gate of a site with this limit for all actions together."""

    def of(action: Action, facts: Facts) -> GateCheck[Any] | None:
        named = ((SITE, of_site), (action.id, action.rate_limit))
        limits = tuple(_Limit(name, rate) for name, rate in named if rate is not None)
        if any(limit.rate.lease for limit in limits):
            return _LeasedLimits(limits, facts)
        return _Limits(limits, facts) if limits else None

    return Gate(
        name="limits", order=400, of=of, refuses=(RateLimited,), options=("rate_limit",), acts=False, check=_check
    )
