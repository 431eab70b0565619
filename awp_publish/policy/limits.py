"""Rate limits (AWAS 1.0 `rateLimit`, agent.json section 9): what is enforced is the value that is published.

A window opens with its first call and closes after its time. Answers tell how much is left, as RateLimit and
RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10) and as AWAS's X-RateLimit-* (1.1, HTTP behaviour).
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from awp_publish.model import Action, RateLimit
from awp_publish.policy.call import Call, Demand, Gate, Outcome, RawHeaders
from awp_publish.problems import RateLimited
from awp_publish.stores.store import Count, Counted, Seen

SITE: Final = "site-wide"
"""The name of the limit of all actions together. No action is called so: ids have no hyphens."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit under its name: an action's id, or SITE for the limit of all actions together.

    `state` is the form of its item in the field RateLimit: remaining calls and seconds.
    """

    name: str
    rate: RateLimit
    most: int
    seconds: int
    state: bytes

    @classmethod
    def of(cls, name: str, rate: RateLimit) -> "Limit":
        return cls(name, rate, rate.requests, rate.seconds, b'"%b";r=%%d;t=%%d' % name.encode("ascii"))

    @property
    def policy(self) -> str:
        return f'"{self.name}";q={self.most};w={self.seconds}'

    def count_for(self, call: Call) -> Count:
        return Count(f"limit:{self.name}:{self._counted(call)}", self.most, self.seconds)

    def _counted(self, call: Call) -> str:
        if self.rate.scope == "global":
            return ""
        if self.rate.scope == "ip" or call.principal is None:
            return f"ip:{call.address}"
        return f"user:{call.principal.id}"


def limit_gate(action: Action, site_limit: RateLimit | None, clock: Callable[[], float] = time.time) -> Gate | None:
    """The gate that holds callers to the site's and the action's limits; None if there are none."""
    limits = tuple(
        Limit.of(name, rate) for name, rate in ((SITE, site_limit), (action.id, action.rate_limit)) if rate is not None
    )
    if not limits:
        return None
    policies = ", ".join(limit.policy for limit in limits).encode("ascii")

    def gate(call: Call) -> Demand:
        def judge(seen: tuple[Seen, ...], holds: bool) -> Outcome | None:
            counted = cast(Sequence[Counted], seen)
            call.headers += ((b"ratelimit-policy", policies), *_tell(limits, counted, clock()))
            if not holds:
                raise _refusal(limits[len(seen) - 1], counted[-1])
            return None

        counts = tuple(limit.count_for(call) for limit in limits)
        return Demand(counts, counts, judge)

    return gate


def _tell(limits: Sequence[Limit], counted: Sequence[Counted], now: float) -> RawHeaders:
    """The state of each limit, and of the one that leaves least in AWAS's fields, whose reset is in Unix seconds."""
    states = [
        (max(0, limit.most - events), limit.most, seconds_left, limit.state)
        for limit, (events, seconds_left) in zip(limits, counted, strict=False)
    ]
    remaining, most, seconds_left, _ = min(states) if len(states) > 1 else states[0]
    return (
        (b"ratelimit", b", ".join([state % (left, math.ceil(seconds)) for left, _, seconds, state in states])),
        (b"x-ratelimit-limit", b"%d" % most),
        (b"x-ratelimit-remaining", b"%d" % remaining),
        (b"x-ratelimit-reset", b"%d" % math.ceil(now + seconds_left)),
    )


def _refusal(limit: Limit, seen: Counted) -> RateLimited:
    seconds = max(1, math.ceil(seen.seconds_left))
    whose = "The site allows" if limit.name == SITE else f"Action {limit.name} allows"
    return RateLimited(
        f"{whose} {limit.rate}; the next call is possible in {seconds} seconds.",
        headers=[("Retry-After", str(seconds))],
        members={"retry_after": seconds},
    )
