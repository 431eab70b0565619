"""Checks of a map as a whole: protocol, version, sizes, and types of members."""

import re
from collections.abc import Iterator
from typing import Final

import orjson

from awp_publish.checks.engine import ERROR, Finding, JsonObject, finding, shown
from awp_publish.checks.text import everything
from awp_publish.maps import rules
from awp_publish.plugins.actions_json.checks.specification import check, row, schema_row
from awp_publish.schema.reading import depth_exceeds


@check("actions-protocol", ERROR, "Minimal Manifest", hint='Write "protocol": "actions.json".', decisive=True)
def wrong_protocol(document: JsonObject) -> Iterator[Finding]:
    """The protocol is "actions.json"."""
    if document.get("protocol") != rules.PROTOCOL:
        state = f"is {shown(document['protocol'])}" if "protocol" in document else "is missing"
        yield finding("/protocol", f"The protocol {state}.")


@check("actions-many-tools", ERROR, "tools", hint="Split the map, and import its parts.", decisive=True)
def too_many_tools(document: JsonObject) -> Iterator[Finding]:
    """A map has at most 2,000 tools; readers set such limits."""
    tools = document.get("tools")
    if isinstance(tools, list) and len(tools) > rules.MAX_TOOLS:
        yield finding("/tools", f"There are {len(tools)} tools; {rules.MAX_TOOLS} are allowed.")


@check("actions-version", ERROR, "Minimal Manifest", hint='Write "version": 1.')
def wrong_version(document: JsonObject) -> Iterator[Finding]:
    """The version is the number 1."""
    version = document.get("version")
    if isinstance(version, bool) or version != rules.VERSION:
        state = f"is {shown(version)}" if "version" in document else "is missing"
        yield finding("/version", f"The version {state}.")


schema_row(
    "actions-required",
    "Root Object to checks",
    "The members without which a map cannot be read are present.",
    hint="Add the member.",
    violation=r"required (?!/tools/\d+/input_schema$).*",
)
schema_row(
    "actions-input-schema",
    "tools",
    "Every tool has an input_schema.",
    hint='Write {"type": "object", "additionalProperties": false} for a tool without arguments.',
    violation=r"required /tools/\d+/input_schema",
)
schema_row(
    "actions-type",
    "Root Object to checks",
    "Members have the types that the specification gives them.",
    hint="Write a value of that type.",
    violation=r"type .*",
)
schema_row(
    "actions-empty",
    "tools, attachments",
    "Descriptions of tools, and targets and lifecycles of attachments, are not empty.",
    hint="Fill it in.",
    violation=r"(?:minLength|minProperties) .*",
)
schema_row(
    "actions-word",
    "Root Object to checks",
    "Members with a fixed set of values have one of them.",
    hint="Choose one of the values.",
    violation=r"(?:enum|const) (?!.*/workflow/).*",
)
schema_row(
    "actions-number",
    "transitions, state_projections",
    "Numbers are within their bounds.",
    hint="Choose a number within the bounds.",
    violation=r"(?:minimum|maximum) (?!.*/workflow/).*",
)
schema_row(
    "actions-schema",
    "Validation Rules",
    "Every JSON Schema in the map is valid.",
    hint="Correct the schema.",
    violation=r"(?:schema|reference) .*",
)


@check("actions-depth", ERROR, "Root Object", hint="Make the map flatter.", decisive=True)
def too_deep(document: JsonObject) -> Iterator[Finding]:
    """A map is nested at most 64 deep; readers set such limits."""
    if depth_exceeds(document, rules.MAX_DEPTH):
        yield finding("", f"The map is nested more than {rules.MAX_DEPTH} deep.")


too_large: Final = row(
    "actions-size",
    ERROR,
    "actions.json V1, Root Object",
    f"A map has at most {rules.MAX_MAP_BYTES} bytes; readers set such limits.",
    hint="Split the map, and import its parts.",
)


@check("actions-text", ERROR, "Root Object", hint="Remove the half of a surrogate pair.")
def unwritable_texts(document: JsonObject) -> Iterator[Finding]:
    """Texts have characters that UTF-8 can write."""
    try:
        orjson.dumps(document)
    except TypeError:
        for pointer, value in everything(document):
            if isinstance(value, str) and re.search("[\ud800-\udfff]", value):
                yield finding(pointer, "The text holds half of a surrogate pair.")
