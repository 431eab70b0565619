"""The door as the contract of all doors calls it."""

from collections.abc import Mapping
from typing import Any

from tests.doors.callers import Content, HttpCaller, content_of


class WoaCaller(HttpCaller):
    """The WoA REST door."""

    wire = "woa"
    ways: Mapping[str, str] = {
        "ConfirmationRequired": "in the header AWP-Confirmation",
        "PrerequisiteRequired": "AWP-Receipt header",
    }

    def read(self, answer: Any) -> tuple[Any, Content | None]:
        return answer.json(), content_of(answer.json(), answer.headers.get("awp-content-type"))


CALLER = WoaCaller
