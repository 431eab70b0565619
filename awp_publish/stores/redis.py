"""The store that several machines share: a Redis server, version 6 or newer, not a cluster.

Each run is one call of a Lua script, which Redis carries out alone; all that waits is one pipeline, one round trip.
Time is the server's. What a call relies on must not be evicted: set `maxmemory-policy noeviction`. A job or an answer
survives a crash of the server as far as its append-only file does: set `appendonly yes`, and `appendfsync always`
where a `durable` run has to be on the disk when it is answered (with `everysec` it is within a second).
"""

from collections.abc import Callable, Sequence
from hashlib import sha1
from importlib.resources import files
from math import ceil
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
    NoScriptError,
    OutOfMemoryError,
    RedisError,
    TimeoutError as RedisTimeout,
)
from redis.retry import Retry

from awp_publish.problems import DeclarationError
from awp_publish.stores.batches import Answer, BatchedStore, Order, Request, Take
from awp_publish.stores.steps import unavailable
from awp_publish.stores.store import Add, Count, Counted, Look, Ran, Schedule, Seen, Step, Swap, Unschedule

LONGEST: Final = 10**14
"""Milliseconds that anything is kept at most (some 3,000 years): Redis refuses what would overflow."""

_Word: TypeAlias = bytes | int | float
_Command: TypeAlias = tuple[_Word, ...]


class RedisStore(BatchedStore):
    """Keeps everything under `awp:{namespace}:` on a Redis server.

    `url` is redis://, rediss:// (TLS) or unix://. `timeout` is how many seconds a request may wait and take. Raises
    DeclarationError for a URL that cannot be read, without repeating it: part of it may be a password.
    """

    def __init__(self, url: str, namespace: str, *, timeout: float = 2.0) -> None:
        _check(url)
        super().__init__(lambda: _Worker(url, namespace, timeout), timeout)


def _check(url: str) -> None:
    """Find the mistakes of a URL at start-up. Nothing is connected by that."""
    try:
        pool = redis.ConnectionPool.from_url(url)
        pool.connection_class(**pool.connection_kwargs)
        number = urlsplit(url).path.removeprefix("/")
        is_right = url.startswith("unix:") or not number or number.isdecimal()
    except (ValueError, TypeError, RedisError):
        is_right = False
    if not is_right:
        remedy = 'Write store="redis://host:6379/0", with a percent-encoded password redis://:password@host:6379/0.'
        raise DeclarationError("site", "store= is a Redis URL that cannot be read.", remedy) from None


class _Script:
    """A Lua script and the name under which the server knows it once it is loaded."""

    def __init__(self, name: str) -> None:
        self.text = files(__package__).joinpath(name).read_bytes()
        self.digest = sha1(self.text, usedforsecurity=False).hexdigest().encode()


class _Worker:
    """The one client, and the pipelines on it."""

    def __init__(self, url: str, namespace: str, timeout: float) -> None:
        never_again = Retry(NoBackoff(), 0)  # a run that is sent again might count twice
        self._client = redis.Redis.from_url(
            url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=never_again, retry_on_error=[]
        )
        self._client.connection_pool.connection_kwargs["decode_responses"] = False  # whatever the URL says
        self._prefix = f"awp:{namespace}"
        self._run = _Script("redis.lua")
        self._take = _Script("redis_take.lua")

    def carry_out(self, requests: Sequence[Request]) -> None:
        begun = [request for request in requests if request.begin()]
        try:
            replies = self._send([self._command(request.order) for request in begun])
        except (RedisError, OSError) as error:
            raise unavailable(_detail(error)) from error
        for request, reply in zip(begun, replies, strict=True):
            request.answer = _answer(request.order, reply)

    def close(self) -> None:
        self._client.close()

    def _send(self, commands: list[_Command]) -> list[object]:
        """One round trip; another two when the server has lost the scripts, or never had them."""
        replies = self._pipe(commands)
        again = [index for index, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if again:
            loads = [(b"SCRIPT", b"LOAD", script.text) for script in (self._run, self._take)]
            second = self._pipe([*loads, *(commands[index] for index in again)])
            for index, reply in zip(again, second[len(loads) :], strict=True):
                replies[index] = reply
        return replies

    def _pipe(self, commands: Sequence[_Command]) -> list[object]:
        if not commands:
            return []
        with self._client.pipeline(transaction=False) as pipeline:
            put: Callable[..., object] = pipeline.execute_command
            for command in commands:
                put(*command)
            return list(pipeline.execute(raise_on_error=False))

    def _command(self, order: Order) -> _Command:
        if isinstance(order, Take):
            key = self._name(":q:", order.queue)
            return (b"EVALSHA", self._take.digest, 1, key, order.lease, max(order.most, 0))
        keys = [self._name(_KINDS[type(step)], step[0]) for step in order.steps]
        words = [word for step in order.steps for word in _words(step)]
        return (b"EVALSHA", self._run.digest, len(keys), *keys, *words)

    def _name(self, kind: str, name: str) -> bytes:
        return _encode(self._prefix + kind + name)


_KINDS: Final[dict[type, str]] = {
    Count: ":c:",
    Look: ":v:",
    Add: ":v:",
    Swap: ":v:",
    Schedule: ":q:",
    Unschedule: ":q:",
}


def _words(step: Step) -> _Command:
    """A step as redis.lua reads it."""
    match step:
        case Count(_, most, seconds):
            return b"C", most, _milliseconds(seconds)
        case Look():
            return (b"L",)
        case Add(_, value, seconds):
            return b"A", value, _milliseconds(seconds)
        case Swap(_, old, None, seconds):
            return b"S", old, b"", 0, _milliseconds(seconds)
        case Swap(_, old, new, seconds):
            return b"S", old, new or b"", 1, _milliseconds(seconds)
        case Schedule(_, member, delay):
            return b"Q", _encode(member), delay
        case Unschedule(_, member):
            return b"U", _encode(member)


def _answer(order: Order, reply: Any) -> Answer | Exception:
    if isinstance(reply, Exception):
        return unavailable(_detail(reply))
    if isinstance(order, Take):
        return tuple(member.decode("utf-8", "surrogatepass") for member in reply)
    failed, *saw = reply
    return Ran(None if failed < 0 else failed, tuple(map(_seen, saw)))


def _seen(saw: Any) -> Seen:
    return Counted(saw[0], saw[1] / 1000) if isinstance(saw, list) else saw


def _milliseconds(seconds: float) -> int:
    return max(ceil(min(seconds * 1000, LONGEST)), 0)


def _detail(error: Exception) -> str:
    if isinstance(error, RedisTimeout):
        return "The site's store did not answer in time."
    if isinstance(error, OutOfMemoryError):
        return "The site's store is full."
    if isinstance(error, (RedisConnectionError, OSError)):
        return "The site's store cannot be reached."
    return "The site's store failed."


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
