"""What one acts with stays in the main content: forms, cards, actions of a post, the question of a thread."""

from awp_publish.pages import compile_som
from awp_publish.pages.markdown import write_content, write_markdown

URL = "https://shop.example/page"
SENTENCE = "The boat left the harbour at six, and nobody on board had slept, because of the storm. "
STORY = "".join(f"<p>Part {number}: {SENTENCE * 2}</p>" for number in range(6))
LINKS = "".join(f"<li><a href=/{number}>Another story of the week, number {number}</a></li>" for number in range(30))
NAVIGATION = f"<nav><ul>{LINKS}</ul></nav>"
NEWS = "https://paper.example/news/why-the-boat-left"
PUBLISHED = (
    f"<link rel=canonical href='{NEWS}'><meta property=og:type content=article>"
    "<meta property=article:published_time content=2026-11-28>"
)
ICON = "<i class=icon></i>"


def test_a_form_with_several_fields_stays_in_an_article_and_a_newsletter_does_not() -> None:
    fields = "".join(f"<input name={name} placeholder={name}>" for name in ("name", "company", "email", "phone"))
    form = f"<form method=post action=/ask>{fields}<button>Ask us</button></form>"
    newsletter = "<form method=post action=/news><input name=mail placeholder=mail><button>Join</button></form>"
    for html, kept in ((form, True), (newsletter, False)):
        page = f"{PUBLISHED}<title>Storm</title>{NAVIGATION}<main><h1>Storm</h1>{STORY}{html}{STORY}</main>"
        written = write_content(page, NEWS)
        assert "Part 5" in written
        assert "Another story" not in written
        assert ("[button:" in written) is kept


def test_a_list_without_prices_after_an_offer_is_a_part_of_it() -> None:
    cards = "".join(
        f"<div class=slide><a href=/t/{number}><h3>Teacher {number}</h3><figure style='background:url(x)'></figure></a>"
        "</div>"
        for number in range(12)
    )
    offer = "<p>$ 900</p><form method=post><button>Book a place</button></form>"
    main = f"<h1>Course</h1>{offer}<p>{SENTENCE}</p><div class=slides>{cards}</div><p>{SENTENCE}</p>"
    page = f"{NAVIGATION}<main>{main}</main>"
    written = write_content(page, URL)
    assert all(f"Teacher {number}" in written for number in range(12))
    assert "Another story" not in written


def test_the_question_of_a_thread_stays_with_its_answers_if_the_heading_is_before_the_main_landmark() -> None:
    answers = "".join(f"<div class=answer>{STORY}<div><a href=/u/{number}>Ada</a></div></div>" for number in range(4))
    question = f"<div class=question><p>{SENTENCE}</p><p>Why did it leave? {SENTENCE}</p><a href=/u/9>Emma</a></div>"
    thread = f"<main><section>{question}</section><div id=answers><h2>4 answers</h2>{answers}</div></main>"
    written = write_content(f"{NAVIGATION}<div><h1>Why did the boat leave?</h1></div>{thread}", URL)
    assert "Why did it leave?" in written
    assert "[Emma]" in written


def test_named_symbols_that_act_on_a_post_stay_and_those_that_share_it_do_not() -> None:
    def post(number: int) -> str:
        acts = (
            f"<a href=/quote/{number} aria-label='Quote {number}'>{ICON}</a><a href=/e/{number} title=Edit>{ICON}</a>"
        )
        share = f"<a href=https://x.example/share?p={number} aria-label='Chirp {number}'>{ICON}</a>"
        return f"<div class=post><p>{SENTENCE * 4}</p><div>{acts}</div><div>{share}</div></div>"

    posts = "".join(map(post, range(6)))
    written = write_content(f"{NAVIGATION}<main><h1>Storm</h1><div>{posts}</div></main>", URL)
    assert all(f"[Quote {number}](https://shop.example/quote/{number})" in written for number in range(6))
    assert "Chirp" not in written


def test_the_first_block_of_a_button_around_blocks_is_the_button() -> None:
    written = write_markdown("<div role=button aria-expanded=true><h3>Is it safe?</h3><p>Click.</p></div>", URL)
    assert written == "### [button: Is it safe? (expanded)]\n\nClick.\n"
    items = "<ul><li role=button><h3>Tea [new]</h3></li><li role=button aria-label=Coffee><h3></h3></li></ul>"
    assert write_markdown(items, URL) == "- ### [button: Tea \\[new\\]]\n- [button: Coffee]\n"
    around = "<div role=button><h3><a href=/tea>Tea</a></h3></div>"
    assert write_markdown(around, URL) == "### [Tea](https://shop.example/tea)\n"


