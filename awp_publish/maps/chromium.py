"""A page in Chromium, through Playwright (extra "browser"):

    async with open_chromium(["https://shop.example"]) as browser:
        page = await browser.open("https://shop.example/")

Pointer, keyboard and navigation are the browser's own. Only pages of the given origins are opened.
"""

from __future__ import annotations

import asyncio
import html
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urljoin, urlsplit

from awp_publish.browsing.page import Fetch, Fetched
from awp_publish.maps.keys import read_chord
from awp_publish.maps.live_page import SCREENLESS_PRIMITIVES, PrimitiveError
from awp_publish.maps.script_page import CHANGING_METHODS, ScriptPage
from awp_publish.schema import JsonObject

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Page, Request, Response, Route


SCRIPT: Final = Path(__file__).with_name("actions.js")
NAMES: Final = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
"""Names of an installed browser: a headless shell first, which renders the same and starts at a fifth of the cost.

If there is none, Playwright's own is used if it is installed.
"""
LOAD_MS: Final = 15_000
"""Milliseconds in which a page has to load."""
SETTLE_MS: Final = 50
"""Milliseconds after an act within which a navigation begins, if there is one."""
COMMIT_MS: Final = 5_000
"""Milliseconds after a response within which its page replaces the one before it."""
MAX_RETRIES: Final = 5
"""Page loads after which one query of a page is repeated."""
PASSING: Final = "x-awp-publish-passing"
"""The header of an interim page that replaces a redirect."""
MAX_REDIRECTS: Final = 10
DISPOSITION: Final = "content-disposition"
Answer: TypeAlias = Callable[[Fetch], Awaitable[Fetched]]
"""Answers the requests of a page in place of a server."""


@lru_cache(maxsize=1)
def find_chromium() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


def why_unavailable() -> str | None:
    """Return why no Chromium can be controlled here, or None if one can."""
    if find_spec("playwright") is None:
        return 'Playwright is not installed: pip install "awp-publish[browser]".'
    return None if find_chromium() else "No Chromium is on the PATH."


