"""Descriptions and names as a model reads them before it chooses an action, judged by fixed rules without a model.

All rules count the same; an action's score is the percentage of rules that it follows. Every finding says what to write
instead.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Final

from awp_publish.checks.engine import WARNING, Finding, JsonObject, shown
from awp_publish.checks.judged_actions import JudgedAction
from awp_publish.schema.pointers import child, part_at

SOURCE: Final = "as a model reads"

MIN_DESCRIPTION: Final = 20
"""Characters that a description needs to say what an action does."""

MAX_DESCRIPTION: Final = 1024
"""Characters after which clients cut: the shortest limit of the widely used ones."""

MAX_TERSE_NAME: Final = 2
"""Characters of a name that is too short to explain itself."""

MAX_NESTING: Final = 4

MAX_INPUTS: Final = 1_000
"""Levels of inputs within inputs, and inputs of one action, that are judged."""

MAX_TOOLS: Final = 40
"""Actions among which models still choose well; some clients accept no more."""

RULES: Final = {
    "model-description": (
        "A description has 20 to 1,024 characters.",
        "Write what it does, for whom and with what result, in 20 to 1,024 characters.",
    ),
    "model-verb-first": (
        "A description begins with a verb.",
        'Begin with the verb that says what it does: "Search books by title or author."',
    ),
    "model-examples": (
        "Inputs have an example of a whole input, unless one of them is a password.",
        'Give one whole input: examples=[{"name": value}].',
    ),
    "model-input-words": (
        "Every input, also a nested one, has a description.",
        "Say what it means, with unit and format: Annotated[str, Field(description=...)].",
    ),
    "model-enum-words": (
        "Texts and numbers to choose from are mentioned in a description.",
        "Say in its description what each value does.",
    ),
    "model-ambiguous-name": (
        "Names say what they refer to: not `data`, `process`, `get_thing`.",
        "Use a name that says what it holds or does, and of what: order_id, search_books.",
    ),
    "model-twins": (
        "No two actions have the same names or descriptions.",
        "Say in each description when to use it and not the other one, or merge them.",
    ),
    "model-too-many": (
        "There are forty actions at most; more cost the site ten points.",
        "Give fewer, deeper actions, or show each caller only their own: audience= and scopes=.",
    ),
}
"""Each rule: what it demands, and what to do where it is broken."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_VAGUE_INPUTS: Final = _set(
    """
    arg args argument arguments blob body content data details entity field foo info input item items key kwargs
    object obj options other param parameter params payload stuff thing things val value values var
    """
)

_VAGUE_ACTIONS: Final = _set(
    """
    action call do execute function get handle handler index invoke list main manage op operation perform post process
    put query request run submit task tool update
    """
)

_NOT_VERBS: Final = _set(
    """
    a all an and any api are as at be by can each endpoint every for from function handler has helper here how i if in
    is it its many may method my no not of on one or our page route simple some such that the their them there these
    they this those to tool use used user utility view we what when where which who will with you your
    """
)

_ENDINGS_OF_NOUNS: Final = ("tion", "sion", "ment", "ness", "ity", "ance", "ence", "ing", "ism", "ship", "ology")

_VERBS_LIKE_NOUNS: Final = _set(
    """
    bring mention implement document comment complement question position condition reference balance silence ping
    string ring sing finance sequence commission provision station supplement experience
    """
)

