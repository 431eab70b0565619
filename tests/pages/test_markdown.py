"""Markdown of pages: what a person would read, and what a Markdown parser makes of it again."""

import html
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st
from markdown_it import MarkdownIt

from awp_publish.pages.markdown import write_markdown
from awp_publish.pages.markdown.visible import VisibleNodes
from awp_publish.pages.selectolax import parse
from awp_publish.pages.som import compile_som

URL = "https://shop.example/books/emma?page=2"
PAGES = Path(__file__).parents[3] / "shared" / "fixtures" / "som" / "pages"


def write(body: str, url: str = URL) -> str:
    return write_markdown(f"<!doctype html><body>{body}", url)


WRITTEN = {
    "headings": ("<h1>One</h1><h3>Three <em>of</em> them</h3><h2></h2>", "# One\n\n### Three _of_ them\n"),
    "a heading that ends in a hash": ("<h2>C#</h2>", "## C\\#\n"),
    "paragraphs and loose text": ("<div>a<p>b</p>c</div>", "a\n\nb\n\nc\n"),
    "white space": ("<p> a\n  b&nbsp;<b> c </b>d</p>", "a b **c** d\n"),
    "emphasis": ("<p><b>a</b> <i>b</i> <s>c</s> <code>d</code></p>", "**a** _b_ ~~c~~ `d`\n"),
    "emphasis within a word": ("<p>un<em>believ</em>able</p>", "un*believ*able\n"),
    "emphasis that Markdown would not see": ("<p><b>Note:</b>read</p>", "Note:read\n"),
    "emphasis that touches": ("<p><b>a</b><b>b</b></p>", "**ab**\n"),
    "code and brackets parted by emphasis that is left out": (
        "<p><code>a</code><b><code>b</code></b>1 [c]<b>(d)</b>1 e!<b><a href=/f>f</a></b>1</p>",
        "`a` `b`1 [c]\\(d)1 e! [f](https://shop.example/f)1\n",
    ),
    "emphasis without text": ("<p>a<b> </b>b</p>", "a b\n"),
    "line breaks": ("<p>a<br>b<br><br>c</p>", "a  \nb\n\nc\n"),
    "emphasis over line breaks": ("<p><b>a<br><br>b</b></p>", "**a**\n\n**b**\n"),
    "code that ends with a backslash, beside code": (r"<p><code>a\</code><code>b</code></p>", "`a\\` `b`\n"),
    "code with backticks": ("<p><code>a `b` c</code> <code>`</code></p>", "``a `b` c`` `` ` ``\n"),
    "links": (
        '<p><a href="/x">a</a> <a href="y">b</a> <a href="?z">c</a> <a href="#d">d</a> '
        '<a href="//cdn.example/e">e</a></p>',
        "[a](https://shop.example/x) [b](https://shop.example/books/y) [c](https://shop.example/books/emma?z) "
        "[d](#d) [e](https://cdn.example/e)\n",
    ),
    "links that act, and links that lead nowhere": (
        '<p><a href="javascript:go()">a</a> <a>b</a> <a href="/c"></a></p>',
        "[button: a] b\n",
    ),
    "a link that says its name to listeners only": (
        '<a href="/c" aria-label="Cart"></a>',
        "[Cart](https://shop.example/c)\n",
    ),
    "links that are boxes without a text": (
        '<a href="/c" aria-label="Cart"><div><p></p></div></a><a href="/d"><div></div></a><p>x</p>',
        "[Cart](https://shop.example/c)\n\nx\n",
    ),
    "a link that is a button, whose name says what it adds": (
        '<a href="/c" role="button" aria-label="Add to cart: Tent">Add to cart</a>',
        "[Add to cart: Tent](https://shop.example/c)\n",
    ),
    "links and buttons that are pictures": (
        '<a href="/c"><svg><title>Cart</title></svg></a> <a href="/d"><i title="Disk"></i></a> '
        '<button><span><svg aria-label="Close"></svg></span></button>',
        "[Cart](https://shop.example/c) [Disk](https://shop.example/d) [button: Close]\n",
    ),
    "controls that hold blocks": (
        "<button><div>Buy</div></button><span><select name=s><optgroup label=g><option>1<option>2</select></span>",
        "[button: Buy] [choice `s`: 1 (selected), 2]\n",
    ),
    "controls are apart from their labels": (
        "<label>User</label><input name=u><label>Word<input name=w></label>",
        "User [text field `u`] Word [text field `w`]\n",
    ),
    "an address with brackets": ('<a href="/a_(b) c)">x</a>', "[x](https://shop.example/a_%28b%29%20c%29)\n"),
    "brackets in a link": ('<a href="/a">[1]</a>', "[\\[1\\]](https://shop.example/a)\n"),
    "an exclamation before a link": ('<p>Go!<a href="/a">x</a></p>', "Go\\![x](https://shop.example/a)\n"),
    "a link around blocks": (
        '<a href="/c"><h3>Card</h3><p>text</p></a>',
        "### [Card](https://shop.example/c)\n\ntext\n",
    ),
    "images": (
        '<p><img src="a.png" alt="A cat"><img src="b.png" alt=""><img src="c.png"><img src="data:,x" alt="D"></p>',
        "![A cat](https://shop.example/books/a.png)![D]()\n",
    ),
    "an image that a script loads": (
        '<p><img src="data:,x" data-src="a.png" alt="A cat"></p>',
        "![A cat](https://shop.example/books/a.png)\n",
    ),
    "a base": ('<base href="/other/"><p><a href="x">x</a></p>', "[x](https://shop.example/other/x)\n"),
    "lists": (
        "<ul><li>a<ul><li>b<li>c</ul><li>d</ul><ol start=3><li>e<li value=7>f</ol>",
        "- a\n  - b\n  - c\n- d\n\n3. e\n7. f\n",
    ),
    "two lists": ("<ul><li>a</ul><ul><li>b</ul>", "- a\n\n* b\n"),
    "a loose list": ("<ul><li><p>a</p><p>b</p><li>c</ul>", "- a\n\n  b\n\n- c\n"),
    "tasks": (
        "<ul><li><input type=checkbox checked> done<li><input type=checkbox> open</ul>",
        "- [x] done\n- [ ] open\n",
    ),
    "text that looks like a task": ("<ul><li>[x] no task</ul>", "- \\[x] no task\n"),
    "definitions": (
        "<dl><dt>Term<dd>said</dd><div><dt>Other<dd><p>a</p><p>b</p></div></dl>",
        "- **Term**: said\n- **Other**\n\n  a\n\n  b\n",
    ),
    "a quotation": ("<blockquote><p>a</p><ul><li>b</ul></blockquote>", "> a\n>\n> - b\n"),
    "code": (
        '<pre><code class="language-py">def f():\n    return "```"\n</code></pre>',
        '````py\ndef f():\n    return "```"\n````\n',
    ),
    "code in a list": ("<ul><li>a<pre>x\n\ny</pre></ul>", "- a\n\n  ```\n  x\n\n  y\n  ```\n"),
    "a rule": ("<hr>a<hr>b", "a\n\n---\n\nb\n"),
    "a table": (
        "<table><caption>Prices</caption><tr><th>Book<th align=right>Price<tr><td>a|b<td>1<br>2</table>",
        "**Prices**\n\n| Book | Price |\n| --- | --: |\n| a\\|b | 1<br>2 |\n",
    ),
    "a table without headings": ("<table><tr><td>a<td>b</table>", "|  |  |\n| --- | --- |\n| a | b |\n"),
    "spans of a table": (
        "<table><tr><th>a<th>b<th>c<tr><td rowspan=2>d<td colspan=2>e<tr><td>f<td>g</table>",
        "| a | b | c |\n| --- | --- | --- |\n| d | e |  |\n|  | f | g |\n",
    ),
    "a table that arranges a page": (
        "<table><tr><td><h2>a</h2><p>b</p><td><ul><li>c</ul></table>",
        "## a\n\nb\n\n- c\n",
    ),
    "a form": (
        '<form action="/s" aria-label="Search"><label>Words <input name=q placeholder="Title" required></label>'
        "<select name=sort><option>New<option selected>Old</select><input type=hidden name=t value=1>"
        "<button>Go</button></form>",
        "Form “Search”: `GET https://shop.example/s`\n\n"
        "Words [text field `q`, “Title”, required] [choice `sort`: New, Old (selected)] [button: Go]\n\n"
        "[hidden: `t`: `1`]\n",
    ),
    "a form says all that sending it needs": (
        "<form method=post enctype=multipart/form-data><input name=n minlength=2 maxlength=5 pattern='[A-Z]+'>"
        "<input type=number name=c min=1 max=9 step=2 value=3><select name=s><option value=1>One<option>Two</select>"
        "<input type=checkbox name=t value=b><input type=radio name=r value=1 checked>"
        "<input type=hidden name=csrf_token value=x7><input type=hidden name=k value=v>"
        "<button name=go value=1>Go</button><button formaction=/x>Other</button></form>",
        "Form: `POST https://shop.example/books/emma?page=2` as `multipart/form-data`\n\n"
        "[text field `n`, minlength `2`, maxlength `5`, pattern `[A-Z]+`] "
        "[number field `c`, min `1`, max `9`, step `2`: “3”] [choice `s`: One (`1`, selected), Two] "
        "[ ] `t`=`b` (x) `r`=`1` [button `go`=`1`: Go] [button: Other, `POST https://shop.example/x`]\n\n"
        "[hidden: `csrf_token`: a secret of the session, `k`: `v`]\n",
    ),
    "the main content first, then what is around it": (
        "<a href=#m>Skip to content</a><header><nav><ul><li><a href=/>Home</a><li><a href=/b>Books</a></ul></nav>"
        "<form role=search action=/s><input name=q></form></header><main id=m><h1>Emma</h1><p>7.50</p></main>"
        "<footer><nav><a href=/b>Books</a> <a href=/p>Privacy</a></nav><address>1 Main St<br>London</address></footer>",
        "# Emma\n\n7.50\n\n1 Main St  \nLondon\n\n## Navigation\n\n"
        "[Home](https://shop.example/) · [Books](https://shop.example/b)\n\n[Privacy](https://shop.example/p)\n\n"
        "## Forms\n\nForm: `GET https://shop.example/s`\n\n[text field `q`]\n",
    ),
    "a heading of the page before its main content": (
        "<header><h1>Emma</h1><p>A shop</p></header><main><p>7.50</p></main>",
        "# Emma\n\n7.50\n\nA shop\n",
    ),
    "a heading by its role": ("<div role=heading aria-level=3>Teas</div><p>x</p>", "### Teas\n\nx\n"),
    "links in a listing": (
        "<pre><a href=/a>a.txt</a>  7\n<a href=/b>b.txt</a>  8</pre>",
        "```\na.txt  7\nb.txt  8\n```\n\nLinks: [a.txt](https://shop.example/a), [b.txt](https://shop.example/b)\n",
    ),
    "forms in cells": (
        "<table><tr><th>Tea<th><tr><td>Assam<td><form action=/add method=post><input type=hidden name=sku value=7>"
        "<button>Add</button></form><tr><td>Emma<td><form action=/set><input name=n></form></table>",
        "| Tea |  |\n| --- | --- |\n| Assam | [button: Add, `POST https://shop.example/add`, `sku`: `7`] |\n"
        "| Emma | [form: `GET https://shop.example/set`] [text field `n`] |\n",
    ),
    "a link to the heading that it stands in": ("<h2 id=a>A<a href='#a'>#</a></h2>", "## A\n"),
    "ticks": (
        "<form><label><input type=radio checked> A</label> <label><input type=radio> B</label></form>",
        "(x) A ( ) B\n",
    ),
    "details": ("<details><summary>More</summary><p>a</p></details>", "**More**\n\na\n"),
    "what is not seen": (
        "<p hidden>a</p><p style='display: none'>b</p><p aria-hidden=true>c</p><script>d</script><style>e</style>"
        "<noscript>f</noscript><template>g</template><dialog>h</dialog><!-- i --><p>seen</p>",
        "seen\n",
    ),
    "powers": ("<p>x<sup>2</sup> H<sub>2</sub>O 4<sup>th</sup></p>", "x² H₂O 4th\n"),
    "text that looks like Markdown": (
        "<p># no heading<br>- no item<br>1. no number<br>&gt; no quotation<br>--- | ---"
        "<br>*a* _b_ `c` [d](e) &lt;f> &amp;lt;</p>",
        "\\# no heading  \n\\- no item  \n1\\. no number  \n\\> no quotation  \n\\--- | ---  \n"
        "\\*a\\* \\_b\\_ \\`c\\` [d\\](e) \\<f> \\&lt;\n",
    ),
    "text that needs nothing": ("<p>snake_case 2 * 3 < 4 & 5 [1] #6 a-b</p>", "snake_case 2 * 3 < 4 & 5 [1] #6 a-b\n"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("body", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_markdown_is_written_as_a_person_would(body, expected):
    assert write(body) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<title> The\n shop </title><p>a", "# The shop\n\na\n"),
        ("<title>The shop</title><h1>Books</h1>", "# Books\n"),
        ("<title>The shop</title><h1> </h1><p>a", "# The shop\n\na\n"),
    ],
)
def test_a_page_without_a_heading_has_its_title_as_one(page, expected):
    assert write_markdown(page, URL) == expected


def test_the_charset_of_the_answer_holds():
    assert write_markdown("<p>é".encode("latin-1"), URL, "iso-8859-1") == "é\n"


# --- What comes back -------------------------------------------------------------------------------------------------

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
TEXT = st.text(alphabet="ab 1.)(-+*_#>~`|[]!<&;\\:=\n\"'x/é ", max_size=12).map(html.escape)


def wrap(tags: list[str], inner: st.SearchStrategy[str], item: str = "{}") -> st.SearchStrategy[str]:
    joined = st.lists(inner, max_size=3).map(lambda parts: "".join(item.format(part) for part in parts))
    return st.builds(lambda tag, text: f"<{tag}>{text}</{tag.split()[0]}>", st.sampled_from(tags), joined)


WORDS = st.recursive(
    TEXT | st.just("<br>"), lambda inner: wrap(["b", "i", "s", "code", "a href=/x", "span", "u"], inner), max_leaves=6
)
LINES = st.lists(WORDS, max_size=4).map("".join)
BLOCKS = st.recursive(
    LINES | wrap(["p", "h2"], LINES),
    lambda inner: wrap(["ul", "ol"], inner, "<li>{}</li>") | wrap(["blockquote", "div", "form"], inner),
    max_leaves=5,
)


def squeezed(page: str) -> str:
    tree = parse(page)
    return re.sub(r"\s+", "", VisibleNodes(tree).plain_text(tree.body_at))


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(BLOCKS, max_size=4).map("".join))
def test_the_text_of_a_page_survives_the_way_there_and_back(body):
    assert squeezed(READER.render(write(body))) == squeezed(body)


