"""actions.json V1: the checks for a map.

Only workflows and steps are closed (V1, workflow): additional members anywhere else are not reported. The specification
rejects some mistakes and is silent on others; of the latter, those that harm a reader are warnings. `lenient` is for
maps that were published before there was a version 1: what strict readers reject in them is then a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias

import orjson

from awp_publish.checks.engine import (
    ERROR,
    LEVELS,
    WARNING,
    Check,
    CheckFunction,
    Finding,
    JsonObject,
    Level,
    SchemaViolation,
    Specification,
    finding,
    in_order,
    repeated,
    shown,
)
from awp_publish.checks.inner_schemas import InnerSchemas
from awp_publish.checks.places import arrays, child, members, objects, select, strings
from awp_publish.checks.schemas import DocumentSchema, Schema
from awp_publish.checks.text import ANY_DOCUMENT, ParsedDocument, everything
from awp_publish.maps import rules
from awp_publish.maps.engine import ExpressionError, has_engine
from awp_publish.maps.expressions import MAX_EXPRESSION_CHARACTERS, check_expression, expression_of, has_slots
from awp_publish.maps.primitives import PRIMITIVES, arguments_of
from awp_publish.pages.selectors import selector_fault
from awp_publish.schema import translate
from awp_publish.schema.reading import depth_exceeds, part_at

_TARGETS: Final = (
    "/tools/[]/target",
    "/tools/[]/x_actions/execution/steps/[]/target",
    "/states/[]/diagnostics/[]/target",
    "/signals/[]/target",
    "/attachments/[]/target",
    "/checks/[]/target",
    "/checks/[]/assertions/[]/target",
    "/context/[]/load_when/targets/[]",
)
_WORKFLOWS: Final = "/tools/[]/workflow"
_STEPS: Final = "/tools/[]/workflow/steps/[]"
_SCHEMAS: Final = (
    "/tools/[]/input_schema",
    "/tools/[]/result_schema",
    "/tools/[]/x_actions/result_schema",
    "/signals/[]/payload",
    "/state_projections/[]/snapshot/output_schema",
)
_SOURCES: Final = (
    "/tools/[]/x_actions/source",
    "/signals/[]/source",
    "/context/[]/source",
    "/attachments/[]/source",
    "/states/[]/source",
    "/checks/[]/source",
    "/prompt/source",
)
_FILES: Final = (
    *(f"{source}/files/[]" for source in _SOURCES),
    "/x_actions/files/[]/path",
    "/attachments/[]/affordance/opens/arguments/html_source",
)
_NAMES: Final = (
    ("/tools/[]", "name"),
    ("/states/[]", "name"),
    ("/states/[]/diagnostics/[]", "name"),
    ("/transitions/[]", "name"),
    ("/signals/[]", "name"),
    ("/state_projections/[]", "name"),
    ("/state_projections/[]/summaries/[]", "name"),
    ("/context/[]", "id"),
    ("/attachments/[]", "id"),
    ("/checks/[]", "id"),
    ("/imports/[]", "id"),
    ("/state_projections/[]/snapshot/extract/[]", "id"),
)
"""Names and ids, which are required and must be safe identifiers."""


# --- Rules that a JSON Schema can express ---


def _object(required: Sequence[str] = (), **properties: object) -> dict[str, object]:
    return {"type": "object", "required": list(required), "properties": properties}


def _array(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


def _one_of(values: Iterable[str]) -> dict[str, object]:
    return {"enum": sorted(values)}


@DocumentSchema
def _document_schema() -> Schema:
    text, any_object, texts = {"type": "string"}, {"type": "object"}, _array({"type": "string"})
    target = _object(role=text, name=text, text_equals=text, text_contains=text, state=text)
    execution = _object(mode=text, steps=_array(_object(["type"], id=text, type=text, target=target, value_from=text)))
    x_actions = _object(
        direction=_one_of(rules.DIRECTIONS),
        handler=text,
        scope=_one_of(rules.SCOPES),
        source=any_object,
        execution=execution,
        result_schema=any_object,
        binding=any_object,
    )
    step = _object(
        ["id", "primitive"],
        id=text,
        primitive=text,
        args=any_object,
        max_items={"type": "number", "minimum": 1, "maximum": rules.MAX_ITEMS},
        max_attempts={"type": "number", "minimum": 1, "maximum": rules.MAX_ATTEMPTS},
        after_each=any_object,
        on_error={"enum": ["stop", "continue"]},
        settle_after=any_object,
    )
    workflow = _object(["version", "expression_language", "steps"], steps=_array(step))
    tool = _object(
        ["name", "description", "input_schema"],
        description={"type": "string", "minLength": 1},
        input_schema=any_object,
        result_schema=any_object,
        target=target,
        requires=texts,
        x_actions=x_actions,
        workflow=workflow,
    )
    transition = _object(
        ["name", "from", "to"],
        method=text,
        tool=text,
        signal=text,
        rate_limit_ms={"type": "number", "minimum": 0},
        preconditions=texts,
        reveals=texts,
        do_not_use=texts,
        convergence=any_object,
    )
    signal = _object(
        ["name"],
        direction=text,
        ingestion=_one_of(rules.INGESTION),
        event=text,
        target=target,
        payload=any_object,
        source=any_object,
    )
    attachment = _object(
        ["id", "target", "lifecycle"],
        kind=text,
        target={**target, "minProperties": 1},
        affordance=any_object,
        lifecycle={"type": "object", "minProperties": 1},
    )
    check = _object(
        ["id"],
        severity=_one_of(rules.SEVERITIES),
        assertions=_array(_object(target=any_object)),
        setup=_array(any_object),
        steps=_array(any_object),
        on_fail=any_object,
    )
    extract = _object(["id"], many={"type": "boolean"}, fields=any_object)
    snapshot = _object(
        (),
        version={"const": 1},
        source={"const": "dom"},
        extract=_array(extract),
        projection=_object(["language", "expression"], language={"const": "jsonata"}, expression=text),
        output_schema=any_object,
    )
    projection = _object(
        ["name", "snapshot"],
        description=text,
        scope=any_object,
        snapshot=snapshot,
        summaries=_array(_object(["name", "expression"], max_bytes={"type": "number", "minimum": 1}, expression=text)),
        postconditions=any_object,
    )
    entry = _object(
        ["id", "kind", "uri"],
        kind=_one_of(rules.IMPORT_KINDS),
        uri=text,
        trust=_one_of(rules.TRUST),
        enabled={"type": "boolean"},
        provenance=any_object,
    )
    return _object(
        ["tools"],
        tools=_array(tool),
        surface=any_object,
        imports=_array(entry),
        composition=_object(default_conflict_policy=text, namespace_required={"type": "boolean"}),
        context=_array(_object(["id"], load_when=any_object, available_tools=texts, next_states=texts)),
        states=_array(_object(["name"], diagnostics=_array(_object(["name"], target=target)))),
        transitions=_array(transition),
        signals=_array(signal),
        attachments=_array(attachment),
        checks=_array(check),
        state_projections=_array(projection),
        provenance=any_object,
    )


_schemas: Final = InnerSchemas(*_SCHEMAS, read=translate)


def violations(document: JsonObject) -> Iterator[SchemaViolation]:
    """Find violations of the rules that a JSON Schema can express, and mistakes in the schemas inside a map."""
    yield from _document_schema.violations(document)
    yield from _schemas.violations(document)


ACTIONS_JSON: Final = Specification(
    "actions-json",
    "actions.json V1",
    paths=("/.well-known/actions.json", "/actions.json"),
    marks=lambda document: document.get("protocol") == rules.PROTOCOL,
    resembles=lambda document: any(
        "workflow" in tool or "x_actions" in tool or "input_schema" in tool
        for _, tool in objects(document, "/tools/[]")
    ),
    violations=violations,
    judge_reading=lambda reading, path, lenient: check_map(reading, path, lenient=lenient),
)
row = ACTIONS_JSON.row


def check(
    code: str, level: Level, section: str, *, hint: str, decisive: bool = False
) -> Callable[[CheckFunction], Check]:
    """Register the decorated function as a check of maps; `section` is a heading of V1, which has no numbers."""
    return ACTIONS_JSON.check(code, level, f"actions.json V1, {section}", hint=hint, decisive=decisive)


def _row(code: str, section: str, about: str, *, hint: str, violation: str) -> None:
    row(code, ERROR, f"actions.json V1, {section}", about, hint=hint, violation=violation)


# --- The whole ---


@check("actions-protocol", ERROR, "Minimal Manifest", hint='Write "protocol": "actions.json".', decisive=True)
def wrong_protocol(document: JsonObject) -> Iterator[Finding]:
    """The protocol is "actions.json"."""
    if document.get("protocol") != rules.PROTOCOL:
        said = f"is {shown(document['protocol'])}" if "protocol" in document else "is missing"
        yield finding("/protocol", f"The protocol {said}.")


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
        said = f"is {shown(version)}" if "version" in document else "is missing"
        yield finding("/version", f"The version {said}.")


_row(
    "actions-required",
    "Root Object to checks",
    "Members without which a map cannot be read are there.",
    hint="Add the member.",
    violation=r"required (?!/tools/\d+/input_schema$).*",
)
_row(
    "actions-input-schema",
    "tools",
    "Every tool has an input_schema.",
    hint='Write {"type": "object", "additionalProperties": false} for a tool without arguments.',
    violation=r"required /tools/\d+/input_schema",
)
_row(
    "actions-type",
    "Root Object to checks",
    "Members have the types that the specification gives them.",
    hint="Write a value of that type.",
    violation=r"type .*",
)
_row(
    "actions-empty",
    "tools, attachments",
    "Descriptions of tools, and targets and lifecycles of attachments, say something.",
    hint="Fill it in.",
    violation=r"(?:minLength|minProperties) .*",
)
_row(
    "actions-word",
    "Root Object to checks",
    "Members that have certain values have one of these.",
    hint="Choose one of the values.",
    violation=r"(?:enum|const) (?!.*/workflow/).*",
)
_row(
    "actions-number",
    "transitions, state_projections",
    "Numbers are within their bounds.",
    hint="Choose a number within the bounds.",
    violation=r"(?:minimum|maximum) (?!.*/workflow/).*",
)
_row(
    "actions-schema",
    "Validation Rules",
    "What stands as a JSON Schema is a valid one.",
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


def _unknown(document: JsonObject, known: Container[str], what: str, *places: str) -> Iterator[Finding]:
    """Find texts that are not among the known words."""
    for pointer, word in strings(document, *places):
        if word not in known:
            yield finding(pointer, f"{what} {shown(word)} is not known.")


# --- Names ---


@check("actions-name", ERROR, "Safe Identifiers", hint='Use ASCII letters, digits, "_", "-" and dots: search.submit.')
def unsafe_names(document: JsonObject) -> Iterator[Finding]:
    """Names and ids are safe identifiers."""
    for pattern, member in _NAMES:
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


# --- Imports ---


@check("actions-namespace", ERROR, "imports", hint="Give the import a namespace.")
def missing_namespaces(document: JsonObject) -> Iterator[Finding]:
    """Imports have a namespace, unless the composition says that none is needed."""
    if members(document.get("composition")).get("namespace_required") is not False:
        for pointer, entry in objects(document, "/imports/[]"):
            if "namespace" not in entry:
                yield finding(f"{pointer}/namespace", "The import has no namespace.")


@check("actions-conflict-policy", WARNING, "imports", hint='Write "prefer_local", and namespaces.')
def loose_compositions(document: JsonObject) -> Iterator[Finding]:
    """The conflict policy is known (with another one a conflict refuses the import), and imports have namespaces."""
    yield from _unknown(document, ("prefer_local",), "The conflict policy", "/composition/default_conflict_policy")
    if members(document.get("composition")).get("namespace_required") is False:
        for pointer, entry in objects(document, "/imports/[]"):
            if "namespace" not in entry:
                yield finding(f"{pointer}/namespace", "The names of the import stand beside those of the map.")


_left_out: Final = row(
    "actions-import",
    WARNING,
    "actions.json V1, imports",
    "Imports can be fetched, are valid, and have names of their own.",
    hint="Correct the import, or disable it; its names are left out.",
)


def import_finding(problem: tuple[str, str]) -> Finding:
    """Return the finding about an import that was left out (see `workflows.composition`)."""
    place, reason = problem
    document, _, pointer = place.rpartition("#")
    return _left_out.complete(finding(pointer, reason, document=document))


# --- Tools ---


@check("actions-executable", ERROR, "Validation Rules", hint="Give it a handler, execution.steps or a workflow.")
def tools_without_execution(document: JsonObject) -> Iterator[Finding]:
    """A tool that agents may call has a handler, steps or a workflow."""
    for pointer, tool in objects(document, "/tools/[]"):
        known = members(tool.get("x_actions"))
        steps = members(known.get("execution")).get("steps")
        is_called = known.get("direction") != "html_to_agent"
        if is_called and not (known.get("handler") or steps or isinstance(tool.get("workflow"), dict)):
            yield finding(pointer, f"The map does not say how the tool {shown(tool.get('name'))} is executed.")


@check("actions-requires", WARNING, "tools", hint="Name a primitive of the dictionary.")
def unknown_requirements(document: JsonObject) -> Iterator[Finding]:
    """The primitives that a tool requires are known."""
    yield from _unknown(document, PRIMITIVES, "The primitive", "/tools/[]/requires/[]")


@check("actions-execution", WARNING, "x_actions", hint="Runtimes that follow the text answer capability_unavailable.")
def unknown_execution(document: JsonObject) -> Iterator[Finding]:
    """Modes, fallbacks and types of execution steps are known."""
    execution = "/tools/[]/x_actions/execution"
    yield from _unknown(document, rules.EXECUTION_FALLBACKS, "The fallback", f"{execution}/fallback")
    yield from _unknown(document, rules.EXECUTION_MODES, "The mode", f"{execution}/mode")
    yield from _unknown(document, rules.STEP_TYPES, "The type of a step", f"{execution}/steps/[]/type")


@check("actions-two-results", WARNING, "x_actions", hint="Keep the one in x_actions.")
def differing_result_schemas(document: JsonObject) -> Iterator[Finding]:
    """A tool has one result_schema."""
    for pointer, tool in objects(document, "/tools/[]"):
        inner = members(tool.get("x_actions")).get("result_schema")
        if inner is not None and tool.get("result_schema", inner) != inner:
            yield finding(f"{pointer}/result_schema", "It differs from the result_schema in x_actions, which counts.")


@check("actions-file", ERROR, "Validation Rules", hint="Write a path below the root of the site: pages/search.html.")
def outer_paths(document: JsonObject) -> Iterator[Finding]:
    """Source files are relative paths that stay within the site."""
    for pointer, path in strings(document, *_FILES):
        if fault := rules.path_fault(path):
            yield finding(pointer, f"{shown(path)} {fault}.")


# --- Targets ---


@check("actions-selector", ERROR, "target", hint="Write a CSS selector, or an array of them.")
def bad_selectors(document: JsonObject) -> Iterator[Finding]:
    """Selectors are texts or arrays of texts, and CSS selectors."""
    for pointer, value in _selector_fields(document):
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            yield finding(pointer, f"{shown(value)} is not a selector.")
            continue
        for text in map(str, texts):
            if fault := selector_fault(text):
                yield finding(pointer, f"{shown(text)} is not a CSS selector ({fault}).")


def _selector_fields(document: JsonObject) -> Iterator[tuple[str, object]]:
    for pointer, target in objects(document, *_TARGETS):
        for name in rules.SELECTORS:
            if name in target:
                yield f"{pointer}/{name}", target[name]
    for source in _SOURCES:
        yield from select(document, f"{source}/selectors")
    yield from select(document, f"{_EXTRACT}/selector")
    for pointer, _, field in _fields(document):
        for name in ("selector", "closest"):
            if name in field:
                yield f"{pointer}/{name}", field[name]


_EXTRACT: Final = "/state_projections/[]/snapshot/extract/[]"


def _fields(document: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """Yield place, name and field of each field of projections, including nested ones."""
    waiting = list(select(document, f"{_EXTRACT}/fields"))
    for pointer, fields in waiting:  # which grows while it is read
        for name, field in members(fields).items():
            place = child(pointer, name)
            yield place, name, members(field)
            waiting.append((f"{place}/fields", members(field).get("fields")))


@check("actions-selector-form", WARNING, "target", hint="Write a text in selector, and arrays in the other two.")
def unusual_selectors(document: JsonObject) -> Iterator[Finding]:
    """The selector is one text; selectors and fallback_selectors are arrays."""
    for pointer, target in objects(document, *_TARGETS):
        for name in rules.SELECTORS:
            expected = str if name == "selector" else list
            if isinstance(target.get(name), (str, list)) and not isinstance(target[name], expected):
                yield finding(f"{pointer}/{name}", f"{name} is {'an array' if name == 'selector' else 'one text'}.")


@check("actions-confidence", WARNING, "target", hint="Write observed, inferred, generated or unknown.")
def unknown_confidence(document: JsonObject) -> Iterator[Finding]:
    """The confidence of a target is one of the four words."""
    for pointer, target in objects(document, *_TARGETS):
        said = target.get("confidence", "unknown")
        if not isinstance(said, str) or said not in rules.CONFIDENCE:
            yield finding(f"{pointer}/confidence", f"The confidence {shown(said)} is not known.")


# --- References ---


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
    yield from _unknown(document, rules.TRANSITION_METHODS, "The method", "/transitions/[]/method")
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
    """The names that contexts, targets and attachments mention are there."""
    tools, states = _known(document, "/tools/[]/name"), _known(document, "/states/[]/name")
    yield from _lost(document, tools, "tool", "/context/[]/available_tools/[]", "/attachments/[]/affordance/opens/tool")
    places = ("/context/[]/next_states/[]", "/context/[]/load_when/states/[]")
    yield from _lost(document, states, "state", *places)
    targets = tuple(f"{place}/state" for place in _TARGETS if not place.startswith("/checks"))
    yield from _lost(document, states, "state", *targets)


# --- Signals and attachments ---


@check("actions-signal-event", ERROR, "Validation Rules", hint="Name the event of the page.")
def signals_without_event(document: JsonObject) -> Iterator[Finding]:
    """A signal that is enabled names its event."""
    for pointer, signal in objects(document, "/signals/[]"):
        if signal.get("ingestion") == "enabled" and not signal.get("event"):
            yield finding(f"{pointer}/event", f"The signal {shown(signal.get('name'))} is enabled and has no event.")


@check("actions-signal-direction", WARNING, "signals", hint="Write html_to_agent or bidirectional.")
def signals_to_pages(document: JsonObject) -> Iterator[Finding]:
    """Signals come from pages."""
    known = rules.DIRECTIONS - {"agent_to_html"}
    yield from _unknown(document, known, "For a signal the direction", "/signals/[]/direction")


@check("actions-attachment-kind", WARNING, "attachments", hint="Runtimes install what they know.")
def unknown_attachments(document: JsonObject) -> Iterator[Finding]:
    """The kind of an attachment is a documented one."""
    yield from _unknown(document, rules.ATTACHMENT_KINDS, "The kind of an attachment", "/attachments/[]/kind")


# --- Workflows ---
# Most maps have hundreds of correct steps: a first pass looks at them without tracking their places.

Step: TypeAlias = Mapping[str, object]


def _steps(document: JsonObject) -> list[Step]:
    """Return the steps of all workflows."""
    tools = document.get("tools")
    workflows = [tool.get("workflow") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    listed = [workflow.get("steps") for workflow in workflows if isinstance(workflow, dict)]
    return [step for steps in listed if isinstance(steps, list) for step in steps if isinstance(step, dict)]


@check("actions-workflow", ERROR, "workflow", hint='Write version 1, expression_language "jsonata" and known keys.')
def bad_workflows(document: JsonObject) -> Iterator[Finding]:
    """A workflow has the version 1, the language jsonata, at most 25 steps, and no other keys than the known ones."""
    for pointer, workflow in objects(document, _WORKFLOWS):
        for name in workflow.keys() - rules.WORKFLOW_KEYS:
            yield finding(child(pointer, name), f"A workflow has no key {shown(name)}.")
        version, language, steps = (workflow.get(name) for name in ("version", "expression_language", "steps"))
        if "version" in workflow and (isinstance(version, bool) or version != 1):
            yield finding(f"{pointer}/version", f"The version is {shown(version)}.")
        if "expression_language" in workflow and language != "jsonata":
            yield finding(f"{pointer}/expression_language", f"The language is {shown(language)}.")
        if isinstance(steps, list) and len(steps) > rules.MAX_STEPS:
            yield finding(f"{pointer}/steps", f"There are {len(steps)} steps; {rules.MAX_STEPS} are allowed.")


@check("actions-no-steps", WARNING, "workflow", hint="Add a step, or leave the workflow out.")
def empty_workflows(document: JsonObject) -> Iterator[Finding]:
    """A workflow has steps."""
    for pointer, steps in arrays(document, f"{_WORKFLOWS}/steps"):
        if not steps:
            yield finding(pointer, "The workflow has no steps.")


@check("actions-step", ERROR, "workflow", hint="Correct the step; the set of its keys is closed.")
def bad_steps(document: JsonObject) -> Iterator[Finding]:
    """Steps have known keys, an id without dots, and bounds for what they repeat."""
    if all(step.keys() <= _PLAIN_STEP and rules.is_step_id(step.get("id")) for step in _steps(document)):
        return
    for pointer, step in objects(document, _STEPS):
        identifier = step.get("id")
        for name in step.keys() - rules.STEP_KEYS:
            yield finding(child(pointer, name), f"The step {shown(identifier)} has no key {shown(name)}.")
        if isinstance(identifier, str) and not rules.is_step_id(identifier):
            yield finding(f"{pointer}/id", f"{shown(identifier)} is not the id of a step: letters, digits, _ and -.")
        for repeating, bound in (("for_each", "max_items"), ("retry_until", "max_attempts")):
            if repeating in step and bound not in step:
                yield finding(f"{pointer}/{bound}", f"{repeating} needs {bound}.")
            if isinstance(step.get(bound), bool):
                yield finding(f"{pointer}/{bound}", f"{bound} is a number.")
        if "for_each" in step and "retry_until" in step:
            yield finding(f"{pointer}/retry_until", "A step has for_each or retry_until, and not both.")
        for condition in ("when", "retry_until"):
            if condition in step and not isinstance(step[condition], bool) and not _is_slot(step[condition]):
                yield finding(f"{pointer}/{condition}", f"{condition} is an expression {{% ... %}} or a boolean.")
        if "for_each" in step and not isinstance(step["for_each"], list) and not _is_slot(step["for_each"]):
            yield finding(f"{pointer}/for_each", "for_each is an expression {% ... %} or an array.")
        yield from _settling(f"{pointer}/settle_after", step.get("settle_after"))


_PLAIN_STEP: Final = frozenset(("id", "primitive", "args", "on_error"))
"""Keys of a step that do not restrict each other."""

_row(
    "actions-step-value",
    "workflow",
    "Bounds of repetitions are within 1 and 50, and on_error is stop or continue.",
    hint="Choose a value within the bounds.",
    violation=r"(?:enum|const|minimum|maximum) .*/workflow/.*",
)


def _is_slot(value: object) -> bool:
    """Return True for a slot, or a broken one, which is reported elsewhere."""
    return isinstance(value, str) and has_slots(value)


def _settling(pointer: str, given: object) -> Iterator[Finding]:
    if not isinstance(given, dict):
        return
    delay = given.get("delay_ms")
    is_waiting = isinstance(delay, (int, float)) and not isinstance(delay, bool) and delay > 0
    if ("locator" in given) == ("delay_ms" in given):
        yield finding(pointer, "settle_after has a locator or a delay_ms, and not both.")
    elif "locator" in given and not isinstance(given["locator"], dict):
        yield finding(pointer, "The locator of settle_after is an object.")
    elif "delay_ms" in given and not is_waiting:
        yield finding(pointer, "delay_ms is a number above 0.")


@check("actions-primitive", ERROR, "workflow", hint="Name a primitive of the dictionary: pointer.click, text.insert.")
def unknown_primitives(document: JsonObject) -> Iterator[Finding]:
    """The primitives of steps are known; between attempts only those that do not change the page."""
    if all(str(step.get("primitive")) in PRIMITIVES and "after_each" not in step for step in _steps(document)):
        return
    yield from _unknown(document, PRIMITIVES, "The primitive", f"{_STEPS}/primitive")
    for pointer, after in objects(document, f"{_STEPS}/after_each"):
        primitive = after.get("primitive")
        is_allowed = isinstance(primitive, str) and primitive in rules.AFTER_EACH
        if after.keys() - {"primitive", "args"} or not is_allowed:
            allowed = ", ".join(sorted(rules.AFTER_EACH))
            yield finding(pointer, f"after_each has a primitive and args; the primitive is {allowed}.")


@check("actions-arguments", ERROR, "workflow", hint="Correct the argument.")
def bad_arguments(document: JsonObject) -> Iterator[Finding]:
    """The arguments of primitives are those that the dictionary knows, as far as no expression stands for them."""
    if all(_has_arguments(step) and "after_each" not in step for step in _steps(document)):
        return
    for pattern in (_STEPS, f"{_STEPS}/after_each"):
        for pointer, step in objects(document, pattern):
            primitive, given = step.get("primitive"), step.get("args", {})
            if not isinstance(primitive, str) or primitive not in PRIMITIVES or not isinstance(given, dict):
                continue
            schema = arguments_of(primitive)
            properties = members(schema["properties"])
            for name in given.keys() - properties.keys():
                yield finding(child(f"{pointer}/args", name), f"{primitive} has no argument {shown(name)}.")
            for _, name in strings(schema, "/required/[]"):
                if name not in given:
                    place = child(f"{pointer}/args", name) if "args" in step else f"{pointer}/args"
                    yield finding(place, f"{primitive} needs the argument {shown(name)}.")
                    if "args" not in step:
                        break
            for name in given.keys() & properties.keys():
                if not has_slots(given[name]):
                    for wrong in _arguments(primitive).violations({name: given[name]}):
                        if wrong.keyword != "required" and wrong.pointer:
                            message = wrong.message or f"{shown(wrong.value)} is not allowed here."
                            yield finding(f"{pointer}/args{wrong.pointer}", message)


def _has_arguments(step: Step) -> bool:
    """Return True if a step's arguments are known to be correct, as those of most steps are."""
    primitive, given = step.get("primitive"), step.get("args", {})
    if not isinstance(given, dict) or not isinstance(primitive, str) or primitive not in PRIMITIVES:
        return False
    known = _argument_names.get(primitive)
    if known is None:
        schema = arguments_of(primitive)
        needed = schema["required"]
        assert isinstance(needed, list)
        known = _argument_names[primitive] = (frozenset(members(schema["properties"])), frozenset(needed))
    names = given.keys()
    if not (known[1] <= names <= known[0]):
        return False
    plain = {name: value for name, value in given.items() if not (isinstance(value, str) and "{%" in value)}
    return not plain or _arguments(primitive, frozenset(known[1] - plain.keys())).is_valid(plain)


