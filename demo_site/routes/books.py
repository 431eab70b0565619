"""Searching the shelves and looking at one book."""

from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Path, Query, Response

from awp_publish import Site
from demo_site import agents, books
from demo_site.answers import CurrentAnswer, page_responses
from demo_site.database import Database
from demo_site.models import Book, SearchResults, Sort

SearchText = Annotated[
    str,
    Query(
        description="Words, or their beginnings, of title, author and subjects; empty for all books.", max_length=200
    ),
]
SortOrder = Annotated[Sort, Query(description="By relevance, title, author, year or price.")]
PageNumber = Annotated[int, Query(description="Which page of the list.", ge=1, le=1000)]
PageSize = Annotated[int, Query(description="How many books on a page.", ge=1, le=50)]
BookSlug = Annotated[str, Path(description="Name of the book, as in a search result.", examples=["moby-dick"])]

BOOK_LIST = {
    "type": "list",
    "selector": ".book-results",
    "itemSelector": ".book",
    "properties": {
        "title": ".book-title",
        "author": ".book-author",
        "year": ".book-year",
        "opening_line": ".book-opening",
        "price_cents": ".book-price",
    },
    "pagination": {"selector": ".pagination", "nextButton": ".next-page", "currentPage": ".current-page"},
}
BOOK_PAGE = {
    "type": "single",
    "selector": ".book-details",
    "properties": {"title": ".book-title", "author": ".book-author", "price_cents": ".book-price"},
}
BOOK_ON_LIST = "ol.book-results > li.book"
LISTED = {
    "title": {"selector": ".book-title", "property": "innerText", "trim": True, "required": True},
    "address": {"selector": ".book-title a, a.book-title", "attribute": "href", "required": True},
    "cents": {"selector": ".book-price", "attribute": "value"},
}
LISTED_BOOK = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "slug": {"type": "string"}, "cents": {"type": "integer"}},
    "required": ["title", "slug"],
}
LISTED_BOOKS = {
    "type": "object",
    "properties": {"books": {"type": "array", "items": LISTED_BOOK}},
    "required": ["books"],
}
SEARCH_FIELDS = {"q": "form.search-form input[name='q']", "sort": "form.search-form select[name='sort']"}


ON_THE_FRONT_TABLE = {"moby-dick": "Moby-Dick", "emma": "Emma"}


def register_books(app: FastAPI, site: Site, database: Database) -> None:
    """Add the search page and the page of each book."""

    @app.get("/search", response_model=SearchResults, responses=page_responses())
    @site.page(
        id="search",
        title="All our books",
        guide="Search by words of a title, an author or a subject; read the list with the projection search.results.",
        actions=["search_books"],
        map={
            "targets": {
                "form": {"selector": "form.search-form", "role": "search"},
                "submit": {"selector": "form.search-form button", "text_contains": "Search"},
                "done": "p.result-count",
                "nothing": {"selector": "p.result-count", "text_contains": "Nothing on our shelves"},
            },
            "states": [
                {
                    "name": "results_visible",
                    "description": "At least one book is listed.",
                    "diagnostics": [{"name": "book", "target": {"selector": BOOK_ON_LIST}}],
                    "observables": ["results"],
                },
                {
                    "name": "nothing_found",
                    "description": "No book of ours matches.",
                    "diagnostics": [{"name": "message", "target": "nothing"}],
                },
            ],
            "state_projections": [
                {
                    "name": "results",
                    "description": "The books that the list shows.",
                    "snapshot": {
                        "extract": [{"id": "books", "selector": BOOK_ON_LIST, "many": True, "fields": LISTED}],
                        "projection": {
                            "expression": "{'books': $append([], records.books."
                            "{'title': title, 'slug': $substringAfter(address, '/books/'), 'cents': $number(cents)})}"
                        },
                        "output_schema": LISTED_BOOKS,
                    },
                    "summaries": [
                        {
                            "name": "titles",
                            "max_bytes": 12_000,
                            "expression": "{'count': $count(state.books), 'titles': $append([], state.books.title)}",
                        }
                    ],
                }
            ],
        },
    )
    @site.action(
        "search_books",
        awas={"type": "search", "selector": "form.search-form", "selectors": SEARCH_FIELDS, "result": BOOK_LIST},
        tags=["books"],
        rate_limit=agents.SEARCH_LIMIT,
        examples=[{"q": "sea"}, {"q": "austen", "sort": "year"}],
    )
    def search_books(
        answer: CurrentAnswer,
        q: SearchText = "",
        sort: SortOrder = Sort.relevance,
        page: PageNumber = 1,
        page_size: PageSize = 12,
    ) -> SearchResults | Response:
        """Search our books by title, author or subject."""
        with database.reading() as connection:
            results = books.search(connection, q, sort, page, page_size)
        return answer.page("search.html", results, {"page_size": page_size})

    @app.get("/books/{slug}", response_model=Book, responses=page_responses(HTTPStatus.NOT_FOUND))
    @site.page(
        id="book",
        title="One book",
        guide="Put copies into the basket with add_to_basket; you must be signed in.",
        actions=["add_to_basket"],
        map={"targets": {"form": "form.add-to-basket-form"}},
    )
    @site.action("show_book", tags=["books"], awas={"result": BOOK_PAGE}, examples=[{"slug": "moby-dick"}])
    def show_book(answer: CurrentAnswer, slug: BookSlug) -> Book | Response:
        """Read about one book: its opening line, price and how many copies are left."""
        with database.reading() as connection:
            book = books.find(connection, slug)
            neighbours = books.neighbours(connection, book)
        return answer.page("book.html", book, {"neighbours": neighbours})

    for slug, title in ON_THE_FRONT_TABLE.items():  # whoever reads one book's page knows them all
        site.page(f"/books/{slug}", title=title, description="Its opening line.")
