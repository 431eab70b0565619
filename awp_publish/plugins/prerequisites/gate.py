"""Have other actions succeeded before? (agent.json section 11)

A success is remembered for a known caller, by principal or session. An unknown caller gets a receipt.
"""

from collections.abc import Sequence
from typing import Any

from awp_publish.calls.call import Call, Outcome, Result
from awp_publish.calls.gates.gate import GuardedSite, need_keys
from awp_publish.model import Action, Catalog
from awp_publish.plugin import Ask, Facts, Gate, GateCheck
from awp_publish.plugins.prerequisites.successes import Successes, success_key
from awp_publish.problems import Problem
from awp_publish.stores.store import Look, Seen


class PrerequisiteRequired(Problem):
    title = "Another action has to succeed first"
    default_status = 428
    lacks = "input"
    default_recovery = (
        "Call the actions listed in missing, unless they have already succeeded, then send this call again. If you are "
        "not authenticated, add the AWP-Receipt header of each of their answers, in AWP-Receipt or in the envelope's "
        "member receipts. Do not repeat a call only to get its receipt."
    )


class _Missing(Ask):
    """The `actions` of which a call has shown no receipt, and the looks for their successes, if a caller is known."""

    waits = True

    def __init__(self, actions: Sequence[str], looks: Sequence[Look]) -> None:
        self.actions = actions
        self.looks = looks


class _Required(GateCheck[_Missing]):
    """Refuses calls before the actions that theirs `requires` have succeeded."""

    def __init__(self, action: Action, successes: Successes) -> None:
        self._action = action
        self._successes = successes

    def ask(self, call: Call) -> _Missing | None:
        """Look for the successes that no receipt proves."""
        proven = self._successes.proven_by(call)
        missing = [name for name in self._action.requires if name not in proven]
        if not missing:
            return None
        looks = [Look(success_key(name, call.known_as)) for name in missing] if call.known_as else []
        return _Missing(missing, looks)

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

    def __init__(self, successes: Successes) -> None:
        self._successes = successes

    async def replayed(self, call: Call, answer: Outcome) -> None:
        """Add a receipt to an answer that is given again."""
        call.headers += await self._successes.certify(call)

    async def ended(self, call: Call, ask: Ask | None, result: Result) -> None:
        """Add a receipt to the answer."""
        if isinstance(result, Outcome):
            call.headers += await self._successes.certify(call)


def _check(catalog: Catalog, site: GuardedSite) -> None:
    for action in catalog.actions:
        if action.requires:
            need_keys(action, site)


def gates_of(successes: Successes) -> tuple[Gate, Gate]:
    """Return the gate that asks for successes, and the one that notes them."""

    def required(action: Action, facts: Facts) -> GateCheck[Any] | None:
        return _Required(action, successes) if action.requires else None

    def certified(action: Action, facts: Facts) -> GateCheck[Any] | None:
        return _Certified(successes) if action.is_required and not action.is_background else None

    return (
        Gate(
            name="prerequisites",
            order=700,
            of=required,
            refuses=(PrerequisiteRequired,),
            options=("requires",),
            acts=False,
            check=_check,
        ),
        Gate(name="receipts", order=750, of=certified, refuses=(), acts=False),
    )
