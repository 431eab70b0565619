"""Routes of a FastAPI application, with the operations its own OpenAPI document describes.

FastAPI 0.137 stopped flattening `app.routes`; `iter_route_contexts` is its public way to see included routers, and
before it every route stood in `app.routes`. Schemas come from `app.openapi()`, which FastAPI builds once and keeps. A
route that is not in there (hidden, dropped by the site's own `openapi`, or another route breaks the whole document) is
described alone.
"""

import copy
import dataclasses
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, TypeAlias, cast, get_args, get_origin, get_type_hints

import fastapi.routing
from fastapi import FastAPI, params
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from fastapi.security.base import SecurityBase
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from awp_publish.discover.functions import Described, UnusableFunction, read_signature
from awp_publish.discover.openapi import (
    JSON,
    Components,
    as_object,
    is_secret_header,
    read_operation,
    without_credentials,
)
from awp_publish.discover.routes import (
    HiddenRoute,
    Operation,
    Route,
    Walk,
    answers_json,
    layers_of,
    methods_of,
    walk_routes,
)
from awp_publish.model import Arrival, JsonObject, OpenApi, with_addresses
from awp_publish.schema import UnusableSchema, close_like, drops_unknown, reason_of, write_readable, write_schema

DescribedRoute: TypeAlias = "fastapi.routing.RouteContext | APIRoute"
"""An API route as it stands in the application: within its routers, or by itself."""

_TRIMS: Final = ("include", "exclude", "exclude_unset", "exclude_defaults", "exclude_none")


def walk_fastapi(app: FastAPI, prefix: str, walk: Walk, is_outermost: bool) -> Iterator[Route]:
    """Every route of a FastAPI application, its included routers and what it mounts."""
    document = _Document(app, prefix, is_outermost)
    for context in contexts_of(app.routes):
        if isinstance(getattr(context, "original_route", context), APIRoute):
            described = cast(DescribedRoute, context)
            path = prefix + (described.path or "")
            yield Route(
                path,
                methods_of(described.methods),
                (described.endpoint,),
                described.operation_id or described.name or "",
                tuple(str(getattr(tag, "value", tag)) for tag in described.tags),
                (described.name or "", described.unique_id),
                described.include_in_schema,
                functools.partial(document.describe, described),
                arrival=Arrival(path, described.endpoint),
                rehearse=functools.partial(_rehearse, app, described),
                is_deprecated=bool(described.deprecated),
            )
        else:
            yield from walk_routes([plain(context)], prefix, walk)


def _rehearse(app: FastAPI, context: DescribedRoute, method: str) -> object:
    """Give a route's security a hidden route of its own, which does nothing; its endpoint, None without security."""
    endpoint = cast(Callable[..., object], context.endpoint)
    *_, written = layers_of(endpoint)
    try:
        hints: dict[str, object] = get_type_hints(written, include_extras=True)
    except (NameError, TypeError, AttributeError):
        hints = {}
    parameters = [
        one.replace(kind=one.KEYWORD_ONLY, annotation=hints.get(name, one.annotation))
        for name, one in inspect.signature(endpoint).parameters.items()
    ]
    return _add_rehearsal(app, context.path or "", method, parameters, context.dependencies)


def _add_rehearsal(
    app: FastAPI,
    path: str,
    method: str,
    parameters: Iterable[inspect.Parameter],
    dependencies: Iterable[params.Depends],
) -> object:
    known = []
    for one in parameters:
        kind: Any = one.annotation
        named, beside = (get_args(kind)[0], get_args(kind)[1:]) if get_origin(kind) is Annotated else (kind, ())
        # A dependency is named by its mark, or is the class that the parameter is annotated with.
        mark = next((mark for mark in (one.default, *beside) if isinstance(mark, params.Depends)), None)
        if mark is not None and _is_security(cast(Callable[..., object], mark.dependency or named), path):
            known.append(one)
    around = [one for one in dependencies if one.dependency is not None and _is_security(one.dependency, path)]
    if not known and not around:
        return None

    async def rehearsed(**resolved: Any) -> None:
        """Do nothing: the dependencies have been asked."""

    rehearsed.__signature__ = inspect.Signature(known)  # type: ignore[attr-defined]
    try:
        route = APIRoute(
            path,
            rehearsed,
            methods=[method],
            response_model=None,
            dependencies=around,
            dependency_overrides_provider=app,
        )
    except Exception:  # the route itself is what is asked then
        return None
    app.router.routes.insert(0, HiddenRoute(route))
    return rehearsed


