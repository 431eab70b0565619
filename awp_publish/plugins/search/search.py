"""The search of one site: its two actions, and the index that they ask.

The answers have the shape that ChatGPT's deep research and company knowledge demand of an MCP server's tools `search`
and `fetch`: `{results: [{id, title, url}]}`, and `{id, title, text, url, metadata}`.

While the application runs, one task keeps the index up to date. Without a lifespan, the calls themselves read some of
the pages, as far as that is due. Of several processes that share an index, one reads the pages for all.
"""

import asyncio
import inspect
import logging
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field

from awp_publish.calls.threads import run_in_thread
from awp_publish.http.tasks import OwnedTasks
from awp_publish.model import seconds_of
from awp_publish.plugin import Context, DeclaredSite, Setup
from awp_publish.plugins.search.index import SqlitePageIndex
from awp_publish.plugins.search.options import Search
from awp_publish.plugins.search.page_index import MAX_QUERY, IndexedPage, PageIndex
from awp_publish.plugins.search.reading import RobotsUnknown, SitePages
from awp_publish.problems import InvalidOutput, PageNotFound
from awp_publish.stores.store import unavailable
from awp_publish.stores.threads import ThreadsOfTheirOwn, is_gevent

logger: Final = logging.getLogger("awp_publish.search")

T = TypeVar("T")

MAX_RESULTS: Final = 10
MAX_ID: Final = 8_000
FIRST_WAIT: Final = 10.0
"""Seconds that a call waits for the first reading of all pages."""

SLICE: Final = 5.0
"""Seconds that a call reads pages itself where no task does."""

MAX_FAILURES: Final = 10
"""Pages in a row that cannot be read, after which the rest are left for the next time."""

RECOVERY: Final = "Call search, and use the id of a result."

Query = Annotated[str, Field(max_length=MAX_QUERY, description="Words to look for.")]
PageId = Annotated[str, Field(max_length=MAX_ID, description="The id of a result of search.")]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page that was found."""

    id: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The pages that were found, the best first."""

    results: list[SearchResult]


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page: its main content as Markdown, and what else is known of it."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


