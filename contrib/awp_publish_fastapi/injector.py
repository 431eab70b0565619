"""Dependency injection by FastAPI for functions without a route."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, cast

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from awp_publish.declare.discover.functions import Described
from awp_publish.declare.discover.routes import Operation
from awp_publish.declare.discover.signatures import UnusableFunction, read_signature
from awp_publish.model import Arrival
from awp_publish.schema import reason_of
from awp_publish.schema.media import JSON
from awp_publish.schema.parts import as_object
from awp_publish_fastapi.hidden_route import HiddenRoute
from awp_publish_fastapi.routes import FastApiDocument, add_rehearsal


class FastApiInjector:
    """Gives functions hidden routes, so that FastAPI resolves their dependencies as for any route."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._document = FastApiDocument(app, "", is_outermost=False)

    @property
    def is_general(self) -> bool:
        """Return True if the application was made with `FastAPI(dependencies=[...])`."""
        return bool(self._app.router.dependencies)

    def register(self, function: Callable[..., object], described: Described, path: str) -> tuple[Operation, Arrival]:
        """Create a hidden route for a function; its own inputs are sent as a JSON body. Raises UnusableFunction."""
        signature = read_signature(function)
        parameters = {
            name: parameter.replace(
                kind=parameter.KEYWORD_ONLY, annotation=signature.types.get(name, parameter.annotation)
            )
            for name, parameter in signature.parameters.items()
            if name in described.injected
        }
        if any(
            parameter.annotation is parameter.empty and parameter.name == "request" for parameter in parameters.values()
        ):
            raise UnusableFunction("its parameter request has no annotation; write request: Request")
        own: dict[type, str] = {}
        for kind, name in ((Request, "awp_publish_request"), (Response, "awp_publish_response")):
            kinds = {
                name: parameter.annotation
                for name, parameter in parameters.items()
                if isinstance(parameter.annotation, type)
            }
            own[kind] = next((label for label, annotation in kinds.items() if issubclass(annotation, kind)), name)
            new = inspect.Parameter(own[kind], inspect.Parameter.KEYWORD_ONLY, annotation=kind)
            parameters.setdefault(own[kind], new)
        borrowed: set[str] = set()

        async def endpoint(**resolved: Any) -> Response:
            members = await resolved[own[Request]].json()
            inputs = {name: value for name, value in members.items() if name not in borrowed}
            body = await described.call(inputs, {name: resolved[name] for name in described.injected})
            prepared: Response = resolved[own[Response]]
            answer = Response(body, prepared.status_code or 200, media_type="application/json")
            headers = (pair for pair in prepared.raw_headers if pair[0] not in (b"content-length", b"content-type"))
            answer.raw_headers.extend(headers)
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
            dependencies = self._document.describe(route, "POST")
        except Exception as error:  # FastAPI may raise anything about a dependency
            raise UnusableFunction(f"FastAPI cannot resolve its dependencies: {reason_of(error)}") from error
        # The function's own inputs, and those of its dependencies.
        if dependencies.content_type not in (None, JSON) or any(
            parameter.location == "body" for parameter in dependencies.parameters
        ):
            raise UnusableFunction("one of its dependencies reads a form or the whole body, which an input cannot be")
        inputs, theirs = dict(described.inputs), dependencies.inputs
        properties, added = as_object(inputs.get("properties")), as_object(theirs.get("properties"))
        names = {
            parameter.name: f"{parameter.location}_{parameter.name}"
            if parameter.name in properties and parameter.location != "json"
            else parameter.name
            for parameter in dependencies.parameters
        }
        required = [names[name] for name in cast(list[str], theirs.get("required", []))]
        inputs["properties"] = {**{names[name]: schema for name, schema in added.items()}, **properties}
        if all_required := list(dict.fromkeys((*cast(list[str], inputs.get("required", [])), *required))):
            inputs["required"] = all_required
        if definitions := {**as_object(theirs.get("$defs")), **as_object(inputs.get("$defs"))}:
            inputs["$defs"] = definitions
        operation = dataclasses.replace(
            dependencies,
            inputs=inputs,
            outputs=described.outputs,
            parameters=tuple(
                dataclasses.replace(parameter, name=names[parameter.name]) for parameter in dependencies.parameters
            ),
            content_type=JSON,
            success_status=200,
            description=None,
            summary=None,
            operation_id=None,
            answers_json=True,
        )
        borrowed.update(parameter.wire_name for parameter in operation.parameters if parameter.location == "json")
        borrowed -= as_object(described.inputs.get("properties")).keys()
        self._app.router.routes.insert(0, HiddenRoute(route))
        return operation, Arrival(path, endpoint)

    def rehearse(self, function: Callable[..., object], described: Described, path: str) -> object:
        """Create a hidden route that only has the function's security. Returns its endpoint, None without security."""
        signature = read_signature(function)
        parameters = [
            parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=signature.types.get(name, parameter.annotation))
            for name, parameter in signature.parameters.items()
            if name in described.injected
        ]
        return add_rehearsal(self._app, path, "POST", parameters, self._app.router.dependencies)
