"""The doors through which agents call, by their names. That of a plug-in has a module `door_caller` among its tests."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from awp_publish.calls.wire import WireRequest
from tests.client import TestClient
from tests.doors.callers import Asked, Content, DoorCaller, HttpCaller
from tests.installed import FOLDERS, installed

Doors: TypeAlias = Mapping[str, Callable[[TestClient], DoorCaller]]


class PlainCaller(HttpCaller):
    """The plain door: an action's own address and method, its inputs flat."""

    wire = "plain"
    ways: Mapping[str, str] = {
        "ConfirmationRequired": "in the header AWP-Confirmation.",
        "PrerequisiteRequired": "in the header AWP-Receipt. Do not repeat a call only to get its receipt",
    }

    def post(self, request: WireRequest, asked: Asked) -> Any:
        answer = super().post(request, asked)
        if answer.status_code != 405:
            return answer
        return super().post(replace(request, method=answer.headers["allow"].partition(",")[0]), asked)

    def read(self, answer: Any) -> tuple[Any, Content | None]:
        """An answer is what the route gave, in its own type."""
        if answer.headers["content-type"] == "application/json":
            return answer.json(), None
        told = answer.headers.get("awp-content-type", "")
        if answer.headers["content-type"].startswith("text/"):
            return answer.text, None
        name = told.partition("; name*=UTF-8''")[2]
        return None, (answer.headers["content-type"], unquote(name), answer.content)


EVERY_DOOR: Final[Doors] = {
    **{
        name: import_module(f"tests.plugins.{FOLDERS.get(name, name)}.door_caller").CALLER
        for name in installed("woa", "mcp", "a2a", "awp", "bridge")
    },
    "plain": PlainCaller,
}
DOORS: Final[Doors] = {name: caller for name, caller in EVERY_DOOR.items() if name != "bridge"}
"""Doors of which one is asked for without the page of a browser."""
