"""What a run of tests says: how many passed, and which failed."""

import re
from dataclasses import dataclass
from typing import Final

_FAILED: Final = (
    re.compile(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", re.MULTILINE),  # unittest
    re.compile(r"^(?:FAILED|ERROR) (\S+\.py\S*)", re.MULTILINE),  # pytest
)
_UNITTEST: Final = re.compile(r"^Ran (\d+) tests? in .*\n+(?:OK|FAILED)(?: \((.*)\))?", re.MULTILINE)
_PYTEST: Final = re.compile(r"^=*\s*((?:\d+ [a-z ]+(?:, )?)+) in [\d.]+s", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """How many tests ended how, and the names of those that failed."""

    counts: dict[str, int]
    failed: frozenset[str]

    def __str__(self) -> str:
        return ", ".join(f"{number} {name}" for name, number in self.counts.items())


def read_outcome(output: str) -> Outcome | None:
    """Return what the output of unittest or pytest says, None if there is no summary in it."""
    failed = frozenset(name for form in _FAILED for name in form.findall(output))
    if ran := _UNITTEST.findall(output):
        number, others = ran[-1]
        counts = {name: int(count) for name, _, count in (part.partition("=") for part in others.split(", ") if part)}
        return Outcome({"passed": int(number) - sum(counts.values()), **counts}, failed)
    if ended := _PYTEST.findall(output):
        pairs = (part.partition(" ") for part in ended[-1].split(", "))
        return Outcome({name: int(count) for count, _, name in pairs if "warning" not in name}, failed)
    return None