class SiteSearch:
    """The search of one site."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._pages: SitePages | None = None
        self._index: _IndexThread | None = None
        self._is_kept = False
        self._is_refreshing = False
        self._first: asyncio.Event | None = None
        self._said = ""

    @property
    def options(self) -> Search:
        options: Search = self._setup.options
        return options

    def attach(self, context: Context) -> None:
        """Read the pages at an address of the site: the canonical one, which is the first."""
        if self._pages is None or self._pages.context.catalog.url == context.catalog.url:
            self._pages = SitePages(context)

    async def search(self, query: Query) -> SearchResults:
        """Search the pages of this site. Returns results with id, title and url, the best first; fetch reads one."""
        if self.options.by is not None:
            return SearchResults(list(self._own_results(await _call(self.options.by, query))))
        await self._catch_up()
        matches = await self._indexed().run(lambda index: index.search(query, MAX_RESULTS))
        return SearchResults([SearchResult(path, title, self._url(path)) for path, title in matches])

    async def fetch(self, id: PageId) -> FetchedPage:  # noqa: A002  (the name that its callers send)
        """Read a page of this site: the whole text of a result of search, as Markdown."""
        page = await (self._indexed_page(id) if self.options.by is None else self._public_page(id))
        if page is None:
            raise PageNotFound("No page that was indexed has this id.", recovery=RECOVERY)
        metadata = {"description": page.description, "last_modified": page.modified}
        facts = {name: value for name, value in metadata.items() if value}
        return FetchedPage(page.path, page.title, page.text, self._url(page.path), facts)

    def _url(self, path: str) -> str:
        return str(self._setup.site.settings.urls[0]) + path

    def _path(self, page_id: str) -> str:
        """Return the path of a page by its id, or by its address, as models may send it."""
        address = self._pages.address_of(page_id) if self._pages is not None else None
        return address.below("") if address is not None else ""

    async def _indexed_page(self, page_id: str) -> IndexedPage | None:
        await self._catch_up()
        path = self._path(page_id)
        return await self._indexed().run(lambda index: index.page(path))

    async def _public_page(self, page_id: str) -> IndexedPage | None:
        """Read a page now, for a site with a search of its own."""
        path, pages = self._path(page_id), self._pages
        if pages is None or not path:
            return None
        try:
            rules = await pages.robots()
        except RobotsUnknown:
            return None
        page = await pages.read(path) if pages.is_open(path, rules) else None
        return page if isinstance(page, IndexedPage) else None

    def _own_results(self, results: object) -> Iterable[SearchResult]:
        wrong = "by= has to return a list of results, each with a title and a url of this site."
        if not isinstance(results, Iterable) or isinstance(results, (str, bytes, Mapping)):
            raise InvalidOutput(wrong)
        for result in results:
            title, url = (
                (result.get("title"), result.get("url"))
                if isinstance(result, Mapping)
                else (getattr(result, "title", None), getattr(result, "url", None))
            )
            path = self._path(url) if isinstance(url, str) else ""
            if not isinstance(title, str) or not path:
                raise InvalidOutput(wrong)
            yield SearchResult(path, title, self._url(path))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the index up to date while the application runs."""
        if self.options.by is not None:
            yield
            return
        tasks = OwnedTasks()
        self._is_kept, self._first = True, asyncio.Event()
        tasks.start(self._keep(self._first), "awp_publish search")
        try:
            yield
        finally:
            self._is_kept = False
            await tasks.cancel()
            index, self._index = self._index, None
            if index is not None:
                await index.close()

    async def _keep(self, first: asyncio.Event) -> None:
        while True:
            try:
                await self.refresh()
            except Exception:  # of the disk, say: what is indexed stays, and the next time may be better
                logger.exception("the pages of this site could not be indexed")
            first.set()
            await asyncio.sleep(seconds_of(self.options.every))

    async def refresh(self, seconds: float | None = None) -> None:
        """Read all pages again, as far as that is possible in `seconds`; the rest of them come the next time."""
        pages, index = self._pages, self._indexed()
        if pages is None or self._is_refreshing:
            return
        self._is_refreshing = True
        try:
            if await index.run(lambda index: index.claim(time.time())):
                try:
                    await self._read_all(pages, index, None if seconds is None else time.monotonic() + seconds)
                finally:
                    await index.run(lambda index: index.release())
        finally:
            self._is_refreshing = False

    async def ready(self) -> int:
        """Wait until all pages were read once, and return how many are indexed."""
        if self._first is not None:
            await self._first.wait()
        return len(await self._indexed().run(lambda index: index.known()))

    async def _catch_up(self) -> None:
        """Wait for the first reading of all pages, or read some of them where no task does and it is time."""
        index = self._indexed()
        ended = await index.run(lambda index: index.ended())
        if self._is_kept:
            if not ended and self._first is not None:
                try:
                    async with asyncio.timeout(FIRST_WAIT):
                        await self._first.wait()
                except TimeoutError:
                    logger.info("a search is answered before all pages are indexed")
        elif not 0 <= time.time() - ended < seconds_of(self.options.every):
            await self.refresh(SLICE)

    async def _read_all(self, pages: SitePages, index: "_IndexThread", until: float | None) -> None:
        """Read the pages that were not read since this reading began, and forget those that are gone."""
        options, now = self.options, time.time()
        try:
            rules = await pages.robots()
        except RobotsUnknown:
            logger.warning("robots.txt fails, so it is not known what may be indexed; the index stays as it is")
            return
        indexed = await index.run(lambda index: index.known())
        begun, ended = await index.run(lambda index: (index.begun(), index.ended()))
        if ended >= begun or not 0 <= now - begun < 2 * seconds_of(options.every):
            begun = now
            await index.run(lambda index: index.begin(now))
        titles = await pages.addresses(rules, options.sitemaps, options.max_pages)
        is_more, paths = len(titles) > options.max_pages, list(titles)[: options.max_pages]
        for path in indexed.keys() - paths:
            await index.run(partial(_remove, path=path))
        indexed = {path: page for path, page in indexed.items() if path in titles}
        total, failures, refused = sum(page.size for page in indexed.values()), 0, 0
        for path in paths:
            before = indexed.get(path)
            if before is not None and begun <= before.checked <= now:
                continue
            if until is not None and time.monotonic() >= until:
                return
            page = await pages.read(
                path, titles[path], (before.etag, before.modified, before.digest) if before else ("", "", b"")
            )
            if not await index.run(lambda index: index.claim(time.time())):
                return  # another process believed this one gone
            failures = failures + 1 if page == "failed" else 0
            if failures >= MAX_FAILURES:
                logger.warning("%d pages in a row could not be read; the rest are left for the next time", failures)
                return
            size = before.size if before is not None else 0
            if isinstance(page, IndexedPage) and total - size + page.size <= options.max_bytes:
                total += page.size - size
                await index.run(partial(_put, page=page))
            elif isinstance(page, IndexedPage) or page == "gone":
                refused += page != "gone"
                total -= size
                await index.run(partial(_remove, path=path))
            elif page == "unchanged":
                await index.run(partial(_confirm, path=path))
        await index.run(lambda index: index.end(time.time()))
        self._say(len(paths), is_more, refused)

    def _say(self, pages: int, is_more: bool, refused: int) -> None:
        """Log what the owner should know, once."""
        words = ""
        if not pages:
            words = "Search() found no page: declare some with site.page(), or serve a sitemap.xml."
        elif is_more:
            words = f"The site has more than {pages} pages, and only these are indexed: see Search(max_pages=...)."
        elif refused:
            most = self.options.max_bytes
            words = f"Left out of the index because of Search(max_bytes={most}): {refused} of {pages} pages."
        if words and words != self._said:
            logger.warning("%s", words)
        self._said = words

    def _indexed(self) -> "_IndexThread":
        if self._index is None or self._index.process != os.getpid():  # servers fork
            self._index = _IndexThread(partial(open_index, self._setup.site))
        return self._index


