"""What the site's map offers to whom, and whether calls and results are what it declares."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import cast

from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.performing import errors_of
from awp_publish.maps.primitives import PRIMITIVES
from awp_publish.maps.trace import ToolResult
from awp_publish.model import JsonObject
from awp_publish.plugin import Context
from awp_publish.plugins.actions_json import document as actions_json
from awp_publish.plugins.actions_json.document import SITE_TOOL
from awp_publish.plugins.actions_json.items import MAX_MAPS, invalid
from awp_publish.plugins.actions_json.reading import ActionMap
from awp_publish.plugins.actions_json.ready import by_name
from awp_publish.plugins.actions_json.runtimes import BridgeCall, Owner, PairedRuntime
from awp_publish.problems import Violation
from awp_publish.schema import Validator, compile_schema


class Offers:
    """The tools and signals of the map of one public address."""

    def __init__(self, door: Context) -> None:
        self._door = door
        self._actions = {action.id: action for action in door.catalog.actions}
        self._site_inputs = compile_schema(actions_json.SITE_INPUTS)
        self._validators: dict[str, Validator] = {}
        self._maps: dict[tuple[str, ...], ActionMap] = {}

    def map_of(self, owner: Owner) -> ActionMap:
        """Return the site's map with the actions that an owner may see; for an anonymous one, the published map."""
        catalog = self._door.catalog.visible_to(owner.scopes)
        action_ids = tuple(action.id for action in catalog.actions)
        action_map = self._maps.get(action_ids)
        if action_map is None:
            action_map = ActionMap.read(actions_json.render(catalog))
            if len(self._maps) < MAX_MAPS:
                self._maps[action_ids] = action_map
        return action_map

    def tool_of(self, owner: Owner, name: str) -> JsonObject | None:
        """Return a tool of the map by name, None if there is none or the owner may not see it."""
        action = self._actions.get(name)
        judged = action or self._door.invoker.absent  # a hidden name takes the same steps as none
        is_visible = judged is None or judged.is_for(owner.scopes)
        return self.tools.get(name) if action is None or is_visible else None

    @cached_property
    def tools(self) -> Mapping[str, JsonObject]:
        """The tools of the map, by name."""
        return by_name(actions_json.render(self._door.catalog).get("tools"))

    @cached_property
    def signals(self) -> Mapping[str, JsonObject]:
        """The enabled signals of the map, by name."""
        signals = by_name(actions_json.render(self._door.catalog).get("signals"))
        return {name: signal for name, signal in signals.items() if signal.get("ingestion") == "enabled"}

    def gives_once(self, call: BridgeCall, item: JsonObject) -> bool:
        """Return True if an answer contains values that its action gives only once, so that it must not be kept."""
        redact, output = self._door.invoker.answer_redactors.get(call.effective.name), item.get("output")
        if redact is None or item["type"] == "action_error":
            return False
        if call.name == SITE_TOOL and isinstance(output, dict):
            output = output.get("result")
        return bool(redact(output) != output)

    def check_site_inputs(self, arguments: JsonObject) -> None:
        """Check the arguments of `actions.site`. Raises RuntimeFailure."""
        wrong = self._site_inputs(arguments)
        if not wrong and arguments.get("mode") == "call" and "action" not in arguments:
            wrong = (Violation("/action", "is required for mode call"),)
        if wrong:
            raise _misfit(f"The arguments of {SITE_TOOL} do not match its input_schema", wrong)

    def check(self, owner: Owner, runtime: PairedRuntime, call: BridgeCall) -> None:
        """Check a call before it is passed on. Raises RuntimeFailure."""
        tool = self.tool_of(owner, call.name)
        if tool is None:
            is_known = call.name in PRIMITIVES or call.name in runtime.announced or call.name == SITE_TOOL
            if is_known:
                return
            name = call.name[:100]
            raise RuntimeFailure("unknown_action", f"There is no action {name!r}.", {"name": name})
        validator = self.validator(call.name, cast(JsonObject, tool["input_schema"]), asserts_formats=True)
        if violations := validator(call.arguments):
            raise _misfit(f"The arguments of {call.name} do not match its input_schema", violations)

    def check_result(self, call: BridgeCall, result: ToolResult, *, is_wrapped: bool) -> None:
        """Check another runtime's result of one of our tools. Raises RuntimeFailure `invalid_result`."""
        tool = self.tools.get(call.name, {})
        x_actions = tool.get("x_actions")
        schema = x_actions.get("result_schema") if isinstance(x_actions, dict) else None
        output = result.output
        if not isinstance(schema, dict) or (is_wrapped and not (isinstance(output, dict) and "result" in output)):
            return
        value = output["result"] if is_wrapped and isinstance(output, dict) else output
        if violations := self.validator(f"result {call.name}", schema)(value):
            failure = _misfit(f"The result of {call.name} does not match its result_schema", violations)
            evidence = {**failure.evidence, "steps": list(result.steps)}
            raise RuntimeFailure("invalid_result", failure.message, evidence, recoverable=False)

    def validator(self, name: str, schema: JsonObject, asserts_formats: bool = False) -> Validator:
        """Return the validator of a schema of the map, made once for each name."""
        validator = self._validators.get(name)
        if validator is None:
            validator = self._validators[name] = compile_schema(schema, asserts_formats)
        return validator


def _misfit(words: str, violations: Sequence[Violation]) -> RuntimeFailure:
    listed = "; ".join(f"{violation.pointer or 'they'} {violation.detail}" for violation in violations[:5])
    return invalid(f"{words}: {listed}", errors=errors_of(violations))
