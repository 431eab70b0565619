"""The states of a map on the present page, and the context blocks that they select."""

from collections.abc import Mapping, Sequence

from awp_publish.maps import reading, rules
from awp_publish.maps.composed import ComposedMap
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.maps.targets import another_address, locate
from awp_publish.schema import JsonObject


class States:
    """Diagnoses the states of a map on a page. `known` in its methods has the states that were diagnosed already."""

    def __init__(self, action_map: ComposedMap, page: LivePage) -> None:
        self._map, self._page = action_map, page

    async def diagnose(self, name: str, cache: dict[str, JsonObject] | None = None) -> JsonObject:
        """Diagnose a state: `holds` (None if it has no diagnostics) and the result of each diagnostic.

        A state holds if all of its targets exist. A diagnostic without a target is documentation. The required state of
        a target is not diagnosed in turn.
        """
        cache = {} if cache is None else cache
        if name in cache:
            return cache[name]
        cache[name] = {"holds": None, "diagnostics": []}
        results = []
        for diagnostic in reading.objects(self._map.find("states", name) or {}, "diagnostics"):
            if "target" not in diagnostic:
                continue
            try:
                match = await locate(self._page, reading.part(diagnostic, "target"))
                result = {"name": diagnostic.get("name"), "holds": bool(match.elements), **match.evidence}
                result.pop("candidates", None)
            except PrimitiveError as error:
                result = {"name": diagnostic.get("name"), "holds": False, "reason": error.message}
            results.append(result)
        cache[name] = {"holds": all(result["holds"] for result in results) if results else None, "diagnostics": results}
        return cache[name]

    async def summary(self) -> JsonObject:
        """Return `current` (names), `unknown` (those without diagnostics) and `diagnostics` of each state."""
        results: dict[str, JsonObject] = {}
        names = [str(state.get("name")) for state in self._map.objects("states")]
        for name in names:
            await self.diagnose(name, results)
        return {
            "current": [name for name in names if results[name]["holds"]],
            "unknown": [name for name in names if results[name]["holds"] is None],
            "diagnostics": {name: results[name]["diagnostics"] for name in names},
        }

    async def misfit(self, target: JsonObject, results: dict[str, JsonObject]) -> str | None:
        """Return why a tool does not belong to the page's address or state, or None if it does."""
        if not rules.url_fits(target, self._page.url):
            return another_address(target)
        state = target.get("state")
        if isinstance(state, str) and (await self.diagnose(state, results))["holds"] is False:
            return f"The state {state} does not hold."
        return None

    async def context(self, task: str = "") -> Sequence[JsonObject]:
        """Return the context blocks that the address, the states, the targets and the task select.

        Every predicate of `load_when` has to hold, and of a list any entry. With a task, blocks that share most words
        with it come first. The blocks are documentation: a tool that one mentions need not be permitted.
        """
        results: dict[str, JsonObject] = {}
        blocks = [
            item
            for item in self._map.objects("context")
            if await self._applies(reading.part(item, "load_when"), task, results)
        ]
        words = {word for word in task.casefold().split() if len(word) > 2}

        def rank(block: JsonObject) -> int:
            words_of_block = (
                f"{block.get('title', '')} {block.get('body', '')} {' '.join(reading.texts(block, 'available_tools'))}"
            )
            text = words_of_block.casefold()
            return -sum(word in text for word in words)

        return sorted(blocks, key=rank)

    async def _applies(self, when: JsonObject, task: str, results: dict[str, JsonObject]) -> bool:
        if not rules.url_fits(when, self._page.url):
            return False
        outcomes = [(await self.diagnose(name, results))["holds"] for name in reading.texts(when, "states")]
        if "states" in when and not any(outcomes):
            return False
        if "tasks" in when and not any(part.casefold() in task.casefold() for part in reading.texts(when, "tasks")):
            return False
        targets = when.get("targets")
        if targets is None:
            return True
        for candidate in targets if isinstance(targets, list) else [targets]:
            try:
                target = {"selector": candidate} if isinstance(candidate, str) else candidate
                if isinstance(target, Mapping) and (await locate(self._page, target)).elements:
                    return True
            except PrimitiveError:
                continue
        return False
