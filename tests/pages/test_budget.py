"""Budgets: what is kept, what is left out, and that the document says so."""

import re

import pytest

from awp_publish.pages import Budget, compile_som
from awp_publish.pages.cutting import share_evenly
from awp_publish.pages.shelves import normalise_address
from awp_publish.pages.shortening import shorten_text
from tests.pages.conftest import FIXTURES, NEEDS_FIXTURES, read_json, read_page
from tests.pages.reading import URL, Document, compiled, elements_of

CONTROLS = {"button", "text_input", "textarea", "select", "checkbox", "radio", "details"}
LONG = (
    "<nav>" + "".join(f"<a href=/n{number}>Link {number}</a> " for number in range(60)) + "</nav><main>"
    + "".join(
        f"<h2>Part {number}</h2><p>{'Some words of part. ' * 30}</p><p><a href=/p{number}>More</a> <a href=/p{number}#"
        f"x>more</a></p><form action=/{number}><input name=q{number}><select><option>a<option>b</select>"
        "<button>Go</button></form>"
        f"<ul>{''.join(f'<li>Item {item} of {number}</li>' for item in range(30))}</ul>"
        f"<table><tr><th>A<th>B{''.join(f'<tr><td>{row}<td>{number}' for row in range(30))}</table>"
        for number in range(90)
    )
    + "</main><footer><p>© 2026</p></footer>"
)  # fmt: skip


def counted(document: Document) -> dict[str, int]:
    roles = [element["role"] for element in elements_of(document)]
    return {role: roles.count(role) for role in set(roles)}


def text_of(document: Document) -> str:
    texts = []
    for element in elements_of(document):
        attrs = element.get("attrs", {})
        texts += [element.get("text", ""), *(item["text"] for item in attrs.get("items", []))]
        texts += [cell for row in [attrs.get("headers", []), *attrs.get("rows", [])] for cell in row]
    return " ".join(texts)


def test_headings_and_controls_are_kept_while_they_leave_room_for_text():
    fields = "".join(f"<h2>Part {n}</h2><label>Field {n} <input name=q{n}></label>" for n in range(20))
    html = f"<main><form>{fields}<button>Send</button></form>{f'<p>{WORDS}</p>' * 30}</main>"
    for budget in (Budget.DEFAULT, Budget.TIGHT):
        kept = counted(compiled(html, budget))
        assert [kept[role] for role in ("heading", "text_input", "button")] == [20, 20, 1]
        assert kept["paragraph"] > 25


WORDS = "All of these words belong to the article, and a reader wants them more than anything else. " * 4
ARTICLE = f"<main><h1>Tea</h1>{f'<p>{WORDS}</p>' * 30}</main>"


def test_the_article_is_kept_whatever_is_around_it():
    navigation = "".join(f"<li><a href=/section/{n}>Section number {n}</a></li>" for n in range(300))
    buttons = "".join(f"<div><button class=save data-n={n}>Save</button></div>" for n in range(400))
    html = f"<header>{buttons}</header><nav><ul>{navigation}</ul></nav>{ARTICLE}<footer>{navigation}</footer>"
    document = compiled(html, Budget.TIGHT)
    assert document["meta"]["som_bytes"] <= Budget.TIGHT.value
    assert text_of(document).count("belong to the article") == 120
    assert 3 <= counted(document)["button"] < 100, "what is left goes to what says the same"


def test_the_most_descriptive_of_several_links_to_one_address_is_kept():
    story = (
        f"<tr class='{'a long name of a class ' * 20}'><td>"
        "<a href=https://ex.example/{0}>A story that is number {0} of them all</a><tr><td>"
        "<a href=item?id={0}>{0} hours ago</a> <a href=/hide?id={0}&x={0}>hide</a> <a href=item?id={0}>{0} comments</a>"
    )
    html = f"<table>{''.join(story.format(n) for n in range(100, 160))}</table>"
    document = compiled(html, Budget.TIGHT)
    said = [element["text"] for element in elements_of(document) if element["role"] == "link"]
    assert len([one for one in said if one.startswith("A story")]) == 60
    assert len([one for one in said if one.endswith("comments")]) > 50
    assert said.index("100 comments") < said.index("A story that is number 101 of them all"), "in their own order"


