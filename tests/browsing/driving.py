"""A tiny site of a table of pages, and a loop that drives a session's methods against it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import orjson
import pytest

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.browser import SessionLimits
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.methods import METHODS
from awp_publish.browsing.page import Fetch, Fetched, Steps
from awp_publish.browsing.session import Session

HOME = "https://shop.example"
Answer: TypeAlias = Any
"""HTML, an answer, or a function of the request that gives one of them."""


def page(html: str, status: int = 200, *headers: tuple[str, str]) -> Fetched:
    return Fetched(status, (("Content-Type", "text/html; charset=utf-8"), *headers), html.encode())


def redirect(location: str, status: int = 302, *headers: tuple[str, str]) -> Fetched:
    return Fetched(status, (("Location", location), *headers), b"")


@dataclass
class Web:
    """A site: path -> HTML, an answer, or a function of the request. `asked` has every request."""

    pages: Mapping[str, Answer]
    asked: list[Fetch] = field(default_factory=list)

    def answer(self, fetch: Fetch) -> Fetched:
        self.asked.append(fetch)
        found = self.pages.get(fetch.path.partition("?")[0])
        if found is None:
            return page("<title>Not found</title><main><h1>Not found</h1></main>", 404)
        answer = found(fetch) if callable(found) else found
        return page(answer) if isinstance(answer, str) else answer

    @property
    def last(self) -> Fetch:
        return self.asked[-1]

    def drive(self, steps: Steps) -> dict[str, Any]:
        try:
            fetch = next(steps)
            while True:
                fetch = steps.send(self.answer(fetch))
        except StopIteration as stop:
            return stop.value


def details_of(refused: pytest.ExceptionInfo[AwpError]) -> dict[str, Any]:
    """What an error says to programs, as they read it."""
    return orjson.loads(orjson.dumps(refused.value.details))


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Agent:
    """A session with a site around it, and a short name for each method."""

    def __init__(self, pages: Mapping[str, Answer] | None = None, *, start: str | None = "/", **options: Any) -> None:
        self.web = Web(pages or {})
        self.clock = Clock()
        origins = options.pop("origins", Origins.of(HOME))
        limits = SessionLimits(**options.pop("limits", {}))
        self.session = Session(origins, limits=limits, clock=self.clock, **options)
        if start is not None and pages:
            self.navigate(start)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        METHODS[method].check(params)
        return orjson.loads(orjson.dumps(self.web.drive(METHODS[method].run(self.session, params))))

    def navigate(self, url: str) -> dict[str, Any]:
        return self.call("page.navigate", url=url)

    def act(self, action: str, target: Any = None, **rest: Any) -> dict[str, Any]:
        target = {"css": target} if isinstance(target, str) else target
        intent = {"action": action, **({} if target is None else {"target": target}), **rest}
        return self.call("page.act", intent=intent)

    def click(self, target: Any) -> dict[str, Any]:
        return self.act("click", target)

    def som(self, **params: Any) -> dict[str, Any]:
        return self.call("page.observe", **params)["som"]

    def elements(self, role: str | None = None) -> list[dict[str, Any]]:
        found = [element for region in self.som(budget="full")["regions"] for element in region["elements"]]
        return [element for element in found if role in (None, element["role"])]

    @property
    def url(self) -> str | None:
        return self.session.url

    @property
    def cookies(self) -> dict[str, str]:
        return {cookie["name"]: cookie["value"] for cookie in self.call("session.cookies.get")["cookies"]}


def headers_of(fetch: Fetch) -> dict[str, str]:
    return dict(fetch.headers)
