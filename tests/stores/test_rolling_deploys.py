"""Two versions of a site at once over one store, each in a process of its own: what one has made, the other knows."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.plugins.mcp.mcp_messages import headers_of, message
from tests.processes import Process
from tests.redis_server import free_port

pytestmark = [pytest.mark.slow, pytest.mark.limit(180)]  # many processes, on a machine that may be busy

SHOP = """
import asyncio, os
from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.middleware.sessions import SessionMiddleware
from awp_publish import AgentPublisher, Site

class Shipped(BaseModel):
    book: str

is_new = os.environ["SHOP"] == "new"
site = Site(
    name="Shop", description="Sells things.", url=os.environ["ADDRESS"], plugins=["mcp", "a2a"],
    store=os.environ["STORE"], secret_keys=os.environ["KEYS"].split(),
)
site.event("shipped", payload=Shipped)

@site.agent("greet", effect="read")
async def greet() -> str:
    "Greet."
    return "hello"

@site.agent("enter", effect="read", requires=["greet"])
async def enter() -> str:
    "Enter."
    return "in"

@site.agent("order", effect="write", confirm="Order {book}?", idempotency="24h")
async def order(book: str) -> str:
    "Order a book."
    await site.emit("shipped", {"book": book}, audience="public")
    return book

@site.agent("count", effect="idempotent", execution="async")
async def count(to: float) -> str:
    "Count for some seconds."
    await asyncio.sleep(to)
    return os.environ["SHOP"]

if is_new:
    @site.agent("pay", effect="write", confirm=True)
    async def pay(book: str, copies: int) -> str:
        "Pay."
        return "paid"

    @site.agent("print", effect="write", execution="async")
    async def print_book(book: str) -> str:
        "Print a book."
        return os.environ["SHOP"]
else:
    @site.agent("pay", effect="write", confirm=True)
    async def pay(book: str) -> str:
        "Pay."
        return "paid"

    @site.agent("lend", effect="write", confirm=True)
    async def lend(book: str) -> str:
        "Lend a book."
        return "lent"

app = FastAPI()

@app.post("/remember")
@site.action("remember", effect="write")
async def remember(request: Request, name: str) -> str:
    "Remember a name."
    request.session["name"] = name
    return name

@app.get("/recall")
@site.action("recall")
async def recall(request: Request) -> str:
    "Tell the name."
    return request.session.get("name", "nobody")

