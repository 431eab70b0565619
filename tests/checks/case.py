"""Every check with documents that trigger it: a valid document, a small change, and where the finding points.

`also` names findings that the same change cannot avoid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .documents import A2A, ACTIONS_JSON, AGENT_JSON, AWAS, AWAS_1_0, MCP, WOA, Document

FIRST = "/actions/0"
SECOND = "/actions/1"
AGENT = "/agents/0"


class Case(NamedTuple):
    check: str
    pointer: str
    edits: Mapping[str, object]
    base: Document
    kind: str
    also: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return f"{self.check} at {self.pointer or 'root'} by {', '.join(self.edits)}"


def awas(check: str, pointer: str, value: object, *, at: str | None = None, also: str = "") -> Case:
    return Case(check, pointer if at is None else at, {pointer: value}, AWAS, "awas", frozenset(also.split()))


def old(check: str, pointer: str, value: object, *, at: str | None = None) -> Case:
    return Case(check, pointer if at is None else at, {pointer: value}, AWAS_1_0, "awas")


def agent(check: str, pointer: str, value: object, *, at: str | None = None, also: str = "") -> Case:
    return Case(
        check, pointer if at is None else at, {pointer: value}, AGENT_JSON, "agent-json", frozenset(also.split())
    )


def woa(check: str, pointer: str, value: object, *, at: str | None = None, also: str = "") -> Case:
    return Case(check, pointer if at is None else at, {pointer: value}, WOA, "woa", frozenset(also.split()))


def mcp(check: str, pointer: str, value: object, *, at: str | None = None, also: str = "") -> Case:
    return Case(check, pointer if at is None else at, {pointer: value}, MCP, "awas-mcp", frozenset(also.split()))


def a2a(check: str, pointer: str, value: object, *, at: str | None = None, also: str = "") -> Case:
    return Case(check, pointer if at is None else at, {pointer: value}, A2A, "awas-a2a", frozenset(also.split()))


def actions(check: str, pointer: str, value: object, *, at: str | None = None, also: str = "") -> Case:
    place = pointer if at is None else at
    return Case(check, place, {pointer: value}, ACTIONS_JSON, "actions-json", frozenset(also.split()))
