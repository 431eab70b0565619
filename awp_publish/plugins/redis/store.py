"""A store that several machines share: a Redis server, version 6 or newer, not a cluster.

Each run is one call of a Lua script, which Redis executes atomically; all waiting requests are one pipeline, one round
trip. Time is the server's. A server that was paused executes, once it resumes, what it was sent meanwhile; so each run
carries its deadline, in the server's time, and is refused after it. That time is asked for about once a second.

What a call relies on must not be evicted: set `maxmemory-policy noeviction`. A job or an answer survives a crash of the
server only as far as its append-only file does: set `appendonly yes`, and `appendfsync always` where a `durable` run
has to be on disk when it is answered (with `everysec` it is within a second).
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
    NEVER_EXPIRES,
    Add,
    Count,
    Counted,
    Look,
    Ran,
    Reserve,
    Schedule,
    Step,
    Swap,
    Unschedule,
    decode,
    encode,
    unavailable,
)

MAX_MILLISECONDS: Final = 10**14
"""The longest that anything is kept (some 3,000 years): Redis refuses values that would overflow."""

LATE: Final = "LATE"
"""The prefix of the error with which the scripts refuse to run after the deadline."""

CLOCK_INTERVAL: Final = 1.0
"""Seconds after which a pipeline asks for the server's time again."""

MAX_CLOCK_AGE: Final = 60.0
"""Seconds for which a measured clock offset is relied on: clocks drift."""

_Argument: TypeAlias = bytes | int | float
_Command: TypeAlias = tuple[_Argument, ...]


class RedisStore(BatchedStore):
    """Keeps everything under `awp:{namespace}:` on a Redis server.

    `url` is redis://, rediss:// (TLS) or unix://. `timeout` limits the seconds from a request to its answer. Raises
    DeclarationError for a URL that cannot be read, without repeating it: it may contain a password.
    """

    def __init__(self, url: str, namespace: str, *, timeout: float = 2.0) -> None:
        try:  # so that mistakes are found at start-up; this does not connect
            pool = redis.ConnectionPool.from_url(url)
            pool.connection_class(**pool.connection_kwargs)
            number = urlsplit(url).path.removeprefix("/")
            is_valid = url.startswith("unix:") or not number or number.isdecimal()
        except (ValueError, TypeError, RedisError):
            is_valid = False
        if not is_valid:
            remedy = 'Write store="redis://host:6379/0", with a percent-encoded password redis://:password@host:6379/0.'
            raise DeclarationError("site", "store= is a Redis URL that cannot be read.", remedy) from None
        super().__init__(lambda: BatchThread(_RedisBackend(url, namespace, timeout)), timeout)


class _Script:
    """A Lua script and the digest by which the server knows it once it is loaded."""

    def __init__(self, name: str) -> None:
        self.text = files(__package__).joinpath(name).read_bytes()
        self.digest = sha1(self.text, usedforsecurity=False).hexdigest().encode()


class _RedisBackend:
    """The client and its pipelines."""

    def __init__(self, url: str, namespace: str, timeout: float) -> None:
        no_retry = Retry(NoBackoff(), 0)  # a run that is sent twice might count twice
        self._client = redis.Redis.from_url(
            url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=no_retry, retry_on_error=[]
        )
        self._client.connection_pool.connection_kwargs["decode_responses"] = False  # whatever the URL says
        self._prefix = f"awp:{namespace}"
        self._run = _Script("redis.lua")
        self._take = _Script("redis_take.lua")
        self._clock_offset: float | None = None
        self._offset_measured = 0.0

    def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        wanted = [request for request in requests if request.commit()]  # what has been sent cannot be recalled
        try:
            replies = self._send(wanted)
        except (RedisError, OSError) as error:
            self._clock_offset = None  # it may be another server that answers next
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
        """Do nothing: there is no deferred work."""

    def close(self) -> None:
        self._client.close()

    def _send(self, requests: Sequence[StoreRequest]) -> list[Any]:
        """Send requests in one round trip, and again those for which the server lacked a script or we its time."""
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
        if again and self._offset_measured < asked:
            self._pipe([])  # measures the clock offset anew
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
            if commands and self._clock_offset is not None and sent - self._offset_measured < CLOCK_INTERVAL:
                return list(pipeline.execute(raise_on_error=False))
            pipeline.time()
            *replies, told = pipeline.execute(raise_on_error=False)
        received = time.monotonic()
        if not isinstance(told, tuple):
            self._clock_offset = None
            return replies
        # The server's clock read `there` at some moment between `sent` and `received` of ours: keep by how much it is
        # ahead at least. An earlier measurement that is still possible is kept.
        there = told[0] + told[1] / 1_000_000
        if self._clock_offset is None or not there - received <= self._clock_offset <= there - sent:
            self._clock_offset = there - received
        self._offset_measured = received
        return replies

    def _command(self, request: StoreRequest) -> _Command:
        # In seconds of the server's clock. While that is unknown, a deadline in the past makes the script refuse.
        if request.may_be_late:
            deadline = NEVER_EXPIRES
        elif self._clock_offset is None or time.monotonic() - self._offset_measured > MAX_CLOCK_AGE:
            deadline = 0.0
        else:
            deadline = request.deadline + self._clock_offset
        order = request.order
        if isinstance(order, TakeDue):
            key = self._name(":q:", order.queue)
            return (b"EVALSHA", self._take.digest, 1, key, deadline, order.lease, max(order.most, 0))
        keys = [self._name(_KINDS[type(step)], step[0]) for step in order.steps]
        arguments = [argument for step in order.steps for argument in _arguments(step)]
        return (b"EVALSHA", self._run.digest, len(keys), *keys, deadline, *arguments)

    def _name(self, kind: str, name: str) -> bytes:
        return encode(self._prefix + kind + name)


_KINDS: Final[dict[type, str]] = {
    Count: ":c:",
    Look: ":v:",
    Add: ":v:",
    Swap: ":v:",
    Schedule: ":q:",
    Unschedule: ":q:",
    Reserve: ":c:",
}


def _arguments(step: Step) -> _Command:
    """Return a step as redis.lua reads it."""
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
        case Reserve(_, amount, most, seconds):
            return b"R", amount, -1 if most is None else max(most, 0), _milliseconds(seconds)


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
