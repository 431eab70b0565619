"""What functions make of what they are given, whole.

A line `> FUNCTION ARGUMENTS` has its arguments in JSON, in which {"times": [VALUE, N]} is a long one, and is followed
by what it returns or raises. --golden writes the answers anew; read the change.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from awp_publish.problems import DeclarationError

Functions = Mapping[str, Callable[..., Any]]


def compare(path: Path, functions: Functions, request: pytest.FixtureRequest) -> None:
    """Fail if the answers in a file are not those that the functions give."""
    text = transcribe(path.read_text(), functions)
    if request.config.getoption("--golden"):
        path.write_text(text)
    written = path.read_text()
    changes = unified_diff(written.splitlines(), text.splitlines(), n=1, lineterm="")
    assert text == written, "\n".join(changes)


def transcribe(text: str, functions: Functions) -> str:
    lines: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("> "):
            function, _, rest = line[2:].partition(" ")
            lines += [line, _answer(functions[function], *_arguments_of(rest))]
        elif not line or line.startswith("# "):
            lines.append(line)
    return "\n".join(lines) + "\n"


def _arguments_of(text: str) -> Iterator[Any]:
    while text := text.lstrip():
        value, end = DECODER.raw_decode(text)
        yield value
        text = text[end:]


def _long(members: dict[str, Any]) -> object:
    match members:
        case {"times": [value, int(times)]}:
            return value * times
    return members


DECODER = json.JSONDecoder(object_hook=_long)


def _answer(function: Callable[..., Any], *arguments: Any) -> str:
    try:
        text = json.dumps(function(*arguments), ensure_ascii=False)
    except (ValueError, DeclarationError) as error:
        return f"! {type(error).__name__}: {error}"
    return re.sub(r"(?<=\w):\d{9,}", "", text)  # ids of classes in pydantic's names
