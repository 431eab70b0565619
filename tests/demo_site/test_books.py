"""The data of the shop: what can be checked of a book without reading it."""

import json
import re

import pytest

from demo_site.books import DATA, fold, search
from demo_site.database import Database
from demo_site.looks import LANGUAGES, binding, money
from demo_site.models import Book, Sort

BOOKS = json.loads(DATA.read_text(encoding="utf-8"))


def test_there_are_more_than_a_hundred_books_each_with_its_own_slug() -> None:
    slugs = [book["slug"] for book in BOOKS]
    assert len(slugs) >= 110
    assert len(slugs) == len(set(slugs))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug) for slug in slugs)


def test_no_title_is_there_twice() -> None:
    titles = [(book["title"], book["author"]) for book in BOOKS]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: str(book["slug"]))
def test_a_book_is_complete(book: dict[str, object]) -> None:
    checked = Book.model_validate(book)
    assert all(text.strip() == text != "" for text in (checked.title, checked.author, checked.opening_line))
    assert all(text.strip() == text != "" for text in checked.subjects)
    assert 1600 <= checked.year <= 1928, "public domain in the United States"
    assert checked.language in LANGUAGES
    assert checked.language == "en" or checked.translator is None
    assert checked.translator != ""
    assert 1 <= len(checked.subjects) <= 4
    assert 500 <= checked.price_cents <= 2500
    assert checked.stock >= 0
    assert '"' not in checked.opening_line
    assert checked.opening_line[-1] in ".!?:\N{RIGHT DOUBLE QUOTATION MARK}"


def test_a_book_sorts_under_the_name_of_its_author() -> None:
    for book in BOOKS:
        assert set(fold(book["author_sort"]).split()) == set(fold(book["author"]).split()), book["slug"]


def test_a_book_is_found_by_its_whole_title() -> None:
    with Database().reading() as connection:
        for book in BOOKS:
            found = search(connection, book["title"], Sort.relevance, 1, 12)
            assert book["slug"] in {book.slug for book in found.books}, book["title"]


def test_some_books_are_out_of_stock_and_eight_lie_on_the_front_table() -> None:
    assert any(book["stock"] == 0 for book in BOOKS)
    assert sum(book["front_table"] for book in BOOKS) == 8


def test_a_cover_is_always_the_same() -> None:
    assert binding("moby-dick") == binding("moby-dick")
    assert len({binding(book["slug"]) for book in BOOKS}) > 20


@pytest.mark.parametrize(("cents", "written"), [(5, "$0.05"), (950, "$9.50"), (123456, "$1,234.56")])
def test_a_price_is_written_with_two_decimals(cents: int, written: str) -> None:
    assert money(cents) == written