@settings(deadline=None)
@given(st.lists(BLOCKS, max_size=4).map("".join))
@example("<p>a *</p>")
@example("<p>a &lt;</p>")
@example("<ul><li>R&amp;D</ul>")
def test_white_space_that_browsers_do_not_show_does_not_change_the_text(body):
    spaced = re.sub(r"(</?(?:p|h2|ul|ol|li|blockquote|div|form)>)", r"\n  \1\n\t", re.sub(" +", "\n  ", body))
    assert write(spaced) == write(body)


@settings(deadline=None)
@given(st.text() | st.binary())
def test_every_html_has_a_markdown(anything):
    assert isinstance(write_markdown(anything, URL), str)


@pytest.mark.parametrize(
    "part",
    ["<div>", "<b>", "<blockquote>x", "<ul><li>", "<table><tr><td>", "<a href=x><p>", "<details><summary>", "<sup>"],
)
def test_nesting_beyond_all_reason_is_text(part):
    written = write(part * 5_000 + "the end")
    assert "the end" in written
    assert len(written) < 300_000


def test_the_signs_of_a_heading_take_time_in_proportion_to_their_number():
    written = write("<h2>" + "#" * 1_000_000 + "x</h2><h2>C ##</h2>")  # with the square of it, more than an hour
    assert written == "## " + "#" * 1_000_000 + "x\n\n## C \\##\n"


