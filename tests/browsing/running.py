"""Pages for runtimes of actions.json to act upon, and short ways to write maps and to run them."""

import asyncio
import atexit
from collections.abc import Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.page import Fetch, Fetched, Steps
from awp_publish.browsing.session import Session
from awp_publish.maps.chromium import Chromium, ChromiumPage, open_chromium
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.live_page import LivePage
from awp_publish.maps.runtime import Runtime
from awp_publish.maps.site_page import SitePage
from awp_publish.plugins.actions_json.reading import ActionMap
from tests.browsing.driving import HOME, Answer, Web

Json = dict[str, Any]
ANY = {"type": "object"}


async def open_in_process(web: Web, start: str = "/") -> LivePage:
    """Open a page of a tiny site in process."""
    session = Session(Origins.of(HOME))

    async def drive(steps: Steps) -> Json:
        return web.drive(steps)

    web.drive(session.tab().navigate(start))
    return SitePage(session, drive)


_LOOP = asyncio.Runner()
"""One event loop for all drivers: a browser belongs to the loop that started it."""
_BROWSERS: list[AbstractAsyncContextManager[Chromium]] = []
_SHOWN: list[Chromium] = []
_WEBS: list[Web] = []
_PAGES: list[ChromiumPage] = []


async def open_in_chromium(web: Web, start: str = "/") -> LivePage:
    """Open a page of a tiny site in the one browser of all tests, whose requests never leave this process."""
    if _PAGES:  # that of an earlier test, which is answered no more
        await _PAGES.pop().close()
    _WEBS[:] = [web]

    async def answer(fetch: Fetch) -> Fetched:
        return _WEBS[0].answer(fetch)

    if not _SHOWN:
        _BROWSERS.append(open_chromium([HOME], answer=answer))
        _SHOWN.append(await _BROWSERS[0].__aenter__())
        atexit.register(lambda: _LOOP.run(_BROWSERS[0].__aexit__(None, None, None)))
    _PAGES.append(await _SHOWN[0].open(f"{HOME}{start}"))
    return _PAGES[0]


def tool(name: str = "go", *steps: Json, output: str | None = None, **members: Any) -> Json:
    """Write a tool that is a workflow of these steps."""
    workflow: Json = {"version": 1, "expression_language": "jsonata", "steps": list(steps)}
    if output is not None:
        workflow["output"] = output
    return {"name": name, "description": "Does it.", "input_schema": ANY, "workflow": workflow, **members}


def step(step_id: str, primitive: str, args: Json | None = None, **members: Any) -> Json:
    return {"id": step_id, "primitive": primitive, **({} if args is None else {"args": args}), **members}


def click(step_id: str, selector: str, **members: Any) -> tuple[Json, Json]:
    """Write the two steps of a click: find the element, and click its centre."""
    centre = f"steps.find_{step_id}.output.clickable_center"
    args = {"x": f"{{% {centre}.x %}}", "y": f"{{% {centre}.y %}}"}
    found = step(f"find_{step_id}", "locator.element_info", {"locator": {"selector": selector}})
    return found, step(step_id, "pointer.click", args, **members)


def map_of(*tools: Json, **members: Any) -> Json:
    return {"protocol": "actions.json", "version": 1, "tools": list(tools), **members}


class Driver:
    """A runtime upon a tiny site, asked from a test that is not asynchronous."""

    def __init__(self, pages: Mapping[str, Answer], document: Json, *, start: str = "/", **options: Any) -> None:
        self.web = Web(pages)
        self.lenient = options.pop("lenient", False)
        opening = options.pop("opening", open_in_process)
        self.page: LivePage = _LOOP.run(opening(self.web, start))
        self.map = ActionMap.read(document, lenient=self.lenient)
        self.runtime = Runtime(self.map, self.page, **options)

    def call(self, name: str = "go", **arguments: Any) -> Any:
        return self.result(name, arguments).output

    def result(self, name: str, arguments: object, **options: Any) -> Any:
        return _LOOP.run(self.runtime.call(name, arguments, **options))

    def failure(self, name: str = "go", **arguments: Any) -> Any:
        try:
            output = self.call(name, **arguments)
        except RuntimeFailure as failure:
            return failure
        raise AssertionError(f"it did not fail: {output}")

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return _LOOP.run(work)

    def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        return _LOOP.run(getattr(self.runtime, method)(*arguments, **options))
