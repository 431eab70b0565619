"""May the caller know of the action? To others it does not exist, at doors that do not offer it either."""

from typing import Any, Final

from awp_publish.calls.call import Call
from awp_publish.calls.gates.gate import Ask, Facts, Gate, GateCheck
from awp_publish.model import Action
from awp_publish.problems import UnknownAgent


class _Audience(GateCheck[Ask]):
    def __init__(self, action: Action) -> None:
        self._action = action

    def enter(self, call: Call) -> None:
        """Raise the door's own problem for an unknown action, or what was objected to its request before."""
        scopes = None if call.principal is None else call.principal.scopes
        if not (self._action.is_exposed_at(call.door) and self._action.is_for(scopes)):
            raise call.unknown()
        if call.objection is not None:
            raise call.objection


def _of(action: Action, facts: Facts) -> GateCheck[Any] | None:
    return None if action.is_public and action.expose is None else _Audience(action)


AUDIENCE: Final = Gate(name="audience", order=200, of=_of, refuses=(UnknownAgent,), options=("audience", "expose"))
