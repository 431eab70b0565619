"""How tests call actions at the plain door."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from awp_publish.calls.wire import WireRequest
from tests.doors.callers import Asked, Content, HttpCaller


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
        response = answer.headers.get("awp-content-type", "")
        if answer.headers["content-type"].startswith("text/"):
            return answer.text, None
        name = response.partition("; name*=UTF-8''")[2]
        return None, (answer.headers["content-type"], unquote(name), answer.content)


CALLER = PlainCaller