def test_spans_do_not_make_a_small_page_large():
    page = "<table><tr>" + "<td colspan=1000 rowspan=1000>x" * 500 + "<tr>" * 5_000 + "</table>"
    assert len(write(page)) < 300_000


@pytest.mark.skipif(not PAGES.is_dir(), reason="the pages to try it on are not beside the project")
def test_a_saved_encyclopedia_page_is_read_back_with_its_structure():
    written = write_markdown((PAGES / "wiki.html").read_bytes(), "https://en.wikipedia.org/wiki/Rust")
    back = READER.render(written)
    assert "# Rust (programming language)" in written.splitlines()
    page = parse((PAGES / "wiki.html").read_bytes())
    in_navigation = set(page.select("nav h2"))
    assert back.count("<h2>") == len(set(page.select("h2")) - in_navigation) + len(["Navigation", "Forms"])
    assert written.index("# Rust (programming language)") == 0
    assert back.count("<table>") == back.count("</table>") >= 2
    assert "```rust\nfn main()" in written


@pytest.mark.parametrize("url", ["http://[", "http://[::1", "//[", "http://x:99999/", "javascript:1", ""])
def test_an_address_that_is_none_raises_nothing(url):
    body = "<base href='http://['><h1>Tea</h1><a href=/x>Buy</a><form action='//['><input name=a></form>"
    assert "# Tea" in write(body, url)
    assert "Buy" in write("<a href='http://['>Buy</a><img src='//[' alt=x>", url)


