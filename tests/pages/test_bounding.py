"""Pages that would take a parser long are flattened, and others are not touched."""

import sys
import tracemalloc
from types import FrameType
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from awp_publish.pages import Budget, compile_som, parse, selectolax
from awp_publish.pages.markdown import write_markdown
from awp_publish.pages.nesting import MAX_ATTRIBUTES, MAX_DEPTH, MAX_FORMATTING, MAX_ROOTS, MAX_TREE_DEPTH, bound_markup
from awp_publish.pages.tree import NodePaths, Tree


def depth_of(page: Tree) -> int:
    paths = NodePaths(page)
    return max((paths.of(node.at) or "").count("/") for node in page.walk())


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
def test_a_page_that_is_nested_too_deep_is_flattened_without_losing_text(html):
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


REPEATED = {
    "templates": "<template><div>x",
    "templates in capitals": "<TEMPLATE><div>x",
    "shadow roots in one another": "<div><template shadowrootmode=open>x",
    "shadow roots beside one another": "<div><template shadowrootmode=open>x</template></div>",
    "links": "<a href=/x>x",
    "tables": "<table><tr><td>x",
    "forms": "<div><form action=/x>x",
    "lists": "<ul><li>x",
    "paragraphs": "<p>x</p>",
}


def peak_of(html: str) -> int:
    tracemalloc.start()
    compile_som(html, "https://example.com/").dump()
    write_markdown(html, "https://example.com/")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.slow
