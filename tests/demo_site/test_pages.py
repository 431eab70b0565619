"""What a person meets: searching, safe forms, and pages that work for everybody."""

import re
from collections.abc import Iterator

import pytest

from tests.demo_site.bookshop import ORIGIN, Shop, open_shop, order, sign_in, texts

PUBLIC_PAGES = ["/", "/search?q=sea", "/search?page=3", "/books/die-verwandlung", "/books/candide", "/basket"]
PUBLIC_PAGES += ["/sign-in", "/about", "/checkout", "/nowhere"]


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as shop:
        yield shop


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("pride", "pride-and-prejudice"),
        ("PRIDE prejudice", "pride-and-prejudice"),
        ("bronte jane", "jane-eyre"),
        ("misérables", "les-miserables"),
        ("miserables", "les-miserables"),
        ("alice's", "alices-adventures-in-wonderland"),
        ("vampires", "dracula"),
        ("jack london", "the-call-of-the-wild"),
    ],
)
def test_search_finds_words_of_title_author_and_subject(shop: Shop, query: str, first: str) -> None:
    books = shop.program().get("/search", params={"q": query, "sort": "relevance"}).json()["books"]
    assert first in [book["slug"] for book in books[:2]]


@pytest.mark.parametrize(
    ("query", "plain"),
    [("%", ""), ("_", ""), ("art%", "art"), ("s_a", "s a"), ("'; DROP TABLE books; --", "drop table")],
)
def test_search_takes_every_query_as_plain_words(shop: Shop, query: str, plain: str) -> None:
    asked = shop.program().get("/search", params={"q": query}).json()
    meant = shop.program().get("/search", params={"q": plain}).json()
    assert asked == meant | {"query": query}


def test_search_matches_only_the_beginning_of_words(shop: Shop) -> None:
    titles = [book["title"] for book in shop.program().get("/search", params={"q": "art"}).json()["books"]]
    assert "The Picture of Dorian Gray" in titles
    assert "Heart of Darkness" not in titles


@pytest.mark.parametrize(("sort", "key"), [("year", "year"), ("price", "price_cents")])
def test_search_sorts_by_numbers(shop: Shop, sort: str, key: str) -> None:
    books = shop.program().get("/search", params={"sort": sort, "page_size": 50}).json()["books"]
    values = [book[key] for book in books]
    assert values == sorted(values)


def test_search_sorts_names_as_a_library_does(shop: Shop) -> None:
    by_author = shop.program().get("/search", params={"sort": "author", "q": "gothic"}).json()["books"]
    assert [book["author"] for book in by_author][:3] == ["Jane Austen", "Charlotte Brontë", "Emily Brontë"]
    by_title = shop.program().get("/search", params={"sort": "title", "q": "wells"}).json()["books"]
    assert [book["title"] for book in by_title][:2] == ["The Invisible Man", "The Time Machine"]


def test_the_pages_of_a_list_follow_each_other_without_gap(shop: Shop) -> None:
    program = shop.program()
    first = program.get("/search", params={"sort": "title", "page_size": 20}).json()
    assert first["pages"] == -(-first["total"] // 20)
    slugs = []
    for page in range(1, first["pages"] + 1):
        listed = program.get("/search", params={"sort": "title", "page_size": 20, "page": page}).json()
        slugs += [book["slug"] for book in listed["books"]]
    assert len(slugs) == len(set(slugs)) == first["total"]


def test_the_next_page_is_a_link_until_the_list_ends(shop: Shop) -> None:
    person = shop.person()
    page = person.get("/search", params={"q": "london", "sort": "year"})
    assert texts(page, "current-page") == ["1"]
    link = re.search(r'class="next-page"[^>]*href="([^"]+)"', page.text)
    assert link
    following = person.get(link[1].replace("&amp;", "&"))
    assert texts(following, "current-page") == ["2"]
    assert texts(following, "next-page") == []
    assert texts(following, "previous-page") == ["Previous page"]


def test_a_page_after_the_last_says_so(shop: Shop) -> None:
    assert "The list ends before this page" in shop.person().get("/search?page=999").text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://[nowhere"},
        {"origin": ORIGIN + ":8080"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": ORIGIN},
    ],
)
@pytest.mark.parametrize(
    "path", ["/basket", "/basket/remove", "/sign-in", "/sign-out", "/checkout", "/orders/0123/shipment"]
)
def test_a_form_on_another_site_changes_nothing(shop: Shop, path: str, headers: dict[str, str]) -> None:
    form = {"slug": "emma", "name": "reader", "password": "lamplight", "address": "1 Quiet Lane"}
    program = shop.program()
    answer = program.post(path, data=form, headers=headers)
    assert (answer.status_code, answer.json()["detail"]["code"]) == (403, "FOREIGN_ORIGIN")
    assert program.get("/sign-in").json() == {"signed_in": False, "name": None, "copies_in_basket": 0}


