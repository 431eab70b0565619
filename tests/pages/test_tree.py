"""The tree of a page: the one of the HTML Standard, with paths to every node of the body."""

import gc

import pytest
from hypothesis import given, settings, strategies as st

from awp_publish.pages import compile_som, parse
from awp_publish.pages.markdown import write_markdown
from awp_publish.pages.tree import Element, Template


def test_every_kind_of_node_counts_in_a_path():
    tree = parse("<body><!-- note --><p>One</p>\n<p>Two <b>bold</b></p>")
    assert [node.tag for node in tree.body.children] == ["!", "p", "", "p"]
    assert tree.node_at("0/3/1/0").text == "bold"  # type: ignore[union-attr]
    assert tree.node_at("0/3").path() == "0/3"  # type: ignore[union-attr]


NOWHERE = ["", "1", "0/9", "0/-1", "0/x", "0/00", "0/0/0/0", "0//0", "0/²", f"0/1{'0' * 40}", "0#shadow"]


@pytest.mark.parametrize("path", NOWHERE)
def test_a_path_to_nothing_gives_nothing(path):
    assert parse("<p>One</p>").node_at(path) is None


def test_every_node_of_the_body_is_found_again_at_its_path():
    tree = parse("<nav><a href=/>x</a></nav><table><tr><td>1<td>2</table><svg><title>t</title></svg><x-y>z</x-y>")
    assert all(tree.node_at(node.path() or "") is node for node in tree.walk())
    assert tree.head.path() is None


def test_a_text_that_is_all_of_an_element_is_a_node_like_any_other():
    tree = parse("<p>One</p><p>Two <b>three</b></p><p></p><p><!-- x --></p>")
    one, two, *others = tree.tagged("p")
    assert [tree.only(each.at) for each in (one, two, *others)] == ["One", None, None, None]
    (text,) = one.children
    assert (text.text, text.parent, text.path(), tree.node_at("0/0/0")) == ("One", one, "0/0/0", text)
    assert one.children[0] is text
    assert not hasattr(one, "texts")


def test_a_selector_gives_paths_in_the_order_of_the_page():
    tree = parse("<h2>a</h2><p>b</p><h2>c</h2>" + "<i>d</i>" * 12)
    assert tree.select("p, h2, p") == ["0/0", "0/1", "0/2"]
    assert tree.select("i")[-1] == "0/14"
    assert tree.select("title, head, html, .none") == []


@pytest.mark.parametrize("selector", ["", "p >", "[[", "p:no-such", "*" * 2000])
def test_an_invalid_selector_is_a_value_error(selector):
    with pytest.raises(ValueError, match=r"selector"):
        parse("<p>x</p>").select(selector)


def test_attributes_without_a_value_are_empty_and_names_are_in_lower_case():
    tree = parse('<INPUT Disabled NAME="Q"><svg><foreignObject>x</foreignObject></svg>')
    field = tree.body.children[0]
    assert (field.tag, dict(field.attributes)) == ("input", {"disabled": "", "name": "Q"})
    assert [node.tag for node in tree.walk() if node.tag] == ["body", "input", "svg", "foreignobject"]


@pytest.mark.parametrize(
    ("beside", "is_read"), [("", True), ("<div id=app></div>", True), ("<p>word</p>" * 101, False)]
)
def test_a_page_that_is_written_in_noscript_alone_is_read_there(beside, is_read):
    posts = "".join(f"<p>Post {number} of the thread, as a page without scripts has it.</p>" for number in range(40))
    page = f"<head><noscript><link rel=x></noscript></head><body>{beside}<noscript>{posts}</noscript>"
    assert ("Post 39" in write_markdown(page, "https://x.example/")) == is_read


def test_noscript_is_empty_and_leaves_the_head_in_one_piece():
    tree = parse("<head><noscript><img src=x></noscript><title>T</title></head><body><noscript><p>no</p></noscript>")
    assert [node.tag for node in tree.head.children] == ["noscript", "title"]
    assert [list(node.children) for node in tree.tagged("noscript")] == [[], []]


def test_shadow_roots_are_beside_the_children_and_have_paths_of_their_own():
    tree = parse("<x-a><template shadowrootmode=open>in<x-b><template shadowroot=CLOSED><b>deep</b></template></x-b>")
    (shadow,) = tree.tagged("template")
    assert isinstance(shadow, Template)
    assert shadow.shadow_mode == "open"
    deep = tree.node_at("0/0#shadow/1#shadow/0")
    assert isinstance(deep, Element)
    assert (deep.tag, deep.path()) == ("b", "0/0#shadow/1#shadow/0")
    assert tree.tagged("b") == ()


