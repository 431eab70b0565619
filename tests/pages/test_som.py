"""SOM documents as wholes: the schema, the parser from the package index, ids, and pages that nobody has seen."""

from hashlib import sha256

import orjson
import pytest
import som_parser
from hypothesis import given, settings, strategies as st

from awp_publish.pages import Budget, compile_som, parse
from awp_publish.pages.identifiers import origin_of
from tests.examples import examples
from tests.pages.conftest import FIXTURES, read_page
from tests.pages.reading import URL, compiled, elements_in, elements_of, only

PAGES = sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("*/*.html"))
UNKNOWN_TO_THE_PARSER = {"details", "group", "iframe"}
"""Roles of the schema that som-parser 0.3 refuses."""


@pytest.mark.parametrize("budget", Budget)
@pytest.mark.parametrize("page", PAGES)
def test_a_published_page_is_valid_and_read_by_the_public_parser(page, budget, som_schema):
    som = compile_som(read_page(page), "https://example.com/page", budget)
    som_schema.validate(som.document)
    assert len(som.dump()) == som.document["meta"]["som_bytes"]
    if UNKNOWN_TO_THE_PARSER.isdisjoint(element["role"] for element in elements_of(som.document)):
        read = som_parser.parse_som(som.dump().decode())
        assert len(som_parser.get_all_elements(read)) == sum(
            len(region["elements"]) for region in som.document["regions"]
        )


def test_the_parser_refuses_what_the_schema_allows(som_schema):
    for html in ("<details><summary>x</summary></details>", "<fieldset>x</fieldset>", "<iframe src=x></iframe>"):
        document = compiled(html)
        som_schema.validate(document)
        assert not som_parser.is_valid_som(document)


VECTORS = [("https://example.com/any", "e_67907d9e1564"), ("http://127.0.0.1:8000/", "e_0c8540bc05e1")]


@pytest.mark.parametrize(("url", "expected"), VECTORS)
def test_the_check_vectors_of_the_reference(url, expected):
    som = compile_som("<p>x</p>", url)
    assert som.document["regions"][0]["elements"][0]["id"] == expected
    assert som.places == {expected: "0/0"}


ORIGINS = {
    "https://Example.com:443/a": "https://example.com",
    "http://example.com:8080/a": "http://example.com:8080",
    "http://[::1]:80/": "http://[::1]",
    "https://user:word@example.com/": "https://example.com",
    "data:text/html,x": "null",
    "about:blank": "null",
    "/relative": "/relative",
    "http://[bad": "http://[bad",
    "http://example.com:port/": "http://example.com:port/",
    "": "",
}


@pytest.mark.parametrize(("url", "origin"), ORIGINS.items())
def test_origins_of_pages_are_named(url, origin):
    assert origin_of(url) == origin


def test_an_id_is_a_hash_over_origin_role_name_and_path():
    som = compile_som(f"<div>\n<button aria-label='  A{'ä' * 120}B'>x</button></div>", "https://a.example/b")
    (element,) = elements_of(som.document)
    name = ("a" + "ä" * 120)[:100]
    assert element["id"] == "e_" + sha256(f"https://a.example|button|{name}|0/0/1".encode()).hexdigest()[:12]
    assert som.places[element["id"]] == "0/0/1"


def test_ids_stay_when_other_parts_of_a_page_change():
    before = {
        element["text"]: element["id"]
        for element in elements_in("<main><p>a</p><p>b</p></main><nav><a href=/>c</a></nav>")
    }
    after = {
        element["text"]: element["id"]
        for element in elements_in("<main><p>a</p><p>B!</p></main><nav><a href=/>c</a></nav>")
    }
    assert before["a"] == after["a"]
    assert before["c"] == after["c"]


def test_a_document_says_what_page_it_is_of():
    document = compiled("<html lang=de><title> T\n </title><svg><title>no</title></svg><p>x")
    assert list(document) == ["som_version", "url", "title", "lang", "regions", "meta"]
    assert (document["som_version"], document["url"], document["title"], document["lang"]) == (
        "0.1",
        URL,
        " T\n ",
        "de",
    )
    assert document["meta"]["html_bytes"] == len("<html lang=de><title> T\n </title><svg><title>no</title></svg><p>x")
    assert compiled("<html lang=''><p>x")["lang"] == "en"
    assert compiled("")["regions"] == []


def test_structured_data_is_what_the_page_says_of_itself():
    html = """<head><meta charset=utf-8><meta name=Description content=D><meta name=other content=x>
    <meta property=og:title content=O><meta property=og:title content=P><meta name=twitter:card content=C>
    <link rel=CANONICAL href=/c><link rel="shortcut icon" href=/i type=image/png><link rel=stylesheet href=/s>
    <link rel="alternate stylesheet" href=/s>
    <script type="Application/LD+JSON">[{"@type": "A"}, 1, {"@type": "B"}]</script>
    <script type="application/ld+json">{"@graph": []}</script><script type="application/ld+json">{no}</script></head>
    <script type="application/ld+json">{"a": "\\ud800"}</script>"""
    assert compiled(html)["structured_data"] == {
        "json_ld": [{"@type": "A"}, {"@type": "B"}, {"@graph": []}],
        "open_graph": {"og:title": "P"},
        "twitter_card": {"twitter:card": "C"},
        "meta": {"charset": "utf-8", "description": "D"},
        "links": [{"rel": "canonical", "href": "/c"}, {"rel": "shortcut icon", "href": "/i", "type": "image/png"}],
    }


