"""Whole conversations about jobs, and whole records of them. --golden writes them anew; read the change."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest
from fastapi import FastAPI, Response
from pydantic import BaseModel

from awp_publish import AgentPublisher, BearerToken, Limits, Principal, Refused, report_progress
from awp_publish.calls.progress import Progress
from awp_publish.plugins.jobs.job import Job, JobResult, UnreadableJob, end_job, read_job, write_job
from awp_publish.problems import InvalidInput, StoreUnavailable, Violation
from tests.client import TestClient
from tests.guarded import KEYS, make_shop
from tests.transcript import compare as compare_answers

HERE = Path(__file__).parent
CHANGING = [
    (r"(?<=;t=)\d+|(?<=ratelimit-reset: )\d+|(?<=retry-after: )\d+", "N"),
    (r"(?<=/jobs/)[\w-]{22}", "JOB"),
    (r'(?<="job_id":")[\w-]{22}', "JOB"),
    (r'(?<="token":")[^"]+', "TOKEN"),
]
CALLERS = BearerToken({"ann": Principal("ann", frozenset({"buy"})), "ben": "ben"})


class Print(BaseModel):
    title: str
    pages: int = 1


@pytest.fixture
def client() -> Iterator[TestClient]:
    site = make_shop(authenticate=CALLERS, secret_keys=KEYS, limits=Limits(rate_limit="1000/minute"))
    go = threading.Event()
    app = FastAPI()

    @app.post("/prints", status_code=201)
    @site.action("print", execution="async", idempotency="24h", confirm="Print {title}?")
    async def print_book(order: Print, response: Response) -> Print:
        """Print a book."""
        response.headers["x-press"] = "third"
        response.set_cookie("press", "3")
        return order

    @site.agent("fail", execution="async")
    async def fail(how: Literal["refuse", "raise", "lie"]) -> int:
        """Fail."""
        report_progress(0.5, "half")
        if how == "refuse":
            raise Refused("No paper.", code="NO_PAPER", members={"left": 0})
        if how == "raise":
            raise RuntimeError("a secret of the site")
        return "no number"  # type: ignore[return-value]

    @site.agent("slow", execution="async", audience="known")
    async def slow() -> str:
        """Wait until somebody lets it go on."""
        report_progress(0.25, "page 1")
        await asyncio.to_thread(go.wait, 60)
        return "done"

    @site.agent("go")
    async def let_go() -> str:
        """Let the slow one go on."""
        go.set()
        return "gone"

    app.add_middleware(AgentPublisher, site=site)
    with TestClient(app, base_url="https://shop.example") as client:
        yield client
    go.set()


def compare(path: Path, text: str, request: Any) -> None:
    if request.config.getoption("--golden"):
        path.write_text(text)
    assert text == path.read_text()


def test_jobs_over_http_go_as_in_the_transcript(client, request):
    compare_answers(HERE / "jobs.txt", client, request, *CHANGING)


MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)
NEW = Job(
    id="A" * 22,
    action="print",
    input={"title": "Emma", "deep": [1, {"b": None}]},
    principal="user:ann",
    request_id="r1",
    door="woa",
    context={"authorization": "Bearer ann"},
    share="192.0.2.1",
    reserved=7,
    has_turn=True,
    created=MOMENT,
    updated=MOMENT,
)
RUNNING = replace(NEW, status="running", progress=Progress(0.5, "half"), cancel_requested=True, worker="w1", attempt=2)
REFUSAL = Refused("No.", code="NO_PAPER", recovery="Wait.", headers=[("Retry-After", "7")], members={"left": 0})
JOBS = {
    "new": NEW,
    "running": RUNNING,
    "done": end_job(RUNNING, "done", JobResult(201, ((b"x-press", b"3"),), b'{"title":"\xc3\xa9"}'), MOMENT),
    "refused": end_job(RUNNING, "failed", REFUSAL, MOMENT),
    "invalid": end_job(RUNNING, "failed", InvalidInput("Wrong.", errors=[Violation("/a", "is missing")]), MOMENT),
    "away": end_job(RUNNING, "failed", StoreUnavailable("The store is away."), MOMENT),
    "unprintable": replace(NEW, input={"\ud800": {range(3): 1.5}, "n": -(2**63) - 1, "m": [2**64, True, MOMENT]}),
}


def test_a_record_is_read_as_it_was_written(request):
    lines = []
    for name, job in JOBS.items():
        raw = write_job(job)
        read = read_job(raw, job.id)
        if name != "unprintable":
            assert repr(read) == repr(job)
        lines += [f"# {name}: {'has ended' if job.has_ended else 'goes on'}", raw.decode()]
        lines += [orjson.dumps(read.describe("https://shop.example/jobs/A")).decode()]
    compare(HERE / "records.txt", "\n".join(lines) + "\n", request)


OF_OTHER_TYPES: dict[type, object] = {str: 7, int: True, bool: 0, dict: []}
WRONG: dict[str, dict[str, list[object]]] = {
    "running": {
        "status": ["ended"],
        "progress": [7, ["half", "half"], [0.5], [0.5, 7]],
        "created": [None, 7, "yesterday"],
        "updated": [None, "yesterday"],
    },
    "done": {
        "result": [7, [201, []], [True, [], 191953110], [201, [], 0], [201, [["a", 7]], 191953110], [201, [["a"]], 0]]
    },
    "invalid": {
        "problem/slug": [7],
        "problem/detail": [7],
        "problem/code": [7],
        "problem/recovery": [7],
        "problem/status": ["x", None],
        "problem/errors": [7, [["a"]], [[1, "a"]], [["a", 1]]],
        "problem/headers": [7, [["a"]], [[1, "a"]], [["a", 1]]],
    },
}


def test_a_record_with_a_wrong_member_is_unreadable():
    WRONG["running"] |= {
        name: [None, OF_OTHER_TYPES[type(value)]]
        for name, value in orjson.loads(write_job(NEW)).items()
        if type(value) in OF_OTHER_TYPES and name not in WRONG["running"]
    }
    for name, places in WRONG.items():
        for place, values in places.items():
            for value in values:
                head, _, body = write_job(JOBS[name]).partition(b"\n")
                members = orjson.loads(head)
                holder, _, member = place.rpartition("/")
                (members[holder] if holder else members)[member] = value
                with pytest.raises(UnreadableJob):
                    read_job(b"\n".join([orjson.dumps(members), body]))
    for damaged in (b"", b"{}", b"[]", write_job(JOBS["done"])[:-1], write_job(JOBS["done"]) + b" "):
        with pytest.raises(UnreadableJob):
            read_job(damaged)
    with pytest.raises(UnreadableJob, match="another job"):
        read_job(write_job(NEW), "B" * 22)