@pytest.mark.parametrize("budget", [Budget.DEFAULT, Budget.TIGHT])
def test_room_that_one_part_does_not_need_is_handed_on(budget):
    for html in (
        "<nav>" + "".join(f"<a href=/n{n}>Link {n}</a> " for n in range(2_000)) + "</nav>",
        "<main>" + f"<p>{WORDS}</p>" * 400 + "</main>",
        "<main>" + "".join(f"<button name=b{n}>Button {n}</button>" for n in range(2_000)) + "</main>",
        LONG,
    ):
        size = compiled(html, budget)["meta"]["som_bytes"]
        assert 0.85 * min(budget.value, len(html)) < size <= min(budget.value, len(html))


@pytest.mark.parametrize("budget", [Budget.DEFAULT, Budget.TIGHT])
def test_a_document_is_not_larger_than_its_page(budget):
    for one in (
        "<p>x",
        "<li><a href=/{0}>{0}</a>",
        "<input name=n{0}>",
        "<h2>{0}</h2>",
        "<hr>",
        "<td>{0}<td><b>{0}</b><tr>",
    ):
        html = "<main>" + "".join(one.format(n) for n in range(500))
        assert len(html) < 2_048 or compiled(html, budget)["meta"]["som_bytes"] <= len(html), one


def test_the_default_budget_holds_and_is_used():
    size = compiled(LONG)["meta"]["som_bytes"]
    assert 0.85 * Budget.DEFAULT.value < size <= Budget.DEFAULT.value


def test_a_document_that_is_cut_says_what_is_missing():
    whole, cut = compiled(LONG, Budget.FULL), compiled(LONG)
    said = " ".join(element["text"] for element in elements_of(cut) if element["id"].startswith("e_summary_"))
    missing = counted(whole)["link"] - counted(cut)["link"]
    assert sum(int(count) for count in re.findall(r"(\d+) (?:duplicate|more) links", said)) == missing
    assert "texts shortened" in said
    assert [element for element in elements_of(whole) if element["id"].startswith("e_summary_")] == []


@pytest.mark.parametrize("budget", [Budget.DEFAULT, Budget.TIGHT])
def test_a_small_page_loses_nothing(budget):
    html = (
        "<main>"
        + f"<p>{'long text ' * 100}</p>"
        + "<ul>"
        + "<li>x y</li>" * 40
        + "</ul><a href=/a>a</a><a href=/b>b</a></main>"
    )
    assert compiled(html, budget) == compiled(html, Budget.FULL)


FORM = (
    f"<title>Reply</title><main><h1>Reply</h1><p>{'Say something kind. ' * 8}</p>"
    "<form action=/reply method=post><fieldset class=fields>"
    + "".join(
        f"<button type=button class='button small' id=b{n} title='Makes the text bold, number {n}'>Bold {n}</button>"
        for n in range(8)
    )
    + "<label for=subject>Subject</label><input class='input small' id=subject name=subject maxlength=124 tabindex=2>"
    "<label for=message>Message</label><textarea class='input large' id=message name=message tabindex=4></textarea>"
    + "".join(
        f"<label for=o{n}>Option {n}</label><input type=checkbox class=small id=o{n} name=option{n}>" for n in range(4)
    )
    + "<input type=hidden name=topic value=7><input type=hidden name=_token value=x>"
    "<input type=submit class='button large' name=preview value=Preview accesskey=p>"
    "<input type=submit class='button large' name=post value=Submit accesskey=s></fieldset></form>"
    "<a class='button small' href=/help title='The help' id=help aria-label='The help'>?</a></main>"
)


def as_long_as(size: int, html: str) -> str:
    return f"{html}<!--{'x' * (size - len(html) - 7)}-->"


def test_a_page_that_fits_without_a_limit_is_not_cut_under_one():
    regions = "<nav><a href=/>Home</a></nav><footer><p>© 2026</p></footer>" * 5
    for html in (FORM, f"<meta charset=utf-8>{FORM}{regions}"):
        page = as_long_as(compiled(html, Budget.FULL)["meta"]["som_bytes"] + 50, html)
        assert compiled(page) == compiled(page, Budget.TIGHT) == compiled(page, Budget.FULL)


def test_a_page_that_nearly_fits_is_condensed_before_anything_is_left_out():
    whole = compiled(FORM, Budget.FULL)
    page = as_long_as(int(whole["meta"]["som_bytes"] * 0.75), FORM)
    document = compiled(page)
    assert document["meta"]["som_bytes"] <= len(page)
    unnamed = {element["id"] for element in elements_of(whole) if element["role"] == "group"}
    assert [element["id"] for element in elements_of(document)] == [
        element["id"] for element in elements_of(whole) if element["id"] not in unnamed
    ]
    subject = next(element for element in elements_of(document) if element.get("label") == "Subject")
    assert subject["attrs"] == {"input_type": "text", "name": "subject", "maxlength": 124}
    assert [element["label"] for element in elements_of(document) if element["role"] == "link"] == ["The help"], (
        "a sign says nothing"
    )


