"""A call as code to copy: for the Python client, and as a test."""

import json
from collections.abc import Mapping
from keyword import iskeyword
from typing import Final

from awp_publish.model import Action
from awp_publish.plugins.overview.answers import ReceivedAnswer, aligned

MAX_EXPECTED: Final = 2000
"""Maximum characters of an answer in the assertion of a generated test."""


def python_call(action: Action, inputs: Mapping[str, object]) -> str:
    are_identifiers = all(name.isidentifier() and not iskeyword(name) for name in inputs)
    arguments = [f"{name}={value!r}" for name, value in inputs.items()] if are_identifiers else [repr(dict(inputs))]
    return f"client.call({', '.join([json.dumps(action.id), *arguments])})"


def write_test(
    action: Action, inputs: Mapping[str, object], door: str | None, is_authorized: bool, answer: ReceivedAnswer | None
) -> str:
    """Return the source of a test for a call. If the call was sent, the test expects the same answer.

    `door` is None for the one that the client takes by itself.
    """
    options = [f"door={json.dumps(door)}"] if door is not None else []
    options += ["confirm=True"] if action.needs_confirmation else []
    options += ['token="..."'] if is_authorized else []
    opened = f"    with AgentClient({', '.join(['app', *options])}) as client:\n"
    call, end = python_call(action, inputs), "    assert answer is not None\n"
    problem = answer.problem if answer is not None else None
    if problem is not None and problem.get("code") and answer is not None and answer.question is None:
        return (
            "import pytest\n\nfrom awp_publish.client import AgentClient, CallFailed\n\n"
            f"from main import app  # your application\n\n\ndef test_{action.id}():\n{opened}"
            f"        with pytest.raises(CallFailed) as refused:\n            {call}\n"
            f"    assert refused.value.code == {json.dumps(str(problem['code']))}\n"
        )
    if answer is not None and problem is None and not action.is_background:
        expected = repr(aligned(answer.output, None))
        if len(expected) <= MAX_EXPECTED:
            end = f"    assert answer {'is' if answer.output is None else '=='} {expected}\n"
    return (
        "from awp_publish.client import AgentClient\n\nfrom main import app  # your application\n\n\n"
        f"def test_{action.id}():\n{opened}        answer = {call}\n{end}"
    )
