"""Limits of the streams and connections that one process keeps open, by caller.

Each takes a place of its caller's share: a known caller's own, or that of all unknown callers at one address. Unknown
callers together never get more than a part of all places, so that the rest is left to known ones.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Final, NamedTuple

from awp_publish.calls.call import Principal, key_of, share_of
from awp_publish.problems import Problem, RateLimited

RETRY_SECONDS: Final = 30
"""Seconds after which a refused caller may try again."""


class StreamLimits(NamedTuple):
    """Places in all, for all unknown callers together, for the unknown ones of an address, and for a known caller."""

    most: int = 1_000
    of_unknown: int = 500
    of_address: int = 100
    of_caller: int = 100


LIMITS: Final = StreamLimits()


@dataclass(slots=True, eq=False)
class Place:
    """A place that is taken by one stream or connection."""

    share: str
    is_known: bool
    is_counted: bool
    """True if it is one of all places; a connection whose caller is not identified yet only takes one of its share."""


class OpenStreams:
    """The open streams or connections of one door. `noun` names them in refusals. Usable from any thread."""

    def __init__(self, noun: str = "streams", limits: StreamLimits | None = None) -> None:
        self._noun = noun
        self._limits = limits or LIMITS
        self._lock = Lock()
        self._shares: Counter[str] = Counter()
        self._known = 0
        self._unknown = 0

    @contextmanager
    def hold(self, principal: Principal | None, address: str, *, is_identified: bool = True) -> Iterator[Place]:
        """Take a place for as long as the context is open. Raises RateLimited if there is none.

        Where callers are identified only later (`is_identified`), `identify` settles which share has it.
        """
        with self._lock:
            place = self._take(principal, address, is_identified)
        try:
            yield place
        finally:
            with self._lock:
                self._release(place)

    def identify(self, place: Place, principal: Principal | None, address: str) -> None:
        """Move a place to the share of a caller who is identified by now. Raises RateLimited, and keeps it, if full."""
        with self._lock:
            if place.is_counted and place.share == share_of(key_of(principal), address):
                return
            self._release(place)
            try:
                new = self._take(principal, address, True)
            except RateLimited:
                self._enter(place)
                raise
            place.share, place.is_known, place.is_counted = new.share, new.is_known, new.is_counted

    def _take(self, principal: Principal | None, address: str, is_identified: bool) -> Place:
        share = share_of(key_of(principal), address)
        # Unknown callers that stay leave those of their address room to be identified.
        place = Place(share if is_identified else f"unidentified {share}", principal is not None, is_identified)
        limits, whose = self._limits, "you have" if place.is_known else "anonymous callers from one address have"
        most = limits.of_caller if place.is_known else limits.of_address
        if self._shares[place.share] >= most:
            raise self._refusal(most, whose)
        if is_identified and not place.is_known and self._unknown >= limits.of_unknown:
            raise self._refusal(limits.of_unknown, "all anonymous callers together have")
        if is_identified and self._known + self._unknown >= limits.most:
            raise self._refusal(limits.most, "all callers together have")
        self._enter(place)
        return place

    def _enter(self, place: Place) -> None:
        self._shares[place.share] += 1
        self._known += place.is_counted and place.is_known
        self._unknown += place.is_counted and not place.is_known

    def _release(self, place: Place) -> None:
        self._shares[place.share] -= 1
        if not self._shares[place.share]:
            del self._shares[place.share]
        self._known -= place.is_counted and place.is_known
        self._unknown -= place.is_counted and not place.is_known

    def _refusal(self, most: int, whose: str) -> Problem:
        return RateLimited(
            f"Too many {self._noun} are open: {whose} {most}, which is the limit.",
            recovery=f"Close {self._noun} that are not needed, or wait for {RETRY_SECONDS} seconds, then retry.",
            headers=[("Retry-After", str(RETRY_SECONDS))],
            members={"limit": self._noun, "max": most, "retry_after": RETRY_SECONDS},
        )