def test_a_small_budget_keeps_the_fields_of_a_form_before_all_else():
    page = as_long_as(int(compiled(FORM, Budget.FULL)["meta"]["som_bytes"] * 0.62), FORM)
    document = compiled(page)
    names = {element["attrs"].get("name", "") for element in elements_of(document) if "attrs" in element}
    assert {"subject", "message", *(f"option{n}" for n in range(4)), "topic", "_token", "preview", "post"} <= names
    assert 0.9 * len(page) < document["meta"]["som_bytes"] <= len(page), "room that is left is used"


def test_the_reported_size_is_always_that_of_the_document():
    head = "<meta charset=utf-8><meta name=viewport content=width=device-width><meta name=description content=Teas>"
    whole = compiled(head + FORM, Budget.FULL)["meta"]["som_bytes"]
    for percent in range(50, 105, 5):
        page = as_long_as(whole * percent // 100, head + FORM)
        som = compile_som(page, URL)
        assert som.document["meta"]["som_bytes"] == len(som.dump()) <= len(page)
        assert som.document["structured_data"]["meta"]["description"] == "Teas"


def test_a_tight_budget_names_a_long_hidden_value_without_its_text():
    html = (
        "<form action=/orders method=post><input type=hidden name=__VIEWSTATE value='"
        + "dDwtMTIz" * 200
        + "'><input name=q class='a long name of a class' id=q>"
        + "<p>Some text.</p>" * 30
        + "<button name=go id=go>Go</button></form>"
    )
    document = compiled(html)
    assert document["meta"]["som_bytes"] <= len(html) < compiled(html, Budget.FULL)["meta"]["som_bytes"]
    (state,) = [element for element in elements_of(document) if element.get("attrs", {}).get("name") == "__VIEWSTATE"]
    assert state["attrs"]["description"] == "1600 characters: take them from the page's own form."


def test_links_that_say_the_same_are_said_once_in_a_region():
    document = compiled(
        "<nav><a href=/a>A</a><a href=/a>A</a><a href=/a>B</a><a href=#>A</a><a href=#>A</a></nav><p><a href=/a>A</a>"
    )
    assert [[element.get("text") for element in region["elements"]] for region in document["regions"]] == [
        ["A", "B", "A", "A", "[1 duplicate links dropped, ~0 chars]"],
        ["A", "A"],
    ]


def test_structured_data_does_not_take_the_room_of_the_page():
    blocks = "".join(f'<script type="application/ld+json">{{"a": "{"x" * 9_000}{n}"}}</script>' for n in range(20))
    document = compiled(f"<meta name=author content=A>{blocks}<p>{'text ' * 200}</p>")
    assert document["structured_data"] == {"meta": {"author": "A"}}
    assert "20 more blocks of structured data dropped" in elements_of(document)[-1]["text"]
    assert len(compiled(blocks + "<p>x", Budget.FULL)["structured_data"]["json_ld"]) == 20


ADDRESSES = {"/A/#x": "/a", "HTTP://X.example/": "http://x.example", "#top": "#top", " /b ": "/b", "": ""}


@pytest.mark.parametrize(("href", "same"), ADDRESSES.items())
def test_links_to_the_same_page_have_the_same_normalised_address(href, same):
    assert normalise_address(href) == same


def test_texts_are_cut_after_sentences_or_words():
    assert shorten_text("One two. Three four five", 15) == "One two."
    assert shorten_text("One two three four", 12) == "One two..."
    assert shorten_text("abcdefghijkl", 8) == "abcde..."
    assert shorten_text("short", 5) == "short"


def test_room_is_shared_so_that_small_needs_are_met():
    assert share_evenly([1, 2, 50, 60], 43) == 20
    assert share_evenly([1, 2, 3], 10) == 3
    assert share_evenly([], 10) == 0
    assert share_evenly([5, 5], -1) == 0


@NEEDS_FIXTURES
def test_the_saved_article_keeps_three_times_the_text_of_the_reference_in_fewer_bytes():
    golden, page = read_json("goldens/pages-wiki.som.json"), read_page("pages/wiki.html")
    som = compile_som(page, "https://en.wikipedia.org/wiki/Rust_(programming_language)")
    assert len(som.dump()) <= golden["meta"]["som_bytes"]
    assert len(text_of(som.document)) >= 3 * len(text_of(golden))
    full = compile_som(page, golden["url"], Budget.FULL)
    assert len(full.dump()) <= 0.6 * len(page)
    for role in {*CONTROLS, "heading"} & counted(full.document).keys():
        assert counted(som.document)[role] == counted(full.document)[role]


@NEEDS_FIXTURES
def test_full_fidelity_has_every_visible_link_and_word_of_the_saved_article():
    from awp_publish.pages import parse
    from awp_publish.pages.visibility import Visibility, text_of as visible_text

    assert FIXTURES.is_dir()
    tree = parse(read_page("pages/wiki.html"))
    document = compile_som(tree, "https://en.wikipedia.org/", Budget.FULL).document
    visibility = Visibility(tree)
    words = set(re.findall(r"\w+", visible_text(visibility, tree.body_at)))
    assert words <= set(re.findall(r"\w+", text_of(document)))
    shown = {
        node.attributes["href"]
        for node in tree.tagged("a")
        if "href" in node.attributes and not any(visibility.hides(above.at) for above in _above(node))
    }
    assert shown == {element["attrs"]["href"] for element in elements_of(document) if element["role"] == "link"}


def _above(node):
    while node.tag != "body":
        yield node
        node = node.parent


def test_room_that_regions_do_not_need_goes_to_texts_that_were_shortened():
    regions = "".join(f"<nav aria-label=n{n}><a href=/{n}>link {n}</a></nav>" for n in range(9))
    texts = "".join(f"<p>{n} {'and so it goes on and on ' * (40 if n % 2 else 9)}</p>" for n in range(48))
    document = compiled(f"{regions}<main><h1>Tea</h1>{texts}</main>", Budget.TIGHT)
    assert 0.96 * Budget.TIGHT.value < document["meta"]["som_bytes"] <= Budget.TIGHT.value


def test_the_text_of_a_page_that_is_one_form_is_its_main_content():
    navigation = "".join(f"<a href=/section/{n}/index>A section named {n}</a>" for n in range(300))
    texts = "".join(f"<p>{n} {'so it goes on and on ' * 9}</p>" for n in range(60))
    page = f"<nav>{navigation}</nav><form id=aspnetForm method=post><h1>Tea</h1>{texts}<input name=q></form>"
    kept = [element for element in elements_of(compiled(page, Budget.TIGHT)) if "so it goes" in element.get("text", "")]
    assert len(kept) == 60


def test_a_tight_budget_keeps_a_visible_description_as_text_only():
    def fields(hidden: str) -> str:
        return "<h1>Settings</h1><form>" + "".join(
            f"<label for=i{n}>Field {n}</label><input id=i{n} name=n{n} aria-describedby=h{n}>"
            f"<p id=h{n} {hidden}>What field {n} is for is said in so many words that there is hardly room for it.</p>"
            for n in range(90)
        )

    seen = compiled(fields(""), Budget.TIGHT)
    inputs = [element for element in elements_of(seen) if element["role"] == "text_input"]
    assert len(inputs) > 50
    assert not any("description" in one["attrs"] or "aria" in one["attrs"] for one in inputs)
    assert sum("What field" in element.get("text", "") for element in elements_of(seen)) > 30
    (first, *_) = [
        element for element in elements_of(compiled(fields("hidden"), Budget.TIGHT)) if element["role"] == "text_input"
    ]
    assert first["attrs"]["description"].startswith("What field 0")


def test_links_that_differ_are_kept_before_many_that_say_the_same():
    stories = "".join(
        f"<tr><td><a href=/story/{n}>A story of some length, number {n}</a><tr><td><a href=/user/{n}>user{n}</a> "
        f"<a href=/item/{n}>{n} hours ago</a> | <a href=/hide/{n}>hide</a> | <a href=/flag/{n}>flag</a> | "
        f"<a href=/item/{n}>{n} comments</a>"
        for n in range(2, 132)
    )
    links = [
        element["text"] for element in elements_of(compiled(f"<table>{stories}</table>")) if element["role"] == "link"
    ]
    assert sum("story" in text for text in links) == 130
    assert sum("comments" in text for text in links) > 100
    assert sum(text in {"hide", "flag"} for text in links) < 20


def test_elements_without_text_do_not_change_the_count_of_omitted_ones():
    item = "<p>Words of a paragraph that fill some room.</p><details><p>More.</p></details>"
    html = f"<main>{item * 2_000}</main>"
    document = compile_som(html, "https://shop.example/", Budget.TIGHT).document
    said = [element["text"] for element in elements_of(document) if element["id"].startswith("e_summary")]
    assert len(said) == 1
    (left_out,) = re.findall(r"~(-?\d+) chars", said[0])
    assert int(left_out) > 50_000
