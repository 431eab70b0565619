"""The options of the overview."""

import os
import re
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator

from awp_publish.problems import DeclarationError
from awp_publish.schema.options import SCOPE, strict

OVERVIEW_VARIABLE: Final = "AWP_PUBLISH_OVERVIEW"
_SWITCH: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("", "0", "false", "no", "off"), False),
}


def check_audience(value: str) -> str:
    """Raise ValueError for what is no scope."""
    if not re.fullmatch(SCOPE, value):
        raise ValueError(f'{value!r} is not a scope: leave it out for everybody, or write one such as "operator"')
    return value


@strict
@dataclass(frozen=True, slots=True)
class Overview:
    """The overview at `/agents`. `audience` is the scope that its readers need; without it, everybody is one."""

    audience: Annotated[str, AfterValidator(check_audience)] | None = None


def is_switched_on() -> bool:
    """Return True if the environment asks for the overview. Raises DeclarationError if it says neither yes nor no."""
    is_on = _SWITCH.get(os.environ.get(OVERVIEW_VARIABLE, "").strip().lower())
    if is_on is None:
        raise DeclarationError("site", f"overview: the environment variable {OVERVIEW_VARIABLE} must be 1 or 0.")
    return is_on
