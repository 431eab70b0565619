"""What one acts with stays in the main content: forms, cards, actions of a post, the question of a thread."""

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
