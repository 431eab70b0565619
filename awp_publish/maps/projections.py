"""State projections: the state of a page, its summaries and changes, and postconditions (V1, state_projections)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import orjson

from awp_publish.browsing.json_patch import make_patch
from awp_publish.maps import reading, rules
from awp_publish.maps.engine import ExpressionError
from awp_publish.maps.expressions import MAX_DOCUMENT_BYTES, UNDEFINED, evaluate, expression_of
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.schema import JsonObject, Validator, depth_exceeds, utc_text
from awp_publish.schema.pointers import tokens

PROJECTION_CODES: Final[Mapping[str, str]] = {
    "state_projection_not_found": "no projection of that name applies to this address",
    "invalid_state_projection": "the snapshot is not one of version 1",
    "state_document_unavailable": "no page is loaded",
    "state_projection_failed": "the page could not be read, or the expression failed",
    "state_schema_validation_failed": "the state does not match `output_schema`: `errors`",
    "state_payload_too_large": "the state or the summary is larger than allowed: `available_summaries`",
    "state_summary_not_found": "the projection has no summary of the name",
    "state_summary_failed": "the expression of the summary failed",
    "invalid_state_markers": "the markers are invalid",
    "state_markers_failed": "the expression of the markers failed",
    "invalid_state_postcondition": "the postcondition has no expression",
    "state_postcondition_failed": "the postcondition does not hold after the tool",
    "expression_output_too_large": "markers have more than 32,000 bytes",
}
"""Codes of projections, in the evidence of a failure."""
MAX_PATCHES: Final = 500
"""Operations in one patch at most; if more has changed, the whole state is returned instead."""


class ProjectionError(Exception):
    """A projection failed. `code` is one of the published runtime's: `state_projection_failed` and so on."""

    def __init__(self, code: str, message: str, **evidence: object) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message
        self.evidence: JsonObject = evidence


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One reading of a projection: the state, the records from which it was computed, and the answer about them."""

    projection: JsonObject
    state: object
    records: JsonObject
    url: str
    encoded: bytes
    answer: dict[str, object]

    @property
    def state_hash(self) -> str:
        """A hash that is the same for equal states."""
        return str(self.answer["state_hash"])


def summaries_of(projection: JsonObject) -> list[str]:
    """Return the names of a projection's summaries."""
    names = (summary.get("name") for summary in reading.objects(projection, "summaries"))
    return [name for name in names if isinstance(name, str)]


def _evaluated(text: object, document: Mapping[str, object], max_bytes: int, code: str) -> object:
    """Return the value of an expression, in a slot or bare; undefined is None. Raises ProjectionError."""
    try:
        expression = expression_of(str(text))
        value = evaluate(str(text) if expression is None else expression, document, max_bytes)
    except ExpressionError as error:
        is_specific = error.code in (
            "expression_output_too_large",
            "disallowed_expression_function",
            "invalid_expression",
        )
        raise ProjectionError(error.code if is_specific else code, error.message, expression=str(text)[:500]) from error
    return None if value is UNDEFINED else value


async def read_projection(
    page: LivePage, projection: JsonObject, validator: Validator | None, now: datetime
) -> Snapshot:
    """Read the state of a projection. Raises ProjectionError."""
    name, snapshot = projection.get("name"), reading.part(projection, "snapshot")
    how, version = reading.part(snapshot, "projection"), snapshot.get("version")
    if not (
        version == 1
        and not isinstance(version, bool)
        and snapshot.get("source") == "dom"
        and isinstance(snapshot.get("extract"), list)
        and how.get("language") == "jsonata"
        and isinstance(how.get("expression"), str)
    ):
        raise ProjectionError("invalid_state_projection", f"The snapshot of {name} is not one of version 1.")
    try:
        extracted = await page.extract(reading.objects(snapshot, "extract"))
        title = await page.title()
    except PrimitiveError as error:
        code = "state_projection_failed" if error.code != "state_document_unavailable" else error.code
        cause = {"code": error.code, "message": error.message, **error.evidence}
        raise ProjectionError(code, error.message, cause=cause) from error
    url = page.url
    document = {"records": extracted.records, "url": url, "title": title, "projection": {"name": name}}
    state = _evaluated(how["expression"], document, MAX_DOCUMENT_BYTES, "state_projection_failed")
    if depth_exceeds(state, rules.MAX_DEPTH):
        raise ProjectionError("state_projection_failed", f"The state is nested more than {rules.MAX_DEPTH} deep.")
    diagnostics = {
        "selector_counts": dict(extracted.selector_counts),
        "missing_required_fields": list(extracted.missing),
        "schema_valid": True,
        "truncated": False,
    }
    wrong = () if validator is None else validator(state)
    if wrong:
        errors = [{"path": violation.pointer, "message": violation.detail} for violation in wrong]
        first = f"{errors[0]['path']} {errors[0]['message']}".strip()
        message = f"The state of {name} does not match its schema: {first}."
        raise ProjectionError(
            "state_schema_validation_failed",
            message,
            errors=errors,
            diagnostics=diagnostics | {"schema_valid": False},
        )
    encoded = orjson.dumps(state)
    answer: dict[str, object] = {
        "ok": True,
        "projection": name,
        "state_hash": f"sha256:{hashlib.sha256(encoded).hexdigest()[:32]}",
        "observed_at": utc_text(now),
    }
    markers = projection.get("markers")
    if markers is not None:
        if isinstance(markers, str):
            context = {"records": extracted.records, "state": state, "url": url, "projection": {"name": name}}
            limit = rules.MAX_PROJECTION_EXPRESSION_BYTES
            markers = _evaluated(markers, context, limit, "state_markers_failed")
        if (fault := marker_fault(markers)) is not None:
            raise ProjectionError("invalid_state_markers", fault)
        answer["markers"] = markers
    answer["diagnostics"] = diagnostics
    return Snapshot(projection, state, extracted.records, url, encoded, answer)


