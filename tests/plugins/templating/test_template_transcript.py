"""What the functions of templates write of catalogs: `templates.txt`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from awp_publish.model import Catalog, DoorFacts, Page, RateLimit
from awp_publish.plugins import templating
from tests.documents.catalogs import BOOKSHOP, CATALOGS, make_action, make_catalog, make_route_action
from tests.function_transcripts import compare
from tests.installed import taken_out

PAGES: Final = (
    Page("/", "Front & first", 'All "books".'),
    Page("/books/{slug}", "A book"),
    Page("/books", "Books"),
    Page("/books/new/{month}/{day}", "New ones", "Of a day."),
    Page("/search", "Search"),
)
TEXT: Final = {"type": "string"}
WAYS: Final = BOOKSHOP.doors
SHOPS: Final[Mapping[str, Catalog]] = {
    **CATALOGS,
    "with pages": replace(BOOKSHOP, pages=PAGES, doors=(*BOOKSHOP.doors, *CATALOGS["pages"].doors)),
    "hidden": make_catalog(make_action("ping", audience="known"), make_action("pong", expose=("mcp",))),
    "searches": make_catalog(
        make_route_action("find", {"page": {"type": "integer"}, "kind": {"type": "string", "enum": ["a"]}, "q": TEXT}),
        url="https://shop.example/here",
        pages=PAGES[:1],
        doors=(*WAYS, DoorFacts("bridge", "1", "/bridge")),
    ),
    "searches by path": make_catalog(make_route_action("search_all", {"q": TEXT}, path="/s/{q}"), pages=PAGES[:1]),
    "searches with a limit": make_catalog(
        make_route_action("find", {"q": TEXT}, rate_limit=RateLimit(5)),
        make_route_action("look", {"words": TEXT}, type="search"),
        pages=PAGES[:1],
    ),
    "searches by POST": make_catalog(make_route_action("find", {"q": TEXT}, method="POST"), pages=PAGES[:1]),
    "finder": make_catalog(make_route_action("finder", {"q": TEXT}), pages=PAGES[:1]),
}


def _of(name: str) -> Callable[..., Any]:
    return lambda shop, *arguments, **options: getattr(templating, name)(SHOPS[shop], *arguments, **options)


def _head(shop: str, *arguments: Any) -> str:
    path, image, title = (*arguments, None, None, None)[:3]
    return templating.head_links(SHOPS[shop], path=path, image=image, title=title)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "action": _of("action_attributes"),
    "param": _of("param_attributes"),
    "result": _of("result_attributes"),
    "context": templating.context_attributes,
    "meta": _of("page_meta"),
    "data": _of("structured_data"),
    "shown": _of("structured_result"),
    "head": _head,
    "robots": _of("robots_lines"),
    "agents": _of("agents_script"),
    "tools": _of("webmcp_script"),
    "page": lambda shop, path: getattr(templating.find_page(SHOPS[shop], path), "path", None),
}


@pytest.mark.skipif(bool(taken_out()), reason="they link to what all plug-ins have")
def test_templates_write_what_was_reviewed(request):
    compare(Path(__file__).parent / "templates.txt", FUNCTIONS, request)
