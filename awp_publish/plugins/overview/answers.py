"""Answers of the doors, read into a common form and compared."""

import base64
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

import orjson

from awp_publish.http.html import Html, inner, tag
from awp_publish.model import Action
from awp_publish.plugins.overview.markup import pretty
from awp_publish.plugins.overview.requests import WireRequest
from awp_publish.schema.embedding import answer_schema
from awp_publish.schema.reading import kinds, members, resolved

MAX_COMPARED_LINES: Final = 400
JOB_ID: Final = re.compile(r"[A-Za-z0-9._~=-]{1,512}")


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """An answer as received, and its output or problem in a common form. `problem` is None for a success."""

    request: WireRequest
    status: int
    headers: tuple[tuple[str, str], ...]
    text: str
    milliseconds: float
    spent: str = ""
    output: object = None
    problem: Mapping[str, Any] | None = None

    @property
    def common(self) -> object:
        """The output, or the members of the problem that are the same at every door."""
        if self.problem is None:
            return self.output
        return {
            name: self.problem[name] for name in ("status", "code", "title", "detail", "errors") if name in self.problem
        }

    @property
    def question(self) -> Mapping[str, Any] | None:
        """The confirmation that a person is asked for, None if there is none."""
        asked = self.problem.get("confirmation") if self.problem is not None else None
        return asked if isinstance(asked, dict) and isinstance(asked.get("token"), str) else None

    @property
    def job_id(self) -> str | None:
        """The id of the job that the call has become, None if it has not."""
        value = self.output
        found = value.get("job_id") if isinstance(value, dict) and "poll_endpoint" in value else None
        return found if isinstance(found, str) and JOB_ID.fullmatch(found) else None


def read_answer(
    request: WireRequest, action: Action, status: int, content_type: str, body: bytes
) -> tuple[object, Any]:
    """Return the output and the problem of an answer, one of which is None. A body that is not JSON becomes text."""
    kind = content_type.partition(";")[0].strip().lower()
    if status < 400 and kind and not kind.endswith("json") and not kind.startswith("text/"):
        return base64.b64encode(body).decode(), None  # as at the JSON doors
    text = body.decode("utf-8", "replace")
    if content_type.startswith("text/event-stream"):
        messages = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        text = next((one for one in reversed(messages) if '"result"' in one or '"error"' in one), "")
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return (text, None) if status < 400 else (None, {"status": status, "detail": text[:500]})
    if content_type.startswith("application/problem+json"):
        return None, value
    if request.wire.door == "" or not isinstance(value, dict):
        return (value, None) if status < 400 else (None, {"status": status, "detail": text[:500]})
    if (error := value.get("error")) is not None and isinstance(error, dict):
        data = error.get("data")
        problem = data[0].get("metadata") if isinstance(data, list) and data and isinstance(data[0], dict) else data
        problem = problem if isinstance(problem, dict) and "code" in problem else error.get("details")
        return None, problem if isinstance(problem, dict) and "code" in problem else {
            "code": error.get("code"),
            "detail": error.get("message"),
        }
    result = value.get("result")
    if not isinstance(result, dict):
        return value, None
    if request.wire.door == "mcp":
        meta: Mapping[str, Any] = result["_meta"] if isinstance(result.get("_meta"), dict) else {}
        if result.get("isError"):
            return None, meta.get("awp/problem") or {"detail": _content_of(result.get("content"))}
        if "structuredContent" not in result:
            found = _content_of(result.get("content"))
            if isinstance(found, str) and "string" not in kinds(
                resolved(action.outputs, action.outputs), action.outputs
            ):
                with suppress(orjson.JSONDecodeError):  # without a schema, a text may be JSON
                    return orjson.loads(found), None
            return found, None
        output, declared = result["structuredContent"], answer_schema(action)
        is_wrapped = isinstance(output, dict) and output.keys() == {"result"} and "result" not in members(declared)
        is_wrapped &= bool(declared) if request.wire.key == "mcp" else declared.get("type") != "object"
        return (output["result"] if is_wrapped else output), None
    if request.wire.door == "a2a":
        task = result.get("task", result)
        state = task.get("status", {})
        parts = [part for one in task.get("artifacts", ()) for part in one.get("parts", ())]
        if state.get("state") == "TASK_STATE_COMPLETED" or parts:
            found = [part.get("data", part.get("text", part.get("raw"))) for part in parts]
            return (found[0] if len(found) == 1 else found), None
        found_data = [
            part["data"] for part in state.get("message", {}).get("parts", ()) if isinstance(part.get("data"), dict)
        ]
        problem = next((one for one in found_data if "code" in one), None)
        return (None, problem) if problem is not None else (found_data[0] if found_data else task, None)
    return result.get("output", result), None


def _content_of(content: object) -> object:
    """Return the text or the base64 of the first content block of an MCP result."""
    blocks = content if isinstance(content, list) else []
    first = blocks[0] if blocks and isinstance(blocks[0], dict) else {}
    held = first["resource"] if isinstance(first.get("resource"), dict) else first
    return next((held[name] for name in ("text", "data", "blob") if name in held), blocks)


def aligned(value: object, like: object) -> object:
    """Return a JSON value with its members in the order of another's, and whole floats as integers."""
    if isinstance(value, dict):
        first = like if isinstance(like, dict) else {}
        names = [*(name for name in first if name in value), *(name for name in value if name not in first)]
        return {name: aligned(value[name], first.get(name)) for name in names}
    if isinstance(value, list):
        others = like if isinstance(like, list) else []
        return [aligned(one, others[n] if n < len(others) else None) for n, one in enumerate(value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def differing(answer: WireAnswer, first: WireAnswer) -> tuple[Html, int]:
    """Return an answer with marks on the lines that differ from the first answer, and the number of differences."""
    like = aligned(first.common, None)  # A2A does not keep the order of members, and has only floats
    mine, theirs = pretty(aligned(answer.common, like)).splitlines(), pretty(like).splitlines()
    if mine == theirs or len(mine) > MAX_COMPARED_LINES or len(theirs) > MAX_COMPARED_LINES:
        return inner("\n".join(mine)), 0 if mine == theirs else 1
    lines, count = list[object](), 0
    for kind, _, _, start, end in SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes():
        found = [(tag("mark", line) if kind != "equal" else line, "\n") for line in mine[start:end]]
        count += 0 if kind == "equal" else max(1, len(found))
        lines += found
    return inner(lines), count
