"""Search: the actions `search` and `fetch` over the site's own public pages."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from awp_publish.model import Catalog
from awp_publish.plugin import CallHooks, Context, Finding, Plugin, Serving, Setup
from awp_publish.plugins.search.options import Search
from awp_publish.problems import DeclarationError

if TYPE_CHECKING:
    from awp_publish.plugins.search.search import SiteSearch

TAG = "pages"


def _start(setup: Setup) -> "SiteSearch":
    from awp_publish.plugins.search.search import SiteSearch

    return SiteSearch(setup)


def _prepare(setup: Setup) -> None:
    """Declare the two actions, so that the same doors and gates apply to them."""
    for action_id, function in (("search", setup.state.search), ("fetch", setup.state.fetch)):
        try:
            setup.site.agent(action_id, effect="read", tags=[TAG])(function)
        except DeclarationError as error:
            wrong = f'Search() declares the action "{action_id}", and so does the site.'
            remedy = "Give the site's own another id, or make it the search of all pages: Search(by=function)."
            raise DeclarationError("site", wrong, remedy) from error


def _check(setup: Setup, catalog: Catalog) -> Iterator[Finding]:
    from awp_publish.plugins.search.index import has_full_text_search
    from awp_publish.plugins.search.search import is_in_postgres

    is_in_sqlite = setup.options.by is None and not is_in_postgres(setup.site.settings.store)
    if is_in_sqlite and not has_full_text_search():
        wrong = "plugins: Search() needs SQLite's FTS5, and Python's SQLite here was built without it."
        raise DeclarationError("site", wrong, "Use a Python with FTS5, or give Search(by=function).")
    yield from ()


def _attach(context: Context) -> CallHooks:
    context.state.attach(context)
    return CallHooks()


def _running(serving: Serving) -> AbstractAsyncContextManager[object]:
    search: SiteSearch = serving.state
    return search.running()


PLUGIN = Plugin(
    name="search",
    needs={"selectolax": "pages"},
    options=Search,
    start=_start,
    prepare=_prepare,
    check=_check,
    calls=_attach,
    running=_running,
)
