"""The JSON Schemas and the checks agree: what a schema refuses has a finding."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as some
from jsonschema_rs import Draft202012Validator, meta, validator_for

from awp_publish.checks import check_document
from awp_publish.checks.text import everything

from .documents import ABSENT, KINDS, edited

SHARED = Path(__file__).parents[2] / ".." / "shared" / "fixtures"
OURS = {
    "awas": "plugins/awas/awas.schema.json",
    "agent-json": "plugins/agent_json/checks/agent-json.schema.json",
    "woa": "plugins/woa/woa.schema.json",
}
THEIRS = {"awas": "awas/ai-actions-schema.json", "agent-json": "agent-json/agent-json.schema.v0.2.json"}


ONLY_IN_1_0 = {"/name", "/description", *(f"/actions/{i}/{name}" for i in (0, 1) for name in ("description", "path"))}
"""What our schema, which is that of both versions, wants in a manifest of 1.1 too, and AWAS 1.1 does not."""

STRAY = some.sampled_from([None, True, 0, -1, 1.5, "", "x", "1.0", [], [1], {}, {"a": 1}, ABSENT])
SLOW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def schema(kind: str) -> dict[str, object]:
    text = (files("awp_publish") / OURS[kind]).read_text("utf-8")
    value = json.loads(text)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("kind", OURS)
def test_a_schema_is_one_and_leaves_its_id_to_the_server(kind: str) -> None:
    assert meta.is_valid(schema(kind))
    assert schema(kind)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "$id" not in schema(kind)


@pytest.mark.parametrize("kind", OURS)
@SLOW
@given(data=some.data())
def test_a_document_that_our_schema_refuses_has_a_finding(kind: str, data: some.DataObject) -> None:
    edits = stray_edit(kind, data)
    document = edited(KINDS[kind], edits)
    lacks_what_only_1_0_requires = ONLY_IN_1_0 & {place for place, value in edits.items() if value is ABSENT}
    if not Draft202012Validator(schema(kind)).is_valid(document) and not lacks_what_only_1_0_requires:
        assert check_document(document, kind)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published schemas are not beside the project")
@pytest.mark.parametrize("kind", THEIRS)
@SLOW
@given(data=some.data())
def test_a_document_that_the_published_schema_refuses_has_a_finding(kind: str, data: some.DataObject) -> None:
    document = edited(KINDS[kind], stray_edit(kind, data))
    published = validator_for((SHARED / THEIRS[kind]).read_text("utf-8"))
    is_awas_1_0 = kind == "awas" and "specVersion" not in document  # The published schema is that of 1.1.
    if not published.is_valid(document) and not is_awas_1_0:
        assert check_document(document, kind)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published schemas are not beside the project")
@pytest.mark.parametrize("kind", THEIRS)
def test_the_published_schema_accepts_the_valid_document(kind: str) -> None:
    assert validator_for((SHARED / THEIRS[kind]).read_text("utf-8")).is_valid(KINDS[kind])


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published schemas are not beside the project")
def test_the_published_schema_that_we_ship_is_unchanged() -> None:
    ours = files("awp_publish") / "plugins/awas/checks/awas-1.1.schema.json"
    assert ours.read_bytes() == (SHARED / THEIRS["awas"]).read_bytes()


def stray_edit(kind: str, data: some.DataObject) -> dict[str, object]:
    """Put a stray value at any place of the valid document, or take a member away."""
    members = [pointer for pointer, _ in everything(KINDS[kind]) if pointer]
    place = data.draw(some.sampled_from(members))
    value = data.draw(STRAY)
    in_array = place.rpartition("/")[2].isdecimal()
    return {place: None if value is ABSENT and in_array else value}
