"""Transitions: what the calls of a tool lead to, and how often they may be repeated (V1, transitions)."""

import asyncio
import time
from collections.abc import Callable, Sequence

from awp_publish.maps import reading, rules
from awp_publish.maps.composed import ComposedMap
from awp_publish.maps.engine import ExpressionError
from awp_publish.maps.expressions import evaluate, expression_of
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.live_page import LivePage
from awp_publish.maps.states import States
from awp_publish.schema import JsonObject


class Transitions:
    """The transitions that calls make: their preconditions, pauses, and repetitions in one state."""

    def __init__(self, action_map: ComposedMap, page: LivePage, states: States, clock: Callable[[], float]) -> None:
        self._map, self._page, self._states, self._clock = action_map, page, states, clock
        self._moved: dict[str, float] = {}
        self._repeated: dict[str, tuple[object, int]] = {}

    async def begin(self, tool: JsonObject, arguments: JsonObject, deadline: float) -> Sequence[JsonObject]:
        """Return the transitions that a call makes, after checking their conditions. Raises RuntimeFailure."""
        results: dict[str, JsonObject] = {}
        moves = []
        for transition in self._map.objects("transitions"):
            if transition.get("tool") != tool.get("name"):
                continue
            starts = [
                (await self._states.diagnose(name, results))["holds"] for name in reading.texts(transition, "from")
            ]
            if starts and not any(holds is not False for holds in starts):
                continue
            moves.append(transition)
            name = str(transition.get("name"))
            for condition in reading.texts(transition, "preconditions"):  # those that are not states are documentation
                diagnosed = await self._states.diagnose(condition, results)
                if diagnosed["holds"] is False:
                    evidence = {"state": condition, "transition": name, "diagnostics": diagnosed["diagnostics"]}
                    message = f"{tool.get('name')} needs the state {condition}, which does not hold."
                    raise RuntimeFailure("state_mismatch", message, evidence)
            most = reading.part(transition, "convergence").get("max_attempts")
            if isinstance(most, (int, float)) and not isinstance(most, bool):
                # A call in the same states, at the same address and with the same arguments is a repetition.
                key = ((await self._states.summary())["current"], self._page.url, dict(arguments))
                before, count = self._repeated.get(name, (None, 0))
                if before == key and count >= most:
                    message = f"{tool.get('name')} was tried {count} times in one state, and nothing changed."
                    evidence = {"transition": name, "max_attempts": most, "attempts": count}
                    raise RuntimeFailure("unsafe_state", message, evidence, recoverable=False)
                self._repeated[name] = (key, count + 1 if before == key else 1)
            pause = transition.get("rate_limit_ms")
            if isinstance(pause, (int, float)) and not isinstance(pause, bool) and name in self._moved:
                remaining = self._moved[name] + pause / 1000 - self._clock()
                if remaining > 0 and time.monotonic() + remaining >= deadline:
                    evidence = {"transition": name, "retry_after_ms": round(remaining * 1000)}
                    message = f"{tool.get('name')} may be repeated in {round(remaining * 1000)} ms."
                    raise RuntimeFailure("unsafe_state", message, evidence)
                if remaining > 0:
                    await asyncio.sleep(remaining)
        return moves

    async def end(self, transition: JsonObject, arguments: JsonObject, result: object) -> None:
        """Reset the attempts of a complete transition.

        `complete_when` is a state or an expression. If it is neither, the transition is complete in a state to which it
        leads and from which it does not start.
        """
        done = reading.part(transition, "convergence").get("complete_when")
        try:
            expression = expression_of(done) if isinstance(done, str) else None
            if expression is not None:
                current = (await self._states.summary())["current"]
                document = {"input": arguments, "output": result, "url": self._page.url, "states": current}
                is_complete = evaluate(expression, document, rules.MAX_EXPRESSION_BYTES) is True
            else:
                is_state = isinstance(done, str) and self._map.find("states", done) is not None
                ends = {str(done)} if is_state else set(reading.texts(transition, "to"))
                if not is_state:
                    ends.difference_update(reading.texts(transition, "from"))
                is_complete = any([(await self._states.diagnose(name))["holds"] for name in ends])
        except ExpressionError:
            is_complete = False
        if is_complete:
            self._repeated.pop(str(transition.get("name")), None)

    def note(self, moves: Sequence[JsonObject]) -> None:
        """Record that a call has made transitions, at which the pause until their repetition begins."""
        self._moved |= {str(transition.get("name")): self._clock() for transition in moves}