def _is_security(dependency: Callable[..., object], path: str) -> bool:
    """Return True if a dependency, or one of its own, looks for credentials."""
    try:
        flat = list(_flat(get_dependant(path=path, call=dependency)))
    except Exception:  # whatever FastAPI says of it, it says of the route too
        return False
    named = (field.alias.lower() for one in flat for field in one.header_params)
    return any(isinstance(one, SecurityBase) for one in (dependency, *(one.call for one in flat))) or any(
        name == "authorization" or is_secret_header(name) for name in named
    )


def openapi_of(app: FastAPI) -> OpenApi | None:
    """Return where the application serves its OpenAPI document, None if it does not."""
    return OpenApi(app.openapi_url, app.openapi_version) if app.openapi_url else None


def contexts_of(routes: list[BaseRoute]) -> Iterable[object]:
    """The routes in the order in which they are tried, those of included routers among them."""
    find = getattr(fastapi.routing, "iter_route_contexts", None)
    return routes if find is None else find(routes)


def plain(context: object) -> BaseRoute:
    """A route that is not FastAPI's own: as it stands below its router's prefix."""
    route = getattr(context, "_effective_route", context)
    return cast(BaseRoute, route if isinstance(route, BaseRoute) else getattr(context, "original_route", context))


class _Document:
    """One application's OpenAPI document, made when the first declared route asks for it."""

    def __init__(self, app: FastAPI, prefix: str, is_outermost: bool) -> None:
        self._app = app
        self._prefix = prefix
        self._is_outermost = is_outermost
        self._whole: tuple[JsonObject, Components] | None = None
        self._models: dict[int, tuple[object, tuple[JsonObject, ...]]] = {}  # by identity: annotations may have no hash

    def describe(self, context: DescribedRoute, method: str) -> Operation:
        """The operation behind one method of a route. Raises UnusableSchema when FastAPI cannot describe it."""
        if self._whole is None:
            try:
                whole = as_object(self._app.openapi())
            except Exception:  # one broken route, perhaps not even a declared one, spoils it
                whole = {}
            self._whole = whole, Components(whole)
        document, components = self._whole
        found = _operation(document, context, method)
        operation_id = found.get("operationId") if self._is_outermost else None
        if not found:
            # One that is hidden from /docs may still be an action: it is described alone, as if it were listed.
            listed = copy.copy(context) if isinstance(context, APIRoute) else dataclasses.replace(context)
            object.__setattr__(listed, "include_in_schema", True)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # about operation ids, which the whole document warns of already
                    document = get_openapi(title="", version="", routes=[listed])
            except Exception as error:
                raise UnusableSchema(f"FastAPI cannot describe {context.path}: {reason_of(error)}") from error
            components, found = Components(document), _operation(document, context, method)
        route = getattr(context, "_effective_route", context)  # behind it each attribute takes long to find
        body, written = route.body_field, tuple[JsonObject, ...]()
        if body is not None:
            kind, beside = body.field_info.annotation, body.field_info
            # A model as it stands has been read by pydantic already; validators and bounds beside it have not.
            if beside.metadata or beside.json_schema_extra:
                written = write_readable(Annotated[kind, beside])
            elif (known := self._models.get(id(kind))) is not None:
                written = known[1]
            else:
                written = write_readable(kind)
                self._models[id(kind)] = kind, written
        read = read_operation(
            found,
            components,
            self._prefix + (route.path or ""),
            document.get("security"),
            drops_unknown=drops_unknown(*written),
            drops_empty=True,  # fastapi.dependencies.utils, `_get_value`: it refuses the field, or takes the default
        )
        outputs = read.outputs  # what the route writes may differ from what FastAPI documents of it
        if route.response_model is not None and not route.response_model_by_alias:
            outputs = write_schema(route.response_model, "serialization", by_alias=False)
        if any(getattr(route, f"response_model_{name}") for name in _TRIMS):
            outputs = _without_required(outputs)
        if route.response_model_exclude or route.response_model_include is not None:
            definitions = as_object(outputs.get("$defs"))
            outputs = _trimmed(outputs, definitions, route.response_model_include, route.response_model_exclude)
        # OpenAPI has no word for security schemes that only look (`auto_error=False`).
        schemes = [scheme for scheme in _dependencies(route.dependant) if isinstance(scheme, SecurityBase)]
        refuses = not schemes or any(getattr(scheme, "auto_error", True) for scheme in schemes)
        # Single parameters that are called so: a model of headers is what somebody has declared as a whole.
        headers = (field for one in _flat(route.dependant) for field in one.header_params)
        secret = {field.alias.lower() for field in headers if is_secret_header(field.alias.lower())}
        described = dataclasses.replace(
            read,
            inputs=close_like(read.inputs, *written),
            outputs=outputs,
            answers_json=read.answers_json and answers_json(route.endpoint) is not False,
            operation_id=operation_id if isinstance(operation_id, str) else None,
            schemes={name: with_addresses(scheme, self._located) for name, scheme in read.schemes.items()},
        )
        told = without_credentials(described, of_route=secret)
        return told if refuses or not told.auth_required else dataclasses.replace(told, auth_required=False)

    def _located(self, address: str) -> str:
        """An address as the outermost application has it: `token` is read below its own."""
        is_whole = not address or "://" in address or address.startswith("/")
        return address if is_whole else f"{self._prefix}/{address.removeprefix('./')}"


