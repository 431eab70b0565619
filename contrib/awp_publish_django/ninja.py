"""django-ninja: its operations, with the schemas of its own OpenAPI document."""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from awp_publish_openapi.closing import close_like, drops_unknown, write_readable
from awp_publish_openapi.components import Components
from awp_publish_openapi.operations import read_operation
from ninja.operation import PathView
from pydantic import BaseModel

from awp_publish.declare.discover.routes import Operation
from awp_publish.model import JsonObject
from awp_publish.schema.parts import as_object


def operations_of(callback: object) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The methods and the operation of each function that ninja calls from this view."""
    path_view = getattr(callback, "__self__", None)
    if inspect.isfunction(callback):
        path_view = inspect.getclosurevars(callback).nonlocals.get("self")
    if isinstance(path_view, PathView):
        yield from ((tuple(operation.methods), operation) for operation in path_view.operations)


def describe_operation(operation: Any, method: str, path: str) -> Operation | None:
    """Return what the document says of an operation, None if it is not in there."""
    document, components = _document_of(operation.api)
    operation_id = operation.operation_id or operation.api.get_openapi_operation_id(operation)
    for of_path in as_object(document.get("paths")).values():
        entry = as_object(as_object(of_path).get(method.lower()))
        if entry.get("operationId") == operation_id:
            kinds = [field.annotation for model in operation.models for field in model.model_fields.values()]
            models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
            drops = bool(kinds) and all(drops_unknown(*write_readable(model)) for model in models)
            read = read_operation(entry, components, path, document.get("security"), drops_unknown=drops)
            return replace(read, inputs=close_like(read.inputs, *write_readable(*kinds)))
    return None


@lru_cache(maxsize=16)
def _document_of(api: Any) -> tuple[JsonObject, Components]:
    document = api.get_openapi_schema(path_prefix="")
    return document, Components(document)
