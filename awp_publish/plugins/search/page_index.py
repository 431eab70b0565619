"""What an index of a site's pages keeps and can do."""

import re
from dataclasses import dataclass
from typing import Final, Protocol

MAX_QUERY: Final = 2_000
MAX_WORDS: Final = 32
"""Different words of a query that count."""

MAX_WORD: Final = 100

LEASE_SECONDS: Final = 120.0
"""For how long a process may write without saying again that it does. Reading one page takes no longer."""

_WORD: Final = re.compile(r"[^\W_]+")
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
"""Kana and Han, between which no spaces are written."""

_LINK_TARGET: Final = re.compile(r"\]\([^()\s]*\)")


def words_of(text: str) -> str:
    """Return a text as it is indexed: without the addresses of links, and with spaces around Han and Kana."""
    return _UNSPACED.sub(r" \g<0> ", _LINK_TARGET.sub("] ", text))


def query_words(query: str) -> list[str]:
    """Return the different words of a query; one of Han or Kana is its characters, with spaces between them."""
    words = dict.fromkeys(word[:MAX_WORD] for word in _WORD.findall(query[:MAX_QUERY]))
    return [words_of(word).strip() for word in words][:MAX_WORDS]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedPage:
    """A page as it was read: its address below the site's url, its words, and what tells whether it has changed."""

    path: str
    title: str
    text: str
    description: str = ""
    modified: str = ""
    etag: str = ""
    digest: bytes = b""

    @property
    def size(self) -> int:
        return len(self.text.encode())


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of a page to ask whether it has changed. `checked` is when that was last asked."""

    etag: str
    modified: str
    digest: bytes
    checked: float
    size: int


class PageIndex(Protocol):
    """The pages of one site. Several processes may share an index: a lease lets one of them write at a time.

    It is used in one thread, and its methods may block. They raise StoreUnavailable, or the database's own error.
    """

    def search(self, query: str, most: int, /) -> list[tuple[str, str]]:
        """Return the paths and titles of the best pages, the best first. Accepts any text."""

    def page(self, path: str, /) -> IndexedPage | None:
        """Return an indexed page."""

    def known(self) -> dict[str, Known]:
        """Return what is remembered of each page, by path."""

    def begun(self) -> float:
        """Return when the last reading of all pages began, 0 if there was none."""

    def ended(self) -> float:
        """Return when the last reading of all pages ended, 0 if there was none."""

    def begin(self, now: float, /) -> None:
        """Note that a reading of all pages begins."""

    def end(self, now: float, /) -> None:
        """Note that all pages were read."""

    def claim(self, now: float, /) -> bool:
        """Claim the right to write, or keep it. Returns False if another process has it."""

    def release(self) -> None:
        """Give up the right to write."""

    def put(self, page: IndexedPage, now: float, /) -> None:
        """Index a page, in place of what it was before."""

    def confirm(self, path: str, now: float, /) -> None:
        """Note that a page has not changed."""

    def remove(self, path: str, /) -> None:
        """Forget a page."""

    def close(self) -> None: ...
