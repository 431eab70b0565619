"""How texts are read and actions are judged, whole: `functions.txt`, in words of `tests/function_transcripts.py`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from awp_publish.checks import check_document
from awp_publish.checks.descriptions import judge_descriptions
from awp_publish.checks.expressions import is_pattern, matches
from awp_publish.checks.inner_schemas import InnerSchemas
from awp_publish.checks.judged_actions import JudgedAction, tools_in
from awp_publish.checks.text import is_timestamp, secrets
from awp_publish.checks.urls import (
    dependent_paths,
    is_absolute,
    is_host_name,
    is_loopback,
    is_private,
    path_of,
    url_fault,
)
from tests.function_transcripts import compare


def read(text: str, kind: str | None = None, path: str = "") -> list[str]:
    """Check a text, or bytes that are written as characters after `bytes:`."""
    data = text.removeprefix("bytes:").encode("latin-1") if text.startswith("bytes:") else text
    return [str(finding) for finding in check_document(data, kind, path)]


def judge(action_id: str, description: str, schema: dict[str, Any], *, examples: bool = True) -> list[object]:
    judged = judge_descriptions([JudgedAction(action_id, description, schema, examples)])
    return [judged.score, *(f"{each.check} {each.pointer}: {each.message}" for each in judged.findings)]


def judge_without_examples(action_id: str, description: str, schema: dict[str, Any]) -> list[object]:
    return judge(action_id, description, schema, examples=False)


def tools(document: dict[str, Any] | None) -> list[object]:
    listed = tools_in(document)
    return [[each.id, each.description, each.inputs, each.has_examples, each.pointer] for each in listed]


def secret(document: dict[str, Any]) -> list[str]:
    return [f"{each.pointer}: {each.message}" for each in secrets(document)]


def host(text: str) -> list[bool]:
    """Whether a text is the name of a host, a private one and the machine itself."""
    return [is_host_name(text), is_private(text), is_loopback(text)]


def url(text: str) -> list[object]:
    return [url_fault(text), is_absolute(text), path_of(text), *map(str, dependent_paths({"a": text}, "/a"))]


def references(*schemas: object) -> list[object]:
    found = InnerSchemas("/{}").violations({f"s{number}": schema for number, schema in enumerate(schemas)})
    return [f"{wrong.keyword} {wrong.pointer}: {wrong.message}" for wrong in found]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "read": read,
    "judge": judge,
    "bare": judge_without_examples,
    "tools": tools,
    "secrets": secret,
    "pattern": is_pattern,
    "matches": matches,
    "url": url,
    "host": host,
    "time": is_timestamp,
    "references": references,
}


def test_functions_of_checks_answer_as_in_the_transcript(request):
    compare(Path(__file__).parent / "functions.txt", FUNCTIONS, request)
