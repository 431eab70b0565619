"""What the index of pages in PostgreSQL finds, and the words of queries and texts, whole.

Each is a transcript in `transcripts`. --golden writes them anew; read the change.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from awp_publish.plugins.search.page_index import IndexedPage, query_words, words_of
from awp_publish.plugins.search.postgres import PostgresPageIndex, plain
from tests.function_transcripts import compare

TEXTS = Path(__file__).parent / "transcripts"


def test_the_index_of_pages_finds_as_in_the_transcript(postgres_url, request):
    indexes: dict[str, PostgresPageIndex] = {}

    def index_at(name: str) -> PostgresPageIndex:
        """Return the index of a process, which is called after it and its site."""
        site = f"{name.partition(' ')[0]} of {os.getpid()}"
        return indexes.setdefault(name, PostgresPageIndex(postgres_url, site))

    def put(name: str, now: float, path: str, title: str, text: str, **facts: Any) -> None:
        facts["digest"] = facts.get("digest", "").encode()
        index_at(name).put(IndexedPage(path=path, title=title, text=text, **facts), now)

    def page(name: str, path: str) -> Any:
        found = index_at(name).page(path)
        return found and [found.path, found.title, found.text, found.description, found.modified, found.etag]

    def known(name: str) -> Any:
        found = sorted(index_at(name).known().items())
        return {path: [of.etag, of.modified, bytes(of.digest).decode(), of.checked, of.size] for path, of in found}

    def simply(method: str) -> Callable[..., Any]:
        return lambda name, *given: getattr(index_at(name), method)(*given)

    functions: dict[str, Callable[..., Any]] = {"page": page, "known": known, "plain": plain}
    functions["put"] = lambda name, now, path, title, text, facts=None: put(name, now, path, title, text, **facts or {})
    methods = "search begun ended begin end claim release confirm remove close"
    functions |= {method: simply(method) for method in methods.split()}
    try:
        compare(TEXTS / "postgres_pages.txt", functions, request)
    finally:
        for index in indexes.values():
            index.close()


def test_words_of_queries_and_texts(request):
    functions: dict[str, Callable[..., Any]] = {
        "words": words_of,
        "query": query_words,
        "count": lambda query: len(query_words(query)),
        "size": lambda text: IndexedPage(path="/", title="", text=text).size,
    }
    compare(TEXTS / "words.txt", functions, request)
