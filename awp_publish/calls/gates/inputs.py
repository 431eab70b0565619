"""Does the input match the action's schema?

For a caller over the limit, the input is only tested, and its faults are not described.
"""

from typing import Final

from awp_publish.calls.call import Call
from awp_publish.calls.gates.gate import Ask, Gate, GateCheck
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
        ask.refusal = lambda: InvalidInput.of(*self._inputs.describe(call.input, call.elsewhere))
        return ask


INPUTS: Final = Gate(
    name="input", order=500, of=lambda action, facts: _Inputs(facts.inputs), refuses=(InvalidInput,), alone=False
)
