"""A server that is killed in the middle of calls, over real sockets: no key runs anything irreversible twice."""

import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.http.test_real_server import NO_CERTIFICATES
from tests.processes import Process
from tests.redis_server import free_port

pytestmark = pytest.mark.slow

TIMEOUT, MARGIN = 2.0, 0.5

APPLICATION = f'''
import asyncio, os
from pathlib import Path

from fastapi import FastAPI
from awp_publish import AgentPublisher, Site
from awp_publish.plugins.idempotency import gate as idempotency

idempotency.MARGIN = {MARGIN}
site = Site(name="Shop", description="Sells things.", url="https://shop.example", limits={{'timeout': {TIMEOUT}}},
            store=os.environ["STORE"], secret_keys=["a-secret-key-that-outlives-the-process"])
app = FastAPI()


async def write_down(what, seconds):
    """A line in a file; the first call takes long after it."""
    with open(what, "a") as file:
        file.write("once\\n")
    lines = len(Path(what).read_text().splitlines())
    await asyncio.sleep(seconds if lines == 1 else 0)
    return lines


@app.post("/pay")
@site.action("pay", effect="irreversible", idempotency="24h")
async def pay(seconds: float) -> int:
    """Pay."""
    return await write_down("pay", seconds)


@app.put("/label")
@site.action("label", idempotency="24h")
async def label(seconds: float) -> int:
    """Write a label, which may be written twice."""
    return await write_down("label", seconds)


@app.post("/order")
@site.action("order", idempotency="24h")
async def order(seconds: float) -> int:
    """Order."""
    return await write_down("order", seconds)


app.add_middleware(AgentPublisher, site=site)
'''


class Server:
    """A uvicorn process, which can be killed and started again on its port."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder = folder
        self._store = store
        self._port = free_port()
        self.address = ("127.0.0.1", self._port)
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: Process | None = None

    def start(self) -> None:
        words = ("uvicorn", "shop:app", "--port", str(self._port), "--log-level", "error")
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "STORE": self._store}
        self._process = Process(*words, cwd=self.folder, env=environment)
        wait_until(self._answers)

    def stop(self) -> Process:
        """Ask the process to stop."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def call(self, agent: str, seconds: float, key: str, **headers: str) -> httpx2.Response:
        sent = {"idempotency-key": key, **{name.replace("_", "-"): value for name, value in headers.items()}}
        address = f"http://127.0.0.1:{self._port}/agents/{agent}/invoke"
        return httpx2.post(address, json={"input": {"seconds": seconds}}, headers=sent, verify=NO_CERTIFICATES)

    def lines(self, agent: str) -> int:
        path = self.folder / agent
        return len(path.read_text().splitlines()) if path.exists() else 0

    def _answers(self) -> bool:
        with suppress(httpx2.TransportError):
            return httpx2.get(f"http://127.0.0.1:{self._port}/agent.json", verify=NO_CERTIFICATES).status_code == 200
        return False


def wait_until(true: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    store = "sqlite:///agents.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    host = f"{secrets.token_hex(8)}.example"  # sites of one host would meet in a store
    (tmp_path / "shop.py").write_text(APPLICATION.replace("shop.example", host))
    server = Server(tmp_path, store)
    server.start()
    yield server
    server.kill()


def code(answer: httpx2.Response) -> str:
    return str(answer.json()["code"])


def is_unknown(server: Server, agent: str) -> bool:
    return code(server.call(agent, 20, "k-1")) == "OUTCOME_UNKNOWN"


def break_off(server: Server, calls: Callable[[ThreadPoolExecutor], object]) -> None:
    """Kill the server as soon as all handlers have written their line, and start it again."""
    with ThreadPoolExecutor() as callers:
        calls(callers)
        wait_until(lambda: all(server.lines(agent) for agent in ("pay", "label", "order")))
        server.kill()
    server.start()


def test_a_killed_server_leaves_no_key_under_which_anything_irreversible_runs_twice(server):
    token = server.call("pay", 20, "k-1").json()["confirmation"]["token"]

    def begin(callers: ThreadPoolExecutor) -> None:
        callers.submit(server.call, "pay", 20, "k-1", awp_confirmation=token)
        callers.submit(server.call, "label", 20, "k-1")
        callers.submit(server.call, "order", 20, "k-1")

    break_off(server, begin)
    # In flight until the deadline of the call that was killed, which a slow machine reaches before.
    assert code(server.call("pay", 20, "k-1")) in ("IDEMPOTENCY_KEY_IN_FLIGHT", "OUTCOME_UNKNOWN")
    wait_until(lambda: server.call("label", 20, "k-1").status_code == 200)
    assert server.lines("label") == 2
    for agent in ("pay", "order"):
        wait_until(partial(is_unknown, server, agent))
        assert server.call(agent, 20, "k-1").status_code == 409
    assert code(server.call("pay", 20, "k-1", awp_confirmation=token)) == "OUTCOME_UNKNOWN"
    assert code(server.call("pay", 20, "k-2", awp_confirmation=token)) == "CONFIRMATION_SPENT"
    assert (server.lines("pay"), server.lines("order")) == (1, 1)


def test_an_answer_given_before_the_server_was_killed_is_replayed_afterwards(server):
    first = server.call("order", 0, "k-1")
    server.kill()
    server.start()
    again = server.call("order", 0, "k-1")
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    body = b'{"input": {"seconds": 0.6}}'  # a caller who hangs up has the answer the next time
    head = "POST /agents/label/invoke HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with socket.create_connection(server.address) as caller:
        caller.sendall(f"{head}Idempotency-Key: k-1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        wait_until(lambda: server.lines("label") == 1)
    wait_until(lambda: server.call("label", 0.6, "k-1").status_code == 200)
    assert server.lines("label") == 1
