"""The engine that validates instances on the request path, jsonschema-rs."""

from typing import Final, NoReturn

import jsonschema_rs

from awp_publish.schema.formats import FORMATS, KEYWORDS, UNIQUE

_PATTERNS: Final = jsonschema_rs.FancyRegexOptions(backtrack_limit=1000)
"""Patterns with lookaround or back-references backtrack. One that exceeds the limit does not match."""


def compile_engine(
    schema: dict[str, object], registry: jsonschema_rs.Registry | None = None, asserts_formats: bool = False
) -> jsonschema_rs.Draft202012Validator:
    try:
        return jsonschema_rs.Draft202012Validator(
            schema,
            retriever=refuse_to_fetch,
            registry=registry,
            validate_formats=asserts_formats,
            formats=FORMATS if asserts_formats else None,
            keywords=KEYWORDS if asserts_formats else UNIQUE,
            pattern_options=_PATTERNS,
        )
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the engine panics on some schemas with nested $id
            raise
        raise ValueError(str(error)) from error


def refuse_to_fetch(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside of the schema; put the definition into $defs")
