"""actions.json V1 for the checks: the rules that a JSON Schema can express, and the decorator of all others."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from awp_publish.checks.engine import (
    ERROR,
    Check,
    CheckFunction,
    Finding,
    JsonObject,
    Level,
    SchemaViolation,
    Specification,
    finding,
    shown,
)
from awp_publish.checks.inner_schemas import InnerSchemas
from awp_publish.checks.places import objects, strings
from awp_publish.checks.schemas import DocumentSchema, Schema
from awp_publish.maps import rules
from awp_publish.maps.older_dialects import translate
from awp_publish.plugins.actions_json.checks.places import SCHEMAS


def _object(required: Sequence[str] = (), also: str = "", **properties: object) -> dict[str, object]:
    """Return the schema of an object. `also` are further members, of which no rule names the type."""
    schemas = {name: {} for name in (*required, *also.split())} | properties
    return {"type": "object", "required": list(required), "properties": schemas}


def _by_name(members: str) -> dict[str, object]:
    """Return the schema of an object of things by name, of whose members no rule names the type."""
    return {"type": "object", "additionalProperties": {"properties": {name: {} for name in members.split()}}}


def _array(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


def _one_of(values: Iterable[str]) -> dict[str, object]:
    return {"enum": sorted(values)}


@cache
def document_schema() -> Schema:
    """Return the JSON Schema of a map: the members that V1 names, and the types of those that it gives one."""
    text, any_object, texts = {"type": "string"}, {"type": "object"}, _array({"type": "string"})
    places = f"{' '.join(rules.SELECTORS)} url_contains url_matches closest confidence notes"
    target = _object((), places, role=text, name=text, text_equals=text, text_contains=text, state=text)
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
        "description",
        method=text,
        tool=text,
        signal=text,
        rate_limit_ms={"type": "number", "minimum": 0},
        preconditions=texts,
        reveals=texts,
        do_not_use=texts,
        convergence=_object((), "complete_when max_attempts"),
    )
    signal = _object(
        ["name"],
        "description protocol",
        direction=text,
        ingestion=_one_of(rules.INGESTION),
        event=text,
        target=target,
        payload=any_object,
        source=any_object,
    )
    attachment = _object(
        ["id", "target", "lifecycle"],
        "description signals source",
        kind=text,
        target={**target, "minProperties": 1},
        affordance=_object((), "label placement max_instances opens"),
        lifecycle={**_object((), "install remove reattach drift"), "minProperties": 1},
    )
    check = _object(
        ["id"],
        "description target tool state attachment expected_result source",
        severity=_one_of(rules.SEVERITIES),
        assertions=_array(_object((), "visible enabled count text_equals text_contains", target=any_object)),
        setup=_array(any_object),
        steps=_array(any_object),
        on_fail=_object((), "store_evidence alternate_selectors contingency"),
    )
    field = "selector closest attribute property trim required many fields"
    extract = _object(["id"], "selector", many={"type": "boolean"}, fields=_by_name(field))
    snapshot = _object(
        version={"const": 1},
        source={"const": "dom"},
        extract=_array(extract),
        projection=_object(["language", "expression"], language={"const": "jsonata"}, expression=text),
        output_schema=any_object,
    )
    projection = _object(
        ["name", "snapshot"],
        "markers purpose",
        description=text,
        scope=_object((), "url_contains url_matches"),
        snapshot=snapshot,
        summaries=_array(_object(["name", "expression"], max_bytes={"type": "number", "minimum": 1}, expression=text)),
        postconditions=_by_name("projection verify failure_message"),
    )
    entry = _object(
        ["id", "kind", "uri"],
        "namespace",
        kind=_one_of(rules.IMPORT_KINDS),
        uri=text,
        trust=_one_of(rules.TRUST),
        enabled={"type": "boolean"},
        provenance=any_object,
    )
    when = _object((), "states targets tasks url_contains url_matches")
    diagnostic = _object(["name"], "description", target=target)
    return _object(
        ["tools"],
        tools=_array(tool),
        surface=any_object,
        imports=_array(entry),
        composition=_object(default_conflict_policy=text, namespace_required={"type": "boolean"}),
        context=_array(_object(["id"], "title body source", load_when=when, available_tools=texts, next_states=texts)),
        states=_array(_object(["name"], "description observables source", diagnostics=_array(diagnostic))),
        transitions=_array(transition),
        signals=_array(signal),
        attachments=_array(attachment),
        checks=_array(check),
        state_projections=_array(projection),
        provenance=any_object,
    )


_document: Final = DocumentSchema(document_schema)
_schemas: Final = InnerSchemas(*SCHEMAS, read=translate)


def violations(document: JsonObject) -> Iterator[SchemaViolation]:
    """Find violations of the rules that a JSON Schema can express, and mistakes in the schemas inside a map."""
    yield from _document.violations(document)
    yield from _schemas.violations(document)


SPECIFICATION: Final = Specification(
    "actions-json",
    "actions.json V1",
    paths=("/.well-known/actions.json", "/actions.json"),
    marks=lambda document: document.get("protocol") == rules.PROTOCOL,
    resembles=lambda document: any(
        "workflow" in tool or "x_actions" in tool or "input_schema" in tool
        for _, tool in objects(document, "/tools/[]")
    ),
    violations=violations,
)
row = SPECIFICATION.row


def check(
    code: str, level: Level, section: str, *, hint: str, decisive: bool = False
) -> Callable[[CheckFunction], Check]:
    """Register the decorated function as a check of maps; `section` is a heading of V1, which has no numbers."""
    return SPECIFICATION.check(code, level, f"actions.json V1, {section}", hint=hint, decisive=decisive)


def schema_row(code: str, section: str, about: str, *, hint: str, violation: str) -> None:
    row(code, ERROR, f"actions.json V1, {section}", about, hint=hint, violation=violation)


def unknown_words(document: JsonObject, allowed: Container[str], what: str, *places: str) -> Iterator[Finding]:
    """Find texts that are not among the known words."""
    for pointer, word in strings(document, *places):
        if word not in allowed:
            yield finding(pointer, f"{what} {shown(word)} is not known.")
