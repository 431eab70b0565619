"""The headers, cookies and query parameters in which a route reads credentials: they are not inputs."""

from collections.abc import Collection
from dataclasses import replace

from awp_publish.declare.discover.routes import Operation
from awp_publish.model import RouteCredential
from awp_publish.schema.parts import list_of, table_of


def without_credentials(operation: Operation, named: Collection[str] = (), of_route: Collection[str] = ()) -> Operation:
    """Return an operation without inputs that are headers with credentials: the caller's own headers are used.

    These are `named` by the site (in lower case), by a security scheme, or recognised by the route (`of_route`).
    """
    by_scheme = {credential.name for credential in operation.credentials if credential.place == "header"}
    removed: dict[str, str] = {}
    for parameter in operation.parameters:
        name = parameter.wire_name.lower()
        if parameter.location == "header" and (name in named or name in by_scheme or name in of_route):
            removed[parameter.name] = name
    if not removed:
        return operation
    inputs, required = dict(operation.inputs), list_of(operation.inputs, "required")
    inputs["properties"] = {
        name: schema for name, schema in table_of(inputs, "properties").items() if name not in removed
    }
    inputs.pop("required", None)
    if left := [name for name in required if name not in removed]:
        inputs["required"] = left
    removed_credentials = [RouteCredential("header", name) for name in removed.values()]
    # A header that the site itself checks does not make the route require authentication.
    demanded = any(removed[name] not in named for name in required if name in removed)
    return replace(
        operation,
        inputs=inputs,
        parameters=tuple(parameter for parameter in operation.parameters if parameter.name not in removed),
        credentials=tuple(dict.fromkeys((*operation.credentials, *removed_credentials))),
        auth_required=operation.auth_required or demanded,
    )
