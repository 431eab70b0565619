"""Routes of a FastAPI application, with the operations that its own OpenAPI document describes.

Since FastAPI 0.137 `app.routes` is no longer flat, and `iter_route_contexts` is the public way to see included routers.
Schemas come from `app.openapi()`, which FastAPI builds once and keeps. A route that is missing there (hidden, dropped
by the site's own `openapi`, or because another route breaks the whole document) is described alone.
"""

import copy
import dataclasses
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, TypeAlias, cast, get_args, get_origin, get_type_hints

import fastapi.routing
from awp_publish_openapi.closing import close_like, drops_unknown, write_readable
from awp_publish_openapi.components import Components
from awp_publish_openapi.operations import read_operation
from fastapi import FastAPI, params
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from fastapi.security.base import SecurityBase
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from awp_publish.declare.discover.credentials import without_credentials
from awp_publish.declare.discover.declared import reads_query
from awp_publish.declare.discover.handlers import answers_json
from awp_publish.declare.discover.routes import Operation, Route, methods_of
from awp_publish.declare.discover.starlette import Walk, walk_routes
from awp_publish.model import Arrival, JsonObject, OpenApi, with_addresses
from awp_publish.schema import UnusableSchema, reason_of, write_schema
from awp_publish.schema.handlers import layers_of
from awp_publish.schema.parts import as_object
from awp_publish_fastapi.callers import credential_headers, is_secret_header, needs_caller, reads_caller
from awp_publish_fastapi.hidden_route import HiddenRoute

DescribedRoute: TypeAlias = "fastapi.routing.RouteContext | APIRoute"
"""An API route within the routers that include it, or by itself."""

_RESPONSE_MODEL_FILTERS: Final = ("exclude", "exclude_unset", "exclude_defaults", "exclude_none")


def walk_fastapi(app: FastAPI, prefix: str, walk: Walk, is_outermost: bool) -> Iterator[Route]:
    """Yield every route of a FastAPI application, including those of its routers and mounted applications."""
    document = FastApiDocument(app, prefix, is_outermost)
    for context in contexts_of(app.routes):
        if isinstance(getattr(context, "original_route", context), APIRoute):
            described = cast(DescribedRoute, context)
            path, kind = prefix + (described.path or ""), _response_class_of(described)
            yield Route(
                path,
                methods_of(described.methods),
                (described.endpoint,),
                described.operation_id or _name_of(described),
                tuple(str(getattr(tag, "value", tag)) for tag in described.tags),
                (described.name or "", described.unique_id),
                described.include_in_schema,
                functools.partial(document.describe, described),
                arrival=Arrival(path, described.endpoint),
                is_page=True if "html" in str(getattr(kind, "media_type", "")) else None,  # else its handler tells
                redirects=issubclass(kind, RedirectResponse),
                rehearse=functools.partial(_rehearse, app, described),
                is_deprecated=bool(described.deprecated),
            )
        else:
            yield from walk_routes([plain(context)], prefix, walk)


def _response_class_of(described: DescribedRoute) -> type:
    kind = getattr(described, "response_class", None)
    kind = getattr(kind, "value", kind)  # of a default that was not changed
    return kind if isinstance(kind, type) else object


def _rehearse(app: FastAPI, context: DescribedRoute, method: str) -> object:
    """Create a hidden route that only has a route's security. Returns its endpoint, None without security."""
    endpoint = cast(Callable[..., object], context.endpoint)
    *_, written = layers_of(endpoint)
    try:
        hints: dict[str, object] = get_type_hints(written, include_extras=True)
    except (NameError, TypeError, AttributeError):
        hints = {}
    parameters = [
        parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints.get(name, parameter.annotation))
        for name, parameter in inspect.signature(endpoint).parameters.items()
    ]
    return add_rehearsal(app, context.path or "", method, parameters, context.dependencies)