def test_an_item_of_a_list_that_is_a_control_is_written_as_one():
    tabs = "<ul role=tablist><li role=tab tabindex=0>Overview</li><li role=tab aria-disabled=true>Reviews</li></ul>"
    menu = "<ul role=menu><li role=menuitem>Open</li><li role=menuitemcheckbox aria-checked=true>Wrap lines</li></ul>"
    assert write(tabs) == "- [button: Overview]\n- [button: Reviews (disabled)]\n"
    assert write(menu) == "- [button: Open]\n- [x] Wrap lines\n"
    assert write("<ul><li role=tab><a href='/x'>Overview</a></li></ul>") == "- [Overview](https://shop.example/x)\n"


def test_a_bar_or_a_slider_has_the_value_that_it_shows():
    assert write("<p>Done: <progress value=3 max=10>30%</progress></p>") == "Done: 3 of 10\n"
    assert write("<p>Full: <meter value=.5>half</meter>.</p>") == "Full: .5 of 1.\n"
    assert write("<p><meter value=.6></meter><output>42</output></p>") == ".6 of 1 42\n"
    assert write("<p>Busy <progress>wait</progress></p>") == "Busy\n"
    assert write("<p>Bad <progress value=soon>soon</progress></p>") == "Bad\n"
    assert write("<div role=slider aria-valuenow=3 aria-label=Guests></div>") == "[text field “Guests”: “3”]\n"
    assert "3 of 10" in compile_som("<p>Done: <progress value=3 max=10>30%</progress></p>", URL).dump().decode()


