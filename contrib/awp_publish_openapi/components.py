"""The schemas of one OpenAPI 3.1 document, made self-contained.

Each schema is copied once, however many actions use it. Recursive models stay recursive.
"""

from collections.abc import Iterable
from typing import Final

from awp_publish.model import JsonObject
from awp_publish.schema.parts import as_object

_COMPONENTS: Final = "#/components/"
_SCHEMAS: Final = "#/components/schemas/"
_DEFINITIONS: Final = "#/$defs/"

_VERBATIM: Final = frozenset({"default", "const", "enum", "example", "examples"})
"""Keywords that hold data, in which `title` or `$ref` has no special meaning."""

_BOUNDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})

_NAMED: Final = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
"""Keywords that hold schemas under arbitrary names."""


class Components:
    """The `components` of an OpenAPI document."""

    def __init__(self, document: object) -> None:
        self._components = as_object(as_object(document).get("components"))
        self._schemas = as_object(self._components.get("schemas"))
        self._local: dict[str, tuple[JsonObject, frozenset[str]]] = {}

    def follow(self, value: object) -> JsonObject:
        """Return a parameter, request body or response, resolving a reference to one."""
        reference = as_object(value).get("$ref")
        if isinstance(reference, str) and reference.startswith(_COMPONENTS):
            kind, _, name = reference.removeprefix(_COMPONENTS).partition("/")
            return as_object(as_object(self._components.get(kind)).get(name))
        return as_object(value)

    def security_scheme(self, name: str) -> JsonObject:
        """Return the security scheme of that name, {} if there is none."""
        return self.follow(as_object(self._components.get("securitySchemes")).get(name))

    def local(self, schema: object, names: set[str]) -> dict[str, object]:
        """Return a copy whose references point into `$defs`, and add the names it refers to."""
        copied = _rewrite(schema, names)
        return copied if isinstance(copied, dict) else {}

    def root(self, schema: object, names: set[str]) -> dict[str, object]:
        """Return the same, but resolve a schema that is itself a reference."""
        reference = as_object(schema).get("$ref")
        if not isinstance(reference, str) or not reference.startswith((_SCHEMAS, _DEFINITIONS)):
            return self.local(schema, names)
        target, further = self._definition(reference.removeprefix(_SCHEMAS).removeprefix(_DEFINITIONS))
        names |= further
        return {**target, **{key: value for key, value in as_object(schema).items() if key not in ("$ref", "title")}}

    def definitions(self, names: Iterable[str]) -> dict[str, object]:
        """Return the schemas of these names and all that they refer to."""
        definitions: dict[str, object] = {}
        waiting = sorted(names)
        while waiting:
            name = waiting.pop(0)
            if name not in definitions:
                definitions[name], further = self._definition(name)
                waiting += sorted(further)
        return definitions

    def _definition(self, name: str) -> tuple[JsonObject, frozenset[str]]:
        if name not in self._local:
            names: set[str] = set()
            self._local[name] = self.local(self._schemas.get(name, {}), names), frozenset(names)
        return self._local[name]


def with_definitions(schema: dict[str, object], definitions: JsonObject) -> dict[str, object]:
    return {**schema, "$defs": definitions} if definitions else schema


def _rewrite(schema: object, names: set[str]) -> object:
    """Copy a schema with local references, and without titles, which are generated from names."""
    if isinstance(schema, list):
        return [_rewrite(item, names) if isinstance(item, (dict, list)) else item for item in schema]
    if not isinstance(schema, dict):
        return schema
    copied: dict[str, object] = {}
    for key, value in schema.items():
        if isinstance(value, (dict, list)):
            if key in _NAMED and isinstance(value, dict):
                copied[key] = {name: _rewrite(member, names) for name, member in value.items()}
            elif key in _VERBATIM:
                copied[key] = value
            elif key != "discriminator":  # an OpenAPI keyword, whose mapping refers to the original document
                copied[key] = _rewrite(value, names)
        elif key == "$ref" and isinstance(value, str) and value.startswith(_SCHEMAS):
            names.add(value.removeprefix(_SCHEMAS))
            copied[key] = _DEFINITIONS + value.removeprefix(_SCHEMAS)
        elif key in _BOUNDS and isinstance(value, float) and value.is_integer():
            copied[key] = int(value)  # FastAPI keeps every bound as a float
        elif key != "title":
            copied[key] = value
    return copied
