"""`page.extract`: values from a SOM document, each with the id of its element (paper, 5.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from awp_publish.browsing.controls import INTERACTIVE
from awp_publish.browsing.errors import refuse
from awp_publish.browsing.parameters import read_flag, read_number, read_text
from awp_publish.browsing.patterns import compile_pattern, find_match
from awp_publish.browsing.som_elements import elements_of
from awp_publish.schema import JsonObject

if TYPE_CHECKING:
    from awp_publish.browsing.browser import SessionLimits


_SHOWN: Final = ("id", "role", "text", "label", "actions", "attrs", "hints")
_NO_FIELDS: Final = "Missing required param: fields (object), or use structured_data:true / interactive_elements:true"


def extract(document: JsonObject, params: Mapping[str, object], limits: SessionLimits) -> JsonObject:
    """Return fields by queries, or the structured data, or all interactive elements.

    A query returns an array with `all`, otherwise the first match, or null.
    """
    if read_flag(params, "structured_data"):
        return {"structured_data": document.get("structured_data"), "url": document["url"]}
    elements = list(elements_of(document))
    if read_flag(params, "interactive_elements"):
        controls = [{name: e.get(name) for name in _SHOWN} for e in elements if e["role"] in INTERACTIVE]
        return {"interactive_elements": controls, "count": len(controls)}
    fields = params.get("fields", params.get("queries"))  # `queries` is the draft's name
    if not isinstance(fields, Mapping):
        refuse(_NO_FIELDS, param="fields")
    if len(fields) > limits.fields:
        refuse(f"At most {limits.fields} fields can be extracted at once", fields=len(fields))
    for name, query in fields.items():
        if not isinstance(query, Mapping):
            refuse(f"Invalid param: fields.{name} must be an object", param=f"fields.{name}")
    data: dict[str, object] = {}
    provenance: dict[str, object] = {}
    for name, query in fields.items():
        where, inner = f"fields.{name}.", query.get("query")
        query = {**inner, **query} if isinstance(inner, Mapping) else query
        props = query.get("props")
        props = [] if props is None else props
        if not isinstance(props, list) or not all(isinstance(prop, str) for prop in props):
            refuse(f"Invalid param: {where}props must be an array of strings", param=f"{where}props")
        matches = filter(_read_test(query, where, limits), elements)
        if read_flag(query, "all", where):
            chosen = list(matches)
            data[name] = [_value(element, props, query) for element in chosen]
            provenance[name] = [element["id"] for element in chosen]
        else:
            first = next(matches, None)
            data[name] = None if first is None else _value(first, props, query)
            provenance[name] = None if first is None else first["id"]
    return {"data": data, "provenance": provenance}


def _read_test(query: JsonObject, where: str, limits: SessionLimits) -> Callable[[JsonObject], bool]:
    """Return a predicate for the first of ref, role and text_match that a query has; without any, nothing matches."""
    ref, role = read_text(query, "ref", where), read_text(query, "role", where)
    if ref is not None:
        return lambda element: element["id"] == ref
    if role is not None:
        level = read_number(query, "level", where)
        return lambda element: element["role"] == role and level in (None, _attributes(element).get("level"))
    pattern = read_text(query, "text_match", where) or read_text(query, "text_regex", where)
    matches = compile_pattern(pattern) if pattern is not None and len(pattern) <= limits.pattern_length else None
    if matches is None:
        return lambda _: False
    return lambda element: element.get("text") is not None and matches(str(element["text"]))


def _value(element: JsonObject, props: list[str], query: JsonObject) -> object:
    """Return the text (for a query by text, its match; paper 5.7), or an object of the requested properties."""
    if not props:
        text, pattern = element.get("text"), query.get("text_match") or query.get("text_regex")
        if (
            isinstance(pattern, str)
            and isinstance(text, str)
            and query.get("ref") is None
            and query.get("role") is None
        ):
            return find_match(pattern, text)
        return text
    values = {**_attributes(element), **{name: element[name] for name in ("text", "label") if name in element}}
    return {name: values[name] for name in props if name in values}


def _attributes(element: JsonObject) -> JsonObject:
    attributes = element.get("attrs")
    return attributes if isinstance(attributes, Mapping) else {}
