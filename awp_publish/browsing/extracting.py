"""`page.extract`: values out of a SOM document, each with the id of the element it is from (paper 5.7)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from awp_publish.browsing.elements import elements_of
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.limits import Limits
from awp_publish.browsing.patterns import compile_pattern
from awp_publish.browsing.reading import read_flag, read_number, read_text
from awp_publish.model import JsonObject

INTERACTIVE: Final = frozenset({"link", "button", "text_input", "textarea", "select", "checkbox", "radio", "details"})
_SHOWN: Final = ("id", "role", "text", "label", "actions", "attrs", "hints")
_NO_FIELDS: Final = "Missing required param: fields (object), or use structured_data:true / interactive_elements:true"

Test: TypeAlias = Callable[[JsonObject], bool]


def extract(document: JsonObject, params: Mapping[str, object], limits: Limits) -> JsonObject:
    """What is asked for: fields by queries, or the structured data, or all that can be acted upon."""
    if read_flag(params, "structured_data"):
        return {"structured_data": document.get("structured_data"), "url": document["url"]}
    elements = list(elements_of(document))
    if read_flag(params, "interactive_elements"):
        return _list_interactive(elements)
    fields = read_fields(params, limits)
    found = {name: _answer(query, elements, f"fields.{name}.", limits) for name, query in fields.items()}
    return {
        "data": {name: value for name, (value, _) in found.items()},
        "provenance": {name: source for name, (_, source) in found.items()},
    }


def read_fields(params: Mapping[str, object], limits: Limits) -> Mapping[str, JsonObject]:
    """The queries by name: the member `fields`, or `queries` as the draft has it."""
    fields = params.get("fields", params.get("queries"))
    if not isinstance(fields, Mapping):
        raise AwpError("INVALID_REQUEST", _NO_FIELDS, {"param": "fields"})
    if len(fields) > limits.fields:
        refuse(f"At most {limits.fields} fields can be extracted at once", fields=len(fields))
    for name, query in fields.items():
        if not isinstance(query, Mapping):
            refuse(f"Invalid param: fields.{name} must be an object", param=f"fields.{name}")
    return fields


def _list_interactive(elements: Sequence[JsonObject]) -> JsonObject:
    found = [{name: e.get(name) for name in _SHOWN} for e in elements if e["role"] in INTERACTIVE]
    return {"interactive_elements": found, "count": len(found)}


def _answer(query: JsonObject, elements: Sequence[JsonObject], where: str, limits: Limits) -> tuple[object, object]:
    """The value and where it is from: arrays for `all`, else of the first match; null for none."""
    inner = query.get("query")
    said = {**inner, **query} if isinstance(inner, Mapping) else query
    props = _read_props(said, where)
    test = _read_test(said, where, limits)
    matches = (element for element in elements if test(element))
    if read_flag(said, "all", where):
        found = list(matches)
        return [_value(element, props) for element in found], [element["id"] for element in found]
    first = next(matches, None)
    return (None, None) if first is None else (_value(first, props), first["id"])


def _read_test(query: JsonObject, where: str, limits: Limits) -> Test:
    """The first of ref, role and text_match that a query has says what matches; with none of them nothing does."""
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


def _read_props(query: JsonObject, where: str) -> list[str]:
    props = query.get("props")
    if props is None:
        return []
    if not isinstance(props, list) or not all(isinstance(name, str) for name in props):
        refuse(f"Invalid param: {where}props must be an array of strings", param=f"{where}props")
    return props


def _value(element: JsonObject, props: list[str]) -> object:
    """The text, or an object of those properties that the element has."""
    if not props:
        return element.get("text")
    known = {**_attributes(element), **{name: element[name] for name in ("text", "label") if name in element}}
    return {name: known[name] for name in props if name in known}


def _attributes(element: JsonObject) -> JsonObject:
    attributes = element.get("attrs")
    return attributes if isinstance(attributes, Mapping) else {}
