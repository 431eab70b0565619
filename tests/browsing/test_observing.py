"""A page is observed as a whole or by what changed, and the patch really leads from one to the other."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.json_patch import make_patch
from tests.browsing.driving import Agent
from tests.browsing.json_patch import apply_patch
from tests.examples import examples

LIST = "<title>{title}</title><main>{items}</main>"


def paragraphs(*texts: str, title: str = "List") -> str:
    return LIST.format(title=title, items="".join(f"<p>{text}</p>" for text in texts))


def test_a_snapshot_is_the_whole_page():
    agent = Agent({"/": paragraphs("one", "two")})
    answer = agent.call("page.observe")
    assert (answer["mode"], answer["cursor"]) == ("snapshot", 1)
    assert answer["som"]["title"] == "List"
    assert answer == agent.call("page.observe", mode="snapshot", cursor="c:1", budget="default")


def test_before_a_page_is_loaded_there_is_nothing_to_see():
    with pytest.raises(AwpError, match="No page loaded yet") as missed:
        Agent().call("page.observe")
    assert missed.value.code == "NOT_FOUND"


@pytest.mark.parametrize("budget", ["full", "default", "tight"])
@pytest.mark.parametrize("cursor", [1, "1", "c:1"])
def test_a_patch_leads_from_the_page_at_a_cursor_to_the_page_of_now(budget, cursor):
    agent = Agent({"/": paragraphs("one", "two", "price $5.00"), "/b": paragraphs("two", "three", title="More")})
    before = agent.som(budget=budget)
    agent.navigate("/b")
    answer = agent.call("page.observe", mode="mutations", cursor=cursor, budget=budget)
    assert (answer["mode"], answer["cursor"], answer["changed"]) == ("mutations", 2, True)
    assert apply_patch(before, answer["patch"]) == agent.som(budget=budget)
    replaced = {operation["path"]: operation.get("value") for operation in answer["patch"]}
    assert (replaced["/title"], replaced["/url"]) == ("More", "https://shop.example/b")


def test_typed_text_changes_one_attribute_under_the_same_id():
    agent = Agent({"/": "<main><form><input name=a aria-label=A><input name=b aria-label=B></form></main>"})
    before = agent.som()
    agent.act("type", {"text": "A"}, value="x")
    answer = agent.call("page.observe", mode="mutations", cursor=1)
    assert apply_patch(before, answer["patch"]) == agent.som()
    (change,) = [operation for operation in answer["patch"] if operation["path"].startswith("/regions")]
    assert (change["op"], change["path"].rpartition("/")[2], change["value"]) == ("add", "value", "x")


@pytest.mark.parametrize("cursor", [1, 2, 99, "c:1000"])
def test_nothing_changed_since_a_cursor_that_is_now_or_later(cursor):
    answer = Agent({"/": paragraphs("one")}).call("page.observe", mode="mutations", cursor=cursor)
    assert answer == {"mode": "mutations", "cursor": 1, "changed": False, "patch": []}


def test_a_change_that_is_taken_back_is_none():
    agent = Agent({"/": "<form><input type=checkbox aria-label=A checked></form>"})
    agent.act("toggle", {"text": "A"})
    agent.act("toggle", {"text": "A"})
    answer = agent.call("page.observe", mode="mutations", cursor=1)
    assert (answer["cursor"], answer["changed"]) == (3, False)


@pytest.mark.parametrize(("cursor", "reason"), [({}, "no_previous_som"), ({"cursor": 0}, "no_previous_som")])
def test_without_a_page_before_there_is_a_snapshot_and_the_reason(cursor, reason):
    answer = Agent({"/": paragraphs("one")}).call("page.observe", mode="mutations", **cursor)
    assert (answer["mode"], answer["reason"], answer["som"]["title"]) == ("snapshot", reason, "List")


def test_without_a_cursor_the_page_before_is_compared():
    agent = Agent({"/": paragraphs("one"), "/b": paragraphs("two")})
    before = agent.som()
    agent.navigate("/b")
    assert apply_patch(before, agent.call("page.observe", mode="mutations")["patch"]) == agent.som()


@pytest.mark.parametrize("limits", [{"moments": 2}, {"kept_bytes": 150}])
def test_a_cursor_that_is_too_old_gives_a_snapshot(limits):
    agent = Agent({f"/{n}": paragraphs(f"page {n}") for n in range(6)}, start="/0", limits=limits)
    for number in range(1, 6):
        agent.navigate(f"/{number}")
    answer = agent.call("page.observe", mode="mutations", cursor=1)
    assert (answer["mode"], answer["reason"]) == ("snapshot", "cursor_too_old")
    assert agent.call("page.observe", mode="mutations", cursor=5)["changed"] is True


@pytest.mark.parametrize(
    "params", [{"mode": "stream"}, {"mode": 1}, {"budget": "tiny"}, {"cursor": "x"}, {"cursor": True}, {"cursor": 1.5}]
)
def test_an_impossible_observation_is_refused(params):
    with pytest.raises(AwpError, match="Invalid param") as refused:
        Agent({"/": paragraphs("one")}).call("page.observe", **params)
    assert refused.value.code == "INVALID_REQUEST"


WORDS = st.sampled_from(["id", "text", "a/b", "m~n", "", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)
ELEMENTS = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from("abcdefgh"), "attrs": VALUES}),
    max_size=8,
    unique_by=lambda e: str(e["id"]),
)
DOCUMENTS = st.fixed_dictionaries(
    {"regions": st.lists(st.fixed_dictionaries({"id": st.sampled_from("rst"), "elements": ELEMENTS}), max_size=3)},
    optional={"title": VALUES, "structured_data": VALUES},
)


def exactly(value: object) -> object:
    """JSON values that differ in kind are not equal: true is not 1."""
    if isinstance(value, dict):
        return {name: exactly(inner) for name, inner in value.items()}
    return [exactly(inner) for inner in value] if isinstance(value, list) else (type(value), value)


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(DOCUMENTS, DOCUMENTS)
def test_any_document_is_made_of_any_other_by_its_patch(before, after):
    patch = make_patch(before, after)
    assert exactly(apply_patch(before, patch)) == exactly(after)
    assert (patch == []) is (exactly(before) == exactly(after))


def test_moving_one_of_many_elements_takes_two_operations():
    elements = [{"id": f"e{n}", "text": str(n)} for n in range(1000)]
    assert len(make_patch(elements, [*elements[1:], elements[0]])) == 2
    assert make_patch(elements, elements[:500] + elements[501:]) == [{"op": "remove", "path": "/500"}]


def test_deep_data_is_replaced_as_a_whole():
    def nested(depth: int, leaf: str) -> object:
        return leaf if depth == 0 else {"x": nested(depth - 1, leaf)}

    before, after = nested(200, "a"), nested(200, "b")
    patch = make_patch(before, after)
    assert apply_patch(before, patch) == after
    assert len(patch) == 1


def test_choices_are_shown_where_the_page_shows_them():
    options = "".join(f"<option value=v{n}>Option number {n}" for n in range(5000))
    several = "<select id=more multiple><option>a<option>b</select>"
    agent = Agent({"/": f"<main><form><select id=one>{options}</select>{several}</form></main>"})
    agent.act("select", "#one", value="v4321")
    agent.act("select", "#more", value=["a", "b"])
    for budget in ("full", "default", "tight"):
        regions = agent.som(budget=budget)["regions"]
        one, more = [e["attrs"] for region in regions for e in region["elements"] if e["role"] == "select"]
        assert [option["value"] for option in one["options"] if option.get("selected")] == [one["value"]] == ["v4321"]
        assert (more["value"], more["selected_values"]) == ("a", ["a", "b"])
    agent.act("clear", "#more")
    more = agent.elements("select")[1]["attrs"]
    assert "value" not in more
    assert not any(option.get("selected") for option in more["options"])


def test_text_typed_inside_a_shadow_root_is_shown():
    html = "<main><div><template shadowrootmode=open><form><input aria-label=Inner></form></template></div></main>"
    agent = Agent({"/": html})
    agent.act("type", {"text": "inner"}, value="x")
    assert '"value":"x"' in orjson.dumps(agent.som()).decode()


def test_every_id_that_a_small_budget_shows_can_be_acted_upon():
    links = "".join(f'<a href="/{n}" title="Place number {n} of many">Link {n}</a> ' for n in range(600))
    agent = Agent({"/": f"<main><h1>Links</h1><p>{'word ' * 9000}</p>{links}</main>"})
    for budget in ("default", "tight"):
        shown = [e for region in agent.som(budget=budget)["regions"] for e in region["elements"] if e["role"] == "link"]
        assert shown
        for element in shown[::50]:
            answer = agent.act("scroll", {"ref": element["id"]})
            assert answer["resolved"]["element_id"] == element["id"]


def test_a_snapshot_may_be_asked_to_be_short():
    agent = Agent({"/": paragraphs(*(f"Paragraph {number} " + "of many words " * 20 for number in range(200)))})
    whole, tight = (agent.som(budget=budget)["meta"]["som_bytes"] for budget in ("default", "tight"))
    assert tight < whole
    assert agent.som(max_bytes=whole, format="som+json") == agent.som()
    assert agent.som(max_bytes=whole - 1, format="som+msgpack") == agent.som(budget="tight")
    with pytest.raises(AwpError, match="longer than max_bytes") as refused:
        agent.som(max_bytes=tight - 1)
    assert refused.value.details == {"max_bytes": tight - 1, "som_bytes": tight}


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"max_bytes": 0}, "INVALID_REQUEST"),
        ({"max_bytes": "1"}, "INVALID_REQUEST"),
        ({"format": "som+xml"}, "UNSUPPORTED"),
        ({"format": 1}, "INVALID_REQUEST"),
    ],
)
def test_an_invalid_snapshot_is_refused(params, code):
    with pytest.raises(AwpError) as refused:
        Agent({"/": paragraphs("One")}).som(**params)
    assert refused.value.code == code


@pytest.mark.parametrize("budget", ["default", "tight"])
def test_no_budget_drops_a_control(budget):
    rows = "".join(
        f"<p>Words about the item {n}, many of them. <a href=/{n}>Item {n}</a><button>Buy {n}</button></p>"
        for n in range(300)
    )
    fields = "".join(f"<label>Field {n} <input name=f{n}></label>" for n in range(100))
    agent = Agent({"/": f"<title>T</title><main><h1>H</h1>{rows}</main><form>{fields}<button>Send</button></form>"})
    full, small = agent.som(budget="full"), agent.som(budget=budget)

    def controls(som: dict[str, Any]) -> list[Any]:
        return [element["id"] for region in som["regions"] for element in region["elements"] if element.get("actions")]

    assert controls(small) == controls(full)
    assert small["meta"]["interactive_count"] == len(controls(full)) == 701
    assert small["meta"]["som_bytes"] == len(orjson.dumps(small)) < full["meta"]["som_bytes"]
    [left_out] = [
        element["text"]
        for region in small["regions"]
        for element in region["elements"]
        if "dropped" in str(element.get("text"))
    ]
    every = sum(len(region["elements"]) for region in full["regions"])
    assert left_out.startswith(f"[{every + 1 - small['meta']['element_count']} more elements dropped, ~")
    target = {"ref": controls(small)[-1]}
    assert agent.act("click", target)["resolved"]["text"] == "Send"
    limit = 30_000
    assert agent.som(max_bytes=limit)["meta"]["som_bytes"] <= limit, "the client's own limit wins"
