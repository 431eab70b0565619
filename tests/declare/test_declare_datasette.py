"""A real ASGI application that nobody here wrote, wrapped from outside: Datasette, unchanged, over a small database."""

import sqlite3
from pathlib import Path

import pytest
from datasette.app import Datasette

from awp_publish import Site

ROWS = {
    "type": "array",
    "items": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
}
FILTERS = {
    "type": "object",
    "properties": {
        "year__gt": {"type": "integer", "description": "Books after this year."},
        "_sort": {"enum": ["title", "year"]},
        "_shape": {"const": "array"},
    },
    "required": ["_shape"],
    "additionalProperties": False,
}


@pytest.fixture
def library(tmp_path: Path):
    """Datasette as its own documentation starts it."""
    with sqlite3.connect(tmp_path / "library.db") as database:
        database.execute("create table books (id integer primary key, title text, year integer)")
        database.executemany("insert into books (title, year) values (?, ?)", [("Emma", 1815), ("Moby-Dick", 1851)])
    database.close()
    return Datasette([str(tmp_path / "library.db")], settings={"num_sql_threads": 0}).app()


def declare_reading_actions(site: Site) -> None:
    site.declare("list_databases", method="GET", path="/-/databases.json", description="List the databases.")
    site.declare(
        "find_books", method="GET", path="/library/books.json", description="Find books.", inputs=FILTERS, outputs=ROWS
    )
    site.declare("show_book", method="GET", path="/library/books/{id}.json", description="Show a book by its number.")


def test_actions_of_datasette_are_discovered(site, start, library):
    declare_reading_actions(site)
    front = start(library)
    assert list(front.agents()) == ["list_databases", "find_books", "show_book"]
    assert front.inputs("find_books")["properties"]["year__gt"]["type"] == "integer"
    assert front.inputs("show_book")["required"] == ["id"]
    assert front.action("find_books").method == "GET"


def test_actions_of_datasette_are_invoked(site, start, library):
    declare_reading_actions(site)
    front = start(library)
    assert [database["name"] for database in front.call("list_databases", {})] == ["library"]
    found = front.call("find_books", {"_shape": "array", "year__gt": 1820})
    assert found == [{"id": 2, "title": "Moby-Dick", "year": 1851}]
    assert front.call("show_book", {"id": "1"})["rows"] == [[1, "Emma", 1815]]


def test_refusals_of_datasette_are_passed_on_and_wrong_inputs_never_reach_it(site, start, library):
    declare_reading_actions(site)
    front = start(library)
    assert front.ask("show_book", {"id": "99"}).status_code == 404
    assert front.ask("find_books", {"_shape": "objects"}).json()["code"] == "INVALID_INPUT"


def test_all_other_paths_are_datasettes_own(site, start, library):
    declare_reading_actions(site)
    front = start(library)
    page = front.client.get("/library/books")
    assert page.status_code == 200
    assert "Moby-Dick" in page.text
