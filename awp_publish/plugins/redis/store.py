"""A store that several machines share: a Redis server, version 6 or newer, or a Valkey. For a cluster, see `cluster`.

Each run is one call of a Lua script, which Redis executes atomically; all waiting requests are one pipeline, one round
trip. Time is the server's. A server that was paused executes, once it resumes, what it was sent meanwhile; so each run
carries its deadline, in the server's time, and is refused after it. That time is asked for about once a second.

What a call relies on must not be evicted: set `maxmemory-policy noeviction`. A job or an answer survives a crash of the
server only as far as its append-only file does: set `appendonly yes`, and `appendfsync always` where a `durable` run
has to be on disk when it is answered (with `everysec` it is within a second).

Where a replica takes the place of a primary that is gone (sentinels, a cluster), it has only what was copied to it. So
a batch with a claim or a `durable` run waits until a connected replica has it; if none has it in time, the durable runs
are answered as unavailable, although they were carried out. What is not durable may be lost with a primary.
"""

import time
from collections.abc import Callable, Sequence
from hashlib import sha1
from importlib.resources import files
from math import ceil
from typing import Any, Final, TypeAlias

import redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
    NoScriptError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
    TimeoutError as RedisTimeout,
)
from redis.retry import Retry
from redis.sentinel import Sentinel

from awp_publish.plugins.redis.address import RedisAddress, read_address
from awp_publish.stores.batches import BatchedStore, BatchThread, RunSteps, StoreRequest, TakeDue
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

COPY_SECONDS: Final = 0.4
"""Seconds that a batch waits until a replica has it."""

_Argument: TypeAlias = bytes | int | float
_Command: TypeAlias = tuple[_Argument, ...]


class RedisStore(BatchedStore):
    """Keeps everything under `awp:{namespace}:` on a Redis server.

    `url` is redis://, rediss:// (TLS) or unix://, or redis+sentinel://host,host/name for the primary that sentinels
    know by a name. `timeout` limits the seconds from a request to its answer. Raises DeclarationError for a URL that
    cannot be read, without repeating it: it may contain a password.
    """

    def __init__(self, url: str, namespace: str, *, timeout: float = 2.0) -> None:
        address = read_address(url)

        def start() -> BatchThread:
            client, has_replicas = _connect(address, timeout), address.kind == "sentinel"
            return BatchThread(RedisBackend(client, namespace, has_replicas=has_replicas))

        super().__init__(start, timeout)


def client_options(timeout: float) -> dict[str, Any]:
    """Return the options of every connection, whatever its URL says. Nothing is sent twice: a run might count twice."""
    no_retry = Retry(NoBackoff(), 0)
    timeouts = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    return {**timeouts, "retry": no_retry, "retry_on_error": [], "decode_responses": False}


def _connect(address: RedisAddress, timeout: float) -> "redis.Redis":
    options = client_options(timeout)
    if address.kind == "sentinel":
        sentinel = Sentinel(address.hosts, sentinel_kwargs=options)  # type: ignore[no-untyped-call]
        primary_of: Callable[..., redis.Redis] = sentinel.master_for
        return primary_of(address.primary, **{**address.options, **options})
    parse: Callable[[str], dict[str, Any]] = parse_url
    # `from_url` would prefer what the URL says of timeouts, retries and decoding.
    return redis.Redis.from_pool(redis.ConnectionPool(**{**parse(address.url), **options}))


class _Script:
    """A Lua script and the digest by which the server knows it once it is loaded."""

    def __init__(self, name: str) -> None:
        self.text = files(__package__).joinpath(name).read_bytes()
        self.digest = sha1(self.text, usedforsecurity=False).hexdigest().encode()


