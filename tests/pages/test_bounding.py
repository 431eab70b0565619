"""Pages that would take a parser long are flattened, and others are not touched."""

import pytest

from awp_publish.pages import parse
from awp_publish.pages.selectolax import MAX_ATTRIBUTES, MAX_DEPTH, MAX_FORMATTING, MAX_ROOTS, bound_markup
from awp_publish.pages.tree import NodePaths, Tree


def depth_of(page: Tree) -> int:
    paths = NodePaths()
    return max((paths.of(node) or "").count("/") for node in page.walk())


DEEP = {
    "divs": "<div>" * 20_000 + "kept",
    "closed divs": "<div>" * 20_000 + "kept" + "</div>" * 20_000,
    "spans that nothing closes": "<span><div></span>" * 5_000 + "kept",
    "formatting": "".join(f"<p><font size={size}>x" for size in range(3_000)) + "kept",
    "bold that is closed across blocks": "<b><div></b>" * 5_000 + "kept",
    "tables": "<table><tr><td>" * 5_000 + "kept",
    "drawings": "<svg>" + "<g>" * 5_000 + "</g>" * 5_000 + "</svg><p>kept",
    "templates": "<template shadowrootmode=open>" * 5_000 + "</template>" * 5_000 + "kept",
    "links": "<a href=x><div>" * 5_000 + "kept",
    "own elements": "<x-y>" * 5_000 + "kept",
    "a comment and an attribute that look like end tags": "<div title='</div>'><!-- </div> -->" * 5_000 + "kept",
}


@pytest.mark.slow
@pytest.mark.parametrize("html", DEEP.values(), ids=DEEP)
def test_what_is_nested_too_deep_is_flattened_and_loses_no_text(html):
    page = parse(html)
    assert depth_of(page) <= MAX_DEPTH * 4 / 3 + MAX_FORMATTING + 8, "a table has a body that no tag says"
    assert any(node.text.endswith("kept") for node in page.walk())


FLAT = {
    "paragraphs": "<p>x" * 5_000,
    "items": "<ul>" + "<li>x" * 5_000 + "</ul>",
    "cells": "<table>" + "<tr><td>a<td>b" * 2_000 + "</table>",
    "terms": "<dl>" + "<dt>a<dd>b" * 2_000 + "</dl>",
    "options": "<select>" + "<option>x" * 5_000 + "</select>",
    "breaks": "x<br>" * 5_000,
    "bold that is closed": "<b>x</b>" * 5_000,
    "stray end tags": "</p></div></b>" * 2_000,
    "a long script": "<script>" + "if (a < b) { '<div>' }" * 5_000 + "</script>",
    "a long value": f"<div title='{'x' * 100_000}'>x</div>",
}


@pytest.mark.parametrize("html", FLAT.values(), ids=FLAT)
def test_a_long_page_that_is_not_deep_stays_as_it_is(html):
    assert bound_markup(html.encode()) == html.encode()


def test_the_attributes_of_many_bodies_are_those_of_the_first_ones():
    (body,) = parse("".join(f"<body a{number}=1>" for number in range(20_000))).tagged("body")
    assert 0 < len(body.attributes) <= MAX_ROOTS


def test_a_tag_keeps_its_first_attributes_only():
    html = "<div " + " ".join(f"a{number}='>'" for number in range(20_000)) + "><p>kept</p></div>"
    (div,) = parse(html).tagged("div")
    assert list(div.attributes) == [f"a{number}" for number in range(MAX_ATTRIBUTES)]
    assert [node.text for node in parse(html).walk() if not node.tag] == ["kept"]
