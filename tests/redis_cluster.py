"""A real Redis Cluster for tests: three primaries and three replicas, ended with the test or the session."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import redis

from tests.redis_server import RedisServer, find_binary, free_port

NODE_TIMEOUT = 1000
"""Milliseconds after which a server that does not answer is replaced."""

PATIENT = 3 * NODE_TIMEOUT
"""The same where none is killed: a busy machine may not answer for a second."""


class Cluster:
    """Six `redis-server` processes, every second one a replica."""

    def __init__(self, binary: str, directory: Path, node_timeout: int = NODE_TIMEOUT) -> None:
        self.servers = []
        for number in range(6):
            place = directory / f"node{number}"
            place.mkdir(parents=True)
            options = {
                "cluster-enabled": "yes",
                "cluster-node-timeout": node_timeout,
                "cluster-port": free_port(),
                "cluster-replica-validity-factor": 0,
                "repl-diskless-sync-delay": 0,
            }
            self.servers.append(RedisServer(binary, place, options))

    @property
    def url(self) -> str:
        """Names two of its servers; the others are found."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers[:2])

    def start(self) -> None:
        for server in self.servers:
            server.start()
        client = shutil.which("redis-cli")
        assert client is not None, "redis-cli is not installed"
        nodes = [f"127.0.0.1:{server.port}@{server.options['cluster-port']}" for server in self.servers]
        create = [client, "--cluster", "create", *nodes, "--cluster-replicas", "1", "--cluster-yes"]
        subprocess.run(create, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, timeout=120)
        self.settle(3)

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def settle(self, replicas: int) -> None:
        """Wait until all who are there agree that the cluster is well, and so many replicas are in step."""
        give_up = time.monotonic() + 90
        while not self._is_well(replicas):
            assert time.monotonic() < give_up, "the cluster did not come up"
            time.sleep(0.05)

    def _is_well(self, replicas: int) -> bool:
        in_step = 0
        for server in self.servers:
            with suppress(redis.RedisError), redis.Redis(port=server.port) as client:
                if client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
                    return False
                role = client.execute_command("ROLE")
                in_step += role[0] == b"slave" and role[3] == b"connected"
        return in_step >= replicas

    def primary_of(self, name: bytes) -> RedisServer:
        """Return the server that has a key."""
        for server in self.servers:
            with suppress(redis.RedisError), redis.Redis(port=server.port) as client:
                if client.execute_command("ROLE")[0] != b"master":
                    continue
                try:
                    client.get(name)
                except redis.exceptions.MovedError:
                    continue
                except redis.exceptions.ResponseError:
                    pass  # another type
                return server
        raise AssertionError("no primary has the key")


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(find_binary(), tmp_path_factory.mktemp("cluster"), PATIENT)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def redis_cluster(shared_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster that all tests of a worker share; each takes a namespace of its own."""
    monkeypatch.setattr("awp_publish.plugins.redis.store.COPY_SECONDS", 10)  # the replicas of a busy machine are late
    return shared_cluster


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[Callable[[], Cluster]]:
    """Start a cluster of the test's own, to treat badly."""
    with ExitStack() as stack:

        def start() -> Cluster:
            cluster = Cluster(find_binary(), tmp_path / "cluster")
            stack.callback(cluster.stop)
            cluster.start()
            return cluster

        yield start
