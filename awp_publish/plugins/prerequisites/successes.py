"""Successes that other actions require: remembered for known callers, proven by receipts for all others.

A receipt is signed, and bound to the credentials that were sent to the route. A success without any credentials counts
for everybody; that is how signing in can come first.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Final

from awp_publish.calls.call import RECEIPT, Call, RawHeaders
from awp_publish.calls.fingerprints import shown_by
from awp_publish.calls.tokens import Expired, NotOurs, Tokens
from awp_publish.model import RouteCredential
from awp_publish.plugin import DeclaredSite
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import Add, Look, Step, Swap

logger: Final = logging.getLogger("awp_publish.calls")

LIFETIME: Final = 3600.0
"""Seconds for which a success counts."""

MAX_RECEIPTS: Final = 50
"""Receipts of one call that are read."""


class Successes:
    """The successes of a site's callers."""

    def __init__(self, site: DeclaredSite) -> None:
        self._site = site

    @cached_property
    def _receipts(self) -> Tokens:
        return Tokens(self._site.keys, f"receipt:{self._site.settings.namespace}", LIFETIME)

    @cached_property
    def _credentials(self) -> frozenset[RouteCredential]:
        """The places by which the actions' routes identify callers."""
        return frozenset(each for action in self._site.catalog.actions for each in action.route_credentials)

    @cached_property
    def _required(self) -> tuple[str, ...]:
        return tuple(action.id for action in self._site.catalog.actions if action.is_required)

    def proven_by(self, call: Call) -> set[str]:
        """Return the actions whose success is proven by receipts of the call's caller."""
        if not call.members.receipts:
            return set()
        proven: set[str] = set()
        digests = self._receipts.digests(self._shown(call))
        for receipt in call.members.receipts[:MAX_RECEIPTS]:
            with suppress(NotOurs, Expired):
                facts = self._receipts.read(receipt)
                if facts.get("caller") in ("", call.caller_key) and facts.get("shown") in (None, *digests):
                    proven.add(str(facts.get("action")))
        return proven

    async def certify(self, call: Call) -> RawHeaders:
        """Remember a success that other actions require, and return the header that proves it."""
        action, receipts, store = call.action.id, self._receipts, self._site.store
        if not call.action.is_required:
            return ()
        if caller := call.known_as:
            try:
                key, until = success_key(action, caller), b"%d" % time.time()
                ran = await store.run((Add(key, until, LIFETIME),))
                if ran.failed is not None and isinstance(ran.seen[0], bytes):
                    await store.run((Swap(key, ran.seen[0], until, LIFETIME),))
            except StoreUnavailable:  # the answer stands, and the receipt proves the success, too
                logger.exception("a success of action %s could not be noted (request_id=%s)", action, call.request_id)
        facts = {"action": action, "caller": call.caller_key}
        if shown := self._shown(call):
            facts["shown"] = receipts.digests(shown)[0]
        token, _ = receipts.write(facts)
        return ((RECEIPT, token.encode("ascii")),)

    async def moved(self, before: str, after: str) -> Sequence[Step]:
        """Return the steps that remember the successes of a caller under a new name."""
        if not self._required:
            return ()
        looks = [Look(success_key(action, before)) for action in self._required]
        seen = (await self._site.store.run(looks)).seen
        return [
            Add(success_key(action, after), value, LIFETIME)
            for action, value in zip(self._required, seen, strict=True)
            if isinstance(value, bytes)
        ]

    def _shown(self, call: Call) -> str:
        """Return the credentials of an unknown caller, without the session, which the required actions change."""
        if call.principal is not None:
            return ""
        return shown_by(call.credentials(), self._credentials, session=False)


def success_key(action: str, caller: str) -> str:
    """Return the key under which a success of a known caller is remembered."""
    return f"{{{caller}}}done:{action}"