def test_a_tree_can_be_compiled_more_than_once_and_gives_the_same():
    tree = parse("<main><h1>x</h1><a href=/y>y</a></main>")
    assert len({compile_som(tree, URL, budget).dump() for budget in [*Budget, *Budget]}) == 1


TAGS = (
    "a p div span h2 ul li table tr td th form fieldset legend label input button select option details summary nav b"
)
MARKUP = st.recursive(
    st.text(alphabet="ab c\n<&'\"|©", max_size=6),
    lambda inner: st.builds(
        lambda tag, attributes, held, ended: (
            f"<{tag} {' '.join(attributes)}>{''.join(held)}" + (f"</{tag}>" if ended else "")
        ),
        st.sampled_from(
            [*TAGS.split(), "main", "x-y", "template shadowrootmode=open", "svg", "style", "img", "iframe", "b"]
        ),
        st.lists(
            st.sampled_from(
                [
                    *(
                        "href=/x",
                        "href=#",
                        "id=i",
                        "for=i",
                        "class='nav main'",
                        "class=btn-primary",
                        "role=button",
                        "role=none",
                    ),
                    *(
                        "role=search",
                        "role='x img'",
                        "hidden",
                        "aria-label=' n '",
                        "aria-labelledby='i i'",
                        "title=t",
                        "alt=''",
                    ),
                    *(
                        "type=radio",
                        "type=hidden",
                        "colspan=999999999",
                        "disabled",
                        "inert",
                        "style=opacity:0",
                        "open",
                        "name=n",
                    ),
                    *(
                        "border=1",
                        "tabindex=x",
                        "min=9",
                        "aria-checked=mixed",
                        "aria-expanded=x",
                        "aria-level=9",
                        "value=v",
                    ),
                ]
            ),
            max_size=3,
        ),
        st.lists(inner, max_size=4),
        st.booleans(),
    ),
    max_leaves=25,
)


@settings(max_examples=examples(150), deadline=None)
@given(st.one_of(MARKUP, st.text(max_size=60), st.binary(max_size=60)), st.sampled_from(Budget), st.text(max_size=20))
def test_every_page_has_a_valid_document(som_schema, html, budget, url):
    tree = parse(html)
    som = compile_som(tree, url, budget)
    som_schema.validate(som.document)
    ids = [element["id"] for element in elements_of(som.document)]
    assert len(set(ids)) == len(ids) == som.document["meta"]["element_count"]
    assert all(tree.node_at(place) is not None for place in som.places.values())
    assert set(ids) - set(som.places) == {name for name in ids if name.startswith("e_summary_")}
    assert som.dump() == compile_som(html, url, budget).dump()
    assert len(som.dump()) == som.document["meta"]["som_bytes"]


HOSTILE = {
    "deep": "<div>" * 20_000 + "<button>x</button>",
    "wide": "<i></i>" * 20_000 + "<button>x</button>",
    "names of one long text": "<body id=b>" + "word " * 20_000 + "<button aria-labelledby=b>x</button>" * 300,
    "labels": "<label for=f>x</label>" * 5_000 + "<input id=f>" * 1_000,
    "wide cells": "<table><tr><th>h" + "<tr><td colspan=1000000000>x" * 2_000 + "</table><button>x</button>",
    "rules": "<style>" + ".a," * 20_000 + ".b{display:none}" + "@media{" * 5_000 + "</style><button>x</button>",
    "shadows": "<x-y><template shadowrootmode=open>" * 400 + "<button>x</button>",
    "structured data": "<script type='application/ld+json'>"
    + '{"a":' * 900
    + "1"
    + "}" * 900
    + "</script><button>x</button>",
    "an image in an address": f"<img alt=x src='data:{'x' * 1_000_000}'><button>x</button>",
    "options": "<select>" + "<option>x</option>" * 20_000 + "</select>",
}


def test_cells_that_span_much_do_not_make_a_document_much_longer_than_its_page():
    for cell in ("<td colspan=1000>x", "<td colspan=99 rowspan=99>x", f"<td colspan=99>{'x' * 1_000}"):
        html = "<table><tr><th>h" + f"<tr>{cell}" * 500
        assert len(compile_som(html, "https://a.example/", Budget.FULL).dump()) < 8 * len(html)


def test_a_row_without_end_is_cut_where_a_document_has_to_be_small():
    html = "<table><tr>" + "<th>h" * 20_000 + "<tr>" + "<td>" * 20_000 + "x</table>"
    document = compiled(html, Budget.TIGHT)
    assert len(orjson.dumps(document)) < Budget.TIGHT.value
    assert "shortened" in elements_of(document)[-1]["text"]


@pytest.mark.slow
@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_page_is_a_page(html, som_schema):
    for budget in (Budget.DEFAULT, Budget.TIGHT):
        document = compiled(html, budget)
        som_schema.validate(document)
        assert document["meta"]["interactive_count"] > 0


def test_invalid_unicode_in_a_url_is_replaced():
    assert compile_som("<p>x", "https://a.example/\ud800").document["url"] == "https://a.example/?"


def test_a_name_of_whitespace_only_is_none():
    assert "label" not in only("<button aria-label=' ' title='\n'>x</button>")
