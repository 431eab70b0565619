"""Checks of targets and selectors (V1, target)."""

from collections.abc import Iterator

from awp_publish.checks.engine import ERROR, WARNING, Finding, JsonObject, finding, shown
from awp_publish.checks.places import members, objects, select
from awp_publish.maps import rules
from awp_publish.plugins.actions_json.checks.places import EXTRACT, SOURCES, TARGETS
from awp_publish.plugins.actions_json.checks.specification import check
from awp_publish.schema.pointers import child


@check("actions-selector", ERROR, "target", hint="Write a CSS selector, or an array of them.")
def bad_selectors(document: JsonObject) -> Iterator[Finding]:
    """Selectors are texts or arrays of texts, and CSS selectors."""
    for pointer, value in _selector_fields(document):
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            yield finding(pointer, f"{shown(value)} is not a selector.")
            continue
        for text in map(str, texts):
            from awp_publish.pages.selectors import selector_fault  # where there are selectors at all

            if fault := selector_fault(text):
                yield finding(pointer, f"{shown(text)} is not a CSS selector ({fault}).")


def _selector_fields(document: JsonObject) -> Iterator[tuple[str, object]]:
    for pointer, target in objects(document, *TARGETS):
        for name in rules.SELECTORS:
            if name in target:
                yield f"{pointer}/{name}", target[name]
    for source in SOURCES:
        yield from select(document, f"{source}/selectors")
    yield from select(document, f"{EXTRACT}/selector")
    for pointer, _, field in projection_fields(document):
        for name in ("selector", "closest"):
            if name in field:
                yield f"{pointer}/{name}", field[name]


def projection_fields(document: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """Yield place, name and field of each field of projections, including nested ones."""
    waiting = list(select(document, f"{EXTRACT}/fields"))
    for pointer, fields in waiting:  # which grows while it is read
        for name, field in members(fields).items():
            place = child(pointer, name)
            yield place, name, members(field)
            waiting.append((f"{place}/fields", members(field).get("fields")))


@check("actions-selector-form", WARNING, "target", hint="Write a string in selector, and arrays in the other two.")
def unusual_selectors(document: JsonObject) -> Iterator[Finding]:
    """The selector is one string; selectors and fallback_selectors are arrays."""
    for pointer, target in objects(document, *TARGETS):
        for name in rules.SELECTORS:
            expected = str if name == "selector" else list
            if isinstance(target.get(name), (str, list)) and not isinstance(target[name], expected):
                yield finding(f"{pointer}/{name}", f"{name} is {'an array' if name == 'selector' else 'one string'}.")


@check("actions-confidence", WARNING, "target", hint="Write observed, inferred, generated or unknown.")
def unknown_confidence(document: JsonObject) -> Iterator[Finding]:
    """The confidence of a target is one of the four words."""
    for pointer, target in objects(document, *TARGETS):
        confidence = target.get("confidence", "unknown")
        if not isinstance(confidence, str) or confidence not in rules.CONFIDENCE:
            yield finding(f"{pointer}/confidence", f"The confidence {shown(confidence)} is not known.")
