"""Does the input match the action's schema?

For a caller over the limit, the input is only tested, and its faults are not described.
"""

from functools import partial
from typing import Any, Final

from awp_publish.calls.call import Call
from awp_publish.calls.gates.gate import Ask, Facts, Gate, GateCheck
from awp_publish.model import Action
from awp_publish.problems import InvalidInput
from awp_publish.schema import Validator


class _Inputs(GateCheck[Ask]):
    def __init__(self, inputs: Validator) -> None:
        self._inputs = inputs

    def ask(self, call: Call) -> Ask | None:
        """Refuse an input that is not valid, with every fault."""
        if self._inputs.is_valid(call.input):
            return None
        ask = Ask()
        ask.refusal = partial(self._describe, call)
        return ask

    def _describe(self, call: Call) -> InvalidInput:
        return InvalidInput.of(*self._inputs.describe(call.input, call.elsewhere))


def _of(action: Action, facts: Facts) -> GateCheck[Any] | None:
    return _Inputs(facts.inputs)


INPUTS: Final = Gate(name="input", order=500, of=_of, refuses=(InvalidInput,), alone=False)
