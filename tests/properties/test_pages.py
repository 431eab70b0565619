"""What must be true of every page: its Markdown does not depend on white space, and its elements can be acted upon."""

import html
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from awp_publish.pages.markdown import write_markdown
from tests.browsing.driving import Agent
from tests.examples import examples

URL = "https://shop.example/"
ANY = settings(deadline=None, max_examples=examples(150), suppress_health_check=list(HealthCheck))
SPACE = st.sampled_from(["", " ", "\n", "\t ", "\n\n    "])
WORDS = st.lists(st.sampled_from(["book", "red", "a", "42", "é", "1.", "a_b"]), min_size=1, max_size=4)


def blocks(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.tuples(st.sampled_from(["div", "section", "ul", "blockquote"]), st.lists(inner, min_size=1, max_size=3))


PAGES = st.lists(
    st.recursive(st.tuples(st.sampled_from(["p", "h2", "li", "h1"]), WORDS), blocks, max_leaves=6),
    min_size=1,
    max_size=4,
)


def written(block: Any, draw: st.DataObject | None) -> str:
    """Write a block, a tag and the words or blocks in it, as HTML with white space drawn where it means nothing."""
    if isinstance(block, str):
        return html.escape(block)
    tag, inner = block
    between = "" if isinstance(inner[0], tuple) else " "

    def space() -> str:
        drawn = draw.draw(SPACE) if draw is not None else ""
        return drawn or between

    parts = [written(each, draw) for each in inner]
    text = parts[0] + "".join(space() + part for part in parts[1:])
    margin = (draw.draw(SPACE), draw.draw(SPACE)) if draw is not None else ("", "")
    return f"<{tag}>{margin[0]}{text}{margin[1]}</{tag}>"


@ANY
@given(PAGES, st.data())
def test_the_markdown_of_a_page_does_not_change_with_its_white_space(page, data):
    plain = "".join(written(block, None) for block in page)
    spaced = "".join(written(block, data) + data.draw(SPACE) for block in page)
    assert write_markdown(f"<main>{spaced}</main>", URL) == write_markdown(f"<main>{plain}</main>", URL)


CONTROLS = {
    "<a href=/next>Next</a>": "click",
    "<button>Send</button>": "click",
    "<input name=q value=x>": "type",
    "<textarea name=t>x</textarea>": "type",
    "<input type=checkbox name=c>": "toggle",
    "<input type=radio name=r value=2>": "click",
    "<select name=s><option value=1>One<option value=2>Two</select>": "select",
    "<details><summary>More</summary>text</details>": "toggle",
}
VALUES = {"type": "text", "select": "2"}


@ANY
@given(st.lists(st.tuples(st.sampled_from(sorted(CONTROLS)), st.booleans()), min_size=1, max_size=6), st.data())
def test_every_element_with_actions_can_be_acted_upon_by_its_ref(controls, data):
    def item(control: str, is_wrapped: bool) -> str:
        return f"<div><p>Words</p>{control}</div>" if is_wrapped else control

    forms = "".join(f"<form action=/next>{item(*control)}</form>" for control in controls)
    agent = Agent({"/": f"<title>Home</title><main>{forms}</main>", "/next": "<title>Next</title><main>Next</main>"})
    acting = [element for element in agent.elements() if element.get("actions")]
    assert len(acting) >= len(controls)
    element = data.draw(st.sampled_from(acting))
    for action in element["actions"]:
        value = {"value": VALUES[action]} if action in VALUES else {}
        agent.navigate("/")
        assert agent.act(action, {"ref": element["id"]}, **value)["status"] == "ok"