def test_a_page_of_frames_and_an_empty_page_have_an_empty_body():
    assert parse("<frameset><frame src=a></frameset>").body.children == ()
    assert parse("").node_at("0") is not None
    assert parse(b"").html_bytes == 0


@pytest.mark.parametrize(
    ("source", "charset", "text"),
    [
        ("<p>käse \ud800</p>".encode("utf-8", "surrogatepass"), None, "käse \ufffd\ufffd\ufffd"),
        ("<p>k\ud800</p>", None, "k\ufffd"),
        ("<meta charset=windows-1251><p>Привет</p>".encode("cp1251"), None, "Привет"),
        ("<meta charset=windows-1251><p>Привет</p>".encode(), "UTF-8", "Привет"),
        ("<p>€</p>".encode("cp1252"), "iso-8859-1", "€"),
        (b"\xef\xbb\xbf<p>\xe2\x82\xac</p>", "latin1", "€"),
        ("<p>日本</p>".encode("shift_jis"), "Shift_JIS", "日本"),
        ("\ufeff<p>x</p>".encode("utf-16-le"), "utf-8", "x"),
        ("<p>x</p>".encode("utf-16-be"), "utf-16be", "x"),
        (b"<p>\xe2\x82\xac</p>", "no-such-charset", "€"),
        (b"<p>x</p>", "base64", "x"),
        (b"<p>x</p>", "\x00", "x"),
        (b"<meta charset=utf-16><p>x</p>", None, "x"),
        (b"<meta charset=punycode><p>x</p>", None, "x"),
        (b"<meta charset=unicode_escape><p>\\u0041</p>", None, "\\u0041"),
        (b"<meta charset=utf-7><p>+ADw-b+AD4-</p>", None, "+ADw-b+AD4-"),
        (b"<p>+ADw-b+AD4-</p>", "UTF-7", "+ADw-b+AD4-"),
        (b"<meta charset=x-user-defined><p>\x80</p>", None, "€"),
        ("<p>①</p>".encode("cp932"), "shift_jis", "①"),
        ("<p>똠</p>".encode("cp949"), "ks_c_5601-1987", "똠"),
        ("<meta charset=koi8-u><p>Ї</p>".encode("koi8-u"), None, "Ї"),
    ],
)
def test_bytes_are_read_in_their_charset(source, charset, text):
    (paragraph,) = parse(source, charset).tagged("p")
    assert paragraph.children[0].text == text


@settings(deadline=None)
@given(st.one_of(st.text(), st.binary()), st.one_of(st.none(), st.text(max_size=12)))
def test_every_html_has_a_tree_with_valid_paths(source, charset):
    tree = parse(source, charset)
    assert all(tree.node_at(node.path() or "") is node for node in tree.walk())
    assert tree.html_bytes >= 0


def test_an_id_that_occurs_twice_belongs_to_the_first_element():
    tree = parse("<i id=a>1</i><b id=a>2</b><i id=a>3</i><b id=b>4</b><i id=b>5</i><p id=''>")
    assert [tree.texts[(tree.find_id(name) or 0) + 1] for name in ("a", "b")] == ["1", "4"]
    assert tree.find_id("") is None


def test_a_shadow_root_may_have_an_id_and_be_met_by_a_selector():
    html = "<x-a id=i aria-labelledby='i i'><template shadowrootmode=open id=i><b>x</b></template></x-a><p id=i>y"
    tree = parse(html)
    assert tree.node(tree.find_id("i") or 0) is tree.node_at("0/0")
    assert tree.select("*") == ["0", "0/0", "0/1"]
    assert compile_som(html, "https://shop.example/").document["meta"]["element_count"] == 3


def test_a_tree_gives_the_garbage_collector_next_to_nothing_to_look_at():
    html = "<p class=a>One <b id=b>two</b> <a href=/three>three</a></p>" * 2_000
    tree = parse(html)
    gc.collect()
    assert tree.size > 14_000
    parts = [referent for referent in gc.get_referents(tree) if isinstance(referent, list)]
    assert sum(map(len, parts)) >= 5 * tree.size
    assert sum(gc.is_tracked(item) for part in parts for item in part) == 0
