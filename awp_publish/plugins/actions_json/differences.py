"""Differences between a site's pages and its actions.json: their kinds, and how a finding reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from awp_publish.checks.engine import ERROR, WARNING, Level
from awp_publish.model import JsonObject

KINDS: Final[Mapping[str, tuple[Level, str, str]]] = {
    "drift-page": (ERROR, "A declared page can be rendered, at its own address.", "Correct the page, or its path."),
    "drift-unvisited": (
        WARNING,
        "A page of several addresses is linked from another declared page, so that it can be visited.",
        "Link one of its addresses from a declared page.",
    ),
    "drift-missing": (
        ERROR,
        "Places that a page declares, and that its tools begin with, are on it.",
        "Correct the selector, or the page.",
    ),
    "drift-several": (ERROR, "A place that is acted upon matches exactly one element.", "Make the selector narrower."),
    "drift-other": (
        WARNING,
        "Places are found by their first selector and have the declared name.",
        "Correct the selector or the name.",
    ),
    "drift-attribute": (
        ERROR,
        "Attributes in the page name actions and inputs that are declared, with their addresses.",
        "Write the attributes with the template functions, or correct them.",
    ),
    "drift-form": (
        WARNING,
        "Forms of actions are declared on a page where they stand.",
        "Declare the action on the page; a proposal is in the evidence.",
    ),
    "drift-state": (WARNING, "A declared state is true on at least one page.", "Correct its places, or leave it out."),
    "drift-check": (ERROR, "The page's checks pass.", "Correct the page, or the check."),
    "drift-workflow": (
        ERROR,
        "The workflow of an action that only reads succeeds, with an example of its inputs.",
        "Correct the page, the selectors, or the examples of the action.",
    ),
    "drift-projection": (
        ERROR,
        "A projection gives a state that fits its schema.",
        "Correct the expression, the selectors or the schema.",
    ),
    "drift-records": (
        WARNING,
        "Every record of a projection is found on some page, with the fields that it requires.",
        "Correct the selectors.",
    ),
}
"""The kinds of findings: level, rule, and advice."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference. `page` is the page's path, `subject` the part of the map that differs."""

    kind: str
    page: str
    subject: str
    message: str
    evidence: JsonObject = field(default_factory=dict)
    level: Level = ERROR

    @classmethod
    def of(
        cls,
        kind: str,
        page: str,
        subject: str,
        message: str,
        evidence: JsonObject | None = None,
        level: Level | None = None,
    ) -> Drift:
        """Return a difference of a kind, at the level of this kind unless another is named."""
        return cls(kind, page, subject, message, evidence or {}, level or KINDS[kind][0])

    @property
    def hint(self) -> str:
        """Advice on how to resolve it."""
        return KINDS[self.kind][2]

    def __str__(self) -> str:
        evidence = json.dumps(self.evidence, ensure_ascii=False, default=str)
        evidence = evidence if len(evidence) <= 600 else evidence[:600] + "..."
        finding = f"{self.level}: {self.page}: {self.subject}: {self.message} {self.hint} [{self.kind}]"
        return f"{finding}\n    evidence: {evidence}"

    def describe(self) -> JsonObject:
        """Return the finding as JSON."""
        members = ("kind", "level", "page", "subject", "message", "hint", "evidence")
        return {name: getattr(self, name) for name in members}
