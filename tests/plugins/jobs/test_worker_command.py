"""`awp-publish worker`: jobs accepted by one process are run by another, on SQLite alone or carried by taskiq."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from awp_publish import cli
from awp_publish.plugin import open_store
from awp_publish.plugins.jobs.jobs import JobStore
from tests.redis_server import free_port as free_port

pytestmark = pytest.mark.slow

SHOP = '''
import os
from starlette.applications import Starlette
from awp_publish import AgentPublisher, Jobs, Site, report_progress

site = Site(
    "Shop", "Sells things.", "https://shop.example",
    store=os.environ["STORE"], plugins=[Jobs(queue=os.environ.get("QUEUE") or None)],
)

@site.agent("ship", execution="async", effect="idempotent")
async def ship(parcel: str) -> int:
    """Ship a parcel; the answer is the process that did."""
    report_progress(0.5, "half way")
    return os.getpid()

app = AgentPublisher(Starlette(), site=site, check=False)
'''


@contextmanager
def process(folder: Path, environment: dict[str, str], *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    started = subprocess.Popen([sys.executable, "-m", *arguments], cwd=folder, env={**os.environ, **environment})
    try:
        yield started
    finally:
        started.send_signal(signal.SIGTERM)
        assert started.wait(90) in (0, -signal.SIGTERM)


def wait_for(client: httpx.Client) -> None:
    for _ in range(1800):
        try:
            client.get("/agents/status")
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the server did not start")


def result_of(client: httpx.Client, address: str) -> object:
    for _ in range(1800):
        job = client.get(httpx.URL(address).path).json()
        if job["status"] == "done":
            return job["result"]
        time.sleep(0.05)
    raise AssertionError(f"the job did not end: {job}")


def test_taskiq_carries_jobs_from_a_web_process_to_a_worker_process(tmp_path, redis_url):
    environment = {"STORE": redis_url, "QUEUE": redis_url}
    (tmp_path / "shop.py").write_text(SHOP)
    port = free_port()
    server = ("uvicorn", "shop:app", "--port", str(port), "--log-level", "warning")
    with (
        httpx.Client(base_url=f"http://127.0.0.1:{port}") as client,
        process(tmp_path, environment, *server),
        process(tmp_path, environment, "awp_publish", "worker", "shop:app") as worker,
    ):
        wait_for(client)
        accepted = client.post("/agents/ship/invoke", json={"input": {"parcel": "a"}})
        assert accepted.status_code == 202
        assert result_of(client, accepted.headers["location"]) == worker.pid


async def test_a_worker_process_runs_what_was_accepted_while_it_was_not_there(tmp_path):
    url = f"sqlite:///{tmp_path / 'agents.db'}"
    (tmp_path / "shop.py").write_text(SHOP)
    store = open_store(url, "shop.example")
    jobs = JobStore(store)
    job = await jobs.accept("ship", {"parcel": "a"})
    with process(tmp_path, {"STORE": url}, "awp_publish", "worker", "shop:app") as worker:
        async with asyncio.timeout(90):
            while (job := await jobs.show(job.id, "")).result is None:  # noqa: ASYNC110, it ends in another process
                await asyncio.sleep(0.05)
        assert int(job.result.body) == worker.pid
    await store.close()


def test_an_application_without_background_actions_has_no_work(capsys, tmp_path, monkeypatch):
    (tmp_path / "idle.py").write_text(SHOP.replace('execution="async", ', ""))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORE", "memory:")
    assert cli.main(["worker", "idle:app"]) == 2
    assert "has no background actions" in capsys.readouterr().err


def test_a_worker_has_no_use_of_jobs_in_the_memory_of_each_process(capsys, tmp_path, monkeypatch):
    (tmp_path / "forgetful.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORE", "memory:")
    assert cli.main(["worker", "forgetful:app"]) == 2
    assert "keeps jobs in the memory of each process" in capsys.readouterr().err
