"""What the checks find in valid documents that are changed: `cases.txt`.

A line `> KIND EDITS` is the valid document of a kind with changes: JSON by pointers, ABSENT for what is taken away, and
{"times": [VALUE, N]} or {"numbered": [VALUE, N]} for a long one. KIND is `awas-1.0` for an old manifest, `lenient
actions-json` for a reader that forgives, and `site` for all documents of a site, with changes by the path of each.
Below stands what is found, and whether the schema that we publish accepts it. --golden writes these anew; read the
change.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator

from awp_publish.checks import Finding, all_checks, check_document, check_documents
from awp_publish.checks.places import exists

from .documents import ABSENT, AWAS_1_0, KINDS, PATHS, Document, edited

SCHEMAS = {
    "awas": "plugins/awas/awas.schema.json",
    "agent-json": "plugins/agent_json/checks/agent-json.schema.json",
    "woa": "plugins/woa/woa.schema.json",
}
ALIAS = "/.well-known/awas.json"
SITE = {PATHS[kind]: document for kind, document in KINDS.items()} | {ALIAS: KINDS["awas"]}


def changes(edits: Any) -> dict[str, object]:
    return {pointer: _value(value) for pointer, value in edits.items()}


def _value(value: Any) -> object:
    if value == "ABSENT":
        return ABSENT
    match value:
        case {"times": [repeated, int(times)]}:
            return repeated * times
        case {"numbered": [each, int(times)]}:
            return [json.loads(json.dumps(each).replace("#", str(number))) for number in range(times)]
    return value


def found(line: str) -> Iterator[str]:
    words, _, text = line.partition(" {")
    kind, edits = words.removeprefix("lenient "), json.loads("{" + text)
    if kind == "site":
        yield from in_site(edits)
        return
    document = edited(AWAS_1_0 if kind == "awas-1.0" else KINDS[kind], changes(edits))
    findings = check_document(document, kind.removesuffix("-1.0"), "/some/where.json", lenient="lenient" in words)
    yield from map(told, findings)
    assert_sound(document, findings)
    if kind in SCHEMAS:
        yield "the schema accepts it" if schema_of(kind).is_valid(document) else "the schema refuses it"


@cache
def schema_of(kind: str) -> Draft202012Validator:
    return Draft202012Validator((files("awp_publish") / SCHEMAS[kind]).read_text("utf-8"))


def in_site(edits: Any) -> Iterator[str]:
    documents = {
        path: json.dumps(edited(document, changes(edits.get(path, {})))).encode()
        for path, document in SITE.items()
        if edits.get(path, {}) is not None
    }
    yield from (f"{each.document} {told(each)}" for each in check_documents(documents))


def told(finding: Finding) -> str:
    subject = f" ({finding.subject})" if finding.subject else ""
    return f"{finding.level} {finding.check} {finding.pointer}{subject}: {finding.message}"


def assert_sound(document: Document, findings: list[Finding]) -> None:
    """Each finding is there once, says what to do and where that is written, and points to a place of the document."""
    places = [(each.check, each.pointer) for each in findings]
    assert len(places) == len(set(places))
    for each in findings:
        assert each.message.endswith(".")
        assert each.hint.endswith((".", "?"))
        assert each.source
        assert str(each).startswith(f"{each.level}: /some/where.json#{each.pointer}: ")
        assert exists(document, each.pointer) or exists(document, each.pointer.rpartition("/")[0])


def test_changed_documents_have_the_findings_of_the_transcript(request) -> None:
    path, lines = Path(__file__).parent / "cases.txt", list[str]()
    for line in path.read_text().splitlines():
        if not line.startswith("  "):
            lines.append(line)
        if line.startswith("> "):
            lines += [f"  {text}" for text in found(line[2:])]
    if request.config.getoption("--golden"):
        path.write_text("\n".join(lines) + "\n")
    assert lines == path.read_text().splitlines()


def test_every_check_is_described_as_in_the_table(request) -> None:
    path = Path(__file__).parent / "table.txt"
    checks = sorted(all_checks(), key=lambda each: each.id)
    text = "".join(f"{each.id} ({each.level}; {each.source})\n  {each.about}\n  {each.hint}\n" for each in checks)
    if request.config.getoption("--golden"):
        path.write_text(text)
    assert text == path.read_text()


ELSEWHERE = {"agent-json-other-standard", "actions-size", "actions-no-engine", "actions-import", "json-depth"}
"""What these find is no valid document with a small change, so they have tests of their own."""


def test_every_check_is_triggered() -> None:
    texts = [(Path(__file__).parent / name).read_text() for name in ("cases.txt", "functions.txt")]
    triggered = {*re.findall(r"(?m)^  (?:\S+ )?(?:error|warning|info) (\S+) ", texts[0]), *ELSEWHERE}
    triggered |= set(re.findall(r"\[([a-z0-9-]+); ", texts[1]))
    assert [check.id for check in all_checks() if check.id not in triggered] == []
