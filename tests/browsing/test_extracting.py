"""Values are extracted with the id of the element that each is from."""

from typing import Any

import pytest

from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent

SHOP = """<title>Shop</title><script type="application/ld+json">{"@type": "Product", "name": "Widget"}</script>
<nav><a href="/">Home</a><a href="/products">Products</a></nav>
<main><h1>Widget Pro</h1><h2>Details</h2><p>It costs $49.99 today.</p><p>Or $5.00.</p>
<input name=q value=1 aria-label=Find></main>"""


@pytest.fixture
def agent() -> Agent:
    return Agent({"/": SHOP})


def extracted(agent: Agent, query: object) -> tuple[Any, Any]:
    answer = agent.call("page.extract", fields={"x": query})
    assert list(answer) == ["data", "provenance"]
    return answer["data"]["x"], answer["provenance"]["x"]


def test_a_field_is_the_first_match_and_where_it_is_from(agent):
    heading, _ = agent.elements("heading")
    price = next(element for element in agent.elements() if "49.99" in element.get("text", ""))
    assert extracted(agent, {"role": "heading", "level": 1}) == ("Widget Pro", heading["id"])
    assert extracted(agent, {"role": "heading"}) == ("Widget Pro", heading["id"])
    assert extracted(agent, {"text_match": "\\$\\d+\\.\\d{2}"}) == ("$49.99", price["id"])
    assert extracted(agent, {"text_regex": "^It"}) == ("It", price["id"])
    assert extracted(agent, {"ref": price["id"]}) == ("It costs $49.99 today.", price["id"])
    assert extracted(agent, {"query": {"ref": price["id"]}}) == ("It costs $49.99 today.", price["id"])


@pytest.mark.parametrize("pattern", [r"^\w+ ٣$", r"^[\w]+ [\d]$", r"^Caf\w \d$", r"^[^\D]|^\w", r"^[é\w]+\W\d"])
def test_letters_and_digits_are_those_of_any_script(pattern):
    assert extracted(Agent({"/": "<p>Café ٣</p>"}), {"text_match": pattern})[0] in ("Café ٣", "Café", "C", "٣")


def test_all_matches_are_arrays(agent):
    first, second = agent.elements("link")
    query = {"role": "link", "all": True, "props": ["text", "href", "value"]}
    links = [{"text": "Home", "href": "/"}, {"text": "Products", "href": "/products"}]
    assert extracted(agent, query) == (links, [first["id"], second["id"]])
    assert extracted(agent, {"role": "link", "all": True})[0] == ["Home", "Products"]
    assert extracted(agent, {"text_match": "\\$", "all": True})[0] == ["$", "$"]
    assert extracted(agent, {"role": "image", "all": True}) == ([], [])


def test_properties_are_those_that_there_are(agent):
    assert extracted(agent, {"role": "text_input", "props": ["value", "label", "src"]})[0] == {
        "value": "1",
        "label": "Find",
    }
    agent.act("type", {"role": "text_input"}, value="2")
    assert extracted(agent, {"role": "text_input", "props": ["value"]})[0] == {"value": "2"}


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"ref": "e_0"},
        {"role": "image"},
        {"role": "heading", "level": 6},
        {"text_match": "nowhere"},
        {"text_match": "("},
        {"text_match": "(?=It)"},
        {"text_match": "x" * 1_001},
        {"role": None, "text_match": None},
    ],
)
def test_a_query_that_does_not_match_is_null(agent, query):
    assert extracted(agent, query) == (None, None)


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(.*)*x$", "(x+x+)+y", "((a{0,30}){0,30}){0,30}b"])
def test_no_pattern_keeps_the_process_busy(pattern):
    agent = Agent({"/": f"<main><h1>{'a' * 190}</h1></main>"})
    assert agent.call("page.extract", fields={"x": {"text_match": pattern}})["data"]["x"] in (None, "a" * 190)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "Missing required param: fields"),
        ({"fields": []}, "Missing required param: fields"),
        ({"fields": {"x": "h1"}}, "fields.x must be an object"),
        ({"fields": {"x": {"role": 1}}}, "fields.x.role must be a string"),
        ({"fields": {"x": {"role": "heading", "level": "1"}}}, "fields.x.level must be an integer"),
        ({"fields": {"x": {"role": "heading", "all": "yes"}}}, "fields.x.all must be true or false"),
        ({"fields": {"x": {"role": "heading", "props": "text"}}}, "fields.x.props must be an array"),
        ({"fields": {"x": {"role": "heading", "props": [1]}}}, "fields.x.props must be an array"),
        ({"fields": {str(n): {} for n in range(101)}}, "At most 100 fields"),
        ({"structured_data": "yes"}, "structured_data must be true or false"),
    ],
)
def test_an_extraction_that_is_impossible_is_refused(agent, params, said):
    with pytest.raises(AwpError) as refused:
        agent.call("page.extract", **params)
    assert refused.value.code == "INVALID_REQUEST"
    assert said in refused.value.message


def test_structured_data_is_handed_out(agent):
    answer = agent.call("page.extract", structured_data=True)
    assert answer["structured_data"]["json_ld"] == [{"@type": "Product", "name": "Widget"}]
    assert answer["url"] == "https://shop.example/"
    assert Agent({"/": "<p>x"}).call("page.extract", structured_data=True)["structured_data"] is None


def test_elements_that_can_be_operated_are_listed(agent):
    answer = agent.call("page.extract", interactive_elements=True)
    assert [element["role"] for element in answer["interactive_elements"]] == ["link", "link", "text_input"]
    assert answer["count"] == 3
    assert set(answer["interactive_elements"][0]) == {"id", "role", "text", "label", "actions", "attrs", "hints"}


def test_fields_may_be_called_queries_as_in_the_draft(agent):
    answer = agent.call("page.extract", queries={"x": {"query": {"role": "heading", "level": 2}}})
    assert answer["data"] == {"x": "Details"}
