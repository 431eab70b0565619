"""The route or function that an action calls, with its inputs and outputs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from awp_publish.declare.discover.credentials import without_credentials
from awp_publish.declare.discover.declared import describe_by_path, reads_query, take_inputs
from awp_publish.declare.discover.functions import Injector, describe_function
from awp_publish.declare.discover.handlers import answers_json, requires_user
from awp_publish.declare.discover.refusing import asks_who_calls
from awp_publish.declare.discover.routes import NO_BODY_METHODS, Mode, Operation, Route
from awp_publish.declare.discover.signatures import UnusableFunction
from awp_publish.declare.settings.actions import UNSET, ActionSettings
from awp_publish.model import Function, Target
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema, object_schema_of, schema_of
from awp_publish.schema.handlers import docstring_of

SCHEMA_REMEDY: Final = "Declare inputs=... and outputs=... (a model or a JSON Schema)."


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetApplication:
    """The application whose routes and functions a site declares, and what holds for all of them.

    `timeout` is the site's, in seconds; `authenticates` says that it has authenticators. `injector` resolves
    dependencies of functions that their framework provides, through hidden routes below the path `entries`.
    `credential_headers` (in lower case) are those from which the site's own authenticators read credentials, `hosts`
    those of its addresses: no request reaches a route of another host.
    """

    routes: Sequence[Route]
    timeout: float
    authenticates: bool
    injector: Injector | None
    entries: str
    credential_headers: Collection[str]
    hosts: Collection[str]


@dataclass(frozen=True, slots=True)
class Implementation:
    """The route, hidden route or function that an action calls, and its inputs and outputs."""

    operation: Operation
    target: Target | None = None
    function: Function | None = None
    entry: Target | None = None
    rehearse: Callable[[], object] | None = None
    enforces_outputs: bool = True
    is_deprecated: bool = False


def describe_route_action(
    subject: str, chosen: tuple[Route, str], options: ActionSettings, application: TargetApplication
) -> Implementation:
    """Describe the route of an action; declared `inputs` and `outputs` take precedence. Raises DeclarationError."""
    route, method = chosen
    headers = application.credential_headers
    declared, handler = options.content_type, route.handlers[0] if route.handlers else None
    try:
        if route.describe is None:
            described = docstring_of(handler) if handler is not None else None
            is_open = method in NO_BODY_METHODS and reads_query(handler)
            operation = describe_by_path(route.path, described, is_open=is_open)
            operation = replace(
                operation,
                answers_json=handler is not None and answers_json(handler) is True,
                auth_required=callable(handler) and asks_who_calls(handler, "request"),
            )
        else:
            try:
                operation = route.describe(method)
            except UnusableSchema:
                if options.inputs is UNSET or options.outputs is UNSET:
                    raise
                operation = describe_by_path(route.path)
        operation = without_credentials(operation, headers)
        if handler is not None and requires_user(handler):
            operation = replace(operation, auth_required=True)
        if options.inputs is not UNSET:
            own = _understand(options.inputs, chosen, "validation")
            if own is not None:
                in_path = tuple(parameter for parameter in operation.parameters if parameter.location == "path")
                operation = replace(operation, parameters=(*in_path, *own.parameters), content_type=own.content_type)
            inputs = object_schema_of(options.inputs) if own is None else own.inputs
            operation = take_inputs(operation, inputs, method, route.path, declared)
        elif declared not in (None, operation.content_type):
            if operation.content_type is not None:
                wrong = f"content_type: its route takes {operation.content_type}."
                raise DeclarationError(subject, wrong, "Leave it out, or declare inputs too.")
            operation = replace(operation, content_type=declared)
        if options.outputs is not UNSET:
            subject = f"{subject}: outputs"
            own = _understand(options.outputs, chosen, "serialization")
            outputs = schema_of(options.outputs, "serialization") if own is None else own.outputs
            operation = replace(operation, outputs=outputs)
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", SCHEMA_REMEDY) from error
    target = Target(method, route.template, operation.parameters, operation.content_type, route.arrival)
    rehearse = partial(route.rehearse, method) if route.rehearse is not None else None
    return Implementation(
        operation,
        target,
        rehearse=rehearse,
        enforces_outputs=options.outputs is not UNSET,
        is_deprecated=route.is_deprecated,
    )


def _understand(declared: object, chosen: tuple[Route, str], mode: Mode) -> Operation | None:
    route, method = chosen
    return route.understand(declared, method, mode) if route.understand is not None and declared is not None else None


def describe_function_action(
    subject: str,
    action_id: str,
    function: Callable[..., object],
    options: ActionSettings,
    application: TargetApplication,
) -> Implementation:
    """Describe a function without a route, with a hidden one if the framework has to resolve dependencies.

    Raises DeclarationError.
    """
    injector, path = application.injector, f"{application.entries}/{action_id}"
    for name in ("method", "path", "content_type"):
        if getattr(options, name) is not None:
            raise DeclarationError(
                subject, f"{name}: no route leads to this function.", "Register one, or leave it out."
            )
    inputs = None if options.inputs is UNSET else options.inputs
    try:
        described = describe_function(function, inputs, Any if options.outputs is UNSET else options.outputs)
        if not described.injected and (injector is None or not injector.is_general):
            return Implementation(Operation(described.inputs, described.outputs), None, described.call)
        if injector is None:
            name, kind = next(iter(described.injected.items()))
            raise DeclarationError(
                subject,
                f"its parameter {name} ({kind}) is not an input that a caller can send, and nothing provides it: "
                "only a FastAPI application provides such values to functions without a route.",
                "Register a route for it, and declare that with @site.action; or use current_caller().",
            )
        operation, arrival = injector.register(function, described, path)
        operation = without_credentials(operation, application.credential_headers)
    except UnusableFunction as error:
        raise DeclarationError(subject, f"{error}.") from error
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", SCHEMA_REMEDY) from error
    entry = Target("POST", path, operation.parameters, operation.content_type, arrival)
    rehearse = partial(injector.rehearse, function, described, path)
    return Implementation(operation, entry=entry, rehearse=rehearse)
