"""A WebSocket connection second by second: `sockets.txt`, in the words of `tests/function_transcripts.py`.

`serve` is given options and what comes: seconds to wait, frames, `...` for a client that has gone. A frame is greeted
by `hello`, answered in as many seconds as it says, or closes the connection by `bye`.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from awp_publish.http import sockets
from awp_publish.http.sockets import GOING_AWAY, Frame, SocketConnection
from tests.function_transcripts import compare
from tests.virtual_time import run_virtually


class Echo(SocketConnection):
    """Says when it takes frames, and waits as long as they say."""

    max_pending = 2

    def __init__(self, told: list[str], *options: Any) -> None:
        super().__init__(*options)
        self._told = told
        self._has_greeted = False

    def say(self, text: str) -> None:
        self._told.append(f"{round(asyncio.get_running_loop().time(), 3):g} {text}")

    @property
    def is_greeted(self) -> bool:
        return self._has_greeted

    async def take(self, frame: Frame, retry_after_ms: int | None) -> None:
        self.say(f"takes {frame!r}{'' if retry_after_ms is None else f', to be sent again in {retry_after_ms} ms'}")
        if frame == "hello":
            self._has_greeted = True
        elif frame == "bye":
            self.close(GOING_AWAY)
        elif retry_after_ms is None and str(frame).replace(".", "").isdigit():
            await self.start(self._answer(float(frame)), "answer")

    async def _answer(self, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
            await self.write({"type": "websocket.send", "text": f"after {seconds:g}"})
        except asyncio.CancelledError:
            self.say(f"is cancelled after less than {seconds:g}")
            raise

    async def refuse_large(self, frame: Frame) -> None:
        self.say(f"refuses {len(frame)} bytes")

    def leave(self) -> None:
        self.say("leaves")


def serve(options: dict[str, Any], *arrivals: Any) -> list[str]:
    """`slow` are the seconds that the client takes to read an answer."""
    told, waiting, due = list[str](), list(arrivals), list[float]()

    async def receive() -> dict[str, Any]:
        now = asyncio.get_running_loop().time
        while waiting and isinstance(waiting[0], (int, float)):
            due.append(now() + waiting.pop(0))
        while due:
            await asyncio.sleep(due[0] - now())
            due.pop(0)
        if not waiting:
            await asyncio.sleep(100_000)
        frame = waiting.pop(0)
        if frame == "...":
            return {"type": "websocket.disconnect"}
        return (
            {"type": "websocket.receive", "bytes": bytes(frame)}
            if isinstance(frame, list)
            else {
                "type": "websocket.receive",
                "text": frame,
            }
        )

    async def run() -> None:
        async def send(message: dict[str, Any]) -> None:
            await asyncio.sleep(options.get("slow", 0))
            if options.get("is_gone"):
                raise OSError
            told.append(f"{round(asyncio.get_running_loop().time(), 3):g} sends {message}")

        limits = options.get("bytes", 20), options.get("idle", 900.0), options.get("rate", 50)
        await Echo(told, receive, send, *limits).serve()
        told.append(f"{round(asyncio.get_running_loop().time(), 3):g} has ended, {len(waiting)} frames were not read")

    run_virtually(run())
    return told


@pytest.fixture(autouse=True)
def clock_of_the_loop(monkeypatch) -> Iterator[None]:
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr(sockets, "time", clock)
    return iter([None])


def test_connections_go_as_in_the_transcript(request):
    compare(Path(__file__).parent / "sockets.txt", {"serve": serve, "room": sockets.room_for_unknown}, request)
