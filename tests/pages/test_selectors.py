"""CSS selectors over a page: what combinators mean, and that none of them takes longer than the page is long."""

import pytest

from awp_publish.pages.selectolax import parse
from tests.steps import steps_of

PAGE = (
    '<main id=m class="a b"><ul><li class=x>1<li>2<li class=x>3<!-- c --><li><b>4</b> and <i>5</i></ul>'
    "<div><div class=a><p>q</p><p class=x>r<span>s</span></p></div><div><p title='a > b, c'>t</p></div></div></main>"
)


def texts(selector: str) -> list[str]:
    tree = parse(PAGE)
    nodes = [tree.node_at(path) for path in tree.select(selector)]
    return ["" if node is None else next((child.text for child in node.children if child.text), "") for node in nodes]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("div p", ["q", "r", "t"]),
        ("div div>p", ["q", "r", "t"]),
        ("main > p", []),
        ("html body > main li", ["1", "2", "3", " and "]),
        (".a p + p", ["r"]),
        ("b + :root p", []),
        (".x ~ li", ["2", "3", " and "]),
        ("li + li + .x", ["3"]),
        (".x + li, b\n~ i", ["2", " and ", "5"]),
        (":is(ul, .a) > p", ["q", "r"]),
        ("li:nth-child(2n + 1)", ["1", "3"]),
        ("li:nth-child( 2 of .x )", ["3"]),
        ("p:not(.a > p)", ["t"]),
        ("li:has(b + i)", [" and "]),
        ('[title="a > b, c"]', ["t"]),
        ("div > div:has(> .x) p", ["q", "r"]),
        ("div\\>p", []),
        (":is(.a) .x", ["1", "3", "r"]),
        ("li:last-child, p:only-of-type", [" and ", "t"]),
        ("li:nth-last-child(-n + 2)", ["3", " and "]),
        ("li:not(ul li ~ li.x, li:first-child)", ["2", " and "]),
        ("p:has(> span:empty), p:has(+ .x)", ["q"]),
        ("main:has(i) b ~ *", ["5"]),
        (":is(:is(:is(li:has(b)))) > :scope, li:hover", []),
    ],
)
def test_a_selector_means_what_the_standard_says(selector, found):
    assert texts(selector) == found


@pytest.mark.parametrize(
    "selector",
    [
        *("> p", "p >", "p > > p", "p,,p", ",p", "p,", "p + ~ p", "p )", "(", "'"),
        *("p::before", "p:dir(rtl)", "svg|p", ":nonesuch", ":is(p", ", ".join(["main *" * 20] * 20)),
    ],
)
def test_invalid_and_unsupported_selectors_are_refused(selector):
    with pytest.raises(ValueError, match="selector"):
        texts(selector)


@pytest.mark.parametrize("combinator", [" ", " ~ ", " + ", " > "])
@pytest.mark.parametrize("first", ["no-such ", ""])
def test_no_selector_takes_more_than_some_steps_for_each_of_its_parts_and_each_element(combinator, first):
    """To try all ways in which sixty of four hundred can stand before one another takes longer than the universe."""
    parts, page = 60, parse(f"<main>{'<div>' * 60}{'<div>x</div>' * 400}</main>")
    selector = first + combinator.join(["div"] * parts) + ":empty"
    assert steps_of(lambda: page.select(selector)) <= 20 * parts * (60 + 400 + 1)
