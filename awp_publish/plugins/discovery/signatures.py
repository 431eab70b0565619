"""Inputs of an action in one line."""

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from awp_publish.documents.members import whole
from awp_publish.model import JsonObject
from awp_publish.schema.reading import encoding_of, members, object_facts, required_members, resolved

MAX_CHOICES: Final = 12
"""Values of an enumeration that a line lists."""

LIMIT_WORDS: Final = (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<"))


def signature(inputs: JsonObject) -> str:
    """Return an input as a signature, `{slug, quantity?: 1..20, sort?: title|price}`; "?" marks optional members."""
    facts = object_facts(inputs, inputs)
    required = required_members(facts)
    parts = []
    for name, schema in members(facts).items():
        kind = _kind(resolved(schema, inputs))
        parts.append(f"{name}{'' if name in required else '?'}{f': {kind}' if kind else ''}")
    return "{" + ", ".join(parts) + "}"


def _kind(facts: JsonObject) -> str:
    """Return the type of a value in short; "" for a text."""
    choices = facts.get("enum", [facts["const"]] if "const" in facts else None)
    if isinstance(choices, Sequence) and not isinstance(choices, str):
        listed = [str(choice) if isinstance(choice, str) else json_text(choice) for choice in choices[:MAX_CHOICES]]
        return "|".join([*listed, *(["..."] if len(choices) > MAX_CHOICES else [])])
    if (encoding := encoding_of(facts)) is not None:
        return encoding
    kind = facts.get("type")
    if kind == "array":
        items = facts.get("items")
        inner = _kind(items) if isinstance(items, Mapping) else ""
        return f"[{inner or '...'}]"
    if kind in ("integer", "number"):
        least, most = whole(facts.get("minimum")), whole(facts.get("maximum"))
        if least is not None and most is not None:
            return f"{least}..{most}"
        limits = " and ".join(
            f"{sign}{whole(facts[name])}" for name, sign in LIMIT_WORDS if facts.get(name) is not None
        )
        return f"{kind} {limits}".rstrip()
    if kind == "object":
        return "{...}"
    if kind == "string":
        return str(facts.get("format") or "")
    return kind if isinstance(kind, str) else ""


def json_text(value: object) -> str:
    return orjson.dumps(value).decode()
