"""Findings, the checks that yield them, and functions that select parts of a JSON document.

A check is a function that takes a document and yields findings. `Specification.check` decorates it with its row: code,
level, section and hint; the docstring says what is checked. A row may also claim violations of the JSON Schema of its
kind of document, which is evaluated once.
"""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from awp_publish.checks.places import arrays, members, position, strings
from awp_publish.schema.pointers import tokens

Level = Literal["error", "warning"]

JsonObject: TypeAlias = Mapping[str, object]

ERROR: Final = "error"

WARNING: Final = "warning"

LEVELS: Final[tuple[Level, ...]] = (ERROR, WARNING)

_SHOWN_CHARACTERS: Final = 60

_SEVERAL_SECTIONS: Final = re.compile(r"[\d.]+(?:, [\d.]+)* (?:to|and) [\d.]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake at one place of one document.

    An `error` breaks a requirement of the specification named in `source`, a `warning` one of its recommendations, or
    good practice. `pointer` is an RFC 6901 JSON Pointer; for a missing member it points to where the member should be.
    `subject` describes the place in words: `action "search_books", input q`.
    """

    level: Level
    check: str
    pointer: str
    message: str
    hint: str
    source: str
    document: str = ""
    subject: str = ""

    def __str__(self) -> str:
        place = f"{self.document}#{self.pointer}" if self.document else self.pointer or "(root)"
        if self.check.startswith("start-"):  # about the site, not a document
            place = "site"
        place = f"{place}: {self.subject}" if self.subject else place
        sentence = f"{self.level}: {place}: {self.message} {self.hint} [{self.check}; {self.source}]"
        return sentence.encode("utf-8", "backslashreplace").decode("utf-8")


def finding(pointer: str, message: str, hint: str = "", document: str = "") -> Finding:
    """Make a finding, which its check completes; a `hint` given here replaces the one in the check's row."""
    return Finding(ERROR, "", pointer, message, hint, "", document)


class SchemaViolation(NamedTuple):
    """A place where a document breaks its JSON Schema. Without a message, the row that claims it supplies one."""

    keyword: str
    pointer: str
    value: object
    message: str = ""


CheckFunction: TypeAlias = Callable[[JsonObject], Iterable[Finding]]

ViolationFinder: TypeAlias = Callable[[JsonObject], Iterable[SchemaViolation]]


@dataclass(frozen=True, slots=True)
class Check:
    """A check with its row; call it with a document to get its findings.

    `violation` matches "keyword pointer" of the schema violations that this check reports. If a `decisive` check finds
    something, the document is not of the assumed kind and no further check is run.
    """

    id: str
    level: Level
    source: str
    about: str
    hint: str
    find: CheckFunction
    violation: re.Pattern[str] | None = None
    decisive: bool = False

    def __call__(self, document: JsonObject) -> Iterator[Finding]:
        return map(self.complete, self.find(document))

    def complete(self, finding: Finding) -> Finding:
        """Fill in what all findings of this check have in common."""
        return replace(finding, level=self.level, check=self.id, hint=finding.hint or self.hint, source=self.source)

    def explain(self, violation: SchemaViolation) -> Finding:
        """Report a violation of the schema."""
        rule = f"{self.about[0].lower()}{self.about[1:]}"
        message = violation.message or f"{shown(violation.value)} is not allowed: {rule}"
        return self.complete(finding(violation.pointer, message))


@dataclass(frozen=True, slots=True, eq=False)
class Specification:
    """One kind of document: where it is served, how it is recognised, its JSON Schema, and its checks in order.

    `marks` recognises distinctive members; `resembles` is tried if neither marks nor path decide. Kinds of a
    lower `rank` have more distinctive members, and are tried first. `source` is cited by checks whose section is only a
    number.
    """

    name: str
    source: str
    paths: Sequence[str] = ()
    marks: Callable[[JsonObject], bool] = lambda document: False
    resembles: Callable[[JsonObject], bool] = lambda document: False
    violations: ViolationFinder = lambda document: ()
    checks: list[Check] = field(default_factory=list)
    site_checks: list[Check] = field(default_factory=list)
    """Checks that such a document agrees with the others of its site, which get all of them by path."""

    rank: int = 0
    judge_reading: Callable[[Any, str, bool], list[Finding]] | None = None
    """Judges a parsed document (`text.ParsedDocument`) at a path, leniently or not, in place of the usual checks."""

    def check(
        self,
        code: str,
        level: Level,
        section: str,
        *,
        hint: str,
        about: str = "",
        violation: str | None = None,
        decisive: bool = False,
        of_site: bool = False,
    ) -> Callable[[CheckFunction], Check]:
        """Register the decorated function as a check of this kind of document. Its docstring says what is checked."""
        source = section
        if section[0].isdigit():
            source = f"{self.source} section{'s' if _SEVERAL_SECTIONS.match(section) else ''} {section}"
        pattern = re.compile(violation) if violation else None

        def decorate(function: CheckFunction) -> Check:
            check = Check(code, level, source, about or function.__doc__ or code, hint, function, pattern, decisive)
            (self.site_checks if of_site else self.checks).append(check)
            return check

        return decorate

    def row(
        self, code: str, level: Level, section: str, about: str, *, hint: str, violation: str | None = None
    ) -> Check:
        """Add a check whose findings come from the schema, or from parsing the text."""
        return self.check(code, level, section, hint=hint, about=about, violation=violation)(lambda document: ())

    def judge(self, document: JsonObject) -> Iterator[Finding]:
        """Run all checks. A mistake is reported once, even if it violates several parts of a schema."""
        for check in self.checks:
            findings = list(check(document))
            yield from findings
            if findings and check.decisive:
                return
        violations = list(self.violations(document))
        mistyped = {place for keyword, place, *_ in violations if keyword == "type"}
        reported: set[tuple[str, str]] = set()
        for violation in violations:
            keyword, place = violation.keyword, violation.pointer
            if keyword != "type" and place in mistyped:
                continue
            text = f"{keyword} {place}"
            claiming = (check for check in self.checks if check.violation and check.violation.fullmatch(text))
            owner = next(claiming, None)
            if owner and (owner.id, place) not in reported:
                reported.add((owner.id, place))
                yield owner.explain(violation)


def has(*names: str) -> Callable[[JsonObject], bool]:
    """Return a function that recognises documents having all these members."""
    return lambda document: all(name in document for name in names)


def shown(value: object) -> str:
    """Return a value for use in a message: as JSON, on one line, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (ValueError, TypeError, RecursionError):
        text = repr(type(value))
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def subject_of(document: object, pointer: str) -> str:
    """Name the action or agent, and the input, that a pointer leads into; "" if none."""
    steps = tokens(pointer)
    if len(steps) < 2 or steps[0] not in ("actions", "agents") or not steps[1].isdecimal():
        return ""
    listed = members(document).get(steps[0])
    owner = members(listed[int(steps[1])]) if isinstance(listed, list) and int(steps[1]) < len(listed) else {}
    name = owner.get("id")
    if not isinstance(name, str):
        return ""
    words = [f"{steps[0][:-1]} {shown(name)}"]
    if len(steps) > 3 and steps[2] in ("inputs", "parameters"):
        inputs, which = owner.get(steps[2]), steps[3]
        if isinstance(inputs, list) and which.isdecimal() and int(which) < len(inputs):
            which = str(members(inputs[int(which)]).get("name", which))
        words.append(f"input {which}" if steps[0] == "actions" else steps[2])
    return ", ".join(words)


def in_order(findings: Iterable[Finding], document: object, path: str) -> list[Finding]:
    """Return the findings of one document, errors first, then in document order, each with its path and subject."""
    orders: dict[int, dict[str, int]] = {}
    ordered = sorted(
        findings, key=lambda finding: (LEVELS.index(finding.level), position(document, finding.pointer, orders))
    )
    return [replace(finding, document=path, subject=subject_of(document, finding.pointer)) for finding in ordered]


def repeated(document: JsonObject, items: str, member: str = "id") -> Iterator[Finding]:
    """Find objects of one array that have the same `member`."""
    for place, array in arrays(document, items):
        first_places: dict[str, int] = {}
        for index, item in enumerate(array):
            name = item.get(member) if isinstance(item, dict) else None
            if isinstance(name, str) and first_places.setdefault(name, index) != index:
                message = f"The {member} {shown(name)} is also that of {place}/{first_places[name]}."
                yield finding(f"{place}/{index}/{member}", message)


def unknown_names(document: JsonObject, names: Container[str], *places: str) -> Iterator[Finding]:
    """Find names of unknown actions."""
    for pointer, name in strings(document, *places):
        if name not in names:
            yield finding(pointer, f"No action has the id {shown(name)}.")


def blank(document: JsonObject, *places: str) -> Iterator[Finding]:
    """Find texts that are empty or white space."""
    for pointer, text in strings(document, *places):
        if not text.strip():
            yield finding(pointer, f'"{pointer.rpartition("/")[2]}" is empty.')
