"""The links to the next pages of a list: found by what they say, and kept at every budget."""

import pytest

from awp_publish.pages import Budget, parse
from awp_publish.pages.paging import find_paging
from tests.pages.reading import compiled, elements_of

PAGERS = {
    "rel": ("<a href=?p=2 rel=next>Continue</a>", ["Continue"]),
    "a word": ("<p><a href=?p=2>Next page \u203a</a></p>", ["Next page \u203a"]),
    "an arrow and numbers": (
        "<nav><a href=?p=1>1</a> <b>2</b> <a href=?p=3>3</a> <a href=?p=3>\xbb</a></nav>",
        ["1", "3", "\xbb"],
    ),
    "numbers in items": ("<ul><li><a href=?1>1</a><li><a href=?2>2</a><li><a href=?3>3</a></ul>", ["1", "2", "3"]),
    "a name": ("<div><a href=?p=1>1</a><a href=?p=2 aria-label=Next><svg></svg></a></div>", ["1", "Next"]),
}
OTHERS = [
    "<table><tr><td><a href=?1>1</a><td><a href=?2>2</a><td><a href=?3>3</a></table>",
    "<p>See <a href=#n1>1</a> and <a href=#n7>7</a></p>",
    "<p><a href=/next-year>Next year in Jerusalem</a></p>",
    "<ul><li><a href=/2019>2019</a><li><a href=/2017>2017</a></ul>",
]


@pytest.mark.parametrize(("html", "texts"), PAGERS.values(), ids=PAGERS)
def test_links_to_other_pages_are_found(html, texts):
    assert list(find_paging(parse(html)).values()) == texts


@pytest.mark.parametrize("html", OTHERS)
def test_other_links_and_numbers_are_not(html):
    assert not find_paging(parse(html))


@pytest.mark.parametrize("budget", Budget)
@pytest.mark.parametrize(("html", "texts"), PAGERS.values(), ids=PAGERS)
def test_they_are_kept_at_every_budget_under_their_own_text(html, texts, budget):
    stories = "".join(
        f"<div><h3>A headline of some length, number {number}</h3><p>{'Words and words. ' * 20}</p>"
        f"<a href=/story/{number}>The story of number {number}</a></div>"
        for number in range(400)
    )
    page = compiled(f"<nav>{'<a href=/a>A</a>' * 50}</nav><main>{stories}</main>{html}", budget)
    links = [one.get("text") or one.get("label") for one in elements_of(page) if one["role"] == "link"]
    assert [text for text in texts if text not in links] == []
