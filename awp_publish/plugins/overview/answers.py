"""Answers of the doors, compared with each other."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from awp_publish.documents.members import whole
from awp_publish.plugins.overview.html import Html, inner, tag
from awp_publish.plugins.overview.markup import pretty

MAX_COMPARED_LINES: Final = 400
JOB_ID: Final = re.compile(r"[A-Za-z0-9._~=-]{1,512}")


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """An answer as received, and its output or problem in a common form. `problem` is None for a success."""

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
        confirmation = self.problem.get("confirmation") if self.problem is not None else None
        return confirmation if isinstance(confirmation, dict) and isinstance(confirmation.get("token"), str) else None

    @property
    def job_id(self) -> str | None:
        """The id of the job that the call has become, None if it has not."""
        value = self.output
        job_id = value.get("job_id") if isinstance(value, dict) and "poll_endpoint" in value else None
        return job_id if isinstance(job_id, str) and JOB_ID.fullmatch(job_id) else None


def aligned(value: object, like: object) -> object:
    """Return a JSON value with its members in the order of another's, and whole floats as integers."""
    if isinstance(value, dict):
        first = like if isinstance(like, dict) else {}
        names = [*(name for name in first if name in value), *(name for name in value if name not in first)]
        return {name: aligned(value[name], first.get(name)) for name in names}
    if isinstance(value, list):
        others = like if isinstance(like, list) else []
        return [aligned(item, others[n] if n < len(others) else None) for n, item in enumerate(value)]
    return whole(value)


def differing(answer: ReceivedAnswer, first: ReceivedAnswer) -> tuple[Html, int]:
    """Return an answer with marks on the lines that differ from the first answer, and the number of differences."""
    like = aligned(first.common, None)  # A2A does not keep the order of members, and has only floats
    mine, theirs = pretty(aligned(answer.common, like)).splitlines(), pretty(like).splitlines()
    if mine == theirs or len(mine) > MAX_COMPARED_LINES or len(theirs) > MAX_COMPARED_LINES:
        return inner("\n".join(mine)), 0 if mine == theirs else 1
    lines, count = list[object](), 0
    for kind, _, _, start, end in SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes():
        marked = [(tag("mark", line) if kind != "equal" else line, "\n") for line in mine[start:end]]
        count += 0 if kind == "equal" else max(1, len(marked))
        lines += marked
    return inner(lines), count
