"""Targets are found by id, by meaning, by selector, and by their fallbacks, in this order."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, details_of
from tests.steps import LINEAR, counting

SHOP = """<main><h1>Shop</h1><p>Add nothing</p>
<form action=/s><input name=q aria-label="Search books"><button id=add class=cart>Add to Cart</button>
<button aria-label="Remove from cart"><span id=x>X</span></button></form></main>"""


@pytest.fixture
def agent() -> Agent:
    return Agent({"/": SHOP, "/s": "<p>Sent"})


def meant(agent: Agent, target: object) -> dict[str, Any]:
    return agent.act("scroll", target)["resolved"]


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ({"text": "Add to Cart", "role": "button"}, "Add to Cart"),
        ({"text": "add TO cart"}, "Add to Cart"),
        ({"text": "to   cart"}, "Add to Cart"),
        ({"text": "add"}, "Add nothing"),
        ({"text": "add", "role": "button"}, "Add to Cart"),
        ({"role": "button"}, "Add to Cart"),
        ({"text": "remove", "role": "button"}, "X"),
        ({"css": "button.cart"}, "Add to Cart"),
        ({"css": "#x"}, "X"),
        ({"css": "form button + button"}, "X"),
        ({"ref": "e_nothing", "text": "Shop"}, "Shop"),
        ({"ref": "e_nothing", "css": "h1"}, "Shop"),
        ({"text": "nowhere", "css": "h1"}, "Shop"),
        ({"ref": "e_nothing", "fallback": {"text": "Shop"}}, "Shop"),
        ({"ref": "e_nothing", "fallback": [{"text": "nowhere"}, {"css": "#add"}]}, "Add to Cart"),
        ({"ref": "e_nothing", "fallback": {"text": "nowhere", "fallback": [{"css": "h1"}]}}, "Shop"),
        ({"fallback": [{"css": "h1"}]}, "Shop"),
        ({"element_ref": "e:9", "fallback": [{"query": {"text": "Add to Cart", "role": "button"}}]}, "Add to Cart"),
        ({"query": {"css": "h1"}}, "Shop"),
        ({"css": "::::", "fallback": {"css": "h1"}}, "Shop"),
        ({"ref": None, "text": None, "css": "h1"}, "Shop"),
    ],
)
def test_a_target_means_an_element(agent, target, text):
    assert meant(agent, target)["text"] == text


def test_every_id_of_the_page_is_a_target(agent):
    for element in agent.elements():
        assert meant(agent, {"ref": element["id"], "text": "Shop"})["element_id"] == element["id"]


def test_an_element_without_text_is_found_by_its_label(agent):
    assert meant(agent, {"text": "search books"})["role"] == "text_input"


def test_the_confidence_of_a_target_depends_on_the_strategy_that_found_it(agent):
    ref = agent.elements("button")[0]["id"]
    targets = ({"ref": ref}, {"text": "add to cart"}, {"css": "#add"}, {"text": "to cart"}, {"role": "button"})
    sure = []
    for target in targets:
        agent.navigate("/")
        sure.append(agent.click(target)["effects"]["confidence"])
    assert sure == sorted(sure, reverse=True)
    assert sure[0] == 1.0
    assert all(0 < value <= 1 for value in sure)


@pytest.mark.parametrize(
    ("items", "text", "confidence"),
    [
        ("<li>Ada <button>Edit</button><li>Bob <button>Edit</button>", "Edit", 0.47),
        ("<li>Ada <button>Edit</button><li>Bob <button>Edit</button>", "Edit Bob", 0.95),
        ("<li>Ada <a href=/s>Edit</a><li>Bob <a href=/t>Edit</a>", "Edit", 0.47),
        ("<li>Ada <a href=/s>Edit</a><li>Bob <a href=/s>Edit</a>", "Edit", 0.95),
    ],
)
def test_targets_that_only_their_order_tells_apart_are_not_certain(items, text, confidence):
    agent = Agent({"/": f"<main><ul>{items}</ul></main>", "/s": "<p>Sent"})
    assert agent.click({"text": text})["effects"]["confidence"] == confidence


def test_a_missing_element_is_reported_with_every_strategy(agent):
    target = {"ref": "e_0", "text": "no", "role": "button", "css": "#no", "fallback": [{"ref": "e_1"}, {"css": ":::"}]}
    with pytest.raises(AwpError, match="Target element not found") as missed:
        agent.click(target)
    assert missed.value.code == "NOT_FOUND"
    details = details_of(missed)
    assert (details["ref"], details["strategy"], details["target"]) == ("e_0", "direct_lookup", target)
    tried = [attempt["strategy"] for attempt in details["attempted"]]
    assert tried == ["direct_lookup", "semantic_query", "css", "direct_lookup", "css"]
    assert "reason" in details["attempted"][-1]


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"ref": 1},
        {"text": ["x"]},
        {"css": {}},
        {"role": True},
        {"query": "x"},
        {"fallback": "h1"},
        {"fallback": [[{"css": "h1"}]]},
        "h",
        ["h1"],
        7,
    ],
)
def test_an_invalid_target_is_refused(agent, target):
    with pytest.raises(AwpError) as refused:
        agent.call("page.act", intent={"action": "click", "target": target})
    assert refused.value.code == "INVALID_REQUEST"


def test_fallbacks_are_tried_only_so_often(agent):
    endless: dict[str, Any] = {"ref": "e_0"}
    for _ in range(500):
        endless = {"ref": "e_0", "fallback": endless}
    for target in (endless, {"fallback": [{"ref": "e_0"}] * 50}):
        with pytest.raises(AwpError, match="too many fallbacks"):
            agent.click(target)


def test_nothing_can_be_meant_before_a_page_is_loaded():
    with pytest.raises(AwpError, match="No page loaded yet") as missed:
        Agent().act("click", {"css": "a"})
    assert missed.value.code == "NOT_FOUND"


def test_only_the_beginning_of_a_long_text_is_quoted():
    agent = Agent({"/": f"<main><p>{'word ' * 100}</p></main>"})
    assert meant(agent, {"text": "word"})["text"] == "word " * 40 + "..."


def test_the_text_of_a_label_is_the_name_of_what_it_labels():
    agent = Agent({"/": "<main><form><label for=q>Find a book</label><input id=q name=q></form></main>"})
    assert agent.act("type", {"text": "find a book"}, value="Emma")["resolved"]["role"] == "text_input"
    assert agent.elements("text_input")[0]["attrs"]["value"] == "Emma"


def hidden_matches(n: int) -> str:
    return "<main>" + "<p>word</p>" * n + "<b hidden id=go></b>" * n


def checked_radios(n: int) -> str:
    radios = "<input type=radio name=r checked>" * n + "<input type=radio name=r>" * n
    return f"<form action=/s>{radios}<button id=go>Go</button></form>"


def dotted_base(n: int) -> str:
    return f"<base href='/{'a/' * n * 20}{'../' * n * 20}'><a href=s id=go>Go</a>"


@pytest.mark.slow
@pytest.mark.parametrize("html", [hidden_matches, checked_radios, dotted_base])
def test_a_click_takes_as_many_steps_as_the_page_is_long(html: Callable[[int], str]):
    def steps(n: int) -> int:
        agent = Agent({"/": html(n), "/s": "<p>x"})
        with contextlib.suppress(AwpError), counting() as steps:
            agent.click("#go")
        return steps.count

    assert steps(800) < LINEAR * steps(200)


def test_a_link_is_clicked_rather_than_the_paragraph_around_it():
    agent = Agent({"/": '<p>Read <a href="/more">our terms</a></p><p>our terms</p>', "/more": "<p>More"})
    assert agent.act("click", {"text": "our terms"})["effects"]["navigated"] is True


def test_the_button_whose_whole_text_matches_is_pressed():
    forms = "<form action=/a><button>Add all</button></form><form action=/b><button>Add</button></form>"
    agent = Agent({"/": forms, "/b": "<p>B"})
    assert agent.act("click", {"text": "Add"})["resolved"]["text"] == "Add"


def test_a_button_of_a_listing_is_meant_by_its_item_and_sends_what_is_hidden_there():
    form = "<form action=/add method=post><input type=hidden name=sku value={}><button>Add</button></form>"
    listing = "".join(f"<h3>{tea}</h3><p>$9</p>{form.format(tea[0])}" for tea in ("Assam", "Darjeeling"))
    agent = Agent({"/": f"<main>{listing}</main>", "/add": "<p>Added"})
    agent.click({"text": "Add Darjeeling"})
    assert agent.web.last.body == b"sku=D"


def test_a_label_of_which_it_is_all_is_meant_before_a_part_of_another_text():
    agent = Agent(
        {
            "/": "<main><a href=#n>Enter the number</a><p>Pay now by card.</p><form action=/pay method=post>"
            "<button type=button name=less>Decrease the number</button><label for=n>Number</label><input id=n name=n>"
            "<input type=image src=/pay.gif alt='Pay now'></form></main>",
            "/pay": "<h1>Paid</h1>",
        }
    )
    assert agent.act("type", {"text": "Number"}, value="3")["resolved"]["role"] == "text_input"
    assert agent.act("click", {"text": "Pay now"})["effects"]["navigated"] is True


def test_a_form_is_meant_by_its_id_or_its_label_wherever_it_stands():
    page = """<nav><a href=/a>News</a></nav><main><p>News of all shelves</p>
    <form action=/s aria-label="Join the club"><input name=mail aria-label=Address>
    <button>Send</button></form></main>"""
    agent = Agent({"/": page, "/s": "<p>Sent"})
    form = next(region for region in agent.som(budget="full")["regions"] if region["role"] == "form")
    for target in ({"ref": form["id"]}, {"role": "form", "text": "club"}, {"role": "form"}):
        agent.navigate("/")
        assert agent.act("submit", target)["status"] == "ok"
        assert agent.url == "https://shop.example/s?mail="
