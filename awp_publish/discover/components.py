"""The schemas of one OpenAPI 3.1 document, made to stand alone: each action carries the `$defs` that it needs.

Every schema is copied once, however many actions use it. Recursive models stay recursive.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from awp_publish.model import JsonObject

_COMPONENTS: Final = "#/components/"
_SCHEMAS: Final = "#/components/schemas/"
_DEFINITIONS: Final = "#/$defs/"
_VERBATIM: Final = frozenset({"default", "const", "enum", "example", "examples"})
"""Keywords that hold data, in which a member called `title` or `$ref` is nothing special."""

_NAMED: Final = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
"""Keywords that hold schemas under names that are not keywords."""


class Components:
    """What the `components` of an OpenAPI document hold."""

    def __init__(self, document: object) -> None:
        self._components = as_object(as_object(document).get("components"))
        self._schemas = as_object(self._components.get("schemas"))
        self._local: dict[str, tuple[JsonObject, frozenset[str]]] = {}

    def follow(self, value: object) -> JsonObject:
        """A parameter, request body or response, or what a reference to one means."""
        reference = as_object(value).get("$ref")
        if isinstance(reference, str) and reference.startswith(_COMPONENTS):
            kind, _, name = reference.removeprefix(_COMPONENTS).partition("/")
            return as_object(as_object(self._components.get(kind)).get(name))
        return as_object(value)

    def security_scheme(self, name: str) -> JsonObject:
        """The security scheme of that name, {} if there is none."""
        return self.follow(as_object(self._components.get("securitySchemes")).get(name))

    def local(self, schema: object, names: set[str]) -> dict[str, object]:
        """A copy whose references point into `$defs`. Adds the names of what it refers to."""
        copied = _rewrite(schema, names)
        return copied if isinstance(copied, dict) else {}

    def root(self, schema: object, names: set[str]) -> dict[str, object]:
        """The same; a schema that is only a reference is replaced by what it refers to, which readers look into."""
        reference = as_object(schema).get("$ref")
        if not isinstance(reference, str) or not reference.startswith((_SCHEMAS, _DEFINITIONS)):
            return self.local(schema, names)
        target, further = self._definition(reference.removeprefix(_SCHEMAS).removeprefix(_DEFINITIONS))
        names |= further
        return {**target, **{key: value for key, value in as_object(schema).items() if key not in ("$ref", "title")}}

    def definitions(self, names: Iterable[str]) -> dict[str, object]:
        """The schemas of these names and all that they refer to."""
        found: dict[str, object] = {}
        waiting = sorted(names)
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name], further = self._definition(name)
                waiting += sorted(further)
        return found

    def _definition(self, name: str) -> tuple[JsonObject, frozenset[str]]:
        if name not in self._local:
            names: set[str] = set()
            self._local[name] = self.local(self._schemas.get(name, {}), names), frozenset(names)
        return self._local[name]


def with_definitions(schema: dict[str, object], definitions: JsonObject) -> dict[str, object]:
    return {**schema, "$defs": definitions} if definitions else schema


def _rewrite(schema: object, names: set[str]) -> object:
    """Copy a schema with references made local, and without the titles that were made up from names."""
    if isinstance(schema, list):
        return [_rewrite(item, names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copied: dict[str, object] = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str) and value.startswith(_SCHEMAS):
            names.add(value.removeprefix(_SCHEMAS))
            copied[key] = _DEFINITIONS + value.removeprefix(_SCHEMAS)
        elif key in _NAMED and isinstance(value, dict):
            copied[key] = {name: _rewrite(member, names) for name, member in value.items()}
        elif not isinstance(value, (dict, list)) or key in _VERBATIM:
            if key != "title":
                copied[key] = value
        elif key != "discriminator":  # an OpenAPI keyword whose mapping points into the document we leave
            copied[key] = _rewrite(value, names)
    return copied


def as_object(value: object) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def as_objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