def test_a_picture_that_is_drawn_with_text_is_written_as_its_name():
    stars = "<span role=img aria-label='4.5 out of 5 stars'>★★★★☆</span>"
    assert write(f"<p>Rated {stars}(12)</p>") == "Rated 4.5 out of 5 stars (12)\n"
    assert write("<div role=img aria-label='Sold out'><i></i></div>") == "Sold out\n"
    assert write("<div role=img>x</div>") == "x\n"


def test_a_link_of_a_picture_has_its_own_name_too():
    picture = "<img src=/logo.png alt=Logo>"
    named = "[Slide 3 ![Logo](https://shop.example/logo.png)](#s3)\n"
    assert write(f"<a href=#s3 aria-label='Slide 3'>{picture}</a>") == named
    in_block = "[Slide 3](#s3)\n\n![Logo](https://shop.example/logo.png)\n"
    assert write(f"<a href=#s3 aria-label='Slide 3'><div>{picture}</div></a>") == in_block
    assert write(f"<a href=#s3 aria-label=Logo>{picture}</a>").startswith("[![Logo]")
    assert "Slide 3" not in write(f"<a href=#s3 aria-label='Slide 3'>{picture}</a> <a href=#s3>Go</a>")
    assert write(f"<a href=#s3 aria-label='#s3'>{picture}</a>").startswith("[![Logo]")


def test_a_field_says_which_values_its_list_suggests():
    options = "<option value=DE>Germany<option>France<option value=' '>"
    field = f"<input name=country list=known><datalist id=known>{options}</datalist>"
    assert write(field) == "[text field `country`, suggested `DE` `France`]\n"
    assert write("<input name=country list=known><ul id=known><li>x</ul>") == "[text field `country`]\n\n- x\n"
    many = "".join(f"<option>place {number}" for number in range(100))
    assert write(f"<input name=c list=l><datalist id=l>{many}</datalist>").count("place") == 40
