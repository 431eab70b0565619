"""Whatever JSON a document holds: checking it raises nothing and points at places that make sense."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings, strategies as some

from awp_publish.checks import all_checks, check_document, check_documents
from awp_publish.checks.places import exists
from awp_publish.checks.text import everything
from tests.examples import examples
from tests.steps import LINEAR, steps_of

from .documents import KINDS, PATHS, Document, edited

SCALARS = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(),
    some.floats(),
    some.text(max_size=12),
    some.sampled_from(["", "a[b]", "enum[", "{agent_id}", "https://[", "//", "1m", "#/$defs/x", "GET", "L2", "\ud800"]),
)
NAMES = some.one_of(
    some.text(max_size=6),
    some.sampled_from(
        [*{name: None for document in KINDS.values() for name in document}, "id", "name", "inputs", "parameters"]
    ),
    some.sampled_from(["type", "$ref", "properties", "required", "via", "rest", "a/b~c", "selector", "method"]),
)
VALUES = some.recursive(
    SCALARS,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = some.dictionaries(NAMES, VALUES, max_size=6)
SLOW = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def assert_pointers_make_sense(document: object, pointers: list[str]) -> None:
    for pointer in pointers:
        owner = pointer.rpartition("/")[0]
        assert exists(document, pointer) or exists(document, owner), pointer


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@SLOW
@given(document=OBJECTS)
def test_no_object_makes_a_check_raise(kind: str, document: Document) -> None:
    findings = check_document(document, kind)
    assert_pointers_make_sense(document, [finding.pointer for finding in findings])
    assert all(str(finding) for finding in findings)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@SLOW
@given(data=some.data())
def test_no_value_at_any_place_of_a_valid_document_makes_a_check_raise(kind: str, data: some.DataObject) -> None:
    places = [pointer for pointer, _ in everything(KINDS[kind]) if pointer]
    edits = data.draw(some.dictionaries(some.sampled_from(places), VALUES, min_size=1, max_size=1))
    document = edited(KINDS[kind], edits)
    findings = check_document(document, kind)
    assert_pointers_make_sense(document, [finding.pointer for finding in findings])


@SLOW
@given(document=OBJECTS, index=some.integers(0, len(all_checks()) - 1))
def test_every_check_can_be_called_by_itself(document: Document, index: int) -> None:
    check = all_checks()[index]
    assert {finding.check for finding in check(document)} <= {check.id}


@SLOW
@given(data=some.binary(max_size=40) | some.text(max_size=40) | VALUES.map(json.dumps))
def test_no_text_makes_reading_raise(data: bytes | str) -> None:
    check_document(data)
    check_document(data, "awas", "/agent.json")


@SLOW
@given(documents=some.dictionaries(some.sampled_from([*PATHS.values(), "/other.json"]), OBJECTS, max_size=4))
def test_no_set_of_documents_makes_a_check_raise(documents: dict[str, Document]) -> None:
    for finding in check_documents({path: json.dumps(value).encode() for path, value in documents.items()}):
        assert finding.document in documents


@pytest.mark.parametrize("depth", [50, 190, 1000, 50_000])
def test_deep_nesting_neither_raises_nor_takes_the_process_down(depth: int) -> None:
    schema: dict[str, object] = {}
    for _ in range(depth):
        schema = {"not": schema}
    document = edited(KINDS["woa"], {"/agents/0/outputs": {}})
    document["agents"][0]["outputs"] = schema  # type: ignore[index]
    found = {finding.check for finding in check_document(document, "woa")}
    assert found == ({"json-depth"} if depth > 200 else set())
    for check in all_checks():
        list(check(document))


def test_a_schema_that_is_wrong_deep_inside_is_a_finding() -> None:
    schema: dict[str, object] = {"type": "objekt"}
    for _ in range(180):
        schema = {"not": schema}
    document = edited(KINDS["woa"], {"/agents/0/outputs": {}})
    document["agents"][0]["outputs"] = schema  # type: ignore[index]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # Python's own, whatever another package of this process has made of it
    try:
        found = [(finding.check, finding.pointer) for finding in check_document(document, "woa")]
    finally:
        sys.setrecursionlimit(limit)
    assert found == [("woa-schema", "/agents/0/outputs")]


def test_mappings_of_any_kind_are_checked_as_objects() -> None:
    agents = KINDS["woa"]["agents"]
    assert isinstance(agents, list)
    document = MappingProxyType({**KINDS["woa"], "agents": tuple(MappingProxyType(agent) for agent in agents)})
    assert check_document(document, "woa") == []


def chain(length: int) -> bytes:
    needs = {f"a{i}": [f"a{i + 1}", "a0"] for i in range(length)}
    return json.dumps({**KINDS["agent-json"], "dependencies": needs}).encode()


def repeated_members(length: int) -> bytes:
    return ("{" + ",".join(f'"x{i}": 1' for i in range(length)) + ', "x0": 1}').encode()


def badly_named_protocols(length: int) -> bytes:
    return json.dumps({**KINDS["agent-json"], "protocols": {f"A_{i}": 5 for i in range(length)}}).encode()


def references_by_anchor(length: int) -> bytes:
    schema = {"$defs": {f"d{i}": {"$anchor": f"a{i}", "allOf": [{"$ref": f"#a{i}"}]} for i in range(length)}}
    return json.dumps(edited(KINDS["woa"], {"/agents/0/outputs": schema})).encode()


@pytest.mark.slow
@pytest.mark.parametrize("make", [chain, repeated_members, badly_named_protocols, references_by_anchor])
def test_four_times_as_much_is_checked_in_about_four_times_as_many_steps(make: Callable[[int], bytes]) -> None:
    check_document(make(1))
    few, many = (steps_of(partial(check_document, make(length))) for length in (200, 800))
    assert many < LINEAR * few
