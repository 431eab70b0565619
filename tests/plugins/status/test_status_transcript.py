"""What works of a site, second by second of a virtual clock: `status.txt`, in words of `tests/function_transcripts.py`.

`probes` is given seconds; probes, each with its actions, its interval, and what it answers, one after the other, the
last again and again; and what the owner sets, by the second.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.http.running import StartFailed, running
from awp_publish.plugins.status import liveness
from tests.function_transcripts import compare
from tests.guarded import make_shop
from tests.virtual_time import run_virtually


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
        say("ends")

    try:
        run_virtually(run())
    except StartFailed as error:
        told.append(str(error))
    return told


def test_what_works_second_by_second(request, monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr(liveness, "time", clock)
    compare(Path(__file__).parent / "status.txt", {"probes": probes}, request)
