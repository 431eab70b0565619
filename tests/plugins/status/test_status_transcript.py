"""What works of a site, second by second of a virtual clock: `status.txt`, in words of `tests/function_transcripts.py`.

`probes` is given seconds; probes, each with its actions, its interval, and what it answers, one after the other, the
last again and again; and what the owner sets, by the second. `door.txt` is what callers see of it, over HTTP: `/says`
sets what the owner says, and `/refresh` publishes it.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, DeclarationError
from awp_publish.http.exchange import AsgiApp
from awp_publish.http.running import StartFailed, running
from awp_publish.plugins.status import liveness
from tests.client import TestClient
from tests.function_transcripts import compare
from tests.guarded import make_shop
from tests.transcript import compare as compare_answers
from tests.virtual_time import run_virtually


class Heard(logging.Handler):
    """What is logged, each message once."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.told[f"{record.levelname} {record.getMessage()}"] = None


async def answer(word: str) -> object:
    match word:
        case "raise":
            raise RuntimeError("It is down.")
        case "cancel":
            raise asyncio.CancelledError
    if word.isdigit():
        await asyncio.sleep(int(word))
    return {"no": False, "none": None, "zero": 0}.get(word, True)


def probes(seconds: int, declared: list[list[Any]], settings: Mapping[str, Any] | None = None) -> list[str]:
    told, site = list[str](), make_shop()

    def say(text: str) -> None:
        told.append(f"{asyncio.get_running_loop().time():g} {text}")

    def probe(name: str, words: list[str]) -> Callable[[], Any]:
        async def look() -> object:
            say(f"{name} is asked")
            return await answer(words.pop(0) if len(words) > 1 else words[0])

        return look

    for name in ("buy", "sell"):
        site.agent(name, description=f"{name.title()} a book.")(lambda: None)
    for number, (actions, every, words) in enumerate(declared):
        look = probe(f"probe {number}", words.split())
        assert site.status(*actions, **({"every": every} if every else {}))(look) is look
    app = AgentPublisher(Starlette(), site=site)

    async def run() -> None:
        shown = ""
        async with running(app):
            for second in range(seconds):
                if options := (settings or {}).get(str(second)):
                    site.set_status(**options)
                    site.refresh()
                status = site.catalog.status
                now = f"operational: {status.operational}, degraded: {sorted(status.degraded_actions)}"
                if now != shown:
                    say(shown := now)
                await asyncio.sleep(1)
        say(f"ends, {len(asyncio.all_tasks()) - 1} tasks are left")

    heard = Heard()
    liveness.logger.addHandler(heard)
    try:
        run_virtually(run())
    except StartFailed as error:
        told.append(str(error))
    finally:
        liveness.logger.removeHandler(heard)
    return [*told, *heard.told]


def test_the_status_changes_second_by_second_as_in_the_transcript(request, monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr(liveness, "time", clock)
    compare(Path(__file__).parent / "status.txt", {"probes": probes, "bare": bare, "late": late}, request)


def bare() -> None:
    """Forget the parentheses."""
    make_shop().status(lambda: True)  # type: ignore[arg-type]


def late() -> None:
    """Declare a probe once the site is published."""
    site = make_shop()
    site.freeze()
    site.status()(lambda: True)


def make_owned_shop(*, looks: bool = False) -> AsgiApp:
    site, may_print = make_shop(), threading.Event()
    for name in ("buy", "sell", "lend"):
        site.agent(name, description=f"{name.title()} a book.")(lambda: "done")

    @site.agent("print", execution="async")
    def print_book() -> str:
        """Print a book."""
        return "printed" if may_print.wait(30) else "not printed"

    async def say(request: Request) -> Response:
        degraded, operational = request.query_params.getlist("degraded"), request.query_params.get("operational")
        values: dict[str, Any] = {"operational": operational == "yes"} if operational else {}
        values |= {"degraded_actions": [each for each in degraded if each]} if degraded else {}
        site.set_status(**values)
        return PlainTextResponse("said")

    async def refresh(request: Request) -> Response:
        try:
            site.refresh()
        except DeclarationError as error:
            return PlainTextResponse(str(error), 409)
        return PlainTextResponse("refreshed")

    async def release(request: Request) -> Response:
        may_print.set()
        return PlainTextResponse("released")

    finds = [True, True, False, False, True]
    if looks:
        site.status("sell", "buy", every="1h")(lambda: finds.pop(0))

    async def look(request: Request) -> Response:
        await site.probe()
        return PlainTextResponse(f"{len(finds)} are left")

    routes = {"/says": say, "/refresh": refresh, "/release": release, "/probe": look}
    return AgentPublisher(Starlette(routes=[Route(*each) for each in routes.items()]), site=site)


@pytest.mark.parametrize("looks", [False, True], ids=["said", "found"])
def test_callers_see_the_status_as_in_the_transcript(request, open_client, looks):
    app = make_owned_shop(looks=looks)
    client = TestClient(app, base_url="https://shop.example") if looks else open_client(app)
    compare_answers(Path(__file__).parent / ("found.txt" if looks else "door.txt"), client, request)