def _operation(document: JsonObject, context: DescribedRoute, method: str) -> JsonObject:
    of_path = as_object(as_object(document.get("paths")).get(context.path_format or ""))
    return as_object(of_path.get(method.lower()))


def _trimmed(schema: JsonObject, definitions: JsonObject, include: object, exclude: object) -> JsonObject:
    """A schema without what `response_model_include` and `response_model_exclude` take out (pydantic's own terms)."""
    if isinstance(reference := schema.get("$ref"), str):
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**as_object(definitions.get(reference.rpartition("/")[2])), **beside}
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(parts := schema.get(key), list):
            trimmed = [_trimmed(as_object(part), definitions, include, exclude) for part in parts]
            schema = {**schema, key: trimmed}
    if isinstance(items := schema.get("items"), Mapping):
        of_all = [one.get("__all__") if isinstance(one, Mapping) else None for one in (include, exclude)]
        return {**schema, "items": _trimmed(items, definitions, *of_all)} if any(of_all) else schema
    if not isinstance(members := schema.get("properties"), Mapping):
        return schema
    kept: dict[str, object] = {}
    for name, member in members.items():
        left_out, wanted = _told(exclude, name), True if include is None else _told(include, name)
        if left_out is True or wanted is None:
            continue
        inner = None if wanted is True else wanted
        nested = left_out is not None or inner is not None
        kept[name] = _trimmed(as_object(member), definitions, inner, left_out) if nested else member
    required = [name for name in cast(list[str], schema.get("required", [])) if name in kept]
    rest = {key: value for key, value in schema.items() if key != "required"}
    return {**rest, "properties": kept} | ({"required": required} if required else {})


def _told(names: object, name: str) -> object:
    """Return what pydantic's include or exclude says of a member: True, a table of its members, or None for nothing."""
    if isinstance(names, Mapping):
        found = names.get(name)
        return True if found is ... or found is True else found or None
    return True if isinstance(names, (set, frozenset, list, tuple)) and name in names else None


def _without_required(schema: JsonObject) -> JsonObject:
    """`response_model_exclude_none` and its like leave members out at every depth."""
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


def _flat(dependant: Dependant) -> Iterator[Dependant]:
    yield dependant
    for dependency in dependant.dependencies:
        yield from _flat(dependency)


def _dependencies(dependant: Dependant) -> Iterator[object]:
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from _dependencies(dependency)


# --- What functions without a route have from FastAPI ---