app.add_middleware(AgentPublisher, site=site)
app.add_middleware(SessionMiddleware, secret_key="a-secret-of-this-test")
"""
KEY = "a-secret-key-of-this-test-and-nobody-else"
NEXT_KEY = "the-next-secret-key-of-this-test-and-nobody-else"


class Version:
    """One version of the site, served by a process; with a seed of hashes, by a new one of Python."""

    def __init__(self, folder: Path, store: str, address: str, name: str, keys: str = KEY, seed: int = 0) -> None:
        port = free_port()
        environment = {"STORE": store, "ADDRESS": address, "SHOP": name, "KEYS": keys, "PYTHONHASHSEED": str(seed)}
        path = {"PYTHONPATH": str(Path(__file__).parents[2])}
        words = ("uvicorn", "shop:app", "--port", str(port), "--log-level", "error")
        env = {**os.environ, **environment, **path}
        self._process: Process | subprocess.Popen[bytes]
        if seed:
            self._process = subprocess.Popen([sys.executable, "-m", *words], cwd=folder, env=env)
        else:
            self._process = Process(*words, cwd=folder, env=env)
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"host": address.partition("://")[2]})
        wait_until(self._answers)

    def _answers(self) -> bool:
        with suppress(httpx.TransportError):
            return self.http.get("/agent.json").status_code == 200
        return False

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(timeout=60) in (0, -signal.SIGTERM)
        self.http.close()

    def invoke(self, action: str, members: dict[str, object], key: str = "", **envelope: object) -> httpx.Response:
        headers = {"idempotency-key": key} if key else {}
        return self.http.post(f"/agents/{action}/invoke", json={"input": members, **envelope}, headers=headers)

    def ask(self, method: str, **params: object) -> dict[str, object]:
        sent = message(method, params)
        answer: dict[str, object] = self.http.post("/mcp", json=sent, headers=headers_of(sent)).json()
        return answer

    def ends(self, job_id: str) -> dict[str, object]:
        job: dict[str, object] = {}

        def has_ended() -> bool:
            job.update(self.http.get(f"/agents/jobs/{job_id}").json())
            return job["status"] in {"done", "failed"}

        wait_until(has_ended)
        return job

    def documents(self) -> dict[str, str]:
        """Return the ETags of documents."""
        paths = [
            "/agent.json",
            "/ai-actions.json",
            "/llms.txt",
            "/.well-known/woa.json",
            "/.well-known/agent-card.json",
        ]
        answers = {path: self.http.get(path) for path in paths}
        return {path: answer.headers["etag"] for path, answer in answers.items() if answer.status_code == 200}


def wait_until(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.05)


@pytest.fixture(scope="module", params=["sqlite", "redis", "postgres"])
def start(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Version]]:
    """Start versions of one site over one store."""
    folder = tmp_path_factory.mktemp("deploys")
    (folder / "shop.py").write_text(SHOP)
    shared = "" if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_url")
    address, store = f"https://{uuid4().hex}.example", shared or f"sqlite:///{folder}/agents.db"
    with ExitStack() as stack:

        def begin(name: str, **options: object) -> Version:
            version = Version(folder, store, address, name, **options)  # type: ignore[arg-type]
            stack.callback(version.stop)
            return version

        yield begin


@pytest.fixture(scope="module")
def old(start: Callable[..., Version]) -> Version:
    return start("old")


@pytest.fixture(scope="module")
def new(start: Callable[..., Version], old: Version) -> Version:
    return start("new", keys=f"{NEXT_KEY} {KEY}")


def code(answer: httpx.Response) -> str:
    return str(answer.json().get("code", answer.status_code))


@pytest.mark.parametrize("start", ["sqlite"], indirect=True)
def test_equal_declarations_have_equal_etags_on_every_start(start, old):
    again = start("old", seed=12345)
    assert len(old.documents()) >= 4
    assert again.documents() == old.documents()
    again.stop()


def test_a_confirmation_is_honoured_by_the_other_version_or_refused_with_its_reason(start, old, new):
    def confirmation(version, action, members):
        return version.invoke(action, members).json()["confirmation"]["token"]

    book = {"book": "Emma"}
    token = confirmation(old, "order", book)
    assert new.invoke("order", book, confirmation=token).json() == "Emma"
    assert code(old.invoke("order", book, confirmation=token)) == "CONFIRMATION_SPENT"
    assert code(new.invoke("lend", book, confirmation=confirmation(old, "lend", book))) == "UNKNOWN_AGENT"
    token = confirmation(old, "pay", book)
    assert code(new.invoke("pay", book, confirmation=token)) == "INVALID_INPUT"
    changed = new.invoke("pay", book | {"copies": 1}, confirmation=token)
    assert code(changed) == "CONFIRMATION_MISMATCH"
    assert (
        new.invoke("pay", book | {"copies": 1}, confirmation=changed.json()["confirmation"]["token"]).json() == "paid"
    )
    rotated = start("new", keys=NEXT_KEY)  # the old key is gone
    refused = rotated.invoke("order", book, confirmation=confirmation(old, "order", book))
    assert code(refused) == "CONFIRMATION_TAMPERED"
    assert rotated.invoke("order", book, confirmation=refused.json()["confirmation"]["token"]).json() == "Emma"
    # Signed with the new key, which the old version does not know.
    assert code(old.invoke("order", book, confirmation=confirmation(new, "order", book))) == "CONFIRMATION_TAMPERED"
    rotated.stop()


def test_a_receipt_and_a_recorded_answer_are_those_of_the_other_version_too(old, new):
    receipt = old.invoke("greet", {}).headers["awp-receipt"]
    assert code(new.invoke("enter", {})) == "PREREQUISITE_REQUIRED"
    assert new.invoke("enter", {}, receipts=[receipt]).json() == "in"
    token = old.invoke("order", {"book": "Ulysses"}, "u").json()["confirmation"]["token"]
    first = old.invoke("order", {"book": "Ulysses"}, "u", confirmation=token)
    again = new.invoke("order", {"book": "Ulysses"}, "u", confirmation=token)
    assert (first.json(), again.json()) == ("Ulysses", "Ulysses")
    assert again.headers["idempotent-replayed"] == "true"


def test_a_session_of_one_version_goes_on_at_the_other(old, new):
    begun = old.invoke("remember", {"name": "Ann"})
    old.http.cookies.clear()
    session = begun.headers["awp-session"]
    assert new.invoke("recall", {}, session=session).json() == "Ann"
    new.http.cookies.clear()


def test_a_cursor_of_one_version_is_read_by_the_other(old, new):
    before = old.ask("events/poll", name="shipped", cursor=None)["result"]
    token = old.invoke("order", {"book": "Dracula"}).json()["confirmation"]["token"]
    assert old.invoke("order", {"book": "Dracula"}, confirmation=token).json() == "Dracula"
    answer = new.ask("events/poll", name="shipped", cursor=before["cursor"])["result"]
    assert [event["data"] for event in answer["events"]] == [{"book": "Dracula"}]


def test_a_task_of_one_version_is_told_of_by_the_other(old, new):
    part = {"data": {"skill": "order", "input": {"book": "Emma"}}}
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    task = old.http.post("/a2a", json=body, headers={"a2a-version": "1.0"}).json()["result"]["task"]
    body = {"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": task["id"]}}
    there = new.http.post("/a2a", json=body, headers={"a2a-version": "1.0"}).json()["result"]
    assert (there["id"], there["status"]["state"]) == (task["id"], task["status"]["state"])


def test_jobs_run_wherever_their_action_is(old, new):
    jobs = [new.invoke("print", {"book": "Emma"}).json()["job_id"] for _ in range(4)]
    assert [old.ends(job)["result"] for job in jobs] == ["new"] * 4


def test_a_change_of_the_tools_is_told_and_nothing_is_lost_when_the_old_workers_stop(start):
    first = start("old")
    changed = threading.Event()

    def listen() -> None:
        sent = message("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        stream = first.http.stream("POST", "/mcp", json=sent, headers=headers_of(sent), timeout=90)
        with suppress(httpx.TransportError), stream as answer:
            for line in answer.iter_lines():
                listening.set()
                if "tools/list_changed" in line:
                    changed.set()

    listening = threading.Event()
    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    assert listening.wait(60)
    second = start("new", keys=f"{NEXT_KEY} {KEY}")
    assert changed.wait(60)
    jobs = [first.invoke("count", {"to": 0.5}).json()["job_id"] for _ in range(12)]
    first.stop()
    thread.join(60)
    assert {second.ends(job)["status"] for job in jobs} == {"done"}
    second.stop()
