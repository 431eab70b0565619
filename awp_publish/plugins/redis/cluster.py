"""A store in a Redis or Valkey Cluster.

Each primary has a thread, a connection and batches of its own, so that one which is slow or gone holds up no call of
the others. A key's slot is Redis's own: the hash of its text in the first braces. Runs on one slot are those of one
server; for runs on several, see `shards`.

A server without the slot refuses a run before it does anything (MOVED, ASK, TRYAGAIN, CLUSTERDOWN), and the run is sent
to the one that has it. A run that was sent and not answered is never sent again.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, cast

import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    TryAgainError,
)

from awp_publish.plugins.redis.address import RedisAddress, read_address
from awp_publish.plugins.redis.shards import look_everywhere, run_stretches
from awp_publish.plugins.redis.store import RedisBackend, client_options, detail_of, name_of, queue_name
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.batches import Answer, BatchedStore, BatchThread, Order, RunSteps, StoreRequest, TakeDue
from awp_publish.stores.store import Look, Ran, Step, unavailable

PAUSE: Final = 0.05
"""Seconds after which a run is sent again that found its slot moving, or the cluster without a primary for it."""

_LOAD: Final = RunSteps((), False)
_REFUSALS: Final = (MovedError, AskError, TryAgainError, ClusterDownError, MasterDownError, ReadOnlyError)
"""Errors with which a server refuses a whole run, because it has not got its slot."""


class _Refused(Exception):
    """A server has refused a run, and done nothing of it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _Server(NamedTuple):
    """A server as runs are sent to it. One that `is_asked` is sent runs on slots that it is just getting."""

    host: str
    port: int
    is_asked: bool = False


class RedisClusterStore:
    """Keeps everything under `awp:{namespace}:` in a cluster.

    `url` is redis+cluster://host:port,host:port (rediss+cluster:// with TLS), with some of its servers. `timeout`
    limits the seconds from a request to its answer. Raises DeclarationError for a URL that cannot be read.
    """

    is_shared: Final = True

    def __init__(self, url: str, namespace: str, *, timeout: float = 2.0) -> None:
        self._address = read_address(url)
        self._namespace = namespace
        self._timeout = timeout
        self._map = _Map(self._address, timeout)
        self._servers: dict[_Server, BatchedStore] = {}

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps, in one round trip if all are of one place. Raises StoreUnavailable."""
        if not steps:
            return Ran(None, ())
        end = time.monotonic() + self._timeout

        async def run(slot: object, steps: tuple[Step, ...]) -> Ran:
            return cast(Ran, await self._ask(cast(int, slot), RunSteps(steps, durable), end))

        if all(type(step) is Look for step in steps):
            return await look_everywhere(cast(Sequence[Look], steps), self._slot_of, run)
        return await run_stretches(steps, self._slot_of, run)

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        slot = key_slot(queue_name(self._namespace, queue))
        end = time.monotonic() + self._timeout
        return cast(tuple[str, ...], await self._ask(slot, TakeDue(queue, lease, most), end))

    async def close(self) -> None:
        """Carry out what is waiting, then end the threads and close their connections."""
        await asyncio.gather(self._map.close(), *(server.close() for server in self._servers.values()))

    def _slot_of(self, step: Step) -> int:
        return key_slot(name_of(self._namespace, step))

    async def _ask(self, slot: int, order: Order, end: float) -> Answer:
        """Have the server that has a slot carry out an order before the `end` (monotonic)."""
        redirected: _Server | None = None
        while (remaining := end - time.monotonic()) > 0:
            server = redirected or self._map.server_of(slot)
            if server is None:
                await self._map.ask(_LOAD, remaining)
                if self._map.server_of(slot) is None:
                    await asyncio.sleep(PAUSE)
                continue
            redirected = None
            try:
                return await self._store_at(server).ask(order, remaining)
            except StoreUnavailable:
                self._map.hint(_LOAD)
                raise
            except _Refused as refused:
                error = refused.error
                if isinstance(error, MovedError):  # first, since redis-py takes it for an AskError, too
                    self._map.move(slot, _Server(error.host, error.port))
                    self._map.hint(_LOAD)
                elif isinstance(error, AskError):
                    redirected = _Server(error.host, error.port, is_asked=True)
                else:
                    self._map.hint(_LOAD)
                    await asyncio.sleep(PAUSE)
        raise unavailable("The site's store did not answer in time.")

    def _store_at(self, server: _Server) -> BatchedStore:
        store = self._servers.get(server)
        if store is None:
            start = partial(_connect, self._address, server, self._namespace, self._timeout)
            store = self._servers.setdefault(server, BatchedStore(start, self._timeout))
        return store


def _connect(address: RedisAddress, server: _Server, namespace: str, timeout: float) -> BatchThread:
    options = {**address.options, **client_options(timeout)}
    client = redis.Redis(host=server.host, port=server.port, **options)
    before = ((b"ASKING",),) if server.is_asked else ()
    return BatchThread(RedisBackend(client, namespace, has_replicas=True, refused=_refusal, before=before))


def _refusal(error: Exception) -> Exception:
    return _Refused(error) if isinstance(error, _REFUSALS) else unavailable(detail_of(error))


class _Map(BatchedStore):
    """The servers by slot. Any order loads them anew, in a thread of its own."""

    def __init__(self, address: RedisAddress, timeout: float) -> None:
        self._slots: dict[int, _Server] = {}
        super().__init__(lambda: BatchThread(_MapBackend(address, timeout, self._replace)), timeout)

    def server_of(self, slot: int) -> _Server | None:
        return self._slots.get(slot)

    def move(self, slot: int, server: _Server) -> None:
        """Note where a slot has moved."""
        self._slots[slot] = server

    def _replace(self, slots: dict[int, _Server]) -> None:
        self._slots = slots


class _MapBackend:
    """Asks the servers of a cluster for its slots."""

    def __init__(self, address: RedisAddress, timeout: float, loaded: Callable[[dict[int, _Server]], None]) -> None:
        self._hosts = dict.fromkeys(address.hosts)
        self._options = {**address.options, **client_options(timeout / 2)}
        self._loaded = loaded

    def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        nodes = [ClusterNode(host, port) for host, port in self._hosts]  # type: ignore[no-untyped-call]
        try:
            cluster = RedisCluster(startup_nodes=nodes, require_full_coverage=False, **self._options)
        except (RedisError, RedisClusterException, OSError) as error:
            raise unavailable("The site's store cannot be reached.") from error
        try:
            primaries = {slot: nodes[0] for slot, nodes in cluster.nodes_manager.slots_cache.items()}
            get_nodes: Callable[[], Iterable[ClusterNode]] = cluster.get_nodes
            self._hosts |= dict.fromkeys((node.host, node.port) for node in get_nodes())
        finally:
            cluster.close()
        servers = {node.name: _Server(node.host, node.port) for node in primaries.values()}
        self._loaded({slot: servers[node.name] for slot, node in primaries.items()})
        for request in requests:
            request.answer = Ran(None, ())

    def tidy(self) -> None:
        """Do nothing: there is no deferred work."""

    def close(self) -> None:
        """Do nothing: connections are closed at once."""
