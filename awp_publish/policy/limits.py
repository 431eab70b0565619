"""Rate limits (AWAS 1.0 `rateLimit`, agent.json section 9): what is enforced is the value that is published.

A window opens with its first call and closes after its time. Answers tell how much is left, as RateLimit and
RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10) and as AWAS's X-RateLimit-* (1.1, HTTP behaviour).
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.model import Action, RateLimit
from awp_publish.policy.call import Call
from awp_publish.problems import RateLimited
from awp_publish.stores.store import Count, Counted, Step

SITE: Final = "site-wide"
"""The name of the limit of all actions together. No action is called so: ids have no hyphens."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """One limit under its name: an action's id, or SITE for the limit of all actions together."""

    name: str
    rate: RateLimit
    most: int
    seconds: int
    key: str
    state: bytes
    """The form of its item in the field RateLimit: remaining calls and seconds."""


class RateLimits:
    """The site's limit and an action's, in this order, as far as there are any: their `names`."""

    def __init__(self, action: Action, site_limit: RateLimit | None, clock: Callable[[], float] = time.time) -> None:
        named = ((SITE, site_limit), (action.id, action.rate_limit))
        self._limits = tuple(
            _Limit(
                name, rate, rate.requests, rate.seconds, f"limit:{name}:", b'"%b";r=%%d;t=%%d' % name.encode("ascii")
            )
            for name, rate in named
            if rate is not None
        )
        self.names = tuple(one.name for one in self._limits)
        policies = ", ".join(f'"{one.name}";q={one.most};w={one.seconds}' for one in self._limits)
        self._policies = (b"ratelimit-policy", policies.encode("ascii"))
        self._clock = clock

    def counts(self, call: Call) -> list[Step]:
        """Return the steps that count a call: for everybody, for a known caller, or for an address."""
        counts: list[Step] = []
        for limit in self._limits:
            if limit.rate.scope == "global":
                counted = ""
            elif limit.rate.scope == "ip" or call.principal is None:
                counted = f"ip:{call.address}"
            else:
                counted = f"user:{call.principal.id}"
            counts.append(Count(limit.key + counted, limit.most, limit.seconds))
        return counts

    def tell(self, call: Call, seen: Sequence[Counted], holds: bool) -> None:
        """Put the state of each limit on the call's answer, and of the one that leaves least in AWAS's fields.

        Raises RateLimited for the last one that was `seen`, unless all `holds`.
        """
        states = [
            (max(0, limit.most - events), limit.most, seconds_left, limit.state)
            for limit, (events, seconds_left) in zip(self._limits, seen, strict=False)
        ]
        remaining, most, seconds_left, _ = min(states) if len(states) > 1 else states[0]
        call.headers += (
            self._policies,
            (b"ratelimit", b", ".join([state % (left, math.ceil(seconds)) for left, _, seconds, state in states])),
            (b"x-ratelimit-limit", b"%d" % most),
            (b"x-ratelimit-remaining", b"%d" % remaining),
            (b"x-ratelimit-reset", b"%d" % math.ceil(self._clock() + seconds_left)),  # in Unix seconds
        )
        if not holds:
            raise _refusal(self._limits[len(seen) - 1], seen[-1])


def _refusal(limit: _Limit, seen: Counted) -> RateLimited:
    seconds = max(1, math.ceil(seen.seconds_left))
    whose = "The site allows" if limit.name == SITE else f"Action {limit.name} allows"
    return RateLimited(
        f"{whose} {limit.rate}; the next call is possible in {seconds} seconds.",
        headers=[("Retry-After", str(seconds))],
        members={"retry_after": seconds},
    )
