"""Checks of state projections."""

import re
from collections.abc import Iterator

from awp_publish.checks.engine import WARNING, Finding, JsonObject, finding, shown
from awp_publish.checks.places import objects
from awp_publish.maps import rules
from awp_publish.plugins.actions_json.checks.specification import check
from awp_publish.plugins.actions_json.checks.targets import projection_fields


@check("actions-snapshot", WARNING, "state_projections", hint="Add it; runtimes refuse the projection otherwise.")
def incomplete_snapshots(document: JsonObject) -> Iterator[Finding]:
    """A snapshot says its version, source and extracts, and how the state is made of them."""
    for pointer, snapshot in objects(document, "/state_projections/[]/snapshot"):
        for name in ("version", "source", "extract", "projection"):
            if name not in snapshot:
                yield finding(f"{pointer}/{name}", f'"{name}" is missing.')


@check(
    "actions-field", WARNING, "state_projections", hint="Use innerText, textContent, value, checked or an attribute."
)
def unknown_properties(document: JsonObject) -> Iterator[Finding]:
    """Fields read properties that runtimes know, and have names that expressions can write."""
    for pointer, name, field in projection_fields(document):
        property_name = field.get("property")
        if isinstance(property_name, str) and property_name not in rules.FIELD_PROPERTIES:
            yield finding(f"{pointer}/property", f"The property {shown(property_name)} is not known.")
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            yield finding(pointer, f"The name {shown(name)} needs backticks in expressions.")
