"""The main content: the mass of text and landmarks decide, never the words of a class."""

import re

import pytest

from awp_publish.pages import Budget, parse
from awp_publish.pages.content import find_content
from awp_publish.pages.markdown import write_content, write_markdown
from awp_publish.pages.visibility import Visibility
from tests.pages.reading import URL, compiled

SENTENCE = "The boat left the harbour at six, and nobody on board had slept, because of the storm. "
STORY = "".join(f"<p>Part {number}: {SENTENCE * 2}</p>" for number in range(6))
LINKS = "".join(f"<li><a href=/{number}>Another story of the week, number {number}</a></li>" for number in range(8))
CHROME = f"<header><a href=/>Paper</a></header><nav><ul>{LINKS}</ul></nav>"
FOOTER = "<footer><p>Copyright. Imprint, privacy, terms, and what else a footer has to say.</p></footer>"


NEWS = "https://paper.example/news/why-the-boat-left"
"""The address of an article, with a part of its title."""


def whole(html: str, url: str = URL) -> dict[str, list[str]]:
    """The texts of each region, however little room a small page has."""
    regions = compiled(html, Budget.FULL, url)["regions"]
    return {
        region["id"]: [element.get("text") or element.get("label", "") for element in region["elements"]]
        for region in regions
    }


def main_of(html: str, url: str = URL) -> str:
    return " ".join(text for name, texts in whole(html, url).items() if name.startswith("r_main") for text in texts)


@pytest.mark.parametrize(
    "names", ["article-header", "has-sidebar", "lm-grid--with-right-rail", "footer-fixed", "nav-open menu", "search"]
)
@pytest.mark.parametrize(
    "wrap", ["<div class='{}'>{}</div>", "<article class='{}'>{}</article>", "<div id='{}'>{}</div>"]
)
def test_an_article_is_main_whatever_its_classes_say(names, wrap):
    story = wrap.format(names, f"<h1>Storm</h1>{STORY}")
    main = main_of(f"<body class='{names}'>{CHROME}<div class='{names}'>{story}</div>{FOOTER}")
    assert all(f"Part {number}:" in main for number in range(6))
    assert "Another story" not in main
    assert "Imprint" not in main


def test_the_parts_of_an_article_in_blocks_of_their_own_stay_together():
    parts = "".join(f"<section><div><p>Part {number}: {SENTENCE * 2}</p></div></section>" for number in range(6))
    main = main_of(f"{CHROME}<main><h1>Storm</h1>{parts}</main>{FOOTER}")
    assert all(f"Part {number}:" in main for number in range(6))


PREVIEW = "<meta property=og:type content=article>"
PUBLISHED = f"{PREVIEW}<meta property=article:published_time content=2026-11-28>"


def test_blocks_beside_an_article_in_main_are_not_in_its_region():
    comments = "".join(f"<li><div><p>Comment {number}: I was there.</p></div></li>" for number in range(3))
    more = f"<div><h2>More</h2><ul>{LINKS}</ul></div>"
    html = f"{PREVIEW}{CHROME}<main><article><h1>Storm</h1>{STORY}{more}</article><ol>{comments}</ol></main>{FOOTER}"
    main = main_of(html, NEWS)
    assert "Part 5:" in main
    assert "Another story" not in main
    assert "Comment 1" not in main
    elsewhere = str([region for region in compiled(html, Budget.FULL, NEWS)["regions"] if region["id"] != "r_main"])
    assert "Comment 1" in elsewhere
    assert "Another story of the week, number 3" in elsewhere