@pytest.mark.parametrize("name", REPEATED)
def test_memory_grows_with_the_length_of_a_page_and_no_faster(name):
    markup = REPEATED[name]
    sizes = (40_000, 160_000) if "in" in name.split() else (6_000, 24_000)
    short, long = (peak_of(markup * (size // len(markup))) for size in sizes)
    assert long <= 5 * max(short, 1_000_000)
    assert long <= sizes[1] * 300


def test_nesting_anywhere_in_a_long_page_is_bounded():
    page = parse("<p>Ordinary text.</p>" * 20_000 + "<div>" * 10_000 + "kept")
    assert depth_of(page) <= MAX_TREE_DEPTH
    assert any(node.text.endswith("kept") for node in page.walk())


HOSTILE = {
    "elements with stray end tags": "<div></x>",
    "elements with stray end tags of paragraphs": "<section></p>",
    "elements that end in the wrong order": "<span><div></span></div>",
    "elements that end in a block": "<label><ul></label>",
    "a name with a character that is no white space": "<div\x0b></div>",
    "formatting closed out of many blocks": f"<b>{'<div>' * 10}</b>{'</div>' * 10}",
    "formatting in table cells": "<b><table><tr><td></b></table>",
    "links": "<a href=/x><article></a>",
    "an end tag in a value": "<div title='</div>'>",
    "an end tag after a value": "<div a='x'></div><div a==\"></div>\">",
    "an unquoted value with a quotation mark": '<div><div a=b?c="></div><br a="></div>',
    "an end tag in a comment": "<div><!--</div>-->",
    "an end tag in a declaration": "<div><!x</div>>",
    "an end tag in an instruction": "<div><?x</div>>",
    "an end tag in an end tag without a name": "<div></ </div>>",
    "an end tag in a script": "<div><script>'</div>'</script>",
    "an end tag in a script in a script": "<div><script><!--<script></script></div></script>-->",
    "an end tag in styles": "<div><style>/*</div>*/</style>",
    "an end tag in a character section of a drawing": "<svg><g><![CDATA[</g>]]>",
    "forms that end before what is in them": "<form><div></form>",
    "options": "<select><option><div>",
    "items around lists": "<li><ul></li>",
    "rows outside of a table": "<div><tr></div><tr>",
    "captions outside of a table": "<caption><section></caption>",
    "buttons in cells": "<button><table><td></button>",
    "drawings in drawings": "<svg><foreignObject><div>",
    "paragraphs in drawings": "<p><svg><foreignObject><div>",
    "fields in a drawing": "<svg><input>",
    "options in a formula": "<math><mi><option></math>",
    "links in a drawing": "<svg><a>",
    "closed elements of drawings elsewhere": "<svg></svg><path/>",
    "elements of drawings that end elsewhere": "<path><svg></path><g/><g/></svg></path>",
    "names with the first sign of a tag": "<q<a></a><z></q<z>",
    "names of formulas elsewhere": "<mi><p></mi>",
    "names of formulas elsewhere around terms": "<mi><dd></mi>",
    "templates": "<template>",
    "shadow roots": "<div><template shadowrootmode=open>",
}
ONCE = {
    "after a comment that ends at once": "<!-->",
    "after a comment that ends at once, with a hyphen": "<!--->",
    "in a drawing's title": "<svg><title>",
    "in a drawing's styles": "<svg><style>",
    "in a drawing's script": "<svg><script>",
    "in a formula": "<math><annotation-xml encoding=text/html>",
    "after ordinary text": "<p>Ordinary <b>text</b>.</p>" * 2_000,
    "after a long text": "x" * 200_000,
    "after a long value": f"<div a='{'x' * 200_000}'>",
}


def depth_in_parser(markup: bytes) -> int:
    """Return the depth of what the parser itself makes of markup."""
    waiting: list[tuple[LexborNode | None, int]] = [(LexborHTMLParser(markup, scripting=True).root, 1)]
    deepest = 0
    while waiting:
        node, depth = waiting.pop()
        while node is not None:
            deepest = max(deepest, depth)
            waiting.append((node.first_child, depth + 1))
            node = node.next
    return deepest


@pytest.fixture
def parsed(monkeypatch) -> list[bytes]:
    """All markup that the parser gets."""
    markups = list[bytes]()

    def parse_and_note(markup: bytes, **options: Any) -> LexborHTMLParser:
        markups.append(markup)
        return LexborHTMLParser(markup, **options)

    monkeypatch.setattr(selectolax, "LexborHTMLParser", parse_and_note)
    return markups


def test_the_parser_never_gets_what_it_would_nest_too_deep(parsed):
    pages = {name: unit * 2_000 for name, unit in HOSTILE.items()}
    pages |= {f"elements {place}": before + "<div>" * 2_000 for place, before in ONCE.items()}
    pages |= {f"groups {place}": before + "<g>" * 2_000 for place, before in ONCE.items()}
    pages["runs of elements that ordinary text is between"] = ("<section>" * 20 + "<p>Ordinary text.</p>" * 20) * 100
    pages["a run in the middle"] = f"{'x' * 100_000}{'<i><div></i>' * 2_000}{'x' * 100_000}"
    too_deep = dict[str, int]()
    for name, html in pages.items():
        parsed.clear()
        parse(html)
        depths = [depth_in_parser(markup) for markup in list(parsed)]
        if max(depths) > 2.5 * MAX_DEPTH:  # a cell has a row, a group and a table's body around it
            too_deep[name] = max(depths)
    assert too_deep == {}


def test_blocks_in_which_formatting_is_reopened_have_no_more_nodes_than_the_page_says():
    html = "".join(f"<p><i id=i{number}>x" for number in range(20_000))
    assert len(parse(html).tags) < len(html)


ORDINARY = {
    "a drawing": '<p>x</p><svg><title>Icon</title><style>a{}</style><g><path d="M0"/><use/></g></svg>',
    "a drawing with notes": "<svg><!-- made > by - hand --><desc id=d>x</desc><g><path/></g></svg>",
    "end tags that end nothing": "<picture><source></source><img></img></picture></br>",
    "a script with tags": "<script>if (a<b) { x = '<div><b><div>' }</script>",
    "an old script": "<script><!--\ndocument.write('<div>')\n//--></script>",
    "styles and comments": "<style>a > b { content: '<div>' }</style><!-- <div><div><div> -->",
    "a conditional comment": "<!--[if IE]><script src=x></script><div><![endif]-->",
    "omitted end tags": "<ul><li>a<p>b<li>c</ul><table><tr><td>a<td>b<tr><td>c</table><dl><dt>a<dd>b</dl>",
    "a select": "<select><optgroup label=a><option>a<option>b</select>",
    "a form": "<form><p><input><br><textarea>a < b</textarea></form>",
    "no script": "<noscript><img src=x><div></noscript>",
    "an embedded page": "<iframe><div></iframe>",
    "many levels": f"{'<div>' * 20}{'<p>x</p>' * 60}{'</div>' * 20}",
}


@pytest.mark.parametrize("unit", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_pages_are_parsed_without_being_bounded(unit, monkeypatch):
    bounded = list[bytes]()

    def bound(html: bytes) -> bytes:
        bounded.append(html)
        return html

    monkeypatch.setattr(selectolax, "bound_markup", bound)
    parse(unit * 2_000)
    assert bounded == []


def test_links_that_nothing_closes_are_not_inside_of_one_another():
    html = "".join(f"<a href=/{number}>{number}" for number in range(3_000))
    assert len(parse(html).select("a")) == 3_000


def test_the_attributes_of_many_bodies_are_those_of_the_first_ones():
    (body,) = parse("".join(f"<body a{number}=1>" for number in range(20_000))).tagged("body")
    assert 0 < len(body.attributes) <= MAX_ROOTS


def test_a_tag_keeps_its_first_attributes_only():
    html = "<div " + " ".join(f"a{number}='>'" for number in range(20_000)) + "><p>kept</p></div>"
    (div,) = parse(html).tagged("div")
    assert list(div.attributes) == [f"a{number}" for number in range(MAX_ATTRIBUTES)]
    assert [node.text for node in parse(html).walk() if not node.tag] == ["kept"]


def calls_of(html: str) -> int:
    """How many functions are called to compile a page: what takes longer than its length calls more of them."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        compile_som(html, "https://example.com/")
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "cell", ["<td>c<button>b{}</button>", "<td><form action=/x><input name=a><button>b{}</button></form>"]
)
def test_the_names_of_items_take_no_longer_in_a_row_of_many_cells(cell):
    short, long = (calls_of("<table>" + ("<tr>" + "".join(map(cell.format, range(count)))) * 2) for count in (50, 200))
    assert long < 6 * short


@pytest.mark.parametrize("around", ["<div role=button>", "<div contenteditable>", "<button><table><tr><td>"])
def test_a_common_part_of_names_is_not_repeated_in_each(around):
    html = around * 100 + "some words " * 1_000
    assert len(compile_som(html, "https://example.com/", Budget.FULL).dump()) < 15 * len(html)
