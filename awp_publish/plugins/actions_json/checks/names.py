"""Checks of names and ids (V1, Safe Identifiers)."""

from collections.abc import Iterator

from awp_publish.checks.engine import ERROR, WARNING, Finding, JsonObject, finding, repeated, shown
from awp_publish.checks.places import objects, select, strings
from awp_publish.maps import rules
from awp_publish.plugins.actions_json.checks.places import NAMES
from awp_publish.plugins.actions_json.checks.specification import check
from awp_publish.schema.pointers import child


@check("actions-name", ERROR, "Safe Identifiers", hint='Use ASCII letters, digits, "_", "-" and dots: search.submit.')
def unsafe_names(document: JsonObject) -> Iterator[Finding]:
    """Names and ids are safe identifiers."""
    for pattern, member in NAMES:
        for pointer, owner in objects(document, pattern):
            if member in owner and not rules.is_identifier(owner[member]):
                yield finding(child(pointer, member), f"{shown(owner[member])} is not a safe identifier.")
    for place in ("/imports/[]/namespace", "/tools/[]/x_actions/handler"):
        for pointer, name in select(document, place):
            if not rules.is_identifier(name):
                yield finding(pointer, f"{shown(name)} is not a safe identifier.")


@check("actions-surface-id", WARNING, "Safe Identifiers", hint="Use letters, digits, dots, - and _.")
def unsafe_surface_id(document: JsonObject) -> Iterator[Finding]:
    """The surface_id is a safe identifier."""
    for pointer, name in strings(document, "/surface/surface_id"):
        if not rules.is_identifier(name):
            yield finding(pointer, f"{shown(name)} is not a safe identifier.")


@check("actions-unique", ERROR, "Validation Rules", hint="Rename one of them.")
def colliding_names(document: JsonObject) -> Iterator[Finding]:
    """Names are unique among their kind; tools and signals are one kind, for both are exposed to agents."""
    for items, member in (
        ("/states", "name"),
        ("/states/[]/diagnostics", "name"),
        ("/transitions", "name"),
        ("/state_projections", "name"),
        ("/context", "id"),
        ("/attachments", "id"),
        ("/checks", "id"),
        ("/imports", "id"),
        ("/state_projections/[]/summaries", "name"),
        ("/state_projections/[]/snapshot/extract", "id"),
        ("/tools/[]/workflow/steps", "id"),
    ):
        yield from repeated(document, items, member)
    places: dict[str, str] = {}
    for pointer, name in strings(document, "/tools/[]/name", "/signals/[]/name"):
        if places.setdefault(name, pointer) != pointer:
            yield finding(pointer, f"The name {shown(name)} is used by {places[name].rpartition('/')[0]} too.")
