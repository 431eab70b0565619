"""How texts are read and actions are judged, whole: `functions.txt`, in words of `tests/function_transcripts.py`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from awp_publish.checks import check_document
from awp_publish.checks.descriptions import judge_descriptions
from awp_publish.checks.judged_actions import JudgedAction, tools_in
from awp_publish.checks.text import secrets
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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "read": read,
    "judge": judge,
    "bare": judge_without_examples,
    "tools": tools,
    "secrets": secret,
}


def test_functions(request):
    compare(Path(__file__).parent / "functions.txt", FUNCTIONS, request)