def add_rehearsal(
    app: FastAPI,
    path: str,
    method: str,
    parameters: Iterable[inspect.Parameter],
    dependencies: Iterable[params.Depends],
) -> object:
    supported = []
    for parameter in parameters:
        kind: Any = parameter.annotation
        annotated, beside = (get_args(kind)[0], get_args(kind)[1:]) if get_origin(kind) is Annotated else (kind, ())
        # A dependency is named by its mark, or is the class that the parameter is annotated with.
        mark = next((mark for mark in (parameter.default, *beside) if isinstance(mark, params.Depends)), None)
        if mark is not None and _is_security(cast(Callable[..., object], mark.dependency or annotated), path):
            supported.append(parameter)
    around = [
        dependency
        for dependency in dependencies
        if dependency.dependency is not None and _is_security(dependency.dependency, path)
    ]
    if not supported and not around:
        return None

    async def rehearsed(**resolved: Any) -> None:
        """Do nothing: the dependencies have already run."""

    rehearsed.__signature__ = inspect.Signature(supported)  # type: ignore[attr-defined]
    try:
        route = APIRoute(
            path,
            rehearsed,
            methods=[method],
            response_model=None,
            dependencies=around,
            dependency_overrides_provider=app,
        )
    except Exception:  # the route itself is asked instead
        return None
    app.router.routes.insert(0, HiddenRoute(route))
    return rehearsed


def _is_security(dependency: Callable[..., object], path: str) -> bool:
    """Return True if a dependency, or one of its own dependencies, reads credentials."""
    try:
        flat = list(_flat(get_dependant(path=path, call=dependency)))
    except Exception:  # FastAPI raises the same for the route itself
        return False
    return any(
        isinstance(inner, SecurityBase) for inner in (dependency, *(dependant.call for dependant in flat))
    ) or any(reads_caller(inner) or next(credential_headers(inner), "") for inner in flat)


def openapi_of(app: FastAPI) -> OpenApi | None:
    """Return where the application serves its OpenAPI document, None if it does not."""
    return OpenApi(app.openapi_url, app.openapi_version) if app.openapi_url else None


def in_order(app: FastAPI) -> Iterator[tuple[Any, BaseRoute]]:
    """Yield pairs of a route's matcher and the route, in the order in which they are tried."""
    return ((context, plain(context)) for context in contexts_of(app.routes))


def contexts_of(routes: list[BaseRoute]) -> Iterable[object]:
    """Return the routes in the order in which they are tried, including those of included routers."""
    find = getattr(fastapi.routing, "iter_route_contexts", None)
    return routes if find is None else find(routes)


def plain(context: object) -> BaseRoute:
    """Return a route that is not FastAPI's own, with the prefix of its router."""
    route = getattr(context, "_effective_route", context)
    return cast(BaseRoute, route if isinstance(route, BaseRoute) else getattr(context, "original_route", context))


