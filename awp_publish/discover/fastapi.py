"""Routes of a FastAPI application, with the operations its own OpenAPI document describes.

FastAPI 0.137 stopped flattening `app.routes`; `iter_route_contexts` is its public way to see included routers. Schemas
come from `app.openapi()`, which FastAPI builds once and keeps, so that reading them again costs little.
"""

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from starlette.routing import BaseRoute

from awp_publish.discover.openapi import Components, read_operation
from awp_publish.discover.route import Operation, Route, innermost
from awp_publish.discover.starlette import Walk, walk_routes
from awp_publish.model import JsonObject, OpenApi
from awp_publish.schema import UnusableSchema

_IMPLIED_METHODS: Final = {"HEAD", "OPTIONS"}
_TRIMS: Final = ("include", "exclude", "exclude_unset", "exclude_defaults", "exclude_none")


class _Listed(RouteContext):
    """A route as if it were in the schema: one that its owner hides from /docs may still be declared as an action."""

    include_in_schema = True


def walk_fastapi(app: FastAPI, prefix: str, walk: Walk) -> Iterator[Route]:
    """Every route of a FastAPI application, its included routers and what it mounts."""
    document = _Document(app)
    for context in iter_route_contexts(app.routes):
        if isinstance(context.original_route, APIRoute):
            yield _read_context(context, prefix, document)
        else:
            yield from walk_routes([_plain(context)], prefix, walk)


def openapi_of(app: FastAPI) -> OpenApi | None:
    """Where the application serves its OpenAPI document, None if it does not."""
    return OpenApi(app.openapi_url, app.openapi_version) if app.openapi_url else None


def _plain(context: RouteContext) -> BaseRoute:
    route = context._effective_route
    return route if isinstance(route, BaseRoute) else context.original_route


def _read_context(context: RouteContext, prefix: str, document: "_Document") -> Route:
    return Route(
        prefix + (context.path or ""),
        tuple(sorted((context.methods or set()) - _IMPLIED_METHODS)),
        (innermost(context.endpoint),),
        context.operation_id or context.name or "",
        tuple(str(getattr(tag, "value", tag)) for tag in context.tags),
        context.include_in_schema,
        functools.partial(document.describe, context),
    )


class _Document:
    """One application's OpenAPI document, made when the first declared route asks for it."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def describe(self, context: RouteContext, method: str) -> Operation:
        """The operation behind one method of a route. Raises UnusableSchema when FastAPI cannot describe it."""
        found = self._find(context, method)
        if found is None:
            raise UnusableSchema(f"FastAPI does not describe {method} {context.path}")
        operation, components = found
        read = read_operation(operation, components, context.path or "")
        return _open_trimmed(read, context)

    def _find(self, context: RouteContext, method: str) -> tuple[JsonObject, Components] | None:
        whole = self._whole
        found = None if whole is None else _operation(whole[0], context, method)
        if whole is not None and found is not None:
            return found, whole[1]
        alone = _describe_alone(context)
        found = _operation(alone, context, method)
        return None if found is None else (found, Components(alone))

    @functools.cached_property
    def _whole(self) -> tuple[JsonObject, Components] | None:
        """The application's own document; None when one broken route, perhaps not even a declared one, spoils it."""
        try:
            document = self._app.openapi()
        except Exception:
            return None
        return document, Components(document)


def _describe_alone(context: RouteContext) -> JsonObject:
    listed = _Listed(context.route, context._route_context)
    try:
        return get_openapi(title="", version="", routes=[listed])
    except Exception as error:
        raise UnusableSchema(f"FastAPI cannot describe {context.path}: {str(error).splitlines()[0]}") from error


def _operation(document: JsonObject, context: RouteContext, method: str) -> JsonObject | None:
    paths = cast(dict[str, dict[str, JsonObject]], document.get("paths", {}))
    return paths.get(context.path_format or "", {}).get(method.lower())


def _open_trimmed(operation: Operation, context: RouteContext) -> Operation:
    """`response_model_exclude_none` and its like leave members out that the documented schema requires."""
    if not any(getattr(context, f"response_model_{name}", None) for name in _TRIMS):
        return operation
    return replace(operation, outputs=_without_required(operation.outputs))


def _without_required(schema: JsonObject) -> JsonObject:
    trimmed = {key: value for key, value in schema.items() if key != "required"}
    definitions = trimmed.get("$defs")
    if isinstance(definitions, dict):
        trimmed["$defs"] = {name: _without_required(definition) for name, definition in definitions.items()}
    return trimmed