def open_index(site: DeclaredSite) -> PageIndex:
    """Open the index of a site's pages: in the store's PostgreSQL, beside an SQLite store, or of this process."""
    settings = site.settings
    if is_in_postgres(settings.store):
        from awp_publish.plugins.search.postgres import PostgresPageIndex

        return PostgresPageIndex(settings.store, settings.namespace)
    if (path := path_beside(settings.store)) is not None:
        try:
            return SqlitePageIndex(path, settings.namespace)
        except sqlite3.Error as error:
            logger.warning("%s cannot be used (%s); this process keeps an index of its own", path, error)
    return SqlitePageIndex(None, settings.namespace)


def is_in_postgres(store: object) -> bool:
    """Return True for the URL of a store whose database has the index, too."""
    return isinstance(store, str) and store.startswith("postgresql:")


def path_beside(store: object) -> str | None:
    """Return the file of the index beside an SQLite store, None where the store is another."""
    if not isinstance(store, str) or not store.startswith("sqlite:///"):
        return None
    path = Path(store.removeprefix("sqlite:///"))
    return os.path.abspath(path.with_name(f"{path.stem}-search{path.suffix}"))


def _put(index: PageIndex, page: IndexedPage) -> None:
    index.put(page, time.time())


def _confirm(index: PageIndex, path: str) -> None:
    index.confirm(path, time.time())


def _remove(index: PageIndex, path: str) -> None:
    index.remove(path)


async def _call(function: Callable[..., Any], query: str) -> object:
    answer = function(query) if inspect.iscoroutinefunction(function) else await run_in_thread(lambda: function(query))
    return await answer if inspect.isawaitable(answer) else answer


class _IndexThread:
    """The thread in which an index is opened and used, and the process that has it."""

    def __init__(self, opens: Callable[[], PageIndex]) -> None:
        self.process = os.getpid()
        self._opens = opens
        self._index: PageIndex | None = None
        threads: Executor = (
            ThreadsOfTheirOwn(is_single=True) if is_gevent() else ThreadPoolExecutor(1, "awp_publish search")
        )
        self._threads = threads

    async def run(self, function: Callable[[PageIndex], T]) -> T:
        """Call a function of the index in its thread."""

        def call() -> T:
            if self._index is None:
                self._index = self._opens()
            return function(self._index)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except sqlite3.Error as error:
            logger.exception("the index of pages failed")
            raise unavailable("The search index of this site failed.") from error

    async def close(self) -> None:
        def close() -> None:
            if self._index is not None:
                self._index.close()
                self._index = None

        await asyncio.get_running_loop().run_in_executor(self._threads, close)
        self._threads.shutdown(wait=False)
