"""JSON Schemas of Python types, and validators of JSON Schema 2020-12 whose violations carry JSON Pointers.

Two engines have one job each: pydantic writes schemas at start-up, jsonschema-rs validates instances on the request
path. No schema is ever fetched: a `$ref` has to resolve inside the schema itself.
"""

from awp_publish.model import JsonObject as JsonObject, utc_text as utc_text
from awp_publish.problems import Violation as Violation, did_you_mean as did_you_mean
from awp_publish.schema.dialects import check_dialect as check_dialect
from awp_publish.schema.large_numbers import in_doubles as in_doubles
from awp_publish.schema.parts import (
    is_secret as is_secret,
    list_of as list_of,
    member_names as member_names,
    named_subschemas as named_subschemas,
    parts_of as parts_of,
    subschemas as subschemas,
    table_of as table_of,
)
from awp_publish.schema.pointers import pointer_to as pointer_to
from awp_publish.schema.pydantic_errors import read_errors as read_errors
from awp_publish.schema.reading import depth_exceeds as depth_exceeds
from awp_publish.schema.unusable import UnusableSchema as UnusableSchema, reason_of as reason_of
from awp_publish.schema.validation import Validator as Validator, compile_schema as compile_schema
from awp_publish.schema.writing import (
    adapt as adapt,
    inline_definitions as inline_definitions,
    object_schema_of as object_schema_of,
    schema_of as schema_of,
    write_schema as write_schema,
)
