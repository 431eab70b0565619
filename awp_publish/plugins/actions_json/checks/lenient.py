"""Checks of a parsed map, and what a lenient reader forgives maps that are older than version 1."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from awp_publish.checks.engine import ERROR, LEVELS, WARNING, Finding, JsonObject, finding, in_order
from awp_publish.checks.places import select, strings
from awp_publish.checks.text import ANY_DOCUMENT, ParsedDocument
from awp_publish.maps import rules
from awp_publish.maps.expressions import MAX_EXPRESSION_CHARACTERS
from awp_publish.maps.primitives import PRIMITIVES
from awp_publish.plugins.actions_json.checks.specification import SPECIFICATION, row
from awp_publish.plugins.actions_json.checks.whole import too_large
from awp_publish.schema.pointers import part_at


def check_map(reading: ParsedDocument, path: str = "", *, lenient: bool = False) -> list[Finding]:
    """Check a parsed map. Parse warnings become errors, because a map must mean the same to all readers."""
    findings, document = [replace(finding, level=ERROR) for finding in reading.findings], reading.document
    if document is not None:
        findings += ANY_DOCUMENT.judge(document)
        findings += SPECIFICATION.judge(document)
        if reading.size > rules.MAX_MAP_BYTES:  # white space counts, too
            findings.append(too_large.complete(finding("", f"The map has {reading.size} bytes.")))
    findings = in_order(findings, document, path)
    if not lenient or document is None:
        return findings
    read = {(item.check, item.pointer) for item in forgiven(document, findings)}
    grave = [finding for finding in findings if finding.level == ERROR and (finding.check, finding.pointer) not in read]
    unusable = {match[0]: error for error in reversed(grave) if (match := _TOOL.match(error.pointer))}
    mild = [
        replace(finding, level=WARNING) if finding not in grave or _TOOL.match(finding.pointer) else finding
        for finding in findings
    ]
    left_out = [unusable_tool.complete(finding(pointer, error.message)) for pointer, error in unusable.items()]
    mild += in_order(left_out, document, path)
    return sorted(mild, key=lambda item: LEVELS.index(item.level))


unusable_tool: Final = row(
    "actions-unusable-tool",
    WARNING,
    "actions.json V1, tools",
    "Lenient readers can run every tool; those that they cannot run are left out.",
    hint="The tool is left out. Correct it.",
)
_TOOL: Final = re.compile(r"/tools/\d+(?=/|\Z)")


def without_unusable_tools(document: JsonObject, findings: Iterable[Finding]) -> JsonObject:
    """Return a map without the tools that its findings leave out."""
    left_out = {finding.pointer for finding in findings if finding.check == unusable_tool.id}
    tools = document.get("tools")
    if not left_out or not isinstance(tools, list):
        return document
    return {**document, "tools": [tool for number, tool in enumerate(tools) if f"/tools/{number}" not in left_out]}


def forgiven(document: JsonObject, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Select the errors despite which a map can be read as its authors meant it.

    These are a textual or missing version; tools without an input_schema, which take no input; tools named like a
    primitive, which runtimes execute themselves, or with `static_output`; whole sections of a wrong type, which are
    skipped; and what only fails at run time where it is used: unknown primitives and arguments, invalid CSS selectors,
    and expressions that are too long.
    """
    version = document.get("version")
    is_named = version is None or isinstance(version, str)
    tool_names = strings(document, "/tools/[]/name")
    carried_out = {place.rpartition("/")[0] for place, name in tool_names if name in PRIMITIVES}
    static = select(document, "/tools/[]/x_actions/static_output")
    carried_out |= {place.removesuffix("/x_actions/static_output") for place, _ in static}
    mild = ("actions-input-schema", "actions-arguments", "actions-primitive")
    for judged in findings:
        there = part_at(document, judged.pointer)
        selectors = there if isinstance(there, list) else [there]
        if (
            (judged.check == "actions-version" and is_named)
            or (judged.check in mild and not judged.pointer.endswith("/after_each"))
            or (judged.check == "actions-selector" and all(isinstance(selector, str) for selector in selectors))
            or (judged.check == "actions-expression" and len(str(there)) > MAX_EXPRESSION_CHARACTERS)
            or (judged.check == "actions-executable" and judged.pointer in carried_out)
            or (judged.check == "actions-type" and judged.pointer in _SECTIONS)
        ):
            yield judged


_SECTIONS: Final = frozenset(
    f"/{name}"
    for name in (
        *("imports", "context", "states", "transitions", "signals", "attachments", "checks", "state_projections"),
        *("surface", "provenance", "composition"),
    )
)
