"""The store that several machines share: a Redis server, version 6 or newer, not a cluster.

Each run is one call of a Lua script, which Redis carries out alone; all that waits is one pipeline, one round trip.
Time is the server's. A server that was stopped for a while carries out what it was sent meanwhile when it goes on, so
each run brings its deadline, in the server's time, and is not carried out later. That time is asked for every second.
What a call relies on must not be evicted: set `maxmemory-policy noeviction`. A job or an answer
survives a crash of the server as far as its append-only file does: set `appendonly yes`, and `appendfsync always`
where a `durable` run has to be on the disk when it is answered (with `everysec` it is within a second).
"""

import time
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
    ResponseError,
    TimeoutError as RedisTimeout,
)
from redis.retry import Retry

from awp_publish.problems import DeclarationError
from awp_publish.stores.batches import BatchedStore, BatchThread, StoreRequest, TakeDue
from awp_publish.stores.store import (
    Add,
    Count,
    Counted,
    Look,
    Ran,
    Schedule,
    Step,
    Swap,
    Unschedule,
    decode,
    encode,
    unavailable,
)

MAX_MILLISECONDS: Final = 10**14
"""Milliseconds that anything is kept at most (some 3,000 years): Redis refuses what would overflow."""

NEVER: Final = 1e15
"""The deadline of what may be late, in seconds since 1970."""

LATE: Final = "LATE"
"""The beginning of the scripts' refusal to do anything, once the deadline has passed."""

CLOCK_INTERVAL: Final = 1.0
"""Seconds between two questions for the server's time, beside what we have to do there."""

MAX_CLOCK_AGE: Final = 60.0
"""For how long we rely on what we know of the server's clock: clocks go a little faster or slower than others."""

_Word: TypeAlias = bytes | int | float
_Command: TypeAlias = tuple[_Word, ...]


class RedisStore(BatchedStore):
    """Keeps everything under `awp:{namespace}:` on a Redis server.

    `url` is redis://, rediss:// (TLS) or unix://. `timeout` is how many seconds a request may wait and take. Raises
    DeclarationError for a URL that cannot be read, without repeating it: part of it may be a password.
    """

    def __init__(self, url: str, namespace: str, *, timeout: float = 2.0) -> None:
        try:  # so that mistakes are found at start-up; nothing is connected by that
            pool = redis.ConnectionPool.from_url(url)
            pool.connection_class(**pool.connection_kwargs)
            number = urlsplit(url).path.removeprefix("/")
            is_right = url.startswith("unix:") or not number or number.isdecimal()
        except (ValueError, TypeError, RedisError):
            is_right = False
        if not is_right:
            remedy = 'Write store="redis://host:6379/0", with a percent-encoded password redis://:password@host:6379/0.'
            raise DeclarationError("site", "store= is a Redis URL that cannot be read.", remedy) from None
        super().__init__(lambda: BatchThread(_RedisBackend(url, namespace, timeout)), timeout)


class _Script:
    """A Lua script and the name under which the server knows it once it is loaded."""

    def __init__(self, name: str) -> None:
        self.text = files(__package__).joinpath(name).read_bytes()
        self.digest = sha1(self.text, usedforsecurity=False).hexdigest().encode()


class _RedisBackend:
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
        self._ahead: float | None = None
        self._learned = 0.0

    def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        wanted = [request for request in requests if request.commit()]  # what is sent cannot be called back
        try:
            replies = self._send(wanted)
        except (RedisError, OSError) as error:
            self._ahead = None  # it may be another server that answers next
            raise unavailable(_detail(error)) from error
        for request, reply in zip(wanted, replies, strict=True):
            if isinstance(reply, Exception):
                request.answer = unavailable(_detail(reply))
            elif isinstance(request.order, TakeDue):
                request.answer = tuple(map(decode, reply))
            else:
                failed, *saw = reply
                seen = (Counted(one[0], one[1] / 1000) if isinstance(one, list) else one for one in saw)
                request.answer = Ran(None if failed < 0 else failed, tuple(seen))

    def tidy(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        self._client.close()

    def _send(self, requests: Sequence[StoreRequest]) -> list[Any]:
        """One round trip; another for those whom the server could not serve for want of a script or of its time."""
        if not requests:
            return []
        asked = time.monotonic()
        replies = self._pipe([self._command(request) for request in requests])
        lost = any(isinstance(reply, NoScriptError) for reply in replies)
        again = [
            index
            for index, reply in enumerate(replies)
            if isinstance(reply, NoScriptError) or (_is_late(reply) and time.monotonic() < requests[index].deadline)
        ]
        if again and self._learned < asked:
            self._pipe([])  # its clock is not what we thought
        if again:
            loads = [(b"SCRIPT", b"LOAD", script.text) for script in (self._run, self._take)] if lost else []
            second = self._pipe([*loads, *(self._command(requests[index]) for index in again)])
            for index, reply in zip(again, second[len(loads) :], strict=True):
                replies[index] = reply
        return replies

    def _pipe(self, commands: Sequence[_Command]) -> list[object]:
        with self._client.pipeline(transaction=False) as pipeline:
            put: Callable[..., object] = pipeline.execute_command
            for command in commands:
                put(*command)
            sent = time.monotonic()
            if commands and self._ahead is not None and sent - self._learned < CLOCK_INTERVAL:
                return list(pipeline.execute(raise_on_error=False))
            pipeline.time()
            *replies, told = pipeline.execute(raise_on_error=False)
        received = time.monotonic()
        if not isinstance(told, tuple):
            self._ahead = None
            return replies
        # The server's clock read `there` at some moment between `sent` and `received` of ours: keep by how much it is
        # ahead, never more than it is, as far as one can know.
        there = told[0] + told[1] / 1_000_000
        if self._ahead is None or not there - received <= self._ahead <= there - sent:
            self._ahead = there - received
        self._learned = received
        return replies

    def _command(self, request: StoreRequest) -> _Command:
        # In seconds of the server's clock. While that is unknown the deadline has passed, and nothing is done.
        if request.may_be_late:
            deadline = NEVER
        elif self._ahead is None or time.monotonic() - self._learned > MAX_CLOCK_AGE:
            deadline = 0.0
        else:
            deadline = request.deadline + self._ahead
        order = request.order
        if isinstance(order, TakeDue):
            key = self._name(":q:", order.queue)
            return (b"EVALSHA", self._take.digest, 1, key, deadline, order.lease, max(order.most, 0))
        keys = [self._name(_KINDS[type(step)], step[0]) for step in order.steps]
        words = [word for step in order.steps for word in _words(step)]
        return (b"EVALSHA", self._run.digest, len(keys), *keys, deadline, *words)

    def _name(self, kind: str, name: str) -> bytes:
        return encode(self._prefix + kind + name)


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
        case Schedule(_, member, delay, most):
            return b"Q", encode(member), delay, -1 if most is None else max(most, 0)
        case Unschedule(_, member):
            return b"U", encode(member)


def _is_late(reply: object) -> bool:
    return isinstance(reply, ResponseError) and str(reply).startswith(LATE)


def _milliseconds(seconds: float) -> int:
    return max(ceil(min(seconds * 1000, MAX_MILLISECONDS)), 0)


def _detail(error: Exception) -> str:
    if isinstance(error, RedisTimeout) or _is_late(error):
        return "The site's store did not answer in time."
    if isinstance(error, OutOfMemoryError):
        return "The site's store is full."
    if isinstance(error, (RedisConnectionError, OSError)):
        return "The site's store cannot be reached."
    return "The site's store failed."