_argument_names: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {}
_argument_schemas: Final[dict[tuple[str, frozenset[str]], DocumentSchema]] = {}


def _arguments(primitive: str, filled: frozenset[str] = frozenset()) -> DocumentSchema:
    """Return the schema of a primitive's arguments, not requiring those that an expression fills."""
    key = (primitive, filled)
    if key not in _argument_schemas:

        def load() -> Schema:
            schema = arguments_of(primitive)
            needed = schema["required"]
            return {**schema, "required": [name for name in needed if name not in filled]}  # type: ignore[attr-defined]

        _argument_schemas[key] = DocumentSchema(load)
    return _argument_schemas[key]


@check("actions-expression", ERROR, "workflow", hint="Write one JSONata expression: {% input.title %}.")
def bad_expressions(document: JsonObject) -> Iterator[Finding]:
    """Expressions fill their text, compile, and call nothing that is forbidden."""
    texts = _slots(document)
    for _, text, _ in _expressions_of_projections(document):
        texts.add(text if "{%" in text or "%}" in text else f"{{% {text} %}}")
    if all(map(_is_sound, texts)):
        return
    for pointer, text, is_bare in _expressions(document):
        try:
            expression = expression_of(text)
            if expression is None and is_bare:
                expression = text
            if expression is not None and has_engine():
                check_expression(expression)
        except ExpressionError as error:
            yield finding(pointer, f"{error.code}: {error.message}")


