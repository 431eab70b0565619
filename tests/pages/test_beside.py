"""What stands beside, in and around each other in a page is told apart."""

import pytest

from awp_publish.pages import parse
from awp_publish.pages.markdown import write_markdown

URL = "https://shop.example/"


@pytest.mark.parametrize(("around", "levels"), [(0, 1), (0, 8), (40, 6), (72, 6)])
def test_lists_in_lists_are_lists_at_every_level(around, levels):
    written = write_markdown(f"<main>{'<div>' * around}{'<ul><li>a' * levels}<p>end</p>{'</ul>' * levels}</main>", URL)
    lines = [line for line in written.splitlines() if line.strip().startswith("- ")]
    assert len(lines) == levels
    assert len(lines[-1]) - len(lines[-1].lstrip()) == 2 * (levels - 1)


@pytest.mark.parametrize("rule", ["p:hover, .y", ".y, p::before", ".x:focus-within > a, .y", ":is(.y, 1x)"])
def test_a_rule_hides_what_it_names_beside_what_depends_on_the_visitor(rule):
    page = f"<style>{rule} {{ display: none }}</style><main><p>seen</p><p class=y>hidden</p></main>"
    assert write_markdown(page, URL) == "seen\n"


@pytest.mark.parametrize(
    ("selector", "tags"), [("li:last-child + *", []), ("li + *", ["li"]), ("body + *", []), ("ul + *", ["p"])]
)
def test_the_last_element_has_no_following_sibling(selector, tags):
    tree = parse("<main><ul><li>1<li>2</ul><p>3</p></main>")
    nodes = [tree.node_at(path) for path in tree.select(selector)]
    assert [node.tag for node in nodes if node is not None] == tags


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("<button>a</button>(b)", "[button: a] (b)\n"),
        ("<button>a</button>(", "[button: a] (\n"),
        ("<button>a</button>b(c)", "[button: a] b(c)\n"),
        ("<span role=button aria-label='Sand red'><img alt=red></span>(b)", "[button: Sand red] (b)\n"),
        ("<div role=checkbox aria-checked=true>Red</div>", "[x] Red\n"),
        ("<div role=radio>Red</div>b", "( ) Red b\n"),
        ("<a role=button aria-disabled=true>Buy</a>", "[button: Buy (disabled)]\n"),
        ("<div role=textbox aria-label=Note>Hi</div>", "[text field \u201cNote\u201d: \u201cHi\u201d]\n"),
        ("<div role=button><h2>Lamp</h2>$ 9</div>", "## [button: Lamp]\n\n$ 9\n"),
        ("<dl><dt>Name<dd>Ann</dl>", "- **Name**: Ann\n"),
        ("<dl><dt>Name<dd><p>Ann</p></dl>", "- **Name**\n\n  Ann\n"),
    ],
)
def test_text_after_a_control_or_a_term_is_not_part_of_it(body, written):
    assert write_markdown(f"<main><p>x</p>{body}</main>", URL) == f"x\n\n{written}"