@pytest.mark.parametrize(
    "headers",
    [{}, {"origin": ORIGIN}, {"sec-fetch-site": "same-origin", "origin": ORIGIN}, {"sec-fetch-site": "none"}],
)
def test_our_own_forms_and_programs_are_let_through(shop: Shop, headers: dict[str, str]) -> None:
    program = shop.program()
    sign_in(program)
    assert program.post("/basket", data={"slug": "emma"}, headers=headers).status_code == 200


def test_the_public_origin_is_ours_behind_a_proxy_too() -> None:
    with open_shop(url="https://books.example") as shop:
        headers = {"origin": "https://books.example"}
        assert shop.program().post("/sign-out", headers=headers).status_code == 200


@pytest.mark.parametrize(("url", "secure"), [("https://books.example", True), ("http://books.example", False)])
def test_the_cookie_keeps_to_https_if_the_shop_does(url: str, secure: bool) -> None:
    with open_shop(url=url) as shop:
        cookie = sign_in(shop.program()).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert ("secure" in cookie) is secure


def test_a_forged_cookie_is_nobody(shop: Shop) -> None:
    program = shop.program()
    program.cookies.set("session", "eyJhY2NvdW50IjogMX0=.abc.def")
    assert program.get("/sign-in").json()["signed_in"] is False


@pytest.mark.parametrize("path", PUBLIC_PAGES)
def test_every_page_is_whole_and_can_be_used_without_a_mouse(shop: Shop, path: str) -> None:
    page = shop.person().get(path).text
    assert '<html lang="en">' in page
    assert re.search(r"<title>[^<]+</title>", page)
    assert re.search(r'<meta name="description" content="[^"]+">', page)
    assert 'class="skip-link" href="#content"' in page
    assert '<main id="content"' in page
    assert page.count("<h1") == 1
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    controls = re.findall(r'<(?:input|select|textarea)(?![^>]*type="hidden")[^>]*\bid="([^"]+)"', page)
    assert len(controls) == len(re.findall(r'<(?:input|select|textarea)(?![^>]*type="hidden")', page))
    assert set(controls) <= set(re.findall(r'<label for="([^"]+)"', page))


def own_scripts(page: str) -> list[str]:
    """The scripts in a page that are neither files of the shop's own nor structured data."""
    listed = re.findall(r"<script[^>]*>", page)
    return [item for item in listed if 'src="/' not in item and 'type="application/ld+json"' not in item]


@pytest.mark.parametrize("path", PUBLIC_PAGES)
def test_no_page_loads_anything_from_elsewhere_or_has_a_script_in_itself(shop: Shop, path: str) -> None:
    answer = shop.person().get(path)
    assert own_scripts(answer.text) == []
    elsewhere = re.findall(r'(?:src|href|action)="((?:https?:)?//[^"]+)', answer.text)
    assert [address for address in elsewhere if not address.startswith("http://127.0.0.1:8000/")] == []
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    for link in re.findall(r'href="(/static/[^"]+)"', answer.text):
        assert shop.person().get(link).status_code == 200


def test_a_name_is_shown_as_it_was_written_and_never_as_markup(shop: Shop) -> None:
    person = shop.person()
    sign_in(person)
    person.post("/basket", data={"slug": "emma"})
    placed = person.post("/checkout", data={"name": "<b>Ada</b>", "address": "<script>alert(1)</script>"})
    page = person.get(placed.headers["location"])
    assert own_scripts(page.text) == []
    assert "&lt;b&gt;Ada&lt;/b&gt;" in page.text


def test_every_link_on_the_way_leads_somewhere(shop: Shop) -> None:
    person = shop.person()
    placed = order(person)
    person.post("/basket", data={"slug": "emma"})
    links = set()
    for path in ["/", "/search", "/books/emma", "/basket", "/about", f"/orders/{placed['order_id']}"]:
        links |= set(re.findall(r'href="(/[^"#]*)"', person.get(path).text))
    answers = {link: person.get(link.replace("&amp;", "&")).status_code for link in links}
    assert {link: status for link, status in answers.items() if status != 200} == {}


def test_openapi_tells_both_dialects_and_the_refusals(shop: Shop) -> None:
    paths = shop.program().get("/openapi.json").json()["paths"]
    search = paths["/search"]["get"]
    assert set(search["responses"]["200"]["content"]) == {"application/json", "text/html"}
    assert {parameter["name"] for parameter in search["parameters"]} == {"q", "sort", "page", "page_size"}
    assert all(parameter["description"] for parameter in search["parameters"])
    assert {"200", "303", "401", "403", "404", "409", "422"} <= set(paths["/basket"]["post"]["responses"])
    assert {"200", "303", "401", "403", "404"} <= set(paths["/orders/{order_id}/shipment"]["post"]["responses"])
    assert {"201", "303", "401", "409"} <= set(paths["/checkout"]["post"]["responses"])


def test_an_anonymous_caller_is_told_to_sign_in_before_a_book_is_asked_for(shop: Shop) -> None:
    person = shop.person()
    assert 'Please <a href="/sign-in">sign in</a> first.' in person.get("/books/emma").text
    sign_in(person)
    assert "sign in</a> first" not in person.get("/books/emma").text
