"""The records that projections of a map read from a page in process (V1, state_projections)."""

from collections.abc import Mapping, Sequence
from typing import Final

from awp_publish.maps.element_index import SCOPE
from awp_publish.maps.live_page import MAX_FOUND, MAX_VALUES, Extraction, PrimitiveError
from awp_publish.maps.page_view import MAX_TEXT, PageView
from awp_publish.pages.tree import Node
from awp_publish.schema import JsonObject

_NOTHING: Final[JsonObject] = {}


def extract_records(view: PageView, extracts: Sequence[JsonObject]) -> Extraction:
    """Read the records. Raises PrimitiveError for selectors that cannot be used, and for too many values."""
    return _Extractor(view).extract(extracts)


class _Extractor:
    """Reads from one page; counts what its selectors match, and collects the required fields that are missing."""

    def __init__(self, view: PageView) -> None:
        self._view = view
        self._counts: dict[str, int] = {}
        self._missing: list[str] = []
        self._values_left = MAX_VALUES

    def extract(self, extracts: Sequence[JsonObject]) -> Extraction:
        records: dict[str, object] = {}
        for extract in extracts:
            record_id, css = str(extract.get("id")), extract.get("selector")
            if isinstance(css, str) and css and SCOPE not in css:
                numbers = self._view.select(css)[:MAX_FOUND]  # may match the body too
            else:
                numbers = self._matches(extract, 0)[:MAX_FOUND]
            self._counts[record_id] = len(numbers)
            values = self._read_each(extract.get("fields"), numbers, record_id)
            if values is None:
                values = [self._view.text_of(number) for number in numbers]
            records[record_id] = values if extract.get("many") is not False else values[0] if values else None
        return Extraction(records, self._counts, self._missing)

    def _matches(self, field: JsonObject, number: int) -> list[int]:
        """Return what the selector of a field matches below an element, or the element itself without one."""
        css, xpath = field.get("selector"), field.get("xpath")
        if isinstance(css, str) and css:
            return self._view.below(css, number)
        if isinstance(xpath, str) and xpath:
            message = "XPath needs a browser; write a selector."
            raise PrimitiveError("capability_unavailable", message, capability="xpath", host="in_process")
        return [number]

    def _read_each(self, fields: object, numbers: Sequence[int], path: str) -> list[object] | None:
        """Return an object of fields for each element, None if there are no fields."""
        if not isinstance(fields, Mapping):
            return None
        return [self._read_fields(fields, number, f"{path}.{at}") for at, number in enumerate(numbers)]

    def _read_fields(self, fields: JsonObject, number: int, path: str) -> JsonObject:
        return {
            name: self._read(field if isinstance(field, Mapping) else _NOTHING, number, f"{path}.{name}")
            for name, field in fields.items()
        }

    def _read(self, field: JsonObject, number: int, path: str) -> object:
        numbers = self._matches(field, number)
        self._values_left -= 1 + len(numbers)
        if self._values_left < 0:
            message = f"The records have more than {MAX_VALUES} values. Narrow the selectors."
            raise PrimitiveError("invalid_result", message)

        if field.get("many") is True:
            self._counts[path] = len(numbers)
            objects = self._read_each(field.get("fields"), numbers, path)
            if objects is not None:
                return objects
            values = [value for match in numbers if (value := self._value_at(field, match)) is not None]
            self._note_if_missing(field, values or None, path)
            return values

        target, closest = (numbers[0] if numbers else None), field.get("closest")
        if target is not None and isinstance(closest, str) and closest:
            target = self._view.closest(closest, self._view.index.places[target])
        if target is not None and isinstance(fields := field.get("fields"), Mapping):
            self._counts[path] = len(numbers)
            return self._read_fields(fields, target, f"{path}.0")
        value = None if target is None else self._value_at(field, target)
        self._note_if_missing(field, value, path)
        return field.get("default") if value is None else value

    def _note_if_missing(self, field: JsonObject, value: object, path: str) -> None:
        if value in (None, "") and field.get("required") is True:
            self._missing.append(path)

    def _value_at(self, field: JsonObject, number: int) -> object:
        value = self._raw_value(field.get("attribute"), field.get("property"), number)
        return value.strip() if isinstance(value, str) and field.get("trim") is True else value

    def _raw_value(self, attribute: object, name: object, number: int) -> object:
        node = self._view.index.node(number)
        if isinstance(attribute, str):
            return node.attributes.get(attribute.lower())
        match name:
            case None | "innerText":
                return self._view.text_of(number)
            case "textContent":
                return _text_content(node)
            case "boundingClientRect":
                box = self._view.box_of(number)
                edges = {"top": box.y, "left": box.x, "right": box.x + box.width, "bottom": box.y + box.height}
                return {**box.describe(), **edges}
            case "ariaLabel":
                return node.attributes.get("aria-label")
            case _:
                return self._view.property_of(str(name), number)


def _text_content(node: Node) -> str:
    pieces: list[str] = []
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        pieces.append(inner.text if not inner.tag else "")
        if inner.tag != "!":
            waiting.extend(reversed(inner.children))
    return "".join(pieces)[:MAX_TEXT]
