"""The same over real sockets: uvicorn with two workers, callers who hang up, a server that stops."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.redis_server import free_port as free_port

pytestmark = pytest.mark.slow

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Spares each request over plain HTTP the reading of a hundred certificates."""

APPLICATION = '''
import asyncio
import os
from pathlib import Path

from fastapi import FastAPI
from awp_publish import AgentPublisher, Limits, Site

site = Site(name="Shop", description="Sells things.", url="https://shop.example", limits=Limits(timeout=3))
app = FastAPI()


@app.post("/wait")
@site.action("wait")
async def wait(seconds: float, mark: str) -> int:
    """Wait, and tell when it has begun and when it was cut short."""
    Path(mark + " begun").touch()
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        Path(mark).write_text("cancelled")
        raise
    return os.getpid()


@app.post("/linger")
@site.action("linger", timeout=60)
async def linger(seconds: float, mark: str) -> int:
    """Wait for longer than others may."""
    return await wait(seconds, mark)


app.add_middleware(AgentPublisher, site=site)
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("application")
    (folder / "shop.py").write_text(APPLICATION)
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "shop:app",
        "--port",
        str(port),
        "--workers",
        "2",
        "--log-level",
        "error",
    ]
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: answers(address))
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=90) in (0, -signal.SIGTERM)


def answers(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/agent.json", verify=NO_CERTIFICATES).status_code == 200
    except httpx2.TransportError:
        return False


def wait_until(true: object, seconds: float = 90) -> None:
    assert callable(true)
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def invoke(address: str, seconds: float, mark: Path) -> httpx2.Response:
    envelope = {"input": {"seconds": seconds, "mark": str(mark)}}
    return httpx2.post(f"{address}/agents/wait/invoke", json=envelope, timeout=30, verify=NO_CERTIFICATES)


@contextmanager
def paused(process: int) -> Iterator[None]:
    """Which of two workers takes a connection is the system's choice, unless one stands still."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def test_workers_agree_on_documents_and_etags(server, tmp_path):
    def etag_there() -> str:
        return str(httpx2.get(f"{server}/.well-known/woa.json", verify=NO_CERTIFICATES).headers["etag"])

    one = invoke(server, 0, tmp_path / "mark").json()
    with paused(one):
        other, etag = invoke(server, 0, tmp_path / "mark").json(), etag_there()
    assert one != other
    with paused(other):
        assert etag_there() == etag
    for _ in range(10):
        answer = httpx2.get(f"{server}/.well-known/woa.json", headers={"if-none-match": etag}, verify=NO_CERTIFICATES)
        assert (answer.status_code, answer.content) == (304, b"")


def test_head_and_get_agree_on_the_wire(server):
    got = httpx2.get(
        f"{server}/.well-known/ai-actions.json", headers={"accept-encoding": "gzip"}, verify=NO_CERTIFICATES
    )
    head = httpx2.head(
        f"{server}/.well-known/ai-actions.json", headers={"accept-encoding": "gzip"}, verify=NO_CERTIFICATES
    )
    own = {"date", "last-modified"}  # a site that does not say when it was updated is as old as each worker
    assert {k: v for k, v in got.headers.items() if k not in own} == {
        k: v for k, v in head.headers.items() if k not in own
    }


def test_a_caller_who_hangs_up_ends_the_handler(server, tmp_path):
    mark, begun = tmp_path / "mark", tmp_path / "mark begun"
    body = json.dumps({"input": {"seconds": 50, "mark": str(mark)}}).encode()
    head = "POST /agents/linger/invoke HTTP/1.1\r\nHost: shop.example\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", int(server.rsplit(":", 1)[1]))) as caller:
        caller.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        wait_until(begun.exists)
    wait_until(mark.exists)


def test_a_slow_handler_is_answered_at_its_deadline(server, tmp_path):
    mark = tmp_path / "mark"
    answer = invoke(server, 20, mark)
    assert (answer.status_code, answer.json()["code"]) == (504, "HANDLER_TIMEOUT")
    wait_until(mark.exists)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_sender_of_a_body_over_the_limit_reads_the_answer(server, is_streamed):
    for _ in range(3):
        caller = http.client.HTTPConnection("127.0.0.1", int(server.rsplit(":", 1)[1]), timeout=20)
        body = (b" " * 65_536 for _ in range(100)) if is_streamed else b" " * 6_553_600
        headers = {"Host": "shop.example", "Content-Type": "application/json", "Connection": "close"}
        caller.request("POST", "/agents/wait/invoke", body, headers)
        answer = caller.getresponse()
        assert (answer.status, json.loads(answer.read())["code"]) == (413, "BODY_TOO_LARGE")
        caller.close()


def test_a_body_far_over_the_limit_is_answered_before_it_has_come(server):
    with socket.create_connection(("127.0.0.1", int(server.rsplit(":", 1)[1]))) as caller:
        caller.sendall(
            b"POST /agents/wait/invoke HTTP/1.1\r\nHost: shop.example\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999\r\n\r\n{"
        )
        caller.settimeout(30)
        assert b" 413 " in caller.recv(4096).split(b"\r\n")[0]