def _slots(document: JsonObject) -> set[str]:
    """Return the distinct texts of workflows that contain a slot, or a broken one."""
    found: set[str] = set()
    for _, workflow in objects(document, _WORKFLOWS):
        steps = workflow.get("steps")
        waiting: list[object] = [workflow.get("output")]
        for step in steps if isinstance(steps, list) else ():
            if isinstance(step, dict):
                waiting += [step[name] for name in _EVALUATED if name in step]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                if "{%" in value or "%}" in value:
                    found.add(value)
            elif isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
    return found


_EVALUATED: Final = ("args", "when", "for_each", "retry_until", "after_each")


@lru_cache(maxsize=2048)
def _is_sound(text: str) -> bool:
    try:
        expression = expression_of(text)
        if expression is not None and has_engine():
            check_expression(expression)
    except ExpressionError:
        return False
    return True


def _expressions(document: JsonObject) -> Iterator[tuple[str, str, bool]]:
    """Yield pointer and text of possible slots, and whether the text may be a bare expression without braces."""
    for pattern in (f"{_STEPS}/args|when|for_each|retry_until|after_each", f"{_WORKFLOWS}/output"):
        for pointer, value in select(document, pattern):
            for inner, text in everything(value):
                if isinstance(text, str):
                    yield pointer + inner, text, False
    yield from _expressions_of_projections(document)


