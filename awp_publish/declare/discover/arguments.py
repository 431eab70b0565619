"""The arguments of a plain function, made from an input (decoded JSON)."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, RootModel, TypeAdapter, ValidationError, create_model
from pydantic_core import to_json
from typing_extensions import is_typeddict

from awp_publish.declare.discover.signatures import Signature
from awp_publish.model import JsonObject
from awp_publish.schema import UnusableSchema, adapt, list_of, object_schema_of, reason_of, table_of

Bind: TypeAlias = Callable[[JsonObject], dict[str, object]]
"""A function that turns an input into arguments by name. Raises pydantic's ValidationError."""


def bind_signature(signature: Signature) -> tuple[Bind, JsonObject]:
    """Bind inputs to a signature: a single model is the whole input, as in FastAPI; else each parameter is a member."""
    names = list(signature.parameters)
    whole = signature.types.get(names[0]) if len(names) == 1 else None
    is_required = len(names) == 1 and signature.parameters[names[0]].default is inspect.Parameter.empty
    if is_required and isinstance(whole, type) and (_fields_of(whole) or is_typeddict(whole)):
        return partial(_bind_whole, names[0], adapt(whole)), object_schema_of(whole)
    # The fields get names of our own, because pydantic restricts names (`_x`, `copy`, `model_config`) and functions do
    # not; the parameter's name becomes the alias, unless its annotation has one. The configuration goes on to typed
    # dictionaries and dataclasses, whose members keep their names: none of them has one with a space.
    fields: dict[str, Any] = {}
    renamed = {f"input {number}": name for number, name in enumerate(signature.parameters)}
    for renaming, name in renamed.items():
        if name not in signature.types:
            raise UnusableSchema(f"its parameter {name} has no annotation")
        default = signature.parameters[name].default
        fields[renaming] = (signature.types[name], ... if default is inspect.Parameter.empty else default)
    try:
        config = ConfigDict(extra="forbid", alias_generator=lambda name: renamed.get(name, name))
        model = create_model("Input", __config__=config, **fields)
    except Exception as error:  # pydantic, or a type of the site, may raise anything
        raise UnusableSchema(reason_of(error)) from error
    adapter = adapt(model)

    def bind(members: JsonObject) -> dict[str, object]:
        validated = _validated(adapter, members)
        return {name: getattr(validated, field) for field, name in renamed.items()}

    return bind, object_schema_of(model)


def _fields_of(kind: object) -> frozenset[str]:
    if isinstance(kind, type) and issubclass(kind, BaseModel) and not issubclass(kind, RootModel):
        return frozenset(kind.model_fields)
    is_dataclass = isinstance(kind, type) and dataclasses.is_dataclass(kind)
    return frozenset(field.name for field in dataclasses.fields(cast(Any, kind))) if is_dataclass else frozenset()


def _bind_whole(name: str, adapter: TypeAdapter[object], members: JsonObject) -> dict[str, object]:
    return {name: _validated(adapter, members)}


def _validated(adapter: TypeAdapter[object], members: JsonObject) -> object:
    """Validate as Python, then as JSON: from JSON, strict types accept more, such as a date written as text."""
    try:
        return adapter.validate_python(members)
    except ValidationError:
        return adapter.validate_json(to_json(members))


def bind_declared(inputs: object, signature: Signature) -> tuple[Bind, JsonObject]:
    """Bind declared inputs: as a whole to a single parameter, or their members by name."""
    schema = object_schema_of(inputs)
    # All members, and those that are always present: from the model's fields, else from the schema.
    members = certain = _fields_of(inputs)
    if not members:
        members = frozenset(table_of(schema, "properties"))
        certain = members.intersection(list_of(schema, "required"))
    names = list(signature.parameters)
    adapter = adapt(dict[str, object] if isinstance(inputs, Mapping) else inputs)
    if len(names) == 1 and names[0] not in members:
        return partial(_bind_whole, names[0], adapter), schema
    for name, parameter in signature.parameters.items():
        if name not in certain and parameter.default is parameter.empty:
            raise UnusableSchema(f"its parameter {name} has no default, and the declared inputs do not require it")
    for name in members:
        if name not in names:
            raise UnusableSchema(f"the declared inputs have {name}, which is none of its parameters")

    def bind(members: JsonObject) -> dict[str, object]:
        validated = _validated(adapter, members)
        if isinstance(validated, Mapping):
            return {name: validated[name] for name in names if name in validated}
        return {name: getattr(validated, name) for name in names if hasattr(validated, name)}

    return bind, schema
