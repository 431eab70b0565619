"""Regions: what begins one, and that content stays where it is."""

import pytest

from awp_publish.pages import Budget
from tests.pages.reading import compiled, elements_in, regions_of, said


def region_of(html: str) -> str:
    """The id of the region that a paragraph is in which says "here"."""
    return next(name for name, texts in regions_of(html).items() if any("here" in text for text in texts))


BEGUN = {
    "<nav>here</nav>": "r_navigation",
    "<main>here</main>": "r_main",
    "<aside>here</aside>": "r_aside",
    "<header>here</header>": "r_header",
    "<footer>here</footer>": "r_footer",
    "<dialog>here</dialog>": "r_dialog",
    "<form>here</form>": "r_form",
    "<div>here</div>": "r_content",
    "<div role='banner'>here</div>": "r_header",
    "<section role='unknown COMPLEMENTARY'>here</section>": "r_aside",
    "<div role=contentinfo>here</div>": "r_footer",
    "<div role=alertdialog>here</div>": "r_dialog",
    "<div role=search>here</div>": "r_search",
    "<main role=navigation>here</main>": "r_navigation",
    "<form role=search action=/s>here</form>": "r_form",
    "<div class='site-header'>here</div>": "r_header",
    "<div class=masthead>here</div>": "r_header",
    "<div id=mainMenu>here</div>": "r_navigation",
    "<ul class=nav><li>here</ul>": "r_navigation",
    "<div class=navbar>here</div>": "r_navigation",
    "<div id=main-content>here</div>": "r_main",
    "<section class=article-body>here</section>": "r_main",
    "<div class='left side-bar'>here</div>": "r_aside",
    "<div class=page-footer>here</div>": "r_footer",
    "<div class=search-box>here</div>": "r_search",
    "<div><a href=/a>a</a> <a href=/b>b</a> <a href=/c>here</a></div>": "r_navigation",
    "<div>© 2026 here</div>": "r_footer",
    "<div><a href=/p>Privacy policy</a> <b>here</b></div>": "r_footer",
}


@pytest.mark.parametrize(("html", "region"), BEGUN.items())
def test_an_element_begins_the_region_of_its_role_and_content(html, region):
    html = html if "<ul" not in html else html.replace("here", "<p>here</p><h2>x</h2>")
    assert region_of(f"<body>{html}") == region


STAYS = [
    "<main><div>Our privacy rules, here.</div></main>",
    "<main><div class=domain>here</div></main>",
    "<main><div class=trail>here</div></main>",
    "<main><div class=navy>here</div></main>",
    "<main><div class=card-header>here</div></main>",
    "<main><div class=modal-footer>here</div></main>",
    "<main><div>© 2026 here</div></main>",
    "<main><p>Terms of use and all rights reserved, here</p></main>",
    "<main class='sidebar'>here</main>",
    "<main><p class=footer>here</p></main>",
    "<main><div><a href=/1>1</a><a href=/2>2</a><a href=/3>here</a></div></main>",
    "<body class='has-cookie-banner'><main>here</main>",
    "<body class='d-none' hidden style='display:none'><style>.d-none{display:none}</style><main>here</main>",
]


@pytest.mark.parametrize("html", STAYS)
def test_words_in_content_do_not_move_it(html):
    assert region_of(html) == "r_main"


def test_privacy_in_the_text_of_a_page_without_landmarks_does_not_make_it_a_footer():
    assert region_of("<div><h1>Privacy</h1><p>Privacy and terms of use, here.</p></div>") == "r_content"
    assert region_of("<div><p>About privacy, terms of trade and copyright law, here.</p></div>") == "r_content"


def test_regions_are_numbered_as_they_begin_and_those_without_elements_do_not_count():
    html = "<nav></nav><nav>one</nav><header><nav>two</nav>head</header><p>loose</p><nav>three</nav>"
    assert regions_of(html) == {
        "r_navigation": ["one"],
        "r_header": ["head"],
        "r_navigation_1": ["two"],
        "r_navigation_2": ["three"],
        "r_content": ["loose"],
    }


def test_a_form_says_where_it_is_sent_and_keeps_all_that_is_in_it():
    (region,) = compiled(
        "<form id=f name=order action=/buy method=post target=_top enctype=multipart/form-data novalidate "
        "accept-charset=utf-8 autocomplete=off><header><h2>Order</h2></header><nav>steps</nav><button>Buy</button>"
    )["regions"]
    elements = region.pop("elements")
    assert region == {
        "id": "r_form",
        "role": "form",
        "label": "f",
        "action": "/buy",
        "method": "POST",
        "target": "_top",
        "enctype": "multipart/form-data",
        "novalidate": True,
        "accept_charset": "utf-8",
        "autocomplete": "off",
    }
    assert [element.get("text") for element in elements] == ["Order", "steps", "Buy"]