class FastApiDocument:
    """One application's OpenAPI document, built when it is first needed."""

    def __init__(self, app: FastAPI, prefix: str, is_outermost: bool) -> None:
        self._app = app
        self._prefix = prefix
        self._is_outermost = is_outermost
        self._whole: tuple[JsonObject, Components] | None = None
        self._models: dict[int, tuple[object, tuple[JsonObject, ...]]] = {}  # by identity: annotations may have no hash

    def describe(self, context: DescribedRoute, method: str) -> Operation:
        """Return the operation of one method of a route. Raises UnusableSchema if FastAPI cannot describe it."""
        if self._whole is None:
            try:
                whole = as_object(self._app.openapi())
            except Exception:  # one broken route is enough, even if it is not declared
                whole = {}
            self._whole = whole, Components(whole)
        document, components = self._whole
        entry = _operation(document, context, method)
        operation_id = entry.get("operationId") if self._is_outermost else None
        if not entry:
            # A route that is hidden from /docs may still be an action: it is described alone, as if it were listed.
            listed = copy.copy(context) if isinstance(context, APIRoute) else dataclasses.replace(context)
            object.__setattr__(listed, "include_in_schema", True)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # building the whole document has warned already
                    document = get_openapi(title="", version="", routes=[listed])
            except Exception as error:
                raise UnusableSchema(f"FastAPI cannot describe {context.path}: {reason_of(error)}") from error
            components, entry = Components(document), _operation(document, context, method)
        route = getattr(context, "_effective_route", context)  # attribute access on the context is slow
        body, written = route.body_field, tuple[JsonObject, ...]()
        if body is not None:
            kind, beside = body.field_info.annotation, body.field_info
            # Pydantic has already read a plain model, but not the validators and bounds beside it.
            if beside.metadata or beside.json_schema_extra:
                written = write_readable(Annotated[kind, beside])
            elif (schema := self._models.get(id(kind))) is not None:
                written = schema[1]
            else:
                written = write_readable(kind)
                self._models[id(kind)] = kind, written
        read = read_operation(
            entry,
            components,
            self._prefix + (route.path or ""),
            document.get("security"),
            drops_unknown=drops_unknown(*written),
            drops_empty=True,  # as does `_get_value` of fastapi.dependencies.utils
        )
        outputs = read.outputs  # the route may write something else than FastAPI documents
        if route.response_model is not None and not route.response_model_by_alias:
            outputs = write_schema(route.response_model, "serialization", by_alias=False)
        includes = route.response_model_include is not None  # an empty one, too
        if includes or any(getattr(route, f"response_model_{name}") for name in _RESPONSE_MODEL_FILTERS):
            outputs = _without_required(outputs)
        if includes or route.response_model_exclude:
            definitions = as_object(outputs.get("$defs"))
            outputs = _trimmed(outputs, definitions, route.response_model_include, route.response_model_exclude)
        # OpenAPI cannot express security schemes that never refuse (`auto_error=False`).
        schemes = [scheme for scheme in _dependencies(route.dependant) if isinstance(scheme, SecurityBase)]
        needs = needs_caller(route.dependant)
        refuses = needs or not schemes or any(getattr(scheme, "auto_error", True) for scheme in schemes)
        refuses = refuses or "401" in as_object(entry.get("responses"))
        # Single header parameters that are named like credentials; a model of headers is declared as a whole.
        headers = (field for dependant in _flat(route.dependant) for field in dependant.header_params)
        secret = {field.alias.lower() for field in headers if is_secret_header(field.alias.lower())}
        is_plain = type(getattr(context, "original_route", context)) is APIRoute  # others may answer as they like
        described = dataclasses.replace(
            read,
            description=(None if read.description == _OF_PARTIAL else read.description) or route.summary,
            inputs=_open_if_read(close_like(read.inputs, *written), read, route),
            outputs=outputs,
            answers_json=read.answers_json and answers_json(route.endpoint) is not False,
            operation_id=operation_id if isinstance(operation_id, str) else None,
            outputs_vary=route.response_field is None or not is_plain or _may_bypass(route.endpoint),
            schemes={name: with_addresses(scheme, self._located) for name, scheme in read.schemes.items()},
        )
        operation = without_credentials(described, of_route=secret)
        return dataclasses.replace(operation, auth_required=refuses and (operation.auth_required or needs))

    def _located(self, address: str) -> str:
        """Return an address as seen from the outermost application: `token` is relative to this one."""
        is_whole = not address or "://" in address or address.startswith("/")
        return address if is_whole else f"{self._prefix}/{address.removeprefix('./')}"


def _may_bypass(handler: object, *, follows: bool = True) -> bool:
    """Return True if a handler's code, or that of a function that it names, names a response class.

    The framework passes on what the handler puts into a response, and validates all other answers.
    """
    for layer in layers_of(handler):
        code = getattr(layer, "__code__", None)
        for name in (*code.co_names, *code.co_freevars) if code is not None else ():
            value = getattr(layer, "__globals__", {}).get(name)
            if isinstance(value, type):
                if issubclass(value, Response):
                    return True
            elif name.endswith("Response") or (
                follows and inspect.isfunction(value) and _may_bypass(value, follows=False)
            ):
                return True
    return False