_SAME_VERBS: Final = {
    verb: group[0]
    for group in (
        ("show", "get", "read", "fetch", "retrieve", "view", "load", "display"),
        ("search", "find", "lookup", "query"),
        ("create", "add", "new", "make", "insert"),
        ("update", "edit", "change", "modify", "set", "patch"),
        ("delete", "remove", "destroy", "drop", "erase"),
    )
    for verb in group
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The findings, the score of each action, and that of the site; 100 is best."""

    findings: tuple[Finding, ...]
    scores: Mapping[str, int]

    @property
    def score(self) -> int:
        mean = fmean(self.scores.values()) if self.scores else 100
        return max(0, round(mean) - (10 if any(finding.check == "model-too-many" for finding in self.findings) else 0))


def judge_descriptions(tools: Sequence[JudgedAction]) -> Judgement:
    """Judge the actions of a site, each on its own and among the others."""
    findings: list[Finding] = []
    broken: dict[str, set[str]] = {tool.id: set() for tool in tools}

    def note(tool: JudgedAction, rule: str, message: str, pointer: str = "") -> None:
        broken[tool.id].add(rule)
        subject = f"action {shown(tool.id)}"
        findings.append(Finding(WARNING, rule, tool.pointer + pointer, message, RULES[rule][1], SOURCE, "", subject))

    if len(tools) > MAX_TOOLS:
        message = f"There are {len(tools)} actions; models choose less reliably among more than {MAX_TOOLS}."
        findings.append(Finding(WARNING, "model-too-many", "", message, RULES["model-too-many"][1], SOURCE))
    for tool in tools:
        for rule, message, pointer in _faults(tool):
            note(tool, rule, message, pointer)
    by_meaning: dict[tuple[str, ...], JudgedAction] = {}
    by_words: dict[str, JudgedAction] = {}
    for tool in tools:
        words = _words(tool.id)
        meaning = (_SAME_VERBS.get(words[0], words[0]), *sorted(words[1:])) if words else ()
        text = " ".join(tool.description.lower().split())
        if (other := by_words.get(text) if text else None) is not None:
            note(tool, "model-twins", f"Its description is that of {shown(other.id)}.")
        elif (other := by_meaning.get(meaning)) is not None:
            note(tool, "model-twins", f"Its name means the same as {shown(other.id)}.")
        by_words.setdefault(text, tool)
        by_meaning.setdefault(meaning, tool)
    of_each = len(RULES) - 1  # one is about the site
    return Judgement(
        tuple(findings), {name: round(100 * (of_each - len(rules)) / of_each) for name, rules in broken.items()}
    )


def _faults(tool: JudgedAction) -> Iterator[tuple[str, str, str]]:
    """Yield rule, message and pointer of each fault of one action."""
    text = tool.description.strip()
    if len(text) < MIN_DESCRIPTION:
        yield "model-description", f"Its description has {len(text)} characters.", "/description"
    elif len(text) > MAX_DESCRIPTION:
        yield "model-description", f"Its description has {len(text)} characters; clients truncate it.", "/description"
    first = re.match(r"[^\W\d_]+", text)
    if text and not _may_be_verb(first[0] if first is not None else ""):
        begun = text.split()[0]
        yield "model-verb-first", f"Its description begins with {shown(begun)}, which is not a verb.", "/description"
    if len(tool.id) <= MAX_TERSE_NAME or set(_words(tool.id)) <= _VAGUE_ACTIONS | _VAGUE_INPUTS:
        yield "model-ambiguous-name", f"{shown(tool.id)} does not say what it applies to.", ""
    first_inputs = islice(_inputs(tool.inputs, tool.inputs), MAX_INPUTS)
    inputs = [(name, declared, resolve(declared, tool.inputs), place) for name, declared, place in first_inputs]
    has_secret = any(schema.get("format") == "password" or schema.get("writeOnly") for _, _, schema, _ in inputs)
    if inputs and not tool.has_examples and not has_secret:
        yield "model-examples", "No example shows how its inputs go together.", ""
    for name, declared, schema, pointer in inputs:
        words = " ".join(str(part.get("description") or "") for part in (declared, schema) if isinstance(part, Mapping))
        if name.lower() in _VAGUE_INPUTS or (len(name) <= MAX_TERSE_NAME and not words.strip()):
            yield "model-ambiguous-name", f"The input {shown(name)} does not say what it holds.", pointer
        if not words.strip():
            yield "model-input-words", f"The input {shown(name)} has no description.", pointer
        missing = [
            shown(value) for value in values_in(schema, tool.inputs, set()) if not _mentions(f"{words} {text}", value)
        ]
        if missing:
            values = f"{', '.join(missing[:5])}{', ...' if len(missing) > 5 else ''}"
            yield "model-enum-words", f"The input {shown(name)} has values that are not explained: {values}.", pointer


def _inputs(
    schema: JsonObject, root: JsonObject, place: str = "/inputs", depth: int = 0
) -> Iterator[tuple[str, object, str]]:
    """Yield name, schema and pointer of each input, including nested ones."""
    for name, declared in _properties(schema, root).items():
        pointer = child(place, name)
        yield str(name), declared, pointer
        if depth < MAX_NESTING:
            yield from _inputs(resolve(declared, root), root, pointer, depth + 1)


def _properties(schema: JsonObject, root: JsonObject) -> JsonObject:
    """Return the members of an object, of the objects in a list, or of the only object in a union."""
    for _ in range(MAX_NESTING):  # a schema may lead back to itself
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            return properties
        union = schema.get("anyOf") or schema.get("oneOf")
        within = [resolve(part, root) for part in (schema.get("items"), *(union if isinstance(union, list) else ()))]
        objects = [part for part in within if part.get("properties") or "items" in part]
        if len(objects) != 1:
            break
        schema = objects[0]
    return {}


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower())


def _may_be_verb(word: str) -> bool:
    """Return False for a first word that is not a verb. Words that are not English are not judged."""
    low = word.lower()
    if not low or not low.isascii():
        return bool(low)
    if low in _VERBS_LIKE_NOUNS:
        return True
    return low not in _NOT_VERBS and not low.endswith(_ENDINGS_OF_NOUNS)


def _mentions(words: str, value: str) -> bool:
    pattern = re.escape(value).replace("_", "[_ -]").replace(r"\-", "[_ -]")
    return re.search(rf"(?<!\w){pattern}(?!\w)", words, re.IGNORECASE) is not None


def resolve(schema: object, root: JsonObject) -> JsonObject:
    """Return a schema, following its references."""
    for _ in range(8):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        schema = part_at(root, reference[1:])
    return schema if isinstance(schema, Mapping) else {}


def values_in(schema: JsonObject, root: JsonObject, seen: set[int], depth: int = 0) -> Iterator[str]:
    """Yield the texts and numbers among which a caller chooses and which the schema itself does not explain."""
    if id(schema) in seen:
        return
    seen.add(id(schema))
    listed = schema.get("enum")
    if isinstance(listed, list) and len(listed) > 1:
        yield from (
            str(value)
            for value in listed
            if isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""
        )
    inner: list[object] = [schema.get("items")] if depth == 0 else []
    for name in ("anyOf", "oneOf", "allOf"):
        among = schema.get(name)
        branches = [resolve(branch, root) for branch in among] if isinstance(among, list) and depth < 3 else []
        constants = [branch for branch in branches if "const" in branch]
        if len(constants) > 1:
            wordless = (
                constant["const"]
                for constant in constants
                if not (constant.get("description") or constant.get("title"))
            )
            yield from (str(value) for value in wordless if isinstance(value, (str, int)))
        inner += branches
    for part in inner:
        yield from values_in(resolve(part, root), root, seen, depth + 1)
