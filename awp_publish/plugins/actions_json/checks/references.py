"""Checks of names that other parts of the map have to declare (V1, Validation Rules)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from awp_publish.checks.engine import ERROR, WARNING, Finding, JsonObject, finding, shown
from awp_publish.checks.places import objects, select, strings
from awp_publish.maps import rules
from awp_publish.maps.primitives import PRIMITIVES
from awp_publish.plugins.actions_json.checks.places import TARGETS
from awp_publish.plugins.actions_json.checks.specification import check, unknown_words


def _known(document: JsonObject, *patterns: str) -> frozenset[str]:
    return frozenset(name for _, name in strings(document, *patterns))


def _lost(document: JsonObject, known: frozenset[str], kind: str, *places: str) -> Iterator[Finding]:
    spaces = _known(document, "/imports/[]/namespace")
    for pointer, name in strings(document, *places):
        if name in known:
            continue
        ends = [at for at, sign in enumerate(name[:_MAX_NAMESPACE]) if sign == "."]
        if not any(name[:end] in spaces for end in ends):  # it cannot come from an import
            yield finding(pointer, f"There is no {kind} {shown(name)}.")


_MAX_NAMESPACE: Final = 1_000
"""Characters in which the namespace of a name is looked for."""


@check("actions-transition", ERROR, "Validation Rules", hint="Correct the name, or declare it.")
def lost_transitions(document: JsonObject) -> Iterator[Finding]:
    """The states, tool and signal of a transition are there."""
    states = _known(document, "/states/[]/name")
    ends = ("/transitions/[]/from|to", "/transitions/[]/from|to/[]")
    yield from _lost(document, states, "state", *ends)
    for pointer, name in (pair for end in ends for pair in select(document, end)):
        if not isinstance(name, str) and (not isinstance(name, list) or pointer.rpartition("/")[2].isdecimal()):
            yield finding(pointer, f"{shown(name)} is not the name of a state.")
    yield from _lost(document, _known(document, "/tools/[]/name"), "tool", "/transitions/[]/tool")
    yield from _lost(document, _known(document, "/signals/[]/name"), "signal", "/transitions/[]/signal")


@check("actions-transition-method", WARNING, "transitions", hint="Name the tool or signal, or another method.")
def unknown_methods(document: JsonObject) -> Iterator[Finding]:
    """The method of a transition is a documented one, and has the tool or signal that it needs."""
    yield from unknown_words(document, rules.TRANSITION_METHODS, "The method", "/transitions/[]/method")
    for pointer, transition in objects(document, "/transitions/[]"):
        method = transition.get("method")
        for needing, needed in (("tool_call", "tool"), ("signal", "signal")):
            if method == needing and needed not in transition:
                yield finding(f"{pointer}/{needed}", f"The method is {needing}, and no {needed} is named.")


@check("actions-check-reference", ERROR, "Validation Rules", hint="Correct the name, or declare it.")
def lost_checks(document: JsonObject) -> Iterator[Finding]:
    """The tools, states, attachments and targets of a check are there; targets are given as objects."""
    tools, states = _known(document, "/tools/[]/name"), _known(document, "/states/[]/name")
    steps = ("/checks/[]/setup/[]/tool", "/checks/[]/steps/[]/tool")
    yield from _lost(document, tools, "tool", "/checks/[]/tool", *steps)
    places = ("/checks/[]/state", "/checks/[]/assertions/[]/target/state", "/checks/[]/target/state")
    yield from _lost(document, states, "state", *places)
    yield from _lost(document, _known(document, "/attachments/[]/id"), "attachment", "/checks/[]/attachment")
    yield from _lost(document, frozenset(), "target", "/checks/[]/target", "/checks/[]/assertions/[]/target")


@check("actions-reference", WARNING, "context, target, attachments", hint="Correct the name, or leave it out.")
def lost_names(document: JsonObject) -> Iterator[Finding]:
    """The names that contexts, targets and attachments mention are there; primitives count as tools."""
    tools, states = _known(document, "/tools/[]/name") | PRIMITIVES.keys(), _known(document, "/states/[]/name")
    yield from _lost(document, tools, "tool", "/context/[]/available_tools/[]", "/attachments/[]/affordance/opens/tool")
    places = ("/context/[]/next_states/[]", "/context/[]/load_when/states/[]")
    yield from _lost(document, states, "state", *places)
    targets = tuple(f"{place}/state" for place in TARGETS if not place.startswith("/checks"))
    yield from _lost(document, states, "state", *targets)
