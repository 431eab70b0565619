"""Methods of a session are driven: within their time, in threads where pages are large, and closed whatever happens."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from awp_publish.browsing.driving import INLINE_LIMIT, drive
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import Fetch, Fetched, Steps

FETCH = Fetch("GET", "/", (), b"", "https://shop.example")
SMALL_PAGE = Fetched(200, (), b"small")
LARGE_PAGE = Fetched(200, (), b"x" * (INLINE_LIMIT + 1))


class Watched:
    """A method that notes in which threads it runs, and that it was closed."""

    def __init__(self, fetches: int = 1, seconds: float = 0.0, go: threading.Event | None = None) -> None:
        self.threads: list[bool] = []
        self.has_ended = False
        self._fetches = fetches
        self._seconds = seconds
        self._go = go

    def steps(self) -> Steps:
        try:
            for _ in range(self._fetches):
                self._note()
                yield FETCH
            self._note()
            time.sleep(self._seconds)
            if self._go is not None:
                self._go.wait(30)
            return {"done": True}
        finally:
            self.has_ended = True

    def _note(self) -> None:
        self.threads.append(threading.current_thread() is threading.main_thread())


def reach_of(pages: Iterator[Fetched]):
    async def reach(fetch: Fetch) -> Fetched:
        return next(pages)

    return reach


async def test_small_pages_are_read_at_once_and_large_ones_in_threads():
    watched = Watched(fetches=2)
    result = await drive(watched.steps(), reach_of(iter([SMALL_PAGE, LARGE_PAGE])), "page.navigate", 10)
    assert result == {"done": True}
    assert watched.threads == [True, True, False]


async def test_a_page_that_is_large_already_is_not_looked_at_on_the_loop():
    watched = Watched(fetches=1)
    await drive(watched.steps(), reach_of(iter([SMALL_PAGE])), "page.act", 10, in_thread=True)
    assert watched.threads == [False, False]


async def test_steps_that_take_too_long_are_closed():
    async def never(fetch: Fetch) -> Fetched:
        await asyncio.sleep(60)
        return SMALL_PAGE

    watched = Watched()
    with pytest.raises(AwpError) as refused:
        await drive(watched.steps(), never, "page.navigate", 0.01)
    assert (refused.value.code, refused.value.details) == ("TIMEOUT", {"timeout_ms": 10, "method": "page.navigate"})
    assert watched.has_ended


async def test_a_thread_is_waited_for_before_its_method_is_closed():
    watched = Watched(seconds=0.2)
    with pytest.raises(AwpError):
        await drive(watched.steps(), reach_of(iter([LARGE_PAGE])), "page.navigate", 0.05)
    assert watched.has_ended


async def test_more_large_pages_than_threads_wait_and_may_be_given_up():
    go = threading.Event()
    busy = [Watched(go=go) for _ in range(2)]
    running = [
        asyncio.create_task(drive(item.steps(), reach_of(iter([LARGE_PAGE])), "page.navigate", 10)) for item in busy
    ]
    async with asyncio.timeout(50):
        while not all(item.threads == [True, False] for item in busy):  # noqa: ASYNC110, threads make it so
            await asyncio.sleep(0.01)
    late = Watched()
    with pytest.raises(AwpError):
        await drive(late.steps(), reach_of(iter([LARGE_PAGE])), "page.navigate", 0.05)
    assert late.threads == [True]
    go.set()
    assert await asyncio.gather(*running) == [{"done": True}] * 2


async def test_the_refusal_of_a_method_comes_through_a_thread():
    def steps() -> Steps:
        yield FETCH
        raise AwpError("NOT_FOUND", "There is no such thing.")

    with pytest.raises(AwpError, match="no such thing"):
        await drive(steps(), reach_of(iter([LARGE_PAGE])), "page.navigate", 10)
