"""What an action does, needs and takes, in words."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from awp_publish.model import KNOWN, PUBLIC, UNIT_NAMES, Action, Catalog, Effect, JsonObject, RateLimit
from awp_publish.plugins.overview.html import Html, tag
from awp_publish.plugins.overview.markup import code, table
from awp_publish.schema.embedding import answer_schema
from awp_publish.schema.reading import OBJECT, kinds, members, object_facts, options, required_members, resolved

_KIND_WORDS: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "yes or no",
    "array": "list",
    "object": "object",
}
EFFECT_WORDS: Final[Mapping[Effect, str]] = {
    "read": "reads only",
    "idempotent": "changes something; repeating it has no further effect",
    "write": "changes something on every call",
    "delete": "deletes something",
    "irreversible": "cannot be undone",
}
EFFECT_NAMES: Final[Mapping[Effect, str]] = {
    "read": "reads",
    "idempotent": "updates",
    "write": "changes",
    "delete": "deletes",
    "irreversible": "irreversible",
}
_COUNTED_WORDS: Final = {"ip": "for each address", "global": "for all callers together"}
_LIMIT_WORDS: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "multipleOf": "a multiple of {}",
    "pattern": "matches {}",
    "format": "{}",
    "contentMediaType": "{}",
    "contentEncoding": "as {}",
}
_PLURALS: Final = {"whole number": "whole numbers", "number": "numbers", "object": "objects", "file": "files"}
MAX_DEPTH: Final = 3
"""Levels of nested objects whose members are listed."""


def limit_words(limit: RateLimit) -> str:
    """Describe a limit: "30 a minute for each caller"."""
    unit = UNIT_NAMES[limit.unit]
    article = "an" if unit == "hour" else "a"
    window = f"{article} {unit}" if limit.count == 1 else f"in {limit.count} {unit}s"
    return f"{limit.requests} {window} {_COUNTED_WORDS.get(limit.scope or '', 'for each caller')}"


class Badge(NamedTuple):
    """One gate or limit of an action: its icon, a few words for a table, and what it means in full."""

    icon: str
    short: str
    term: str
    words: str


def guards_of(action: Action) -> list[Badge]:
    """Return the gates and limits of an action that not every action has."""
    badges = list[Badge]()
    if action.audience != PUBLIC:
        whom = "known callers" if action.audience == KNOWN else f'callers with the scope "{action.audience}"'
        badges.append(Badge("eye", f"for {whom}", "Listed", f"for {whom} only"))
    if action.needs_confirmation:
        badges.append(Badge("hand", "a person confirms", "Confirmation", "a person confirms each call"))
    if action.scopes:
        scopes = f"scope{'s' * (len(action.scopes) > 1)} {', '.join(action.scopes)}"
        badges.append(Badge("key", scopes, "Authorization", f"callers need the {scopes}"))
    elif action.auth_required:
        badges.append(Badge("key", "sign-in", "Authentication", "callers must authenticate"))
    if action.allow_agents:
        agents = ", ".join(action.allow_agents)
        badges.append(Badge("key", f"{agents} only", "Agents", f"for {agents} only"))
    if action.rate_limit is not None:
        words = limit_words(action.rate_limit)
        badges.append(Badge("gauge", words.replace(" for each caller", ""), "Limit", words))
    if action.requires:
        before = ", ".join(action.requires)
        badges.append(Badge("link", f"after {before}", "Prerequisite", f"only after {before} succeeded"))
    if before_it := [name for name in action.depends_on if name not in action.requires]:
        words = f"comes after {', '.join(before_it)}"
        badges.append(Badge("link", words, "Order", words))
    if action.idempotency is not None:
        window = action.idempotency.window
        words = f"a repeated key returns the first answer for {window}"
        badges.append(Badge("repeat", f"keys {window}", "Idempotency", words))
    if action.is_background:
        badges.append(Badge("clock", "background job", "Job", "runs in the background, as a job"))
    return badges


def policy_facts(catalog: Catalog, action: Action) -> list[tuple[str, str]]:
    """Return the effect, the gates and the limits of an action, each with its name."""
    facts = [("Effect", EFFECT_WORDS[action.effect]), *((guard.term, guard.words) for guard in guards_of(action))]
    if catalog.site.rate_limit is not None:
        facts.append(("Site limit", f"{limit_words(catalog.site.rate_limit)}, over all actions"))
    facts.append(("Time limit", f"{action.timeout:g} seconds"))
    return facts


def kind_words(schema: object, root: JsonObject, depth: int = 0) -> str:
    """Describe a value's type: "whole number", "list of text", "one of new, used"."""
    facts = resolved(schema, root)
    if values := options(facts, root):
        listed = ", ".join(json.dumps(value, ensure_ascii=False) for value in values[:12])
        return f"one of {listed}" + (", ..." if len(values) > 12 else "")
    if facts.get("contentEncoding") == "base64":
        return "file"
    words = []
    for kind in kinds(facts, root):
        if kind == "array" and "items" in facts and depth < MAX_DEPTH:
            entry = kind_words(facts["items"], root, depth + 1)
            words.append(f"list of {_PLURALS.get(entry, entry)}")
        else:
            words.append(_KIND_WORDS.get(kind, kind))
    return " or ".join(words) or "anything"


def limits_of(facts: JsonObject) -> list[str]:
    """Describe the limits of a value: "at least 1 character"."""
    limits = ((words, facts[key]) for key, words in _LIMIT_WORDS.items() if key in facts)
    singular = {" characters": " character", " entries": " entry"}
    phrases = ((words.format(value), value) for words, value in limits)
    return [
        re.sub(r" (characters|entries)$", lambda end: singular[end[0]], text) if n == 1 else text for text, n in phrases
    ]


def schema_rows(schema: JsonObject, root: JsonObject, prefix: str = "", depth: int = 0) -> Iterable[Sequence[object]]:
    """Yield a row for each member of an object, including those of nested objects."""
    facts = object_facts(schema, root)
    required = required_members(facts)
    for name, part in members(facts).items():
        own = resolved(part, root)
        limits = limits_of(own)
        if "default" in own:
            limits.append(f"default {json.dumps(own['default'], ensure_ascii=False, default=str)}")
        described = own.get("description", "")
        is_required = "yes" if name in required else "no"
        yield code(prefix + name), kind_words(part, root), is_required, described, ", ".join(limits)
        items = own.get("items")
        if depth < MAX_DEPTH and members(own):
            yield from schema_rows(own, root, f"{prefix}{name}.", depth + 1)
        elif depth < MAX_DEPTH and isinstance(items, OBJECT) and members(resolved(items, root)):
            yield from schema_rows(resolved(items, root), root, f"{prefix}{name}[].", depth + 1)


def schema_table(caption: str, schema: JsonObject, presence: str = "required") -> Html:
    """Return the members of a schema as a table, or a description of its type if it has none."""
    rows = list(schema_rows(schema, schema))
    if rows:
        return table(caption, ("name", "type", presence, "meaning", "limits"), rows)
    is_empty = kinds(resolved(schema, schema), schema) == ["object"] and "properties" in resolved(schema, schema)
    return tag("p", f"{caption}: ", "nothing" if is_empty else kind_words(schema, schema), ".")


def schema_tables(action: Action) -> tuple[Html, Html]:
    outputs = schema_table(f"Outputs of {action.id}", answer_schema(action), "always there")
    return schema_table(f"Inputs of {action.id}", action.inputs), outputs
