"""Keys that are published at an address: fetched when they are needed, cached and fetched again."""

import logging
import math
import threading
import time
from asyncio import wrap_future
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, Final, Generic, Protocol, TypeVar

import orjson

from awp_publish.http.outgoing import Deadline, request
from awp_publish.problems import TemporarilyUnavailable

logger: Final = logging.getLogger("awp_publish.calls")

FETCH_TIMEOUT: Final = 5.0
"""Seconds within which a server has to answer."""

FRESH_FOR: Final = 600.0
"""Seconds after which keys are fetched again."""

USABLE_FOR: Final = 3600.0
"""Seconds for which keys are used while they cannot be fetched again: a withdrawn key must not live on."""

PAUSE: Final = 10.0
"""Seconds between two fetches for unknown keys, and after a failed fetch, unless that has taken its whole time."""

MIN_RSA_BITS: Final = 2048
"""The smallest RSA key that is accepted (RFC 7518 section 3.3)."""


def fetch_json(
    url: str,
    *,
    most_bytes: int,
    is_public: bool = False,
    deadline: Deadline | None = None,
    accept: str = "application/json",
    media_types: tuple[str, ...] = (),
) -> object:
    """Return the JSON document at an address. Raises OSError and ValueError.

    With `is_public`, all addresses of the host must be public, and no proxy is used. If `media_types` are given, the
    answer must have one of them. Without a `deadline` it has FETCH_TIMEOUT seconds.
    """
    answer = request(
        "GET",
        url,
        headers={"Accept": accept},
        deadline=deadline or Deadline(FETCH_TIMEOUT),
        max_bytes=most_bytes,
        is_public=is_public,
        has_proxy=not is_public,
    )
    if answer.status != 200:
        raise ValueError(f"the answer has the status {answer.status}")
    media_type = answer.headers.get_content_type()
    if media_types and media_type not in media_types:
        raise ValueError(f"the answer is {media_type[:100]}, not {media_types[0]}")
    return orjson.loads(answer.body)


def signature_keys(document: object) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a JWK set (RFC 7517) that are for signatures. Raises ValueError if it is not a JWK set."""
    listed = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(listed, (list, tuple)):
        raise ValueError("it is not a JWK set: it has no list of keys")
    for entry in listed:
        if isinstance(entry, Mapping) and entry.get("use", "sig") == "sig":
            yield entry


Key = TypeVar("Key", covariant=True)


class Keys(Protocol[Key]):
    """Keys by name and algorithm."""

    def find(self, key_id: str | None, algorithm: str) -> Key | None: ...


class FetchedKeys(Generic[Key]):
    """Keys that are published at an address. Redirects are not followed.

    They are fetched when the first token arrives, in a thread of their own, one fetch at a time, which all who need it
    share. For unknown keys there is one fetch in PAUSE seconds: tokens with invented keys cost no more than that. Can
    be used by several event loops at once. `load` fetches the keys; `clock` returns monotonic seconds.
    """

    def __init__(self, url: str, load: Callable[[str], Keys[Key]], clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._load = load
        self._clock = clock
        self._known: Keys[Key] | None = None
        self._known_since = 0.0
        self._next_try = 0.0
        self._failed = False
        self._lock = threading.Lock()
        self._under_way: Future[None] | None = None

    async def find(self, key_id: str | None, algorithm: str) -> Key | None:
        """Return the key, None if there is none. Raises TemporarilyUnavailable while the keys cannot be read."""
        if self._is_stale():
            await self._fetch()
        key = self._usable().find(key_id, algorithm)
        if key is None and await self._fetch(for_unknown=True):
            key = self._usable().find(key_id, algorithm)
        if key is None and self._failed:
            raise self._unreadable()
        return key

    def _is_stale(self) -> bool:
        return self._known is None or self._age() >= FRESH_FOR

    def _age(self) -> float:
        return self._clock() - self._known_since

    def _has_usable(self) -> bool:
        return self._known is not None and self._age() < USABLE_FOR

    def _usable(self) -> Keys[Key]:
        if self._known is None or not self._has_usable():
            raise self._unreadable()
        return self._known

    def _unreadable(self) -> TemporarilyUnavailable:
        detail = "The site cannot read the keys of its authorization server at the moment."
        seconds = max(1, math.ceil(self._next_try - self._clock()))
        return TemporarilyUnavailable(detail, headers=[("Retry-After", str(seconds))])

    async def _fetch(self, for_unknown: bool = False) -> bool:
        """Wait for a fetch, a new one or the current one. Returns False if it is too soon, or none is needed."""
        with self._lock:
            if self._under_way is None:
                if self._clock() < self._next_try or not (for_unknown or self._is_stale()):
                    return False
                if for_unknown:
                    self._next_try = self._clock() + PAUSE
                self._under_way = future = Future[None]()
                future.set_running_or_notify_cancel()  # so that one waiting task cannot cancel it for the others
                threading.Thread(target=self._run, args=(future,), name="awp-publish-keys", daemon=True).start()
            under_way = self._under_way
        await wrap_future(under_way)
        return True

    def _run(self, future: "Future[None]") -> None:
        try:
            self._known = self._load(self._url)
            self._known_since, self._failed = self._clock(), False
        except Exception as error:
            self._failed = True
            # A fetch that ran out of time was a pause in itself. Without keys, the next one is made at once, so that
            # callers are known again as soon as the server is well.
            has_paused = isinstance(error, TimeoutError) and not self._has_usable()
            self._next_try = self._clock() + (0.0 if has_paused else PAUSE)
            logger.error("the keys at %s could not be read: %s", self._url, error)
        finally:
            with self._lock:
                self._under_way = None
            future.set_result(None)