def marker_fault(markers: object) -> str | None:
    """Return why markers are invalid, or None if they are valid."""
    if not isinstance(markers, list):
        return "Markers must be an array."
    names: set[str] = set()
    for marker in markers:
        name = marker.get("id") if isinstance(marker, Mapping) else None
        if not isinstance(marker, Mapping) or not isinstance(name, str) or not name:
            return "A marker must be an object with an id."
        if name in names:
            return f"The id {name!r} is that of two markers."
        names.add(name)
        if marker.get("type") not in ("cursor", "pointer"):
            return f"The type of the marker {name!r} must be cursor or pointer."
        recipe = marker.get("recipe")
        if not isinstance(recipe, list) or not recipe:
            return f"The marker {name!r} has no recipe."
        for step in recipe:
            if not isinstance(step, Mapping) or step.get("primitive") not in rules.RECIPE:
                return f"A step in the recipe of {name!r} has a primitive that is not allowed there."
            if not isinstance(step.get("args", {}), Mapping):
                return f"The args of a step in the recipe of {name!r} must be an object."
    return None


def full_answer(snapshot: Snapshot, max_bytes: int | None) -> JsonObject:
    """Return a whole state. Raises ProjectionError `state_payload_too_large`."""
    limit = rules.MAX_STATE_BYTES if max_bytes is None else min(max_bytes, rules.MAX_STATE_BYTES)
    _refuse_large(len(snapshot.encoded), limit, snapshot)
    return snapshot.answer | {"state": snapshot.state}


def summary_answer(snapshot: Snapshot, name: str | None, max_bytes: int | None) -> JsonObject:
    """Return a summary of a state, the first without a name. Raises ProjectionError."""
    declared = reading.objects(snapshot.projection, "summaries")
    summary = next((candidate for candidate in declared if name in (None, candidate.get("name"))), None)
    if summary is None:
        message = f"There is no summary {name!r}." if name else "The projection has no summaries."
        raise ProjectionError("state_summary_not_found", message, available_summaries=summaries_of(snapshot.projection))
    most = summary.get("max_bytes")
    limit = most if isinstance(most, (int, float)) and not isinstance(most, bool) else rules.MAX_SUMMARY_BYTES
    limit = min(int(limit), rules.MAX_PROJECTION_EXPRESSION_BYTES, *([] if max_bytes is None else [max_bytes]))
    document = {
        "state": snapshot.state,
        "records": snapshot.records,
        "url": snapshot.url,
        "projection": {"name": snapshot.projection.get("name")},
    }
    value = _evaluated(summary.get("expression"), document, MAX_DOCUMENT_BYTES, "state_summary_failed")
    _refuse_large(len(orjson.dumps(value)), limit, snapshot)
    return snapshot.answer | {"summary_name": summary.get("name"), "summary": value}


def _refuse_large(size: int, limit: int, snapshot: Snapshot) -> None:
    if size > limit:
        message = f"The answer has {size} bytes of JSON; {limit} are allowed. Read a summary, or narrow the selectors."
        available = summaries_of(snapshot.projection)
        raise ProjectionError(
            "state_payload_too_large", message, bytes=size, max_bytes=limit, available_summaries=available
        )


def diff_answer(before: Snapshot | None, after: Snapshot) -> JsonObject:
    """Return the changes between two states. Raises ProjectionError for a first state that is too large."""
    if before is None:
        return {**full_answer(after, None), "reason": "no_previous_state"}
    patches = make_patch(before.state, after.state)
    if len(patches) > MAX_PATCHES:
        return {**full_answer(after, None), "reason": "too_many_changes"}
    answer = after.answer | {
        "patch_format": "json_patch",
        "patches": patches,
        "deltas": [_delta(patch) for patch in patches],
        "previous_state_hash": before.state_hash,
    }
    _refuse_large(len(orjson.dumps(answer)), rules.MAX_STATE_BYTES * 2, after)
    return answer


def _delta(patch: Mapping[str, object]) -> JsonObject:
    """Classify a change: something was added, something was removed, or a field has another value."""
    path = str(patch["path"])
    names = tokens(path)
    if patch["op"] == "replace":
        return {"type": "field_replaced", "path": path, "field": names[-1] if names else "", "value": patch["value"]}
    numbered = next((at for at in range(len(names) - 1, -1, -1) if names[at].isdecimal()), len(names))
    kind = names[numbered - 1] if numbered else "item"
    entity: dict[str, object] = {"kind": kind[:-1] if kind.endswith("s") and len(kind) > 1 else kind}
    if patch["op"] == "remove":
        return {"type": "entity_removed", "path": path, "entity": entity}
    value = patch["value"]
    if isinstance(value, Mapping):
        title = next((value[name] for name in ("title", "name", "id") if value.get(name)), None)
        entity |= {} if title is None else {"title": title}
    return {"type": "entity_added", "path": path, "entity": entity}


def verify(postcondition: JsonObject, state: object, arguments: object) -> str | None:
    """Return why a postcondition does not hold for a state, or None if it holds. Raises ProjectionError."""
    check = reading.part(postcondition, "verify")
    if check.get("language") != "jsonata" or not isinstance(check.get("expression"), str):
        raise ProjectionError("invalid_state_postcondition", "A postcondition has a JSONata expression to verify.")
    limit = rules.MAX_PROJECTION_EXPRESSION_BYTES
    document = {"state": state, "input": arguments}
    value = _evaluated(check["expression"], document, limit, "state_postcondition_failed")
    if value:
        return None
    message = postcondition.get("failure_message")
    return message if isinstance(message, str) else "The page is not in the state that the action leads to."