ICON = "<svg><path d='M0 0'/></svg>"
BESIDE = {
    "links of symbols that share the page": f"<div>Share <a href=//x.example/share aria-label=Chirp>{ICON}</a></div>",
    "a heading of nothing but links": f"<h2>Chirp also</h2><ul>{LINKS}</ul>",
    "a note about who wrote it": "<div class=bio><h2>Chirp</h2><p>She writes about boats, and about the sea.</p></div>",
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize(("says", "date"), [(PUBLISHED, ""), (PREVIEW, "<time>28 November</time>")])
def test_appendices_of_an_article_are_not_in_its_markdown(says, date, beside):
    article = f"<article><h1>Storm</h1>{date}<div class=text>{STORY}</div>{beside}</article>"
    html = f"{says}{CHROME}<main>{article}</main>{FOOTER}"
    written = write_content(html, NEWS)
    assert "Part 5:" in written
    assert "Chirp" not in written
    assert "Chirp" in write_markdown(html, NEWS)


def test_the_headings_and_the_parts_of_an_article_stay_whatever_is_in_its_sections():
    anchor = f"<a href=#top aria-label=Anchor>{ICON}</a>"
    parts = "".join(
        f"<div><h2>Chapter {number}</h2>{anchor}</div><p>Part {number}: {SENTENCE * 2}</p>" for number in range(6)
    )
    written = write_content(f"{CHROME}<main><h1>Storm</h1>{parts}</main>{FOOTER}", "https://paper.example/storm")
    assert all(f"## Chapter {number}" in written for number in range(6))


@pytest.mark.parametrize(
    "says",
    [
        PREVIEW,
        "",
        f"{PREVIEW}<meta name=msvalidate.01 content=1><meta property=og:updated_time content=2026-11-28>",
        f"{PREVIEW}<body><p><meta itemprop=datePublished content=2026-11-28></p>",
        '<script type="application/ld+json">{"@type": "TechArticle"}</script>',
    ],
)
def test_a_page_that_is_not_said_to_be_an_article_keeps_the_links_and_forms_among_its_texts(says):
    form = "<form method=post action=/mail><input type=email name=m><button>Go</button></form>"
    act = f"<div><a href=/try>Try it</a></div>{form}"
    parts = "".join(f"<div><h2>Chapter {number}</h2><p>{SENTENCE * 2}</p>{act}</div>" for number in range(6))
    written = write_content(f"{says}{CHROME}<main><h1>Service</h1>{parts}</main>{FOOTER}", "https://x.example/storm")
    assert written.count("Try it") == 6
    assert written.count("email field `m`") == 6
    assert "Another story" not in written


def test_a_page_of_links_keeps_them_and_loses_its_menus():
    menu = "".join(f"<a href=/menu/{number}>Menu {number}</a>" for number in range(6))
    words = {letter: "".join(f"<li><a href=/{letter}/{n}>Word {letter}{n}</a>" for n in range(9)) for letter in "ABC"}
    groups = "".join(f"<div><h2>Letter {letter}</h2><ul>{items}</ul></div>" for letter, items in words.items())
    html = f"<div><div>{menu}</div><div><h1>Words</h1>{groups}</div><aside>{SENTENCE * 3}</aside></div>"
    written = write_content(html, "https://x.example/words")
    assert all(f"Word {letter}8" in written for letter in "ABC")
    assert "Menu 3" not in written
    assert "The boat" not in written


def test_comments_with_links_of_their_authors_do_not_make_an_article_a_list():
    comments = "".join(
        f"<div class=comment><a href=/u/{number}>Ada</a><p>Comment {number}: {SENTENCE * 3}</p></div>"
        for number in range(20)
    )
    html = f"{CHROME}<main><article><h1>Storm</h1>{STORY}</article><section>{comments}</section></main>{FOOTER}"
    tree = parse(html)
    content = find_content(tree, Visibility(tree))
    assert content.is_article


def test_a_text_beside_links_does_not_take_the_place_of_the_article_around_it():
    parts = "".join(f"<div><div><div><p>Part {number}: {SENTENCE * 4}</p></div></div></div>" for number in range(6))
    related = f"<div><div>{LINKS}</div><div>{f'<p>{SENTENCE}</p>' * 6}</div></div>"
    html = f"{PUBLISHED}<main><article><h1>Storm</h1><div>{parts}{related}</div></article></main>"
    assert "Part 5:" in write_content(html, "https://paper.example/storm")


def test_longer_comments_do_not_take_the_place_of_an_article():
    comments = "".join(f"<div><p>Comment {number}: {SENTENCE * 6}</p></div>" for number in range(9))
    article = f"<article><h1>Storm</h1><div>{STORY}</div></article>"
    written = write_content(f"{PUBLISHED}<main>{article}<div>{comments}</div></main>", NEWS)
    assert "Part 5:" in written
    assert "Comment 1" not in written


def test_a_text_beside_prices_does_not_take_the_place_of_what_is_sold():
    offers = "".join(
        f"<div><span>Edition {number}</span> <b>$ {number}9</b><button>Add</button></div>" for number in range(5)
    )
    written = write_content(f"{CHROME}<main><div>{offers}</div><div>{STORY}</div></main>{FOOTER}", "https://x.example/")
    assert written.count("[button: Add") == 5
    assert "Part 5:" in written


@pytest.mark.parametrize("post", ["<article class=post>{}</article>", "<div class=post>{}</div>"])
def test_the_posts_of_a_thread_stay_together(post):
    posts = "".join(post.format(f"<p>Post {number}: {SENTENCE * 2}</p>") for number in range(5))
    main = main_of(f"{CHROME}<main><h1>Storm</h1><div>{posts}</div></main>{FOOTER}")
    assert all(f"Post {number}:" in main for number in range(5))


KEPT = {
    "who wrote a post, and what answers it": (
        "<div class=post><header><a href=/u/{0}>Ada {0}</a></header><p>Post {0}: {text}</p><footer>"
        "<ul><li><a href=/q/{0}>Quote</a><li><a href=/r/{0}>Chirp</a><li><a href=/l/{0}>Like</a>"
        "<li><a href=/x/{0}>X</a></ul></footer></div>"
    ),
    "links among paragraphs": (
        "<p>Part {0}: {text}</p><ul><li><a href=/a/{0}>Chirp</a><li><a href=/b/{0}>Manual</a>"
        "<li><a href=/c/{0}>Source</a><li><a href=/d/{0}>Mail</a></ul>"
    ),
}


@pytest.mark.parametrize("part", KEPT.values(), ids=KEPT)
def test_menus_in_the_parts_of_a_text_stay_with_them(part):
    parts = "".join(part.format(number, text=SENTENCE * 2) for number in range(5))
    written = write_content(f"{CHROME}<main><h1>Storm</h1><div>{parts}</div></main>{FOOTER}", "https://x.example/")
    assert written.count("[Chirp]") == 5
    assert "Another story" not in written


def test_a_form_that_answers_a_thread_is_kept_after_it():
    posts = "".join(f"<div class=post><p>Post {number}: {SENTENCE * 4}</p></div>" for number in range(5))
    answer = "<form method=post action=/answer><textarea name=text></textarea><button>Answer</button></form>"
    html = f"{CHROME}<div><h1>Storm</h1><div>{posts}</div></div><div>{LINKS}{answer}</div>{FOOTER}"
    written = write_content(html, "https://x.example/storm")
    assert "`POST https://x.example/answer`" in written
    assert "[button: Answer]" in written


def test_the_question_between_the_heading_and_the_answers_belongs_to_them():
    answers = "".join(f"<div><div class=answer><p>Part {number}: {SENTENCE * 9}</p></div></div>" for number in range(6))
    question = f"<div class=question><p>Who knows? {SENTENCE * 2}</p></div>"
    html = f"{CHROME}<div><div><h1>Storm</h1></div><div>{question}<div>{answers}</div></div></div>{FOOTER}"
    written = write_content(html, "https://x.example/storm")
    assert "Who knows?" in written
    assert "Part 5:" in written


def test_a_form_around_an_article_and_links_in_it_do_not_hide_it():
    html = f"<form method=post action=/all><div><div>{STORY}</div><div>{LINKS}</div></div></form>"
    page = f"{PUBLISHED}{CHROME}<main><h1>Storm</h1>{html}</main>{FOOTER}"
    assert "Part 5:" in write_content(page, "https://paper.example/storm")


def test_a_list_with_an_introduction_is_a_list():
    cards = "".join(
        f"<div class=card><h3><a href=/{number}>Lamp number {number}</a></h3><p>$ {number}9.00, in stock</p></div>"
        for number in range(30)
    )
    html = f"{CHROME}<main><h1>Lamps</h1><div><p>{SENTENCE * 5}</p></div><div>{cards}</div></main>{FOOTER}"
    main = main_of(html)
    assert all(f"Lamp number {number}" in main for number in range(30))
    assert "The boat" in main


CARD = {
    "with prices": "<li class='card c{0}'><a href=/{0}><img src=x alt=''>Lamp number {0}</a><span>$ {0}9</span></li>",
    "with pictures": "<li class='card c{0}'><a href=/{0}><img src=x alt=''>Lamp number {0}</a></li>",
    "with links of pictures": "<li><a href=/{0}><img src=x alt=''></a><p>Lamp number {0} for any room</p></li>",
    "with titles that are links": "<li><div><h3><a href=/{0}>Lamp number {0}</a></h3><p>It shines.</p></div></li>",
}
TEXT = {"before": "<div>{text}</div><ul>{cards}</ul>", "after": "<ul>{cards}</ul><div>{text}</div>"}


@pytest.mark.parametrize("place", TEXT)
@pytest.mark.parametrize("around", ["<main><h1>Lamps</h1>{}</main>", "<div><div><h1>Lamps</h1></div>{}</div>"])
def test_the_cards_of_a_shop_are_the_content_however_long_the_text_about_them_is(around, place):
    cards = "".join(CARD["with prices"].format(number) for number in range(24))
    main = main_of(CHROME + around.format(TEXT[place].format(cards=cards, text=STORY * 3)) + FOOTER)
    assert all(f"Lamp number {number}" in main for number in range(24))
    assert "Part 5:" in main
    assert "Imprint" not in main


@pytest.mark.parametrize("card", CARD.values(), ids=CARD)
def test_cards_before_a_text_are_the_content(card):
    cards = "".join(card.format(number) for number in range(12))
    written = write_content(f"{CHROME}<main><h1>Lamps</h1><ul>{cards}</ul>{STORY}</main>{FOOTER}", "https://x.example/")
    assert all(f"Lamp number {number}" in written for number in range(12))
    assert "Part 5:" in written


def test_very_many_cards_are_the_content_beside_any_text():
    cards = "".join(
        f"<li><img src=x alt=''><h3><a href=/{number}>Lamp number {number}</a></h3></li>" for number in range(40)
    )
    html = f"{CHROME}<main><h1>Lamps</h1><div>{STORY * 4}</div><ul>{cards}</ul></main>{FOOTER}"
    assert "Lamp number 39" in write_content(html, "https://x.example/")


def test_pictures_beside_an_article_do_not_make_it_a_list():
    cards = "".join(CARD["with pictures"].format(number) for number in range(12))
    html = f"{CHROME}<main><article><h1>Storm</h1>{STORY}</article><ul>{cards}</ul></main>{FOOTER}"
    written = write_content(html, "https://x.example/")
    assert "Part 5:" in written
    assert "Lamp number" not in written


def test_the_posts_of_a_thread_with_pictures_and_names_of_their_authors_are_no_list_of_cards():
    posts = "".join(
        f"<div class=post><h4><a href=/u/{number}><img src=x alt=''>Ada {number}</a></h4><p>{SENTENCE * 3}</p></div>"
        for number in range(12)
    )
    tree = parse(f"{CHROME}<main><h1>Storm</h1><div>{posts}</div></main>{FOOTER}")
    content = find_content(tree, Visibility(tree))
    assert content.is_article


def test_a_form_around_a_list_does_not_hide_it():
    rows = "".join(CARD["with prices"].format(number) for number in range(12))
    about = f"<p>{SENTENCE}</p>" * 9
    html = f"{CHROME}<main><h1>Lamps</h1><form><ul>{rows}</ul>{about}</form></main><div>{STORY}</div>{FOOTER}"
    tree = parse(html)
    content = find_content(tree, Visibility(tree))
    assert tree.tags[content.node] == "main"
    assert content.is_chosen
    assert not content.is_article


BUY = (
    "<h1>Lamp</h1><p>$ 19.00</p><div><label><input type=radio name=c>Red</label></div><button>Add to cart</button>"
    "<form><select name=size><option>S</select></form>"
)


@pytest.mark.parametrize("around", ["<main>{}</main>", "<div>{}</div>"])
@pytest.mark.parametrize("text", [STORY, "<p>It shines.</p>"])
def test_a_product_is_its_name_price_choices_and_text_without_other_products(around, text):
    others = "".join(CARD["with prices"].format(number) for number in range(8))
    data = '<script type="application/ld+json">{"@type": "Product", "name": "Lamp"}</script>'
    page = around.format(
        f"<div><div>{BUY}</div><section>{text}</section></div><div><h2>More</h2><ul>{others}</ul></div>"
    )
    written = write_content(f"{data}{CHROME}{page}{FOOTER}", "https://x.example/")
    for expected in ("# Lamp", "$ 19.00", "Red", "Add to cart", "`size`", "shines" if "shines" in text else "Part 5:"):
        assert expected in written
    assert "Lamp number 3" not in written


def test_the_sign_of_a_currency_in_code_is_no_price():
    shell = "".join(f"<pre><code><span>$ </span>run {number}</code></pre><button>Copy</button>" for number in range(6))
    tree = parse(f"{CHROME}<main><h1>Tools</h1>{shell}{STORY}</main>{FOOTER}")
    assert find_content(tree, Visibility(tree)).is_article


def test_blocks_beside_a_list_are_left_out_if_they_have_many_links_that_lead_elsewhere():
    cards = "".join(CARD["with prices"].format(number) for number in range(24))
    menu = "".join(f"<a href=/menu/{number}>Menu {number}</a>" for number in range(40))
    facets = "".join(f"<a href='/lamps?colour={number}'>Colour {number}</a>" for number in range(40))
    boxes = "".join(f"<label><input type=checkbox name=w>Watt {number}</label>" for number in range(400))
    html = (
        f"<div>{menu}</div><div>{facets}</div><div>{boxes}</div>"
        f"<div><h1>Lamps</h1><ul>{cards}</ul></div><footer>{SENTENCE * 40}</footer>"
    )
    written = write_content(html, "https://shop.example/lamps?page=2")
    assert all(expected in written for expected in ("Lamp number 3", "Colour 39", "Watt 399"))
    assert "Menu 3" not in written
    assert "The boat" not in written


@pytest.mark.parametrize("beside", ["<div>{}</div>", "{}", "<div><div>{}</div></div>"])
def test_a_product_keeps_the_form_that_orders_it_whatever_the_length_of_its_description(beside):
    form = "<form method=post action=/cart><select name=size><option>S</select><button>Add to cart</button></form>"
    about = f"<h1>Lamp</h1><p>$ 19.00</p>{form}"
    html = f"{CHROME}<main>{beside.format(about)}<div>{STORY}</div></main>{FOOTER}"
    tree = parse(html)
    content = find_content(tree, Visibility(tree))
    (order,) = tree.find("form")
    assert content.node <= order < tree.ends[content.node]
    assert not any(at <= order < tree.ends[at] for at in content.left_out)


RATING = "<label><input type=radio name=r value=5>Five stars</label><textarea name=review aria-label=Review></textarea>"
OPERATED = {
    "in main, beside the text": f"<main><div><h1>Storm</h1>{STORY}</div><div>{{}}</div></main>",
    "before the text, without main": f"<div><div><h1>Storm</h1><div>{{}}</div></div><div>{STORY}</div></div>",
    "in a block of links": f"<main><div><h1>Storm</h1>{STORY}</div><div><ul>{LINKS}</ul>{{}}</div></main>",
}


@pytest.mark.parametrize("page", OPERATED.values(), ids=OPERATED)
def test_fields_and_buttons_stay_when_what_is_around_them_is_left_out(page):
    controls = f"{RATING}<button>Send</button><span role=button tabindex=0>Ask</span>"
    chrome = "<header><button>Menu</button></header><nav><button>Sections</button></nav>"
    left_out = f"<aside><ul>{LINKS}{LINKS}</ul></aside>"
    html = f"{chrome}{page.format(controls)}{left_out}<footer><button>Cookies</button>{SENTENCE * 3}</footer>"
    written = write_content(html, "https://x.example/")
    for expected in ("( ) `r`=`5` Five stars", "[text area `review`, “Review”]", "[button: Send]", "[button: Ask]"):
        assert expected in written
    assert not any(f"[button: {name}]" in written for name in ("Menu", "Sections", "Cookies"))


def test_lines_between_the_heading_of_a_thread_and_its_text_are_metadata():
    menu = "".join(f"<a href=/m/{number}>M{number}</a>" for number in range(5))
    title = "<div><h1>Storm</h1><div><a href=/c/boats>Boats</a> <a href=/t/sea>sea</a></div></div>"
    html = f"{CHROME}<div><main>{title}<nav>{menu}</nav><div>{STORY}</div></main></div>{FOOTER}"
    written = write_content(html, "https://x.example/t/1")
    assert "[Boats](https://x.example/c/boats)" in written
    assert "[sea](https://x.example/t/sea)" in written
    assert "[M3]" not in written


def test_links_among_the_paragraphs_of_a_text_stay_unless_they_are_marked_as_navigation():
    services = "".join(f"<div><a href=/s/{number}>Service {number} for boats</a></div>" for number in range(12))
    menu = "".join(f"<a href=/m/{number}>M{number}</a>" for number in range(5))
    text = f"<h1>Harbour</h1><p>{SENTENCE * 8}</p><nav>{menu}</nav><div>{services}</div><p>{SENTENCE * 8}</p>"
    written = write_content(f"{CHROME}<main>{text}</main>{FOOTER}", "https://x.example/")
    assert "[Service 11 for boats](https://x.example/s/11)" in written
    assert "[M3]" not in written


LINKED_DATA = '<script type="application/ld+json">{{"@type": "{}"}}</script>'
CERTAIN = {
    "its address": ("", NEWS),
    "the year in its address, and a title": ("", "https://x.example/2026/11/why-the-boat-left"),
    "a canonical address": (f"<link rel=canonical href='{NEWS}'>", "https://x.example/?p=17"),
    "its date, and a title in its address": (PUBLISHED, "https://x.example/why-the-boat-left"),
    "its type, author and date": (
        f"{PUBLISHED}{LINKED_DATA.format('NewsArticle')}<meta name=author content=Ada>",
        "https://x.example/17",
    ),
}
UNCERTAIN = {
    "nothing": ("", "https://x.example/storm"),
    "a thread by its address": (PUBLISHED, "https://x.example/forum/why-the-boat-left"),
    "documentation by its host": (PUBLISHED, "https://docs.example.com/guides/why-the-boat-left"),
    "a thread by its type": (
        f"{PUBLISHED}{LINKED_DATA.format('DiscussionForumPosting')}",
        "https://x.example/why-the-boat-left",
    ),
}
ACTED_UPON = f"<article><h1>Why the boat left</h1>{STORY}{STORY}<div><h2>More</h2><ul>{LINKS}</ul></div></article>"


@pytest.mark.parametrize(("says", "address"), CERTAIN.values(), ids=CERTAIN)
def test_blocks_of_links_are_no_part_of_a_text_that_is_certainly_an_article(says, address):
    written = write_content(f"{says}{CHROME}<main>{ACTED_UPON}</main>{FOOTER}", address)
    assert "Part 5:" in written
    assert "number 7]" not in written


@pytest.mark.parametrize(("says", "address"), UNCERTAIN.values(), ids=UNCERTAIN)
def test_blocks_of_links_stay_in_a_text_on_which_one_may_act(says, address):
    written = write_content(f"{says}{CHROME}<main>{ACTED_UPON}</main>{FOOTER}", address)
    assert "Part 5:" in written
    assert written.count("number 7]") == 1


@pytest.mark.parametrize("address", ["http://[", "//", "", "https://x.example/news/a b?c#d", "mailto:ada"])
def test_any_canonical_address_is_read(address):
    page = f"<link rel=canonical href='{address}'>{CHROME}<main>{ACTED_UPON}</main>"
    assert "Part 5:" in write_content(page, "https://x.example/storm")


@pytest.mark.parametrize("address", ["http://[", "//[", "https://[::1", "http://\u2100.example/", "\x00", "data:,"])
def test_the_addresses_of_links_need_not_be_readable(address):
    trail = "<div><a href=/>Paper</a> <a href=/teas>Teas</a></div>"
    form = "<form><p>Tell us.</p><label>Name <input></label><textarea></textarea><button>Send</button></form>"
    cards = "".join(f"<li><h3><a href=/{place}>Tea {place}</a></h3><button>Buy</button></li>" for place in range(9))
    for block in (f"<div><h1>Teas</h1><ul>{cards}</ul></div>", f"<ul>{cards}</ul>", form, ACTED_UPON):
        page = re.sub(r"href=[^>]*", f"href='{address}'", f"{CHROME}{trail}{block}{FOOTER}")
        for write in (write_content, write_markdown):
            assert max(write(page, URL).count(text) for text in ("Buy", "Send", "Part 5:"))


def test_a_page_that_is_a_form_has_it_as_content():
    html = f"{CHROME}<main><h1>Sign up</h1><form method=post><input name=n><button>Go</button></form></main>"
    tree = parse(html)
    content = find_content(tree, Visibility(tree))
    assert tree.tags[content.node] == "main"
    assert not content.is_article


def test_a_page_in_one_form_still_has_a_main_region():
    html = f"<form action=/all method=post><div>{CHROME}</div><div><h1>Storm</h1>{STORY}</div>{FOOTER}</form>"
    assert "Part 5:" in main_of(html)


def test_an_empty_main_is_not_the_content():
    html = f"<main><p>Loading</p></main><div><ul><li>one<li>two</ul><p>{SENTENCE * 3}</p></div>"
    tree = parse(html)
    content = find_content(tree, Visibility(tree))
    assert content.node == tree.body_at


@pytest.mark.parametrize("html", ["", "<p>", "<main>", "<frameset><frame>", "text", "<template><p>a</template>"])
def test_any_page_has_a_content(html):
    tree = parse(html)
    assert find_content(tree, Visibility(tree)).node >= 0


@pytest.mark.parametrize("landmark", ["aside", "nav", "header"])
def test_a_menu_with_the_name_of_the_site_as_its_heading_is_no_main_content(landmark):
    menu = "".join(f"<li><a href=/{number}>Menu {number}</a></li>" for number in range(60))
    rows = "".join(f"<tr><td><a href=/d/{number}>Device {number}</a></td><td>Active</td></tr>" for number in range(20))
    content = write_content(
        f"<body><{landmark}><h1><a href=/>Inventory</a></h1><ul>{menu}</ul></{landmark}><div><h1>Devices</h1>"
        f"<table><tr><th>Name</th><th>Status</th></tr>{rows}</table></div></body>",
        "https://inventory.example/devices",
    )
    assert content.startswith("# Devices")
    assert "Menu 5" not in content
    assert "Device 19" in content