class Chromium:
    """A running browser. Each page that it opens has cookies of its own, unless it shares those of another."""

    def __init__(self, browser: Any, origins: Sequence[str], answer: Answer | None) -> None:
        self._browser = browser
        self._origins = frozenset(origins)
        self._answer = answer

    async def open(self, url: str | None = None) -> ChromiumPage:
        """Open a page, at an address if one is given. Raises PrimitiveError `navigation_failed`."""
        context: BrowserContext = await self._browser.new_context()
        if self._answer is not None:
            await context.route("**/*", self._serve)
        page = ChromiumPage(await context.new_page(), self._origins)
        if url is not None:
            await page.perform("browser.navigate", {"url": url})
        return page

    async def _serve(self, route: Route) -> None:
        request, answer = route.request, self._answer
        parts = urlsplit(request.url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if answer is None or origin not in self._origins:
            await route.abort("addressunreachable")
            return
        headers = tuple((await request.all_headers()).items())
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        fetched = await answer(Fetch(request.method, target, headers, request.post_data_buffer or b"", origin))
        lines: dict[str, str] = {}
        for field_name, value in fetched.headers:
            name = field_name.lower()
            lines[name] = f"{lines[name]}\n{value}" if name in lines else value
        if fetched.status in (301, 302, 303, 307, 308) and "location" in lines and request.is_navigation_request():
            # A redirect that is fulfilled here would bypass this route, so an interim page redirects instead.
            goal = html.escape(urljoin(request.url, lines.pop("location")))
            lines |= {"content-type": "text/html; charset=utf-8", PASSING: "1"}
            interim = f'<!doctype html><meta http-equiv="refresh" content="0;url={goal}">'
            await route.fulfill(status=200, headers=lines, body=interim)
            return
        await route.fulfill(status=fetched.status, headers=lines, body=fetched.body)


@asynccontextmanager
async def open_chromium(
    origins: Sequence[str], *, answer: Answer | None = None, executable: str | None = None
) -> AsyncIterator[Chromium]:
    """Start a browser for pages of some origins. With `answer` their requests never leave this process.

    Raises ImportError without Playwright, and Playwright's own errors if Chromium cannot be started.
    """
    from playwright.async_api import async_playwright

    path = executable or find_chromium()
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield Chromium(browser, origins, answer)
        finally:
            await browser.close()


class ChromiumPage(ScriptPage):
    """One page in Chromium (`LivePage`)."""

    def __init__(self, page: Page, origins: frozenset[str]) -> None:
        super().__init__(self._evaluate, host="chromium", primitives=SCREENLESS_PRIMITIVES | {"pointer.drag"})
        self.page = page
        self._origins = origins
        self._events: frozenset[str] = frozenset()
        self._navigations: list[Request] = []
        self._began = asyncio.Event()
        self._committed = asyncio.Event()

        def note(request: Request) -> None:
            if request.is_navigation_request() and request.frame == page.main_frame:
                self._navigations.append(request)
                self._committed.clear()
                self._began.set()

        def commit(frame: Frame) -> None:
            if frame == page.main_frame:
                self._committed.set()

        page.on("request", note)
        page.on("framenavigated", commit)
        page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.dismiss()))

    async def close(self) -> None:
        """Close the page and drop its cookies. Those of a page that does not close end with the browser."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOAD_MS / 1000):
                await self.page.context.close()

    async def listen(self, events: frozenset[str]) -> None:
        """Collect events of these names from now on, also in pages that are loaded later."""
        self._events |= events
        await super().listen(events)

    async def _evaluate(self, method: str, arguments: JsonObject) -> JsonObject:
        """Call a method of the page's script, which is injected at the first call in a page."""
        from playwright.async_api import Error

        reason = "The page reloads over and over."
        for _ in range(MAX_RETRIES):
            self._require_open()
            try:
                answer = await self.page.evaluate(
                    "([method, given]) => window.agentsBridge ? window.agentsBridge.run(method, given) : null",
                    [method, dict(arguments)],
                )
                if isinstance(answer, dict):
                    return answer
                await self.page.evaluate(await asyncio.to_thread(SCRIPT.read_text, "utf-8"))
                if self._events and method != "listen":
                    await super().listen(self._events)
            except Error as error:  # the page was left meanwhile
                self._require_open()
                reason = error.message
                with suppress(Error):
                    await self.page.wait_for_load_state("domcontentloaded", timeout=LOAD_MS)
                if method in CHANGING_METHODS:
                    return {"ok": True, "value": {"navigated": True}, "url": self.page.url}
        error_told = {"code": "state_document_unavailable", "message": reason[:500]}
        return {"ok": False, "error": error_told, "url": self.page.url}

    def _require_open(self) -> None:
        if self.page.is_closed():
            raise PrimitiveError("transport_failed", "The tab was closed.", url=self.url)

    def _not_loaded(self, error: Exception) -> PrimitiveError:
        self._require_open()
        reason = str(error)[:300] or f"it took longer than {LOAD_MS // 1000} seconds."
        return PrimitiveError("navigation_failed", f"The page did not load: {reason}")

    async def perform(self, primitive: str, arguments: JsonObject) -> JsonObject:
        """Run a primitive, and wait for a page that it opens."""
        from playwright.async_api import Error

        try:
            return await self._perform(primitive, arguments)
        except Error:
            self._require_open()
            raise

    async def _perform(self, primitive: str, arguments: JsonObject) -> JsonObject:
        mouse, keyboard = self.page.mouse, self.page.keyboard
        match primitive:
            case "browser.navigate":
                return await self._navigate(arguments)
            case "pointer.click" | "pointer.double_click":
                x, y, is_link = await self._reveal(arguments)
                button: Any = arguments.get("button", "left")
                count = 2 if primitive == "pointer.double_click" else 1
                await self._settle(lambda: mouse.click(x, y, button=button, click_count=count), is_link=is_link)
                return {"clicked" if count == 1 else "double_clicked": True}
            case "pointer.move":
                x, y, _ = await self._reveal(arguments)
                await mouse.move(x, y)
                return {"x": arguments["x"], "y": arguments["y"]}
            case "pointer.drag":
                begin, end = arguments.get("from"), arguments.get("to")
                if not isinstance(begin, dict) or not isinstance(end, dict):
                    raise PrimitiveError("invalid_input", "pointer.drag takes two points, from and to.")
                x, y, _ = await self._reveal(begin)
                steps = arguments.get("steps")
                await mouse.move(x, y)
                await mouse.down()
                await mouse.move(float(end["x"]), float(end["y"]), steps=steps if isinstance(steps, int) else 10)
                await self._settle(mouse.up)
                return {"dragged": True}
            case "keyboard.press":
                chord = read_chord(str(arguments.get("key", "")), arguments.get("modifiers"))
                await self._settle(lambda: keyboard.press("+".join((*chord.modifiers, chord.key))))
                return {"pressed": True, "modifiers": list(chord.modifiers)}
        return await super().perform(primitive, arguments)

    async def _reveal(self, point: JsonObject) -> tuple[float, float, bool]:
        """Scroll to a point. Returns its new position, and whether a link is there. Raises PrimitiveError."""
        revealed = await self.ask("reveal", self.from_document({"x": point.get("x"), "y": point.get("y")}))
        assert isinstance(revealed, dict)
        return float(revealed["x"]), float(revealed["y"]), revealed.get("link") is True

    async def _settle(self, act: Callable[[], Awaitable[None]], *, is_link: bool = False) -> None:
        """Do something, and wait for the page that it opens, if any. Raises PrimitiveError `navigation_failed`."""
        from playwright.async_api import Error

        self._navigations.clear()
        await act()
        with suppress(Error):  # the page was left already
            await self.page.evaluate(f"() => new Promise((done) => setTimeout(done, {SETTLE_MS}))")
        if not self._navigations:
            return
        try:
            await self.page.wait_for_load_state("domcontentloaded", timeout=LOAD_MS)
            async with asyncio.timeout(LOAD_MS / 1000):
                response = await self._arrive(await self._navigations[-1].response())
            await self._wait_for_commit(response)
        except (Error, TimeoutError) as error:
            raise self._not_loaded(error) from error
        self._check(response, is_error_failure=is_link)

    async def _wait_for_commit(self, response: Response | None) -> None:
        """Wait until the page of a response has replaced the one before it.

        Until then the page is the earlier one, and Chromium never ends the closing of a page that is about to be
        replaced. A response that is no page, such as a download, replaces nothing.
        """
        if response is None or response.status in (204, 205) or "attachment" in response.headers.get(DISPOSITION, ""):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(COMMIT_MS / 1000):
                await self._committed.wait()
            await self.page.wait_for_load_state("domcontentloaded", timeout=LOAD_MS)

    async def _arrive(self, response: Response | None) -> Response | None:
        """Follow interim pages that replace redirects, and return the final response."""
        for _ in range(MAX_REDIRECTS):
            if response is None or PASSING not in response.headers:
                return response
            async with asyncio.timeout(LOAD_MS / 1000):
                while self._navigations[-1] == response.request:
                    self._began.clear()
                    await self._began.wait()
            await self.page.wait_for_load_state("domcontentloaded", timeout=LOAD_MS)
            response = await self._navigations[-1].response()
        raise PrimitiveError("navigation_failed", "Too many redirects.")

    async def _navigate(self, arguments: JsonObject) -> JsonObject:
        from playwright.async_api import Error

        url = arguments.get("url")
        if arguments.get("tab_id") is not None:
            raise PrimitiveError("capability_unavailable", "There are no other tabs.", capability="browser.navigate")
        if not isinstance(url, str) and arguments.get("reload") is not True:
            raise PrimitiveError("invalid_input", "browser.navigate needs a url, or reload.")
        self._navigations.clear()
        try:
            if isinstance(url, str):
                base = self.page.url if self.page.url.startswith("http") else f"{min(self._origins)}/"
                goal = urljoin(base, url)
                parts = urlsplit(goal)
                if f"{parts.scheme}://{parts.netloc}" not in self._origins:
                    raise PrimitiveError("permission_denied", "Only pages of this site can be opened.", url=url[:200])
                response = await self.page.goto(goal, wait_until="domcontentloaded", timeout=LOAD_MS)
            else:
                response = await self.page.reload(wait_until="domcontentloaded", timeout=LOAD_MS)
            response = await self._arrive(response)
            await self._wait_for_commit(response)
        except (Error, TimeoutError) as error:
            raise self._not_loaded(error) from error
        self._check(response, is_error_failure=False)
        status = None if response is None else response.status
        return {"url": self.url, "title": await self.page.title(), "status": status}

    def _check(self, response: Response | None, *, is_error_failure: bool) -> None:
        """Update the address. Raises PrimitiveError for an address of another site, and for an error status."""
        self.url = self.page.url
        parts = urlsplit(self.url)
        if parts.scheme in ("http", "https") and f"{parts.scheme}://{parts.netloc}" not in self._origins:
            raise PrimitiveError("navigation_failed", "The page has left this site.", url=self.url[:200])
        if response is None:
            return
        kind = response.headers.get("content-type", "")
        if response.status >= 400 and (is_error_failure or "html" not in kind):
            details: dict[str, object] = {"url": self.url, "status": response.status}
            raise PrimitiveError("navigation_failed", f"The link leads to an error: {response.status}", **details)
