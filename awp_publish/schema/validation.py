"""Validators of JSON Schema 2020-12."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Final

import jsonschema_rs
import orjson
from jsonschema_rs import Draft202012Validator as Engine

from awp_publish.model import JsonObject
from awp_publish.problems import Violation
from awp_publish.schema.ambiguity import Readings, branches_recursively
from awp_publish.schema.describing import Walker
from awp_publish.schema.engine import compile_engine
from awp_publish.schema.pointers import pointer_to
from awp_publish.schema.unusable import UnusableSchema, first_line

NOTHING: Final[Mapping[str, str]] = {}


def compile_schema(schema: JsonObject, asserts_formats: bool = False) -> "Validator":
    """Return a schema's validator. With `asserts_formats`, texts have to conform to `format` and `contentEncoding`.

    Raises UnusableSchema if the schema is not valid JSON Schema 2020-12 or refers to something outside of itself.
    """
    root = dict(schema)
    with contextlib.suppress(TypeError):  # numbers that are too large for orjson, for instance
        text = orjson.dumps(root)
        # Checks of our own make the engine a fifth slower, even for schemas that do not use them.
        asserts_formats = asserts_formats and any(word in text for word in _MENTIONS_FORMATS)
        # Validating against the meta-schema is enough for these, and most schemas of a site are never compiled.
        if b'"$' not in text and b'"pattern' not in text and jsonschema_rs.meta.is_valid(root):
            return Validator(root, None, asserts_formats)
    try:
        return Validator(root, compile_engine(root, asserts_formats=asserts_formats), asserts_formats)
    except jsonschema_rs.ValidationError as error:
        words = error.message.partition(" is not valid under any of the schemas listed")
        what = f"{words[0]} is not allowed here" if words[1] else error.message
        where = f"{pointer_to(error.instance_path)}: ".removeprefix(": ")
        raise UnusableSchema(f"not a valid JSON Schema 2020-12: {where}{what}") from error
    except (jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
        raise UnusableSchema(f"not a valid JSON Schema 2020-12: {first_line(error)}") from error


_MENTIONS_FORMATS: Final = (b'"format"', b'"contentEncoding"', b"json-schema.org")
"""Texts of a schema that may use formats. The meta-schema, to which a schema may refer, uses them."""


class Validator:
    """Validates instances (decoded JSON) against a schema, and describes what is wrong with invalid ones.

    The engine's verdict takes time in proportion to the instance. Its list of errors does not: it copies instances, and
    follows every alternative of every union. Violations are therefore found by a walk of our own, which has a time
    limit.
    """

    def __init__(self, schema: dict[str, object], engine: Engine | None, asserts_formats: bool = False) -> None:
        """`engine` is None for a schema without references, which is compiled when the first instance is validated."""
        self._schema = schema
        self._engine = engine
        self._asserts_formats = asserts_formats
        self._walker: Walker | None = None

        self.is_valid: Callable[[object], bool]

        def compile_and_check(instance: object) -> bool:
            self.is_valid = compile_engine(schema, asserts_formats=asserts_formats).is_valid
            return self.is_valid(instance)

        self.is_valid = compile_and_check if engine is None else engine.is_valid
        self._has_readings = engine is not None and branches_recursively(schema)
        if engine is not None and self._has_readings:
            readings = Readings(schema)
            self.is_valid = lambda instance: engine.is_valid(instance) and readings.are_few(instance)

    def __call__(self, instance: object) -> tuple[Violation, ...]:
        """Return the first MAX_VIOLATIONS of an instance, or () if it is valid."""
        return () if self.is_valid(instance) else self.describe(instance)[0]

    def describe(self, instance: object, elsewhere: Mapping[str, str] = NOTHING) -> tuple[tuple[Violation, ...], int]:
        """Return the first MAX_VIOLATIONS of an invalid instance, and the number of further ones.

        The number is too small if the time limit is reached. `elsewhere` says where members belong that are often put
        into an instance by mistake.
        """
        if self._engine is not None and self._has_readings and self._engine.is_valid(instance):
            return (Violation("", "is too deeply nested to be read unambiguously"),), 0
        if self._walker is None:
            self._walker = Walker(self._schema, self._asserts_formats)
        return self._walker.describe(instance, elsewhere)
