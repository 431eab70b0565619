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
    "a picture": ("<div><a href=?p=1>1</a> <a href=?p=2><img src=n.gif alt=Next></a></div>", ["1", "Next"]),
    "a title": ("<div><a href=?p=1>1</a> <a href=?p=2 title='Next page'><i></i></a></div>", ["1", "Next page"]),
    "cells": ("<table><tr><td>1<td><a href=?p=2>2</a><td><a href=?p=2>&gt;</a></table>", ["2", ">"]),
    "arrows": ("<nav><a href=?p=1>&lt;</a><a href=?p=3>&gt;</a></nav>", ["<", ">"]),
    "months": (
        "<div><a href=?m=10>&lt; October</a> <a href=?m=12>December &gt;</a></div>",
        ["< October", "December >"],
    ),
    "brackets": ("<p>[1] <a href=?p=2>[2]</a> <a href=?p=2>[Next]</a></p>", ["[2]", "[Next]"]),
    "ranges": (
        "<p><a href=?s=0>1-20</a> <a href=?s=20>21-40</a> <a href=?s=40>41-60</a></p>",
        ["1-20", "21-40", "41-60"],
    ),
    "zeros": ("<p><a href=?p=1>01</a> <a href=?p=2>02</a> <a href=?p=3>03</a></p>", ["01", "02", "03"]),
    "pages": ("<p><a href=?p=1>Page 1</a> <a href=?p=2>Page 2</a></p>", ["Page 1", "Page 2"]),
    "thousands": ("<div><a href=?p=2>2</a> <a href=?p=9>1,203</a> <a href=?p=2>Next</a></div>", ["2", "1,203", "Next"]),
    "a number of results": ("<p><a href=?p=2>Next 25 results</a></p>", ["Next 25 results"]),
    "more": ("<table><tr><td><a href='news?p=2'>More</a></table>", ["More"]),
    "more of them": ("<p><a href=?page=2>Show more results</a></p>", ["Show more results"]),
    "chapters": ("<p><a href=1>Prev Chapter</a> <a href=3>Next Chapter</a></p>", ["Prev Chapter", "Next Chapter"]),
    "threads": (
        "<p><a href=?t=1>\xab Previous Thread</a> | <a href=?t=3>Next Thread \xbb</a></p>",
        ["\xab Previous Thread", "Next Thread \xbb"],
    ),
    "topics by age": (
        "<p><a href=?old>Next Oldest</a> | <a href=?new>Next Newest</a></p>",
        ["Next Oldest", "Next Newest"],
    ),
    "two numbers, as frameworks write them": (
        "<p class=paginator><span>1</span> <a href=?p=2>2</a> <a href=?p=3 class=end>3</a> 250 books</p>",
        ["2", "3"],
    ),
    "places that scripts load": ("<p><a href=#!2>2</a> <a href=#!3>3</a> <a href=#!2>Next</a></p>", ["2", "3", "Next"]),
    "German": ("<p><a href=?s=2>Nächste Seite</a></p>", ["Nächste Seite"]),
    "French": ("<p><a href=?p=3>Page suivante</a></p>", ["Page suivante"]),
    "Russian": ("<p><a href=?p=2>Следующая страница</a></p>", ["Следующая страница"]),
    "Japanese": ("<p><a href=?p=3>次のページ</a></p>", ["次のページ"]),
    "Chinese": ("<p><a href=?p=2>下一页&gt;</a></p>", ["下一页>"]),
}
OTHERS = [
    "<table><tr><td><a href=?1>1</a><td><a href=?2>2</a><td><a href=?3>3</a></table>",
    "<p>See <a href=#n1>1</a> and <a href=#n7>7</a></p>",
    "<p><a href=/next-year>Next year in Jerusalem</a></p>",
    "<p><a href=/tea>More</a></p>",
    "<p><a href=/h>&lt;header&gt;</a> and <a href=/m>&lt;main&gt;</a></p>",
    "<p><a href=/post>Read it &raquo;</a></p>",
    "<p>See <a href=/a>1</a> and <a href=/b>2</a></p>",
    "<p>A<a href=#n1>[1]</a><a href=#n2>[2]</a><a href=#n3>[3]</a></p><ol><li id=n1>B<li id=n2>C<li id=n3>D</ol>",
    "<div id=slides><img src=a.png><a href=#slides>Previous</a><a href=#slides>Next</a></div>",
    "<ul><li><a href=/2019>2019</a><li><a href=/2017>2017</a></ul>",
]


@pytest.mark.parametrize(("html", "texts"), PAGERS.values(), ids=PAGERS)
def test_links_to_other_pages_are_found(html, texts):
    assert list(find_paging(parse(html)).values()) == texts


@pytest.mark.parametrize("html", OTHERS)
def test_other_links_and_numbers_are_no_pagination(html):
    assert not find_paging(parse(html))


@pytest.mark.parametrize("budget", Budget)
@pytest.mark.parametrize(("html", "texts"), PAGERS.values(), ids=PAGERS)
def test_links_to_next_pages_are_kept_at_every_budget_under_their_own_text(html, texts, budget):
    stories = "".join(
        f"<div><h3>A headline of some length, number {number}</h3><p>{'Words and words. ' * 20}</p>"
        f"<a href=/story/{number}>The story of number {number}</a></div>"
        for number in range(400)
    )
    page = compiled(f"<nav>{'<a href=/a>A</a>' * 50}</nav><main>{stories}</main>{html}", budget)
    links = [element.get("text") or element.get("label") for element in elements_of(page) if element["role"] == "link"]
    assert [text for text in texts if text not in links] == []
