"""What pages were turned into, remembered by their content, so that a page that has not changed is turned only once."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

OVERHEAD: Final = 512
"""Bytes that an entry takes besides what it holds."""


@dataclass(frozen=True, slots=True)
class Rendition:
    """A page in one of the formats: its bytes, their strong ETag, and the page's canonical address."""

    body: bytes
    etag: bytes
    canonical: bytes


class Memory(Generic[K]):
    """The renditions that were used last, as many as go into `most` bytes. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._kept: OrderedDict[K, Rendition] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> Rendition | None:
        """The rendition kept under a key, which is then the last that was used."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: K, rendition: Rendition) -> None:
        """Keep a rendition; those that were not used for the longest time make room. One that is too large is not."""
        size = _size_of(rendition)
        if size > self._most:
            return
        with self._lock:
            before = self._kept.pop(key, None)
            self._size += size - (_size_of(before) if before is not None else 0)
            self._kept[key] = rendition
            while self._size > self._most:
                self._size -= _size_of(self._kept.popitem(last=False)[1])


def _size_of(rendition: Rendition) -> int:
    return len(rendition.body) + len(rendition.canonical) + OVERHEAD