class FastApiInjector:
    """Gives functions hidden routes, so that FastAPI resolves their dependencies as it does for any route."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._document = _Document(app, "", is_outermost=False)

    @property
    def is_general(self) -> bool:
        """Return True if the application was made with `FastAPI(dependencies=[...])`."""
        return bool(self._app.router.dependencies)

    def register(self, function: Callable[..., object], described: Described, path: str) -> tuple[Operation, Arrival]:
        """Give a function a hidden route; its own inputs travel as a JSON body. Raises UnusableFunction."""
        signature = read_signature(function)
        parameters = {
            name: one.replace(kind=one.KEYWORD_ONLY, annotation=signature.types.get(name, one.annotation))
            for name, one in signature.parameters.items()
            if name in described.injected
        }
        if any(one.annotation is one.empty and one.name == "request" for one in parameters.values()):
            raise UnusableFunction("its parameter request has no annotation; write request: Request")
        own: dict[type, str] = {}
        for kind, name in ((Request, "awp_publish_request"), (Response, "awp_publish_response")):
            kinds = {name: one.annotation for name, one in parameters.items() if isinstance(one.annotation, type)}
            own[kind] = next((given for given, found in kinds.items() if issubclass(found, kind)), name)
            new = inspect.Parameter(own[kind], inspect.Parameter.KEYWORD_ONLY, annotation=kind)
            parameters.setdefault(own[kind], new)
        borrowed: set[str] = set()

        async def endpoint(**resolved: Any) -> Response:
            given, injected = await resolved[own[Request]].json(), {name: resolved[name] for name in described.injected}
            body = await described.call({name: one for name, one in given.items() if name not in borrowed}, injected)
            told: Response = resolved[own[Response]]
            answer = Response(body, told.status_code or 200, media_type="application/json")
            unsaid = (pair for pair in told.raw_headers if pair[0] not in (b"content-length", b"content-type"))
            answer.raw_headers.extend(unsaid)
            return answer

        endpoint.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
        endpoint.__name__ = getattr(function, "__name__", "function")
        try:
            route = APIRoute(
                path,
                endpoint,
                methods=["POST"],
                response_model=None,
                dependencies=self._app.router.dependencies,
                dependency_overrides_provider=self._app,
            )
            taken = self._document.describe(route, "POST")
        except Exception as error:  # whatever FastAPI says of somebody's dependency
            raise UnusableFunction(f"FastAPI cannot resolve its dependencies: {reason_of(error)}") from error
        # The function's own inputs, and beside them what its dependencies take.
        if taken.content_type not in (None, JSON) or any(one.location == "body" for one in taken.parameters):
            raise UnusableFunction("one of its dependencies reads a form or the whole body, which an input is not")
        inputs, theirs = dict(described.inputs), taken.inputs
        known, added = as_object(inputs.get("properties")), as_object(theirs.get("properties"))
        names = {
            one.name: f"{one.location}_{one.name}" if one.name in known and one.location != "json" else one.name
            for one in taken.parameters
        }
        required = [names[name] for name in cast(list[str], theirs.get("required", []))]
        inputs["properties"] = {**{names[name]: schema for name, schema in added.items()}, **known}
        if wanted := list(dict.fromkeys((*cast(list[str], inputs.get("required", [])), *required))):
            inputs["required"] = wanted
        if definitions := {**as_object(theirs.get("$defs")), **as_object(inputs.get("$defs"))}:
            inputs["$defs"] = definitions
        operation = dataclasses.replace(
            taken,
            inputs=inputs,
            outputs=described.outputs,
            parameters=tuple(dataclasses.replace(one, name=names[one.name]) for one in taken.parameters),
            content_type=JSON,
            success_status=200,
            description=None,
            summary=None,
            operation_id=None,
            answers_json=True,
        )
        borrowed.update(one.wire_name for one in operation.parameters if one.location == "json")
        borrowed -= as_object(described.inputs.get("properties")).keys()
        self._app.router.routes.insert(0, HiddenRoute(route))
        return operation, Arrival(path, endpoint)

    def rehearse(self, function: Callable[..., object], described: Described, path: str) -> object:
        """Give what is asked of the function's caller a hidden route; its endpoint, None where nothing is asked."""
        signature = read_signature(function)
        parameters = [
            one.replace(kind=one.KEYWORD_ONLY, annotation=signature.types.get(name, one.annotation))
            for name, one in signature.parameters.items()
            if name in described.injected
        ]
        return _add_rehearsal(self._app, path, "POST", parameters, self._app.router.dependencies)
