"""Several processes share what people have allowed: when one is killed, nothing is lost and nothing is given twice."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.django.servers import ROOT, environment, wait_for
from tests.plugins.sign_in.shop import URL, Agent, invoke, make_shop
from tests.processes import Process
from tests.redis_server import free_port

pytestmark = [pytest.mark.slow, pytest.mark.limit(180)]  # many processes, on a machine that may be busy

STORE = "TESTED_STORE"


def make_worker() -> FastAPI:
    return make_shop(settings={"store": os.environ[STORE]})


class Worker(httpx.BaseTransport):
    """A process that serves the shop, and the way to it: requests keep the shop's public address."""

    def __init__(self, store: str) -> None:
        port = free_port()
        self._place = {"scheme": "http", "host": "127.0.0.1", "port": port}
        factory = f"{__name__}:make_worker"
        words = ("uvicorn", "--factory", factory, "--port", str(port), "--log-level", "error")
        self._process = Process(*words, cwd=ROOT, env={**environment(), STORE: store})
        self._http = httpx.HTTPTransport()
        wait_for(f"http://127.0.0.1:{port}")

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url.copy_with(**self._place)
        there = httpx.Request(request.method, url, headers=request.headers, stream=request.stream)
        return self._http.handle_request(there)

    def open(self) -> Any:
        """Return a client, which keeps cookies as a browser does."""
        return httpx.Client(base_url=URL, transport=self, timeout=60)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def kill(self) -> None:
        """End the process as a crash does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


Start = Callable[[], Worker]


@pytest.fixture(params=["sqlite", "redis_url", "postgres_url"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Starts workers that share a store."""
    file = f"sqlite:///{tmp_path / 'agents.db'}"
    with _starting(file if request.param == "sqlite" else request.getfixturevalue(request.param)) as begin:
        yield begin


@contextmanager
def _starting(store: str) -> Iterator[Start]:
    workers: list[Worker] = []

    def begin() -> Worker:
        workers.append(Worker(store))
        return workers[-1]

    try:
        yield begin
    finally:
        for worker in workers:
            worker.kill()
            worker.close()


def test_codes_and_tokens_outlast_the_worker_that_has_issued_them_and_a_code_is_good_once(start):
    dying, staying = start(), start()
    agent, other = (Agent(dying.open(), dying.open()) for _ in range(2))
    code, known = agent.consent()["code"], other.sign_in("ben")
    dying.kill()
    agent.http = other.http = staying.open()
    renewed = other.refresh(known["refresh_token"]).json()
    for token in (known["access_token"], renewed["access_token"]):
        assert invoke(agent.http, "read_profile", token).json() == "ben"
    tokens = agent.exchange(code).json()
    assert invoke(agent.http, "read_profile", tokens["access_token"]).json() == "ann"
    assert agent.exchange(code).json()["error"] == "invalid_grant"
    assert invoke(agent.http, "read_profile", tokens["access_token"]).status_code == 401


def test_a_worker_that_is_killed_while_it_exchanges_leaves_a_code_that_is_good_or_used(start):
    staying = start()
    with ThreadPoolExecutor() as threads:
        for delay in (0.0, 0.004, 0.02):
            dying = start()
            agent = Agent(dying.open(), dying.open())
            code = agent.consent()["code"]
            first = threads.submit(agent.exchange, code)
            time.sleep(delay)
            dying.kill()
            agent.http = staying.open()
            given = []
            with suppress(httpx.HTTPError):
                given.append(first.result())
            given.append(agent.exchange(code))
            tokens = [answer.json()["access_token"] for answer in given if answer.status_code == 200]
            assert len(tokens) <= 1
            assert {answer.json().get("error") for answer in given} <= {None, "invalid_grant"}
            for token in tokens:
                is_replayed = len(given) == 2
                expected = 401 if is_replayed else 200
                assert invoke(agent.http, "read_profile", token).status_code == expected
