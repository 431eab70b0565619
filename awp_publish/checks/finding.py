"""What a check reports, and what a check is.

A check function looks at a document and yields `Flaw`s: a place and a sentence. The `Check` around it is a row of
data that adds what is the same for all of them (id, level, source, hint) and turns them into `Finding`s.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Level = Literal["error", "warning", "info"]

LEVELS: tuple[Level, ...] = ("error", "warning", "info")
SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark about one place of one document.

    An `error` breaks a requirement of the specification named in `source`, a `warning` a recommendation of it or
    plain good sense, and an `info` is worth knowing and needs no repair. `pointer` is an RFC 6901 JSON Pointer; where
    a member is missing it points to the place at which the member should stand.
    """

    level: Level
    check: str
    pointer: str
    message: str
    hint: str
    source: str
    document: str = ""

    def __str__(self) -> str:
        place = f"{self.document}#{self.pointer}" if self.document else self.pointer or "(root)"
        sentence = f"{self.level}: {place}: {self.message} {self.hint} [{self.check}; {self.source}]"
        return sentence.encode("utf-8", "backslashreplace").decode("utf-8")


class Flaw(NamedTuple):
    """A place and what is wrong there. Empty `hint` and `source` mean those of the check."""

    pointer: str
    message: str
    hint: str = ""
    source: str = ""
    document: str = ""


Find = Callable[[Mapping[str, object]], Iterable[Flaw]]


def nothing(document: Mapping[str, object]) -> Iterable[Flaw]:
    """Stand in for the function of a check whose flaws are found while the text is read."""
    return ()


@dataclass(frozen=True, slots=True)
class Check:
    """One row of a table of checks; call it with a document to get its findings.

    When a `decisive` check finds something, the document is not what it was taken for and no other check is run.
    """

    id: str
    level: Level
    source: str
    about: str
    hint: str
    find: Find = nothing
    decisive: bool = False

    def __call__(self, document: Mapping[str, object]) -> Iterator[Finding]:
        return map(self.finding, self.find(document))

    def finding(self, flaw: Flaw) -> Finding:
        """Complete a flaw with what is the same for every flaw of this check."""
        hint, source = flaw.hint or self.hint, flaw.source or self.source
        return Finding(self.level, self.id, flaw.pointer, flaw.message, hint, source, flaw.document)


def shown(value: object) -> str:
    """Write a value into a message: as JSON, on one line, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (ValueError, TypeError, RecursionError):
        text = repr(type(value))
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


def listed(names: Iterable[str]) -> str:
    """Write a set of allowed words into a message."""
    return ", ".join(names)
