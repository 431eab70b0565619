"""Search over the bookshop's own pages: its shelves are found, baskets are not."""

from typing import Any

import pytest

from demo_site.app import create_app
from tests.client import TestClient
from tests.demo_site.bookshop import ORIGIN


@pytest.mark.limit(120)  # it compiles more than a hundred pages
def test_books_are_found_and_read_and_nobodys_basket_is():
    app = create_app(ORIGIN, packing_pause=0, with_search=True)
    with TestClient(app, base_url=ORIGIN) as client:
        assert client.portal is not None
        options: Any = app.user_middleware[-2].kwargs
        pages: int = client.portal.call(options["site"].ask("search").ready)
        answer = client.post("/agents/actions/search", json={"query": "the white whale"}).json()
        assert pages > 100
        assert "/books/moby-dick" in [result["id"] for result in answer["results"]]
        page = client.post("/agents/actions/fetch", json={"id": "/books/moby-dick"}).json()
        assert "Call me Ishmael" in page["text"]
        assert page["url"] == f"{ORIGIN}/books/moby-dick"
        for closed in ("/basket", "/checkout", "/sign-in", "/agent.json"):
            assert client.post("/agents/actions/fetch", json={"id": closed}).status_code == 404