def _expressions_of_projections(document: JsonObject) -> Iterator[tuple[str, str, bool]]:
    for pattern in (
        "/state_projections/[]/snapshot/projection/expression",
        "/state_projections/[]/summaries/[]/expression",
        "/state_projections/[]/postconditions/{}/verify/expression",
    ):
        for pointer, text in strings(document, pattern):
            yield pointer, text, True
    for pointer, text in strings(document, "/state_projections/[]/markers"):
        yield pointer, text, True


@check("actions-no-engine", WARNING, "workflow", hint='Install one: pip install "awp-publish[actions]".')
def unread_expressions(document: JsonObject) -> Iterator[Finding]:
    """An engine for JSONata is installed, so that expressions can be checked."""
    if not has_engine() and next(_expressions(document), None) is not None:
        yield finding("", "The expressions of the map were not compiled, because no engine for JSONata is installed.")


@check("actions-step-id", WARNING, "workflow", hint="Use _ instead: steps.find-it is a subtraction in JSONata.")
def subtracting_ids(document: JsonObject) -> Iterator[Finding]:
    """Ids of steps can be written in expressions."""
    if not any("-" in str(step.get("id")) for step in _steps(document)):
        return
    for pointer, identifier in strings(document, f"{_STEPS}/id"):
        if "-" in identifier:
            yield finding(pointer, f"The id {shown(identifier)} needs backticks in expressions.")