class RedisBackend:
    """A client of one server and its pipelines.

    With `has_replicas`, claims and durable runs wait for one. `refused` returns what is answered for an error of the
    server to one run; before each command the client sends `before`.
    """

    def __init__(
        self,
        client: "redis.Redis",
        namespace: str,
        *,
        has_replicas: bool = False,
        refused: "Callable[[Exception], Exception] | None" = None,
        before: tuple[_Command, ...] = (),
    ) -> None:
        self._client = client
        self._has_replicas = has_replicas
        self._refused = refused or (lambda error: unavailable(detail_of(error)))
        self._before = before
        self._namespace = namespace
        self._replicas = 0
        """Replicas that are connected to the server, as it said when it was asked for its time."""
        self._is_copied = True
        """Whether a replica has the last batch, if one is connected and something waited for it."""
        self._run = _Script("redis.lua")
        self._take = _Script("redis_take.lua")
        self._clock_offset: float | None = None
        self._offset_measured = 0.0

    def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        pending = [request for request in requests if request.commit()]  # what has been sent cannot be recalled
        try:
            replies = self._send(pending)
        except (RedisError, OSError) as error:
            self._clock_offset = None  # it may be another server that answers next
            raise unavailable(detail_of(error)) from error
        for request, reply in zip(pending, replies, strict=True):
            if isinstance(reply, Exception):
                request.answer = self._refused(reply)
            elif not self._is_copied and isinstance(request.order, RunSteps) and request.order.durable:
                request.answer = unavailable("The site's store did not confirm in time.")
            elif isinstance(request.order, TakeDue):
                request.answer = tuple(map(decode, reply))
            else:
                failed, *saw = reply
                seen = (Counted(reply[0], reply[1] / 1000) if isinstance(reply, list) else reply for reply in saw)
                request.answer = Ran(None if failed < 0 else failed, tuple(seen))

    def tidy(self) -> None:
        """Do nothing: there is no deferred work."""

    def close(self) -> None:
        self._client.close()

    def _send(self, requests: Sequence[StoreRequest]) -> list[Any]:
        """Send requests in one round trip, and again those for which the server lacked a script or we its time."""
        if not requests:
            return []
        began = time.monotonic()
        is_claim = self._has_replicas and any(map(_has_to_be_copied, requests))
        replies = self._pipe([self._command(request) for request in requests], is_claim=is_claim)
        lost = any(isinstance(reply, NoScriptError) for reply in replies)
        again = [
            index
            for index, reply in enumerate(replies)
            if isinstance(reply, NoScriptError) or (_is_late(reply) and time.monotonic() < requests[index].deadline)
        ]
        if again and self._offset_measured < began:
            self._pipe([])  # measures the clock offset anew
        if again:
            loads = [(b"SCRIPT", b"LOAD", script.text) for script in (self._run, self._take)] if lost else []
            commands = [*loads, *(self._command(requests[index]) for index in again)]
            second = self._pipe(commands, is_claim=is_claim)
            for index, reply in zip(again, second[len(loads) :], strict=True):
                replies[index] = reply
        return replies

    def _pipe(self, commands: Sequence[_Command], *, is_claim: bool = False) -> list[object]:
        waits, self._is_copied = is_claim and self._replicas > 0, True
        with self._client.pipeline(transaction=False) as pipeline:
            put: Callable[..., object] = pipeline.execute_command
            for command in commands:
                for each in (*self._before, command):
                    put(*each)
            sent = time.monotonic()
            measures = not commands or self._clock_offset is None or sent - self._offset_measured >= CLOCK_INTERVAL
            if measures:
                put("TIME")
                if self._has_replicas:
                    put("ROLE")
            if waits:
                put("WAIT", 1, int(COPY_SECONDS * 1000))
            replies = list(pipeline.execute(raise_on_error=False))
        if waits:
            copies = replies.pop()
            self._is_copied = isinstance(copies, int) and copies > 0
        if measures and self._has_replicas:
            role = replies.pop()
            self._replicas = len(role[2]) if isinstance(role, list) and role[0] == b"master" else 0
        server_time = replies.pop() if measures else None
        replies = replies[len(self._before) :: len(self._before) + 1]
        if not measures:
            return replies
        received = time.monotonic()
        if not isinstance(server_time, tuple):
            self._clock_offset = None
            return replies
        # The server's clock read `there` at some moment between `sent` and `received` of ours: keep by how much it is
        # ahead at least. An earlier measurement that is still possible is kept.
        there = server_time[0] + server_time[1] / 1_000_000
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
            key = queue_name(self._namespace, order.queue)
            return (b"EVALSHA", self._take.digest, 1, key, deadline, order.lease, max(order.most, 0))
        keys = [name_of(self._namespace, step) for step in order.steps]
        arguments = [argument for step in order.steps for argument in _arguments(step)]
        return (b"EVALSHA", self._run.digest, len(keys), *keys, deadline, *arguments)


def name_of(namespace: str, step: Step) -> bytes:
    """Return the name of a step's key or queue on the server."""
    return encode(f"awp:{namespace}{_KINDS[type(step)]}{step[0]}")


def queue_name(namespace: str, queue: str) -> bytes:
    """Return the name of a queue on the server."""
    return encode(f"awp:{namespace}:q:{queue}")


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


def _has_to_be_copied(request: StoreRequest) -> bool:
    """Return True for what must not be done twice, or was accepted: a replica has to know of it."""
    order = request.order
    return isinstance(order, RunSteps) and (order.durable or any(type(step) is Add for step in order.steps))


def _is_late(reply: object) -> bool:
    return isinstance(reply, ResponseError) and str(reply).startswith(LATE)


def _milliseconds(seconds: float) -> int:
    return max(ceil(min(seconds * 1000, MAX_MILLISECONDS)), 0)


def detail_of(error: Exception) -> str:
    if isinstance(error, RedisTimeout) or _is_late(error):
        return "The site's store did not answer in time."
    if isinstance(error, OutOfMemoryError):
        return "The site's store is full."
    if isinstance(error, (RedisConnectionError, OSError)):
        return "The site's store cannot be reached."
    return "The site's store failed."
