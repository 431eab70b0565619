"""Whatever a map says, a runtime answers in JSON or fails with a code, and ends."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from awp_publish.maps.failures import RuntimeFailure
from tests.browsing.running import Driver, Json
from tests.checks.documents import ACTIONS_JSON

HTML = (
    "<title>t</title><main><h1>Head</h1><form role=search><input name=q><button type=submit>Find</button></form>"
    "<p class=count>n</p><ol class=books><li class=book><a class=title href=/x>T</a></li></ol></main>"
)
JUNK: list[Any] = [
    *(None, True, 0, -1, 1.5, 1e308, 10**20, "", "x", "a[", "*", "{% input.q %}", "{% $error('x') %}", "{% x"),
    *([], {}, [1], ["x"], [None], [{}], {"a": 1}, {"selector": 5}, {"selector": "*"}),
]
EXTRA = (
    "role",
    "state",
    "text_contains",
    "url_contains",
    "url_matches",
    "closest",
    "xpath",
    "name",
    "tasks",
    "many",
    "when",
)
METHODS = ("list", "context", "states", "status", "signals", "check", "state_read", "state_summary", "state_diff")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        yield (*path, name)
        yield from places(item, (*path, name))


def spoil(document: Json, chance: random.Random) -> None:
    *way, last = chance.choice(list(places(document)))
    owner: Any = document
    for name in way:
        owner = owner[name]
    name = chance.choice(EXTRA) if isinstance(owner, dict) and chance.random() < 0.2 else last
    owner[name] = copy.deepcopy(chance.choice(JUNK))


@pytest.mark.parametrize("seed", range(8))
def test_a_spoilt_map_is_refused_or_run_and_nothing_else_comes_of_it(seed):
    chance, answered, codes = random.Random(seed), 0, list[str]()
    for _ in range(20):
        document: Json = copy.deepcopy(ACTIONS_JSON)
        document["state_projections"][0]["scope"]["url_matches"] = "*"
        for _ in range(chance.choice((1, 1, 2, 3))):
            spoil(document, chance)
        run = Driver({"/": HTML, "/search": HTML, "/x": HTML}, document, lenient=chance.random() < 0.5, seconds=5)
        asked: list[tuple[str, tuple[Any, ...]]] = [(method, ()) for method in METHODS]
        asked += [("call", (tool.get("name"), {"q": "x"})) for tool in run.map.objects("tools")]
        for method, arguments in asked:
            try:
                answer = run.ask(method, *arguments)
                json.dumps(answer.output if method == "call" else answer)
                answered += 1
            except RuntimeFailure as failure:
                codes.append(json.loads(json.dumps(failure.describe()))["code"])
    assert answered > 0
    assert codes
    assert all(codes)