def test_parts_of_a_grid_that_are_spans_stand_apart() -> None:
    grid = (
        "<div role=grid><div role=row><span role=columnheader>Name</span><span role=columnheader>Age</span></div></div>"
    )
    assert write_markdown(grid, URL) == "Name Age\n"


SENT = {
    "<button>Go</button>": "[button: Go, `POST https://shop.example/x`, `id`: `1`]",
    "<button formaction=/y>Go</button>": "[button: Go, `POST https://shop.example/y`, `id`: `1`]",
    "<button formmethod=get>Go</button>": "[button: Go, `GET https://shop.example/x`, `id`: `1`]",
    "<button formmethod=dialog>Go</button>": "[button: Go]",
    "<input name=q><button formmethod=get>Go</button>": "[button: Go, `GET https://shop.example/x`]",
    "<input name=q><button formenctype=text/plain>Go</button>": (
        "[button: Go, `POST https://shop.example/x` as `text/plain`]"
    ),
    "<input name=q><button formmethod=dialog>Go</button>": "[button: Go, sends nothing]",
    "<input name=q></form><button form=f>Go</button>": "[button: Go, of the form `POST https://shop.example/x`]",
    "<input name=q></form><button form=f type=button>Go</button>": "[button: Go]",
}


def test_a_button_says_where_it_sends_its_form_itself() -> None:
    for inner, wanted in SENT.items():
        form = f"<form id=f method=post action=/x><input type=hidden name=id value=1>{inner}</form>"
        assert wanted in write_markdown(form, URL), inner


def test_a_form_that_only_closes_its_dialog_has_no_address() -> None:
    form = "<form method=dialog>{}<button>Close</button></form>"
    assert write_markdown(form.format(""), URL) == "[button: Close]\n"
    assert write_markdown(form.format("<input name=a>"), URL) == "[text field `a`] [button: Close]\n"


RUNS = {
    "<span>$999</span><span>$1,099</span>": "$999 $1,099",
    "<b>Ada</b><span>10:02</span>": "**Ada** 10:02",
    "<span>48 results</span><label>Sort</label>": "48 results Sort",
    "<span>Ada</span><a href=/b>Bob</a>": "Ada [Bob](https://shop.example/b)",
    "<a href=#a>A</a><a href=#b>B</a>": "[A](#a) [B](#b)",
    "<span>$</span><span>4</span><span>.99</span>": "$4.99",
    "un<b>Be</b>lievable": "un*Be*lievable".replace("*", "**"),
    "<b>T</b>he": "**T**he",
    "<span>a</span><span>b</span>": "ab",
    "<span>AB</span><span>C</span>": "ABC",
    "<span>a</span>": "a",
    "<span>a</span><span></span>": "a",
}


def test_elements_beside_each_other_that_are_no_word_stand_apart() -> None:
    for inner, wanted in RUNS.items():
        assert write_markdown(f"<p>{inner}</p>", URL) == f"{wanted}\n", inner


def test_texts_of_som_stand_apart_but_in_names() -> None:
    inner = "<b>Ada</b><span>10:02</span>"
    page = f"<p>{inner}</p><h2>{inner}</h2><a href=/>{inner}</a><ul><li>{inner}</ul>"
    (region,) = compile_som(page, URL).document["regions"]
    texts = [
        element.get("text", element["attrs"].get("items") if "attrs" in element else None)
        for element in region["elements"]
    ]
    assert texts == ["Ada 10:02", "Ada10:02", "Ada10:02", [{"text": "Ada 10:02"}]]


def test_a_link_says_that_it_is_the_current_one_or_leads_nowhere_now() -> None:
    links = {
        "<a href=/ aria-current=page>Home</a>": "[Home (current)](https://shop.example/)",
        "<a href=/ aria-current=false>Home</a>": "[Home](https://shop.example/)",
        "<a href=#a role=tab aria-selected=true>Care</a>": "[Care (selected)](#a)",
        "<a href=#a role=tab aria-selected=true><div>Care</div></a>": "[Care (selected)](#a)",
        "<a href=/r aria-disabled=true title=Red></a>": "[Red (disabled)](https://shop.example/r)",
        "<a href=/ aria-current=page><div><a></a></div></a><a href=/b><div>B</div></a>": "[B](https://shop.example/b)",
    }
    for html, wanted in links.items():
        assert wanted in write_markdown(html, URL), html
