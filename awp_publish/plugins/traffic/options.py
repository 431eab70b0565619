"""The options of traffic."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field, Strict

from awp_publish.schema.options import SCOPE, strict


def check_metrics(value: bool | str) -> bool | str:
    if isinstance(value, str) and not re.fullmatch(SCOPE, value):
        raise ValueError(f"{value!r} is not a scope: write metrics=True, or the name of a scope")
    return value


@strict
@dataclass(frozen=True, slots=True)
class Traffic:
    """The record of calls and callers, for so many `days`.

    `metrics` is True if everybody may read the totals at `/agents/metrics`, or the scope that a caller needs for them.
    """

    days: Annotated[int, Strict(), Field(ge=1, le=400)] = 90
    metrics: Annotated[bool | str, AfterValidator(check_metrics)] = False
