"""What the checks find in valid documents of which one member is changed, each in turn: `changes`.

A line is a member and a value in its place, and below it stands what is found. What is found of several values is there
once, and first stands what every finding of a check has. --golden writes these anew; read the change.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from awp_publish.checks import Finding, check_document
from tests.checks.documents import ABSENT, AWAS_1_0, KINDS, edited

ODD: Final[tuple[object, ...]] = (ABSENT, None, -1.5, "", "ä b", ["x", "x"], {"x": 1})


def places_in(value: object, pointer: str = "") -> Iterator[tuple[str, object]]:
    """Yield the members of a document, of each list those of its first element."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, part in inside:
        place = f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}"
        yield place, part
        yield from places_in(part, place)


def changes_of(place: str, value: object) -> Iterator[object]:
    odd = ODD[1:] if place.endswith("/0") else ODD  # no element of a list is missing
    yield from (each for each in odd if each != value)
    if isinstance(value, list) and value:
        yield [*value, value[0]]
    if isinstance(value, dict):
        yield {**value, "odd_member": {"type": "odd"}}
    if isinstance(value, str):
        yield f"{value}/../x.y"


def shown(value: object, before: object) -> str:
    if value is ABSENT:
        return "nothing"
    if isinstance(value, list) and isinstance(before, list) and len(value) == len(before) + 1 > 1:
        return "with its first element twice"
    if isinstance(value, dict) and "odd_member" in value:
        return "with an odd member"
    return json.dumps(value, ensure_ascii=False)


def told(finding: Finding) -> str:
    subject = f" ({finding.subject})" if finding.subject else ""
    return f"  {finding.level} {finding.check} {finding.pointer}{subject}: {finding.message}"


@pytest.mark.parametrize("kind", [*KINDS, "awas-1.0"])
def test_each_change_of_a_document(kind: str, request: pytest.FixtureRequest) -> None:
    document, name = (AWAS_1_0, "awas") if kind == "awas-1.0" else (KINDS[kind], kind)
    lines, always = list[str](), dict[str, str]()
    for place, before in places_in(document):
        found: dict[tuple[str, ...], list[str]] = {}
        for value in changes_of(place, before):
            findings = check_document(edited(document, {place: value}), name)
            always |= {each.check: f"{each.check} ({each.source}): {each.hint}" for each in findings}
            found.setdefault(tuple(sorted(map(told, findings))), []).append(shown(value, before))
        for texts, values in found.items():
            lines += [f"{place}: {', '.join(values)}", *(texts or ["  -"])]
    text = "\n".join([*sorted(always.values()), "", *lines]) + "\n"
    path = Path(__file__).parent / "changes" / f"{kind}.txt"
    if request.config.getoption("--golden"):
        path.write_text(text)
    assert text == path.read_text()
