"""Checks of names that other parts of the map have to declare (V1, Validation Rules)."""

from collections.abc import Iterable, Iterator
from typing import Final

from awp_publish.checks.engine import ERROR, WARNING, Finding, JsonObject, finding, shown
from awp_publish.checks.places import objects, select, strings
from awp_publish.maps import rules
from awp_publish.maps.namespaces import NAME_MEMBERS, NOUNS, REFERENCES
from awp_publish.maps.primitives import PRIMITIVES
from awp_publish.plugins.actions_json.checks.specification import check, unknown_words
from awp_publish.schema.pointers import tokens

_WORDS: Final = frozenset(("observables", "preconditions", "reveals", "convergence.complete_when"))
"""References where words of the author's may stand as well."""
_MAX_NAMESPACE: Final = 1_000
"""Characters in which the namespace of a name is looked for."""


def references(document: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Yield pointer and name of each reference that a map has to declare, and the section in which it has to."""
    for section, paths in REFERENCES.items():
        for path, kind in paths.items() if section in document else ():
            place = f"/{section}/[]/{path.replace('.', '/').replace('{name}', '{}')}"
            if path.endswith("{name}"):
                yield from ((pointer, tokens(pointer)[-1], kind) for pointer, _ in select(document, place))
            elif path not in _WORDS:
                yield from ((pointer, name, kind) for pointer, name in strings(document, place, f"{place}/[]"))


def _lost(document: JsonObject, *sections: str, also: Iterable[str] = ()) -> Iterator[Finding]:
    """Find references from these sections to what is not there; `also` are further tools."""
    spaces = {name for _, name in strings(document, "/imports/[]/namespace")}
    names: dict[str, set[str]] = {"tools": set(also)}
    for section, member in NAME_MEMBERS.items():
        names.setdefault(section, set()).update(name for _, name in strings(document, f"/{section}/[]/{member}"))
    for pointer, name, kind in references(document):
        if name in names[kind] or tokens(pointer)[0] not in sections:
            continue
        ends = [at for at, sign in enumerate(name[:_MAX_NAMESPACE]) if sign == "."]
        if not any(name[:end] in spaces for end in ends):  # it cannot come from an import
            yield finding(pointer, f"There is no {NOUNS[kind]} {shown(name)}.")


@check("actions-transition", ERROR, "Validation Rules", hint="Correct the name, or declare it.")
def lost_transitions(document: JsonObject) -> Iterator[Finding]:
    """The states, tool and signal of a transition are there."""
    yield from _lost(document, "transitions")
    for end in ("/transitions/[]/from|to", "/transitions/[]/from|to/[]"):
        for pointer, name in select(document, end):
            if not isinstance(name, str) and (not isinstance(name, list) or pointer.rpartition("/")[2].isdecimal()):
                yield finding(pointer, f"{shown(name)} is not the name of a state.")


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
    yield from _lost(document, "checks")
    for pointer, name in strings(document, "/checks/[]/target", "/checks/[]/assertions/[]/target"):
        yield finding(pointer, f"There is no target {shown(name)}.")


@check("actions-reference", WARNING, "context, target, attachments", hint="Correct the name, or leave it out.")
def lost_names(document: JsonObject) -> Iterator[Finding]:
    """The names that other parts mention are there; primitives count as tools."""
    yield from _lost(document, *(NAME_MEMBERS.keys() - {"transitions", "checks"}), also=PRIMITIVES)
