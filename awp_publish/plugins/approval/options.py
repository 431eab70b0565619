"""The options of approval."""

import os
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator

from awp_publish.schema.options import Text, strict


def check_path(value: object) -> object:
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(path, str) and "\0" in path:
        raise ValueError("must be a path without NUL")
    return path


@strict
@dataclass(frozen=True, slots=True)
class Approval:
    """Approval of each action by its owner before it is published.

    `file` has the approvals. Its path is relative to the directory in which the application is started.
    """

    file: Annotated[Text, BeforeValidator(check_path)] = "agents-approved.json"
