"""Have other actions succeeded before? (agent.json section 11)

A success is remembered for a known caller, by principal or session. An unknown caller gets a signed receipt, which is
bound to the credentials that were sent to the route. A success without any credentials counts for everybody; that is
how signing in can come first.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from awp_publish.calls.call import RECEIPT, Call, Outcome, RawHeaders, Result
from awp_publish.calls.gates.gate import Ask, Facts, Gate, GateCheck, GuardedSite, Guards, need_keys
from awp_publish.calls.tokens import Expired, NotOurs, Tokens
from awp_publish.model import Action, Catalog
from awp_publish.problems import PrerequisiteRequired, StoreUnavailable
from awp_publish.stores.store import Add, Look, Seen, Swap

logger: Final = logging.getLogger("awp_publish.calls")

MAX_RECEIPTS: Final = 50
"""Receipts of one call that are read."""


class _Missing(Ask):
    """The `actions` of which a call has shown no receipt, and the looks for their successes, if a caller is known."""

    waits = True

    def __init__(self, actions: Sequence[str], looks: Sequence[Look]) -> None:
        self.actions = actions
        self.looks = looks


class _Required(GateCheck[_Missing]):
    """Refuses calls before the actions that theirs `requires` have succeeded."""

    def __init__(self, action: Action, guards: Guards, receipts: Tokens) -> None:
        self._action = action
        self._guards = guards
        self._receipts = receipts

    def ask(self, call: Call) -> _Missing | None:
        """Look for the successes that no receipt proves."""
        proven = self._read_receipts(call)
        missing = [name for name in self._action.requires if name not in proven]
        if not missing:
            return None
        looks = [Look(success_key(name, call.known_as)) for name in missing] if call.known_as else []
        return _Missing(missing, looks)

    def _read_receipts(self, call: Call) -> set[str]:
        """Return the actions whose success is proven by receipts of this caller."""
        proven: set[str] = set()
        digests = self._receipts.digests(self._guards.shown_to_routes(call)) if call.members.receipts else ()
        for receipt in call.members.receipts[:MAX_RECEIPTS]:
            with suppress(NotOurs, Expired):
                facts = self._receipts.read(receipt)
                if facts.get("caller") in ("", call.caller_key) and facts.get("shown") in (None, *digests):
                    proven.add(str(facts.get("action")))
        return proven

    def judge(self, call: Call, ask: _Missing, seen: Sequence[Seen], failed: int | None) -> Outcome | None:
        """Raise PrerequisiteRequired if a success is neither proven nor remembered."""
        missing = ask.actions
        if call.known_as:
            missing = [name for name, done in zip(missing, seen, strict=True) if done is None]
        if not missing:
            return None
        listed = ", ".join(missing)
        if call.known_as:
            detail = f"Action {self._action.id} requires that {listed} succeeded first, and no success is on record."
        else:
            detail = f"Action {self._action.id} requires a receipt from {listed}, and no valid one was sent."
        raise PrerequisiteRequired(detail, members={"missing": list(missing)})


class _Certified(GateCheck[Ask]):
    """Gives a receipt for each success of an action that others require, also for one that is answered again."""

    def __init__(self, guards: Guards) -> None:
        self._guards = guards

    async def replayed(self, call: Call, answer: Outcome) -> None:
        """Add a receipt to an answer that is given again."""
        call.headers += await certify(self._guards, call)

    async def ended(self, call: Call, ask: Ask | None, result: Result) -> None:
        """Add a receipt to the answer."""
        if isinstance(result, Outcome):
            call.headers += await certify(self._guards, call)


def success_key(action: str, caller: str) -> str:
    """Return the key under which a success of a known caller is remembered."""
    return f"{{{caller}}}done:{action}"


async def certify(guards: Guards, call: Call) -> RawHeaders:
    """Remember a success that other actions require, and return the header that proves it."""
    action, receipts = call.action.id, guards.receipts
    if receipts is None or action not in guards.receipted:
        return ()
    if caller := call.known_as:
        try:
            key, until = success_key(action, caller), b"%d" % time.time()
            ran = await guards.store.run((Add(key, until, receipts.lifetime),))
            if ran.failed is not None and isinstance(ran.seen[0], bytes):
                await guards.store.run((Swap(key, ran.seen[0], until, receipts.lifetime),))
        except StoreUnavailable:  # the answer stands, and the receipt proves the success, too
            logger.exception("a success of action %s could not be noted (request_id=%s)", action, call.request_id)
    facts = {"action": action, "caller": call.caller_key}
    if shown := guards.shown_to_routes(call):
        facts["shown"] = receipts.digests(shown)[0]
    token, _ = receipts.write(facts)
    return ((RECEIPT, token.encode("ascii")),)


def _required(action: Action, facts: Facts) -> GateCheck[Any] | None:
    receipts = facts.guards.receipts
    return _Required(action, facts.guards, receipts) if receipts is not None and action.requires else None


def _certified(action: Action, facts: Facts) -> GateCheck[Any] | None:
    is_certified = action.id in facts.guards.receipted and not action.is_background
    return _Certified(facts.guards) if is_certified else None


def _check(catalog: Catalog, site: GuardedSite) -> None:
    for action in catalog.actions:
        if action.requires:
            need_keys(action, site)


PREREQUISITES: Final = Gate(
    name="prerequisites",
    order=700,
    of=_required,
    refuses=(PrerequisiteRequired,),
    options=("requires",),
    check=_check,
)

RECEIPTS: Final = Gate(name="receipts", order=750, of=_certified, refuses=())
