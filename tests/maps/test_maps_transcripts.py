"""What becomes of steps, tools, states and projections on pages, whole: see `tests/function_transcripts.py`.

`do` is given an address and steps, each a primitive, its arguments, and more of the step; `play` a map, maybe by its
name in `maps.json`, and what is asked of its runtime in turn.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from awp_publish.browsing.page import Fetched
from awp_publish.maps import keys, rules
from awp_publish.maps.composition import Imported, ImportRefused, compose as compose_maps
from awp_publish.maps.engine import ExpressionError
from awp_publish.maps.expressions import evaluate, expression_of, fill
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.older_dialects import translate
from awp_publish.maps.primitives import arguments_of
from awp_publish.maps.projections import marker_fault
from awp_publish.maps.roles import roles_of
from awp_publish.maps.runtime import HandlerCall, Runtime
from awp_publish.plugins.actions_json.reading import ActionMap
from tests.browsing.driving import HOME, Web, page, redirect
from tests.browsing.running import map_of, open_in_process, tool
from tests.function_transcripts import compare

TRANSCRIPTS = Path(__file__).parent / "transcripts"
MAPS = json.loads((TRANSCRIPTS / "maps.json").read_text())
NOW = datetime(2026, 1, 2, 3, 4, 5, 600000, UTC)

SHOP = (TRANSCRIPTS / "shop.html").read_text()


def _echo(fetch: Any) -> Fetched:
    sent = (fetch.body or b"").decode()
    return page(f"<title>{fetch.method}</title><main><h1>Result</h1><p id=asked>{fetch.path} {sent}</p></main>")


PAGES: Final[Mapping[str, Any]] = {
    "/": SHOP,
    "/about": "<title>About</title><main><h1>About us</h1><p>We sell.</p></main>",
    "/b/1": "<title>Emma</title><main><h1>Emma</h1><a href='/'>Back</a></main>",
    "/moved": redirect("/about"),
    "/broken": page("<title>Oops</title><h1>Oops</h1>", 500),
    "/file": Fetched(200, (("Content-Type", "application/json"),), b'{"a": 1}'),
    "/search": _echo,
    "/order": _echo,
}


def _still(value: Any) -> Any:
    """Return JSON without what took time."""
    if isinstance(value, Mapping):
        members = {name: _still(item) for name, item in value.items() if name not in ("duration_ms", "elapsed_ms")}
        return members | {name: 0 for name in ("waited_ms",) if name in members}
    return [_still(item) for item in value] if isinstance(value, list | tuple) else value


async def _approved(call: HandlerCall) -> object:
    if call.arguments.get("fail"):
        raise ValueError("secret")
    return {"tool": call.tool, "arguments": dict(call.arguments), "bound": dict(call.bound)}


async def _asked(runtime: Runtime, web: Web, name: str, *arguments: Any) -> Any:
    if name == "goto":
        return (await runtime.page.find("body"))[0].text if await _navigate(runtime, arguments[0]) else None
    try:
        answer = await getattr(runtime, name)(*arguments)
    except RuntimeFailure as failure:
        return failure.describe()
    if name == "call":
        steps = [[step[part] for part in ("id", "ok", "skipped")] + [step.get("settle")] for step in answer.steps]
        return {"output": answer.output, "steps": steps, "drift": list(answer.drift)}
    return answer


async def _navigate(runtime: Runtime, path: str) -> bool:
    await runtime.page.perform("browser.navigate", {"url": f"{HOME}{path}"})
    return True


def _play(document: dict[str, Any] | str, *asks: list[Any]) -> Any:
    """Ask of a map, or of one that `maps.json` has by name."""
    document = MAPS[document] if isinstance(document, str) else document

    async def play() -> list[Any]:
        web = Web(PAGES)
        action_map = ActionMap.read(map_of(**{"tools": [], **document}))
        assert action_map.is_valid, action_map.findings
        page = await open_in_process(web)
        runtime = Runtime(action_map, page, handlers={"approved": _approved}, now=lambda: NOW, clock=lambda: 0.0)
        answers = [await _asked(runtime, web, *ask) for ask in asks]
        return _still(answers[0] if len(answers) == 1 else answers)

    return asyncio.run(play())


def _do(start: str, *steps: list[Any]) -> Any:
    async def do() -> Any:
        web = Web(PAGES)
        written = [
            {"id": f"s{number}", "primitive": step[0], "args": step[1], **(step[2] if len(step) > 2 else {})}
            for number, step in enumerate(steps, 1)
        ]
        runtime = Runtime(ActionMap.read(map_of(tool("go", *written))), await open_in_process(web, start))
        answer = await _asked(runtime, web, "call", "go", {"q": "Emma", "list": [1, 2, 3]})
        if "output" in answer:
            answer = {**answer, "output": answer["output"].get("steps")}
            answer = {name: value for name, value in answer.items() if name != "drift" or value}
        sent = [f"{fetch.method} {fetch.path} {(fetch.body or b'').decode()}".strip() for fetch in web.asked[1:]]
        return [_still(answer), *sent]

    return asyncio.run(do())


def _compose(document: dict[str, Any], maps: dict[str, Any]) -> Any:
    def load(uri: str, base: str) -> Imported:
        if uri not in maps:
            raise ImportRefused(f"{uri} is not there")
        return Imported(map_of(**{"tools": [], **maps[uri]}), uri)

    made = compose_maps(map_of(**{"tools": [], **document}), "main", load)
    return {
        name: sorted(value) if isinstance(value, frozenset | set) else repr(value) if name == "findings" else value
        for name in made.__dataclass_fields__
        for value in [getattr(made, name)]
    }


def _evaluate(expression: str, document: Any, most_bytes: int = 200) -> Any:
    try:
        return repr(evaluate(expression, document, most_bytes))
    except ExpressionError as error:
        return [error.code, error.message]


def _fill(value: Any, document: Any) -> Any:
    try:
        return fill(value, document, 200)
    except ExpressionError as error:
        return [error.code, error.message]


def _slot(text: str) -> Any:
    try:
        return expression_of(text)
    except ExpressionError as error:
        return [error.code]


def _chord(key: str, modifiers: Any = None) -> Any:
    try:
        chord = keys.read_chord(key, modifiers)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return [chord.key, list(chord.modifiers), sorted(chord.commands)]


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "do": _do,
    "play": _play,
    "compose": _compose,
    "evaluate": _evaluate,
    "fill": _fill,
    "slot": _slot,
    "chord": _chord,
    "primitive": arguments_of,
    "roles": lambda tag, attributes: sorted(roles_of(tag, attributes)),
    "identifier": lambda name: [rules.is_identifier(name), rules.is_step_id(name)],
    "fits": rules.url_fits,
    "path": rules.path_fault,
    "markers": marker_fault,
    "translate": translate,
}


@pytest.mark.parametrize("name", sorted(path.stem for path in TRANSCRIPTS.glob("*.txt")))
def test_each_function_answers_as_reviewed(name, request):
    compare(TRANSCRIPTS / f"{name}.txt", FUNCTIONS, request)