@pytest.mark.parametrize(
    "html",
    [
        "<div role=dialog class='modal consent' aria-label=Cookies><p>We set cookies.</p><button>Accept</button></div>",
        "<dialog class=modal aria-label=Cookies>We set cookies.<button>Accept</button></dialog>",
        "<main><div role=alertdialog aria-label=Cookies><p>We set cookies.</p><button>Accept</button></div></main>",
        "<ul><li><div role=dialog aria-label=Cookies><p>We set cookies.</p><button>Accept</button></div></ul>",
    ],
)
def test_dialogs_survive(html):
    (region,) = [region for region in compiled(html)["regions"] if region["role"] == "dialog"]
    assert region["label"] == "Cookies"
    assert [element["text"] for element in region["elements"]] == ["We set cookies.", "Accept"]


def test_articles_and_sections_keep_what_they_hold():
    html = "<article aria-label=News><h2>A</h2><p>One</p><section><p>Two</p><ul><li>x<li>y</ul></section></article>"
    assert [element["role"] for element in elements_in(html)] == [
        *("section", "heading", "paragraph", "paragraph", "list"),
    ]
    assert [element["text"] for element in elements_in(html) if "text" in element] == ["A", "One", "Two"]
    assert said("<section></section><article> <img alt='' src=x></article>") == []


def test_a_form_in_a_table_of_data_leaves_it_a_table():
    html = "<table><tr><th>Item<tr><td>Tea<form action=/remove><button>Remove</button></form></table>"
    assert regions_of(html) == {"r_content": ["", "Remove"]}
    filled = "<table><tr><th>Item<tr><td>Tea<td><form action=/set><input name=n><button>Set</button></form></table>"
    regions = compiled(filled)["regions"]
    assert [(region["id"], region.get("label")) for region in regions] == [("r_form", "Tea"), ("r_content", None)]


def test_a_wrapper_of_the_whole_page_does_not_change_what_is_in_it():
    inner = "<nav><a href=/a>a</a></nav><main><h1>T</h1><p>text</p></main><footer><p>© 2026</p></footer>"
    wrapped = "<div class=wrapper><div id=page-inner>" + inner + "</div></div>"
    assert regions_of(wrapped) == regions_of(inner)


def test_text_that_stands_alone_is_a_paragraph_with_its_inline_markup():
    html = "<div>One <b>bold</b> word<br>and <a href=/x>a link</a> after<div>block</div>end | </div><span> | </span>"
    assert [element["text"] for element in elements_in(html)] == [
        "One bold word and",
        "a link",
        "after",
        "block",
        "end |",
    ]


def test_full_keeps_every_word_of_a_page():
    words = [f"word{number}" for number in range(6_000)]
    paragraphs = "".join(f"<p>{' '.join(words[at : at + 60])}</p>" for at in range(0, 6_000, 60))
    document = compiled(f"<main>{paragraphs}</main>", Budget.FULL)
    text = " ".join(element["text"] for element in document["regions"][0]["elements"])
    assert text.split() == words


def test_the_list_that_a_navigation_is_about_is_no_region_beside_it():
    html = "<nav aria-label=Shop><button>Menu</button><ul class=nav><li><a href=/a>A</a><li><a href=/b>B</a></ul></nav>"
    (region,) = compiled(html)["regions"]
    assert region["label"] == "Shop"
    assert [element["text"] for element in region["elements"]] == ["Menu", "A", "B"]


def test_blocks_beside_an_article_keep_their_regions() -> None:
    text = "<p>A sentence that is as long as this one, and says little.</p>" * 20
    beside = {
        "button": "<button aria-label=Next></button>",
        "link": "<a href=/questions>Questions</a>",
        "text_input": "<input aria-label=Number>",
        "select": "<select aria-label=Size><option>S</select>",
        "image": "<img src=a.png alt=Kettle>",
        "list": "<ul><li>one thing<li>two things</ul>",
        "table": "<table><tr><th>Size<th>Price<tr><td>S<td>7.50</table>",
        "details": "<details><summary>Care</summary>Wipe it.</details>",
        "group": "<fieldset><legend>Size</legend><input aria-label=Height></fieldset>",
        "iframe": "<iframe src=/map title=Map></iframe>",
    }
    for role, html in beside.items():
        page = f"<main><header><h1>Kettles</h1></header><section><div>{text}</div>{html}</section></main>"
        assert role in [element["role"] for element in elements_in(page, Budget.FULL)], role
