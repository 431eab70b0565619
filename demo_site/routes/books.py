"""Searching the shelves and looking at one book."""

from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Path, Query, Response

from demo_site import books
from demo_site.answers import CurrentAnswer, page_responses
from demo_site.database import Database
from demo_site.models import Book, SearchResults, Sort

SearchText = Annotated[
    str, Query(description="Words of the title, the author or a subject; empty for all books.", max_length=200)
]
SortOrder = Annotated[Sort, Query(description="Order of the list.")]
PageNumber = Annotated[int, Query(description="Which page of the list.", ge=1, le=1000)]
PageSize = Annotated[int, Query(description="How many books on a page.", ge=1, le=50)]
BookSlug = Annotated[str, Path(description="Name of the book, as in a search result.", examples=["moby-dick"])]


def register_books(app: FastAPI, database: Database) -> None:
    """Add the search page and the page of each book."""

    @app.get("/search", response_model=SearchResults, responses=page_responses())
    def search_books(
        answer: CurrentAnswer,
        q: SearchText = "",
        sort: SortOrder = Sort.relevance,
        page: PageNumber = 1,
        page_size: PageSize = 12,
    ) -> SearchResults | Response:
        """Search our books by title, author or subject.

        Every word of the query must begin a word of the title, the author or a subject. Accents and case do not matter.
        """
        with database.reading() as connection:
            results = books.search(connection, q, sort, page, page_size)
        return answer.page("search.html", results, {"page_size": page_size})

    @app.get("/books/{slug}", response_model=Book, responses=page_responses(HTTPStatus.NOT_FOUND))
    def show_book(answer: CurrentAnswer, slug: BookSlug) -> Book | Response:
        """Read about one book: its opening line, price and how many copies are left."""
        with database.reading() as connection:
            book = books.find(connection, slug)
            neighbours = books.neighbours(connection, book)
        return answer.page("book.html", book, {"neighbours": neighbours})
