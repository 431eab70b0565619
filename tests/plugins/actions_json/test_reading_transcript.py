"""What readers say of the example map after a change, strict ones and lenient ones: `reading.txt`.

`change` is given values by JSON Pointer; "gone" stands for none. It is followed by what a strict reader finds, what a
lenient one finds, and the tools that this one keeps.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from awp_publish.plugins.actions_json.reading import ActionMap
from tests.function_transcripts import compare

EXAMPLE = json.loads((Path(__file__).parent / "actions_json_example.json").read_text())


def _set(document: Any, pointer: str, value: Any) -> None:
    *path, last = pointer.split("/")[1:]
    for name in path:
        document = document[int(name)] if isinstance(document, list) else document[name]
    key: Any = int(last) if isinstance(document, list) and last != "-" else last
    if value == "gone":
        del document[key]
    elif key == "-":
        document.append(value)
    else:
        document[key] = value


def _found(read: ActionMap) -> list[str]:
    return [f"{found.level} {found.pointer}: {found.message} [{found.check}]" for found in read.findings]


def change(changes: dict[str, Any]) -> Any:
    document = deepcopy(EXAMPLE)
    for pointer, value in changes.items():
        _set(document, pointer, value)
    strict, lenient = (ActionMap.read(document, lenient=is_lenient) for is_lenient in (False, True))
    found = _found(strict), _found(lenient)
    tools: Any = lenient.document.get("tools", ())
    kept = [tool.get("name") for tool in tools] if lenient.is_valid else "refused"
    return [*found[:1], "the same" if found[0] == found[1] else found[1], kept]


def _load(*_: object) -> Any:
    raise AssertionError("Nothing is imported.")


def text(document: str) -> Any:
    read = ActionMap.read(document, lenient=True)
    composed = read.composed(_load)
    return [_found(read), read.is_valid, composed is read]


def test_readers_report_as_in_the_transcript(request):
    compare(Path(__file__).parent / "reading.txt", {"change": change, "text": text}, request)
