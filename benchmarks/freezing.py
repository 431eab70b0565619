"""Start-up: what awp_publish adds to a FastAPI application with many actions, beside FastAPI's own `app.openapi()`.

Every route has two pydantic models of its own. Each run has a new process: it makes the application and starts it as a
server does (the lifespan), upon which awp_publish reads the routes and renders all that it serves; what a document is
compressed to, and the validators of plain schemas, are made when they are first needed. The time
inside `app.openapi()`, which FastAPI keeps, is taken apart from the rest, which is ours. The checks that read what is
about to be served are turned off (`check=False`) but for one row, which tells what they add.

Python's garbage collector stays on, but it has looked through what is there before either of the two begins, outside of
the times: else it would look through FastAPI's objects in our time, and the more of them there are the longer.
"""

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Any, Final

import orjson
from fastapi import FastAPI
from pydantic import Field, create_model

from awp_publish import AgentPublisher, Site
from awp_publish.http.exchange import AsgiApp, Message
from benchmarks.measure import Case, ask
from benchmarks.static_answers import DOCUMENT
from benchmarks.table import Limit, Row, at_most

FEW: Final = 1000
MANY: Final = 5000
LEAST_SECONDS: Final = 5.0
"""A run that is given less only shows that everything works."""

RUNS: Final = {FEW: 3, MANY: 2}


@dataclass(frozen=True, slots=True)
class Start:
    """CPU seconds of one start, which waits for nothing: declaring the actions, all of it, and FastAPI's part of it."""

    declaring: float
    total: float
    openapi: float

    @property
    def share(self) -> float:
        """What is ours."""
        return self.total - self.openapi


def freezing(seconds: float) -> list[Row]:
    """Our share of the start beside FastAPI's, how it grows, and what the checks add."""
    few = _runs(FEW, RUNS[FEW] if seconds >= LEAST_SECONDS else 1)
    rows = [_share_row(f"freezing {FEW:,} actions with distinct models", few, at_most(0.15))]
    rows.append(_share_row(f"the same with the start-up checks, {FEW:,}", _runs(FEW, 1, "checks"), at_most(0.35)))
    if seconds >= LEAST_SECONDS:
        many = _runs(MANY, RUNS[MANY])
        rows.append(_share_row(f"freezing {MANY:,} actions with distinct models", many, None))
        rows += [_growth_row(few, many), _declaring_row(few, many)]
    return rows


def _share_row(what: str, starts: list[Start], limit: Limit | None) -> Row:
    ratio = median(start.share / start.openapi for start in starts)
    times = [median(getattr(start, part) for start in starts) * 1000 for part in ("total", "openapi", "share")]
    details = "total {:.0f} ms = app.openapi() {:.0f} ms + ours {:.0f} ms".format(*times)
    return Row(what, "FastAPI's app.openapi()", ratio, limit, details)


def _growth_row(few: list[Start], many: list[Start]) -> Row:
    """Runs with so many actions are too long to interleave finely: the quickest of each are compared."""
    growth = min(start.share for start in many) / min(start.share for start in few)
    return Row(f"our share of {MANY:,} actions", f"our share of {FEW:,}", growth, at_most(5.5))


def _declaring_row(few: list[Start], many: list[Start]) -> Row:
    times = [median(start.declaring for start in starts) * 1000 for starts in (few, many)]
    details = "{:.0f} ms and {:.0f} ms in site.action(), before the start".format(*times)
    return Row(f"declaring {MANY:,} actions", f"declaring {FEW:,}", times[1] / times[0], None, details)


def _runs(count: int, runs: int, *options: str) -> list[Start]:
    command = [sys.executable, "-m", "benchmarks.freezing", str(count), *options]
    reports = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(runs)]
    return [Start(**orjson.loads(report)) for report in reports]


# --- One run, in a process of its own ------------------------------------------------------------------------------


def start(count: int, checks: bool) -> Start:
    """Start an application with `count` actions, and take the times."""
    app, site = FastAPI(), Site("Shop", "A shop with many actions.", "https://shop.example")
    declaring = sum(_declare(app, site, number) for number in range(count))
    watch = _Watch(app)
    publisher = AgentPublisher(app, site, check=checks)
    _set_aside()
    started = time.process_time()
    asyncio.run(_live(publisher))
    total = time.process_time() - started - watch.aside
    answer = asyncio.run(ask(Case("", publisher, DOCUMENT)))
    assert len(orjson.loads(answer.body)["agents"]) == count
    assert watch.calls >= 1
    return Start(declaring, total, watch.openapi)


async def _live(app: AsgiApp) -> None:
    """Start an application and stop it, as a server does."""
    messages = iter(("lifespan.startup", "lifespan.shutdown"))
    heard: list[str] = []

    async def receive() -> Message:
        return {"type": next(messages)}

    async def send(message: Message) -> None:
        heard.append(message["type"])

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
    assert heard == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def _declare(app: FastAPI, site: Site, number: int) -> float:
    """Make one route with models of its own; the seconds that declaring it as an action took."""
    handler = _handler(number)
    app.post(f"/things/{number}")(handler)
    started = time.process_time()
    site.action(f"order_{number}", effect="write")(handler)
    return time.process_time() - started


def _handler(number: int) -> Callable[..., Any]:
    name = Annotated[str, Field(min_length=1, max_length=100, description="What it is called.")]
    count = Annotated[int, Field(ge=1, le=99, description="How many.")]
    asked = create_model(
        f"Order{number}", name=(name, ...), count=(count, 1), note=(str | None, None), urgent=(bool, ...)
    )
    answered = create_model(f"Receipt{number}", name=(str, ...), total=(float, ...), tags=(list[str], ...))

    async def order(order: Any) -> Any:
        """Order some of these things."""

    order.__annotations__ = {"order": asked, "return": answered}
    return order


class _Watch:
    """Stands in for `app.openapi()` and takes its time, and that of setting its objects aside afterwards."""

    def __init__(self, app: FastAPI) -> None:
        self._make = app.openapi
        self.calls, self.openapi, self.aside = 0, 0.0, 0.0
        app.openapi = self  # type: ignore[method-assign]

    def __call__(self) -> dict[str, Any]:
        started = time.process_time()
        document = self._make()
        made = time.process_time()
        _set_aside()
        self.calls += 1
        self.openapi += made - started
        self.aside += time.process_time() - made
        return document


def _set_aside() -> None:
    """Have the garbage collector count what is there by now as old."""
    gc.collect()


if __name__ == "__main__":
    one = start(int(sys.argv[1]), checks="checks" in sys.argv)
    print(orjson.dumps(one).decode())