def _operation(document: JsonObject, context: DescribedRoute, method: str) -> JsonObject:
    of_path = as_object(as_object(document.get("paths")).get(context.path_format or ""))
    return as_object(of_path.get(method.lower()))


def _trimmed(schema: JsonObject, definitions: JsonObject, include: object, exclude: object) -> JsonObject:
    """Return a schema without what `response_model_include` and `response_model_exclude` leave out, as in pydantic."""
    if isinstance(reference := schema.get("$ref"), str):
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**as_object(definitions.get(reference.rpartition("/")[2])), **beside}
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(parts := schema.get(key), list):
            trimmed = [_trimmed(as_object(part), definitions, include, exclude) for part in parts]
            schema = {**schema, key: trimmed}
    if isinstance(items := schema.get("items"), Mapping):
        of_all = [_selected(members, "__all__") for members in (include, exclude)]
        of_all = [None if members is True else members for members in of_all]  # whole items
        return {**schema, "items": _trimmed(items, definitions, *of_all)} if any(of_all) else schema
    if not isinstance(members := schema.get("properties"), Mapping):
        return schema
    properties: dict[str, object] = {}
    for name, member in members.items():
        left_out, selected = _selected(exclude, name), True if include is None else _selected(include, name)
        if left_out is True or selected is None:
            continue
        inner = None if selected is True else selected
        nested = left_out is not None or inner is not None
        properties[name] = _trimmed(as_object(member), definitions, inner, left_out) if nested else member
    return {**schema, "properties": properties}


def _selected(names: object, name: str) -> object:
    """Return what pydantic's include or exclude says about a member: True, a table for its members, or None."""
    if isinstance(names, Mapping):
        alias = names.get(name)
        return True if alias is ... or alias is True else alias or None
    return True if isinstance(names, (set, frozenset, list, tuple)) and name in names else None


def _without_required(schema: JsonObject) -> JsonObject:
    """Return a schema in which no member is required, because options such as `exclude_none` leave members out."""
    trimmed = {key: value for key, value in schema.items() if key != "required"}
    for key in ("$defs", "properties"):
        if isinstance(members := trimmed.get(key), dict):
            trimmed[key] = {name: _without_required(as_object(member)) for name, member in members.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(member := trimmed.get(key), dict):
            trimmed[key] = _without_required(member)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if isinstance(parts := trimmed.get(key), list):
            trimmed[key] = [_without_required(as_object(part)) for part in parts]
    return trimmed


_OF_PARTIAL: Final = inspect.cleandoc(functools.partial.__doc__ or "")
"""The docstring that FastAPI finds for an endpoint made with `functools.partial`: that of the class."""


def _name_of(described: DescribedRoute) -> str:
    """Return the name of a route: that of the function behind `functools.partial`, for which FastAPI says "partial"."""
    name = described.name or ""
    if name != "partial" or not isinstance(described.endpoint, functools.partial):
        return name
    *_, function = layers_of(described.endpoint)
    return getattr(function, "__name__", name)


def _open_if_read(inputs: JsonObject, operation: Operation, route: Any) -> JsonObject:
    """Return inputs that take further members of the query if the handler, or a dependency, reads the query itself."""
    if operation.content_type is not None or inputs.get("additionalProperties") is not False:
        return inputs
    if any(map(reads_query, (route.endpoint, *_dependencies(route.dependant)))):
        return {name: value for name, value in inputs.items() if name != "additionalProperties"}
    return inputs


def _flat(dependant: Dependant) -> Iterator[Dependant]:
    yield dependant
    for dependency in dependant.dependencies:
        yield from _flat(dependency)


def _dependencies(dependant: Dependant) -> Iterator[object]:
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from _dependencies(dependency)
