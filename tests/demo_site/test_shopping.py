"""The path from the shelf to the order, in both dialects, and every way in which it may be refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi import HTTPException

from demo_site import baskets, books, orders
from demo_site.database import Database
from tests.demo_site.bookshop import ORIGIN, PROGRAM, Shop, member, open_shop, order, sign_in, texts


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as shop:
        yield shop


def test_a_person_finds_a_book_buys_it_and_sees_the_order(shop: Shop) -> None:
    person = shop.person()
    assert "Moby-Dick" in texts(person.get("/search", params={"q": "whaling"}), "book-title")
    assert texts(person.get("/books/moby-dick"), "book-opening") == ["Call me Ishmael."]
    form, on_the_page = {"slug": "moby-dick", "quantity": 2}, {"referer": f"{ORIGIN}/books/moby-dick"}
    asked = person.post("/basket", data=form, headers=on_the_page)
    assert asked.status_code == 401
    assert 'class="sign-in-form' in asked.text
    assert sign_in(person, password="wrong").status_code == 401
    assert sign_in(person).headers["location"] == "/books/moby-dick"
    added = person.post("/basket", data=form, headers=on_the_page)
    assert (added.status_code, added.headers["location"]) == (303, "/basket")
    assert texts(person.get("/basket"), "total-price") == ["$21.00"]
    assert 'class="checkout-form' in person.get("/checkout").text
    placed = person.post("/checkout", data={"name": "Ada", "address": "1 Quiet Lane\nOxford"})
    assert placed.status_code == 303
    page = person.get(placed.headers["location"])
    assert texts(page, "order-status") == ["Received"]
    assert texts(page, "order-name") == ["Ada"]
    assert texts(page, "total-price") == ["$21.00"]
    assert texts(person.get("/"), "basket-count") == ["0"]
    assert 'class="ship-order-form"' in page.text
    shipped = person.post(f"{placed.headers['location']}/shipment")
    assert (shipped.status_code, shipped.headers["location"]) == (303, placed.headers["location"])
    page = person.get(placed.headers["location"])
    assert texts(page, "order-status") == ["Shipped"]
    assert "ship-order-form" not in page.text


@pytest.mark.parametrize("path", ["/basket", "/checkout", "/orders/0123456789abcdef"])
def test_a_visitor_of_an_account_page_signs_in_and_comes_back(shop: Shop, path: str) -> None:
    person = shop.person()
    asked = person.get(path)
    assert asked.status_code == 401
    assert 'class="sign-in-form' in asked.text
    assert sign_in(person).headers["location"] == path


@pytest.mark.parametrize(
    ("referer", "way_back"),
    [
        (f"{ORIGIN}/books/emma", "/books/emma"),
        (f"{ORIGIN}//evil.example/books", "/evil.example/books"),
        (f"{ORIGIN}/search?q=sea", "/search?q=sea"),
        ("https://evil.example/books/emma", "/basket"),
        ("http://[nowhere", "/basket"),
        ("", "/basket"),
    ],
)
def test_signing_in_leads_back_to_a_page_of_ours_only(shop: Shop, referer: str, way_back: str) -> None:
    person = shop.person()
    assert person.post("/basket", data={"slug": "emma"}, headers={"referer": referer}).status_code == 401
    assert sign_in(person).headers["location"] == way_back


def test_a_program_does_the_same_in_json(shop: Shop) -> None:
    program = shop.program()
    found = program.get("/search", params={"q": "dalloway"}).json()
    assert [book["slug"] for book in found["books"]] == ["mrs-dalloway"]
    assert program.get("/books/mrs-dalloway").json()["author"] == "Virginia Woolf"
    assert sign_in(program).json() == {"signed_in": True, "name": "reader", "copies_in_basket": 0}
    basket = program.post("/basket", data={"slug": "mrs-dalloway"}).json()
    assert (basket["copies"], basket["lines"][0]["slug"]) == (1, "mrs-dalloway")
    assert program.get("/sign-in").json()["copies_in_basket"] == 1
    assert program.get("/checkout").json() == basket
    placed = program.post("/checkout", data={"name": "Ada", "address": "1 Quiet Lane, Oxford"})
    assert placed.status_code == 201
    assert placed.json()["total_cents"] == basket["total_cents"]
    address = f"/orders/{placed.json()['order_id']}"
    assert program.get(address).json() == placed.json()
    for _ in range(2):
        assert program.post(f"{address}/shipment").json() == placed.json() | {"status": "shipped"}
    assert program.get(address).json()["status"] == "shipped"
    assert program.get("/basket").json()["lines"] == []
    assert program.post("/sign-out").json()["signed_in"] is False


def test_an_order_takes_its_copies_out_of_stock(shop: Shop) -> None:
    program = shop.program()
    before = program.get("/books/kim").json()["stock"]
    order(program, "kim")
    assert program.get("/books/kim").json()["stock"] == before - 1


def test_a_book_is_removed_from_the_basket_once(shop: Shop) -> None:
    program = member(shop)
    program.post("/basket", data={"slug": "kim", "quantity": 2})
    assert program.post("/basket/remove", data={"slug": "kim"}).json()["lines"] == []
    again = program.post("/basket/remove", data={"slug": "kim"})
    assert (again.status_code, again.json()["detail"]["code"]) == (404, "NOT_IN_BASKET")


def test_adding_the_same_book_twice_adds_up(shop: Shop) -> None:
    program = member(shop)
    program.post("/basket", data={"slug": "emma"})
    assert program.post("/basket", data={"slug": "emma", "quantity": 2}).json()["lines"][0]["quantity"] == 3


@pytest.mark.parametrize(("slug", "quantity"), [("ulysses", 1), ("carmilla", 2)])
def test_a_book_that_is_out_of_stock_is_refused(shop: Shop, slug: str, quantity: int) -> None:
    answer = member(shop).post("/basket", data={"slug": slug, "quantity": quantity})
    assert answer.status_code == 409
    assert answer.json()["detail"]["code"] == "OUT_OF_STOCK"
    assert "left" in answer.json()["detail"]["message"]


def test_copies_already_in_the_basket_count_against_the_stock(shop: Shop) -> None:
    program = member(shop)
    assert program.post("/basket", data={"slug": "carmilla"}).status_code == 200
    assert program.post("/basket", data={"slug": "carmilla"}).status_code == 409


@pytest.mark.parametrize(
    ("method", "path", "form"),
    [
        ("GET", "/search?page=0", {}),
        ("GET", "/search?page_size=51", {}),
        ("GET", "/search?sort=colour", {}),
        ("POST", "/basket", {}),
        ("POST", "/basket", {"slug": "emma", "quantity": "0"}),
        ("POST", "/basket", {"slug": "emma", "quantity": "many"}),
        ("POST", "/sign-in", {"name": "reader"}),
    ],
)
def test_a_request_of_the_wrong_form_is_refused_in_both_dialects(
    shop: Shop, method: str, path: str, form: dict[str, str]
) -> None:
    answer = shop.program().request(method, path, data=form)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"]
    page = shop.person().request(method, path, data=form)
    assert page.status_code == 422
    assert texts(page, "refused-status")[0].startswith("422 ")


@pytest.mark.parametrize("path", ["/books/nothing-of-that-name", "/nowhere", "/static/nowhere.css"])
def test_an_unknown_address_has_a_friendly_page(shop: Shop, path: str) -> None:
    page = shop.person().get(path)
    assert page.status_code == 404
    assert "We looked on every shelf" in page.text
    assert shop.program().get(path).json()["detail"]


def test_a_wrong_method_names_the_right_ones(shop: Shop) -> None:
    answer = shop.program().post("/about")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/basket", "/basket/remove", "/checkout", "/orders/0123456789abcdef/shipment"])
def test_actions_that_need_an_account_are_refused_without_one(shop: Shop, path: str) -> None:
    form = {"slug": "emma", "name": "Ada", "address": "1 Quiet Lane"}
    answer = shop.program().post(path, data=form)
    assert (answer.status_code, answer.json()["detail"]["code"]) == (401, "NOT_SIGNED_IN")
    assert "set-cookie" not in answer.headers


def test_checking_out_without_an_account_or_without_books_is_refused(shop: Shop) -> None:
    program = shop.program()
    form = {"name": "Ada", "address": "1 Quiet Lane"}
    assert program.post("/checkout", data=form).json()["detail"]["code"] == "NOT_SIGNED_IN"
    assert "www-authenticate" in program.get("/checkout").headers
    sign_in(program)
    for answer in (program.get("/checkout"), program.post("/checkout", data=form)):
        assert (answer.status_code, answer.json()["detail"]["code"]) == (409, "EMPTY_BASKET")


@pytest.mark.parametrize(
    ("name", "password"), [("reader", "wrong"), ("nobody", "lamplight"), ("reader", "\N{SNOWMAN}")]
)
def test_a_wrong_name_or_password_is_refused_alike(shop: Shop, name: str, password: str) -> None:
    answer = sign_in(shop.program(), name, password)
    assert (answer.status_code, answer.json()["detail"]["code"]) == (401, "WRONG_PASSWORD")
    page = sign_in(shop.person(), name, password)
    assert page.status_code == 401
    assert texts(page, "refusal") == ["We know no account with that name and password."]


def test_nobody_else_sees_an_order(shop: Shop) -> None:
    placed = order(shop.program())
    stranger = shop.program()
    address = f"/orders/{placed['order_id']}"
    assert stranger.get(address).status_code == stranger.post(f"{address}/shipment").status_code == 401
    sign_in(stranger, "visitor", "bookmark")
    hidden, invented = stranger.get(address), stranger.get("/orders/0123456789abcdef")
    assert hidden.status_code == invented.status_code == 404
    assert hidden.json() == invented.json()
    assert stranger.post(f"{address}/shipment").json() == hidden.json()


def test_signing_out_forgets_account_and_basket(shop: Shop) -> None:
    program = shop.program()
    sign_in(program)
    program.post("/basket", data={"slug": "emma"})
    assert program.post("/sign-out").json() == {"signed_in": False, "name": None, "copies_in_basket": 0}
    assert program.get("/checkout").status_code == 401


def test_the_last_copy_is_sold_once_however_many_want_it(tmp_path: Path) -> None:
    database = Database(tmp_path / "shop.db")
    with database.changing() as connection:
        for buyer in range(6):
            baskets.add(connection, f"basket-{buyer}", "carmilla", 1)

    def buy(buyer: int) -> str:
        try:
            with database.changing() as connection:
                return orders.place(connection, 1, f"basket-{buyer}", "Ada", "1 Quiet Lane").status
        except HTTPException as refusal:
            return str(refusal.detail)

    with ThreadPoolExecutor(6) as buyers:
        outcomes = sorted(buyers.map(buy, range(6)))
    assert outcomes.count("received") == 1
    assert sum("OUT_OF_STOCK" in outcome for outcome in outcomes) == 5
    with database.reading() as connection:
        assert books.find(connection, "carmilla").stock == 0


def test_workers_that_start_together_fill_a_new_file_once(tmp_path: Path) -> None:
    shelves = [Database(tmp_path / "shop.db") for _ in range(4)]
    with ThreadPoolExecutor(4) as workers:
        secrets = set(workers.map(Database.secret, shelves))
    assert len(secrets) == 1
    with shelves[0].reading() as connection:
        assert books.count(connection) > 100


def test_workers_that_share_a_file_share_sessions_and_orders(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with open_shop(database=path) as first, open_shop(database=path) as second:
        here = first.program()
        placed = order(here)
        there = second.program()
        there.cookies = here.cookies
        assert there.get(f"/orders/{placed['order_id']}").json() == placed


def test_a_shop_without_a_file_leaves_nothing_behind() -> None:
    database = Database()
    with database.reading() as connection:
        path = Path(connection.execute("PRAGMA database_list").fetchone()["file"])
    assert path.exists()
    del database, connection
    assert not path.exists()


def test_a_shop_that_closes_deletes_its_temporary_file_and_may_open_again() -> None:
    database = Database()
    for _ in range(2):
        with database.reading() as connection:
            path = Path(connection.execute("PRAGMA database_list").fetchone()["file"])
            assert books.count(connection) > 100
        database.close()
        assert not path.exists()


def test_the_file_a_shop_was_given_stays(tmp_path: Path) -> None:
    database = Database(tmp_path / "shop.db")
    database.prepare()
    database.close()
    assert (tmp_path / "shop.db").exists()


def test_a_browser_that_names_both_types_gets_html(shop: Shop) -> None:
    answer = shop.program().get("/", headers={"accept": "text/html, application/json;q=0.9"})
    assert answer.headers["content-type"].startswith("text/html")
    assert "Accept" in answer.headers["vary"]
    assert "Accept" in shop.program().get("/", headers=PROGRAM).headers["vary"]


def test_the_number_of_copies_in_the_basket_can_be_changed(shop: Shop) -> None:
    person = shop.person()
    sign_in(person)
    person.post("/basket", data={"slug": "emma", "quantity": 3})
    page = person.get("/basket")
    assert '<label class="visually-hidden" for="quantity-emma">Copies of Emma</label>' in page.text
    changed = person.post("/basket/quantity", data={"slug": "emma", "quantity": 2})
    assert (changed.status_code, changed.headers["location"]) == (303, "/basket")
    page = person.get("/basket")
    assert texts(page, "book-quantity") == ["2"]
    assert texts(page, "total-price") == ["$19.00"]


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({"slug": "emma", "quantity": 19}, "OUT_OF_STOCK"),
        ({"slug": "kim", "quantity": 1}, "NOT_IN_BASKET"),
        ({"slug": "no-such-book", "quantity": 1}, "NOT_IN_BASKET"),
    ],
)
def test_a_change_of_the_basket_that_cannot_be_is_refused(shop: Shop, form: dict[str, object], code: str) -> None:
    program = member(shop)
    assert program.post("/basket/quantity", data=form).json()["detail"]["code"] == "NOT_IN_BASKET"
    program.post("/basket", data={"slug": "emma"})
    assert program.post("/basket/quantity", data=form).json()["detail"]["code"] == code
    assert program.get("/basket").json()["copies"] == 1


@pytest.mark.parametrize("path", ["/", "/search?q=sea", "/books/emma", "/about", "/sign-in", "/basket", "/robots.txt"])
def test_head_is_answered_as_get_without_the_body(shop: Shop, path: str) -> None:
    person = member(shop)
    person.headers["accept"] = "text/html"
    whole, head = person.get(path), person.head(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    for name in ("content-type", "content-length", "vary", "link"):
        assert head.headers.get(name) == whole.headers.get(name)


def test_a_page_may_fetch_the_manifests_beside_it(shop: Shop) -> None:
    assert "connect-src 'self'" in shop.person().get("/").headers["content-security-policy"]


def test_signing_in_by_the_link_on_a_page_leads_back_to_it(shop: Shop) -> None:
    person = shop.person()
    person.get("/sign-in", headers={"referer": f"{ORIGIN}/books/emma"})
    assert sign_in(person).headers["location"] == "/books/emma"
