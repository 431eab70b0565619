"""What is exported and imported again is the same: sessions of a browser, and maps that import others."""

from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings, strategies as st

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.session import Session
from awp_publish.maps.composition import Imported
from awp_publish.plugins.actions_json.reading import ActionMap
from tests.browsing.driving import HOME, Agent, page
from tests.browsing.running import Driver, Json, map_of, step, tool
from tests.examples import examples

ANY = settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
NAMES = ["one", "two", "three"]
PAGES = {
    f"/{name}": page(
        f"<title>{name}</title><main><h1>{name}</h1>" + "".join(f"<a href=/{other}>{other}</a>" for other in NAMES),
        200,
        ("Set-Cookie", f"{name}=1; Path=/{'' if name == 'one' else name}"),
    )
    for name in NAMES
}
MOVES = st.lists(st.sampled_from([*NAMES, "back", "forward", "new"]), max_size=8)


def move(agent: Agent, moves: list[str]) -> None:
    for name in moves:
        if name in NAMES:
            agent.navigate(f"/{name}")
        elif name == "new":
            agent.session.open_tab()
        else:
            tab = agent.session.tab()
            if 0 <= tab.history.position + (step := -1 if name == "back" else 1) < len(tab.history.entries):
                agent.web.drive(tab.go(step))


@ANY
@given(MOVES, MOVES)
def test_a_session_that_is_imported_goes_on_as_the_one_that_was_exported(before, after):
    agent, other = Agent(PAGES, start="/one"), Agent(PAGES, start="/one")
    move(agent, before)
    exported = orjson.loads(orjson.dumps(agent.session.export()))
    other.session = Session.restore(exported, Origins.of(HOME), clock=agent.clock)
    assert orjson.loads(orjson.dumps(other.session.export())) == exported
    assert (other.url, other.cookies) == (agent.url, agent.cookies)
    for each in (agent, other):
        move(each, after)
    assert (other.url, other.cookies) == (agent.url, agent.cookies)
    assert other.session.export()["pages"] == agent.session.export()["pages"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab é", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=4,
)


@ANY
@given(st.dictionaries(st.sampled_from(NAMES), JSON, min_size=1), st.sampled_from(["shop", "a_b"]))
def test_an_imported_tool_answers_as_in_the_map_that_has_it(outputs, namespace):
    look = step("look", "page.info")
    tools: list[Json] = [
        tool(name, look, output=f"{{% [{orjson.dumps(value).decode()}, input.q, steps.look.output.title] %}}")
        for name, value in outputs.items()
    ]
    inner = map_of(*tools)
    imports = [{"id": "i", "uri": "inner", "kind": "public", "namespace": namespace}]
    whole = ActionMap.read(map_of(imports=imports)).composed(lambda uri, _: Imported(inner, uri), "main")
    assert whole.is_valid, whole.findings
    run, composed = Driver(PAGES, inner, start="/one"), Driver(PAGES, map_of(), start="/one")
    composed.runtime.map = whole
    names: list[Any] = [each["name"] for each in composed.ask("list")["actions"]]
    assert sorted(names) == sorted(f"{namespace}.{name}" for name in outputs)
    for name in outputs:
        assert composed.call(f"{namespace}.{name}", q="x") == run.call(name, q="x")