@check("actions-after-each", WARNING, "workflow", hint="Add retry_until, or leave it out.")
def idle_after_each(document: JsonObject) -> Iterator[Finding]:
    """A recovery, which runs between attempts, stands in a step that has attempts."""
    if not any("after_each" in step for step in _steps(document)):
        return
    for pointer, step in objects(document, _STEPS):
        if "after_each" in step and "retry_until" not in step:
            yield finding(f"{pointer}/after_each", "max_attempts has no effect without retry_until.")


# --- Projections ---


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
    for pointer, name, field in _fields(document):
        said = field.get("property")
        if isinstance(said, str) and said not in rules.FIELD_PROPERTIES:
            yield finding(f"{pointer}/property", f"The property {shown(said)} is not known.")
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            yield finding(pointer, f"The name {shown(name)} needs backticks in expressions.")


# --- Maps that are older than version 1 ---


def check_map(reading: ParsedDocument, path: str = "", *, lenient: bool = False) -> list[Finding]:
    """Check a parsed map. Parse warnings become errors, because a map must mean the same to all readers."""
    findings, document = [replace(one, level=ERROR) for one in reading.findings], reading.document
    if document is not None:
        findings += ANY_DOCUMENT.judge(document)
        findings += ACTIONS_JSON.judge(document)
        if reading.size > rules.MAX_MAP_BYTES:  # white space counts, too
            findings.append(too_large.complete(finding("", f"The map has {reading.size} bytes.")))
    findings = in_order(findings, document, path)
    if not lenient or document is None:
        return findings
    read = {(one.check, one.pointer) for one in forgiven(document, findings)}
    grave = [one for one in findings if one.level == ERROR and (one.check, one.pointer) not in read]
    unusable = {match[0]: one for one in reversed(grave) if (match := _TOOL.match(one.pointer))}
    mild = [replace(one, level=WARNING) if one not in grave or _TOOL.match(one.pointer) else one for one in findings]
    left_out = [unusable_tool.complete(finding(pointer, one.message)) for pointer, one in unusable.items()]
    mild += in_order(left_out, document, path)
    return sorted(mild, key=lambda one: LEVELS.index(one.level))


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
    left_out = {one.pointer for one in findings if one.check == unusable_tool.id}
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
    named = strings(document, "/tools/[]/name")
    carried_out = {place.rpartition("/")[0] for place, name in named if name in PRIMITIVES}
    static = select(document, "/tools/[]/x_actions/static_output")
    carried_out |= {place.removesuffix("/x_actions/static_output") for place, _ in static}
    mild = ("actions-input-schema", "actions-arguments", "actions-primitive")
    for found in findings:
        there = part_at(document, found.pointer)
        selectors = there if isinstance(there, list) else [there]
        if (
            (found.check == "actions-version" and is_named)
            or (found.check in mild and not found.pointer.endswith("/after_each"))
            or (found.check == "actions-selector" and all(isinstance(one, str) for one in selectors))
            or (found.check == "actions-expression" and len(str(there)) > MAX_EXPRESSION_CHARACTERS)
            or (found.check == "actions-executable" and found.pointer in carried_out)
            or (found.check == "actions-type" and found.pointer in _SECTIONS)
        ):
            yield found


_SECTIONS: Final = frozenset(
    f"/{name}"
    for name in (
        *("imports", "context", "states", "transitions", "signals", "attachments", "checks", "state_projections"),
        *("surface", "provenance", "composition"),
    )
)
