"""One action from what was declared and what stands behind it, a route or a function."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from awp_publish.discover.function import describe_function
from awp_publish.discover.placement import FORM_TYPES, describe_by_path, property_names, take_inputs
from awp_publish.discover.route import Operation, Route
from awp_publish.model import (
    DEFAULT_OPERATION,
    Action,
    ActionType,
    Function,
    Idempotency,
    Intent,
    JsonObject,
    RateLimit,
    SideEffect,
    Target,
)
from awp_publish.options import ActionOptions
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema, compile_schema, schema_of

_INTENTS: Final[Mapping[str, Intent]] = {"GET": "read", "DELETE": "delete"}
_STYLES: Final = {"data-awas": ("data-awas-action", "data-awas-param"), "data-ai": ("data-ai-action", "data-ai-param")}
_REMEDY: Final = "Declare inputs=... and outputs=... (a model or a JSON Schema)."


def title_of(identifier: str) -> str:
    """A readable name of an id: `search_books` is "Search books"."""
    return identifier.replace("_", " ").capitalize()


def docstring_of(function: object) -> str | None:
    """A handler's description: its docstring up to a form feed, where FastAPI ends it too."""
    own = getattr(function, "__doc__", None)
    return inspect.cleandoc(own.split("\f")[0]) if isinstance(own, str) and own.strip() else None


@dataclass(frozen=True, slots=True)
class Behind:
    """What a call of an action reaches: a route's target or a function, with its schemas."""

    inputs: JsonObject
    outputs: JsonObject
    target: Target | None = None
    function: Function | None = None
    description: str | None = None
    success_status: int = 200
    operation_id: str | None = None


def describe_route_action(subject: str, chosen: tuple[Route, str], options: ActionOptions) -> Behind:
    """What a route takes and gives; declared `inputs` and `outputs` take precedence. Raises DeclarationError."""
    route, method = chosen
    operation = _describe(subject, route, method, options)
    try:
        if "inputs" in options:
            inputs = schema_of(options["inputs"], "validation")
            operation = take_inputs(operation, inputs, method, route.path, options.get("content_type"))
        elif "content_type" in options:
            operation = replace(operation, content_type=options["content_type"])
        if "outputs" in options:
            operation = replace(operation, outputs=schema_of(options["outputs"], "serialization"))
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    target = Target(method, route.template, operation.parameters, operation.content_type)
    return Behind(
        operation.inputs,
        operation.outputs,
        target,
        None,
        operation.description,
        operation.success_status,
        operation.operation_id,
    )


def _describe(subject: str, route: Route, method: str, options: ActionOptions) -> Operation:
    if route.describe is None:
        return describe_by_path(route.path)
    try:
        return route.describe(method)
    except UnusableSchema as error:
        if "inputs" in options and "outputs" in options:
            return describe_by_path(route.path)
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error


def describe_function_action(subject: str, function: Callable[..., object], options: ActionOptions) -> Behind:
    """What a plain function takes and gives. Raises DeclarationError."""
    try:
        described = describe_function(function, options.get("inputs"), options.get("outputs"))
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    return Behind(described.inputs, described.outputs, None, described.call)


def make_action(
    subject: str, action_id: str, name: str, description: str, options: ActionOptions, behind: Behind, timeout: float
) -> Action:
    """The frozen action. What is not declared is derived from the method. Raises DeclarationError."""
    _refuse_contradictions(subject, options)
    intent = options.get("intent") or _intent(behind)
    return Action(
        id=action_id,
        name=options.get("name") or name,
        description=description,
        inputs=behind.inputs,
        outputs=behind.outputs,
        agent_id=options.get("agent") or action_id,
        operation=options.get("operation") or (action_id if "agent" in options else DEFAULT_OPERATION),
        target=behind.target,
        function=behind.function,
        type=options.get("type") or _type(behind, intent),
        intent=intent,
        side_effect=options.get("side_effect") or _side_effect(behind, intent, options),
        tags=tuple(options.get("tags", ())),
        examples=_examples(subject, options, behind.inputs),
        selector=options.get("selector"),
        selectors=_selectors(subject, action_id, options, behind.inputs),
        result=options.get("result"),
        auth_required=options.get("auth_required", False),
        scopes=tuple(options.get("scopes", ())),
        rate_limit=cast(RateLimit | None, options.get("rate_limit")),
        idempotency=cast(Idempotency | None, options.get("idempotency")),
        sensitivity=options.get("sensitivity"),
        reversible=options.get("reversible"),
        requires_human_confirmation=options.get("requires_human_confirmation", False),
        preconditions=tuple(options.get("preconditions", ())),
        depends_on=tuple(options.get("depends_on", ())),
        preview_url=options.get("preview_url"),
        dry_run=options.get("dry_run", False),
        execution=options.get("execution", "sync"),
        success_status=behind.success_status,
        timeout=options.get("timeout", timeout),
        operation_id=behind.operation_id,
        extensions=dict(options.get("extensions", {})),
    )


def _refuse_contradictions(subject: str, options: ActionOptions) -> None:
    if options.get("sensitivity") == "irreversible" and options.get("reversible"):
        raise DeclarationError(subject, "reversible: an irreversible action cannot be reversible.")
    if options.get("scopes") and options.get("auth_required") is False:
        raise DeclarationError(subject, "scopes: need auth_required=True.")


def _intent(behind: Behind) -> Intent:
    return "execute" if behind.target is None else _INTENTS.get(behind.target.method, "write")


def _type(behind: Behind, intent: Intent) -> ActionType:
    if behind.target is None:
        return "custom"
    if intent == "read":
        return "data_retrieval"
    return "form_submission" if behind.target.content_type in FORM_TYPES else "state_change"


def _side_effect(behind: Behind, intent: Intent, options: ActionOptions) -> SideEffect:
    """AWAS 1.1 reads an absent sideEffect as "safe", so what is not known to be safe is said to be more."""
    if options.get("sensitivity") in ("destructive", "irreversible"):
        return "destructive"
    if intent == "read":
        return "safe"
    put = behind.target is not None and behind.target.method == "PUT"
    return "idempotent" if put or options.get("idempotency") else "destructive"


def _examples(subject: str, options: ActionOptions, inputs: JsonObject) -> tuple[JsonObject, ...]:
    examples = tuple(options.get("examples", ()))
    validate = compile_schema(inputs) if examples else None
    for index, example in enumerate(examples):
        for violation in validate(example) if validate else ():
            raise DeclarationError(subject, f"examples.{index}: {violation.pointer or 'it'} {violation.detail}.")
    return examples


def _selectors(subject: str, action_id: str, options: ActionOptions, inputs: JsonObject) -> Mapping[str, str]:
    given, names = options.get("selectors", {}), property_names(inputs)
    if isinstance(given, str):
        action_attribute, parameter_attribute = _STYLES[given]
        return {name: f"[{action_attribute}='{action_id}'] [{parameter_attribute}='{name}']" for name in names}
    for name in given:
        if name not in names:
            raise DeclarationError(
                subject, f'selectors: "{name}" is not an input. There are: {", ".join(names) or "none"}.'
            )
    return given
