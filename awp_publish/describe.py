"""One action from what was declared and what stands behind it, a route or a function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from string import Formatter
from typing import Any, Final, cast

from awp_publish.discover.functions import UnusableFunction, describe_function
from awp_publish.discover.routes import (
    FORM_TYPES,
    Mode,
    Operation,
    Route,
    describe_by_path,
    docstring_of,
    property_names,
    take_inputs,
)
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
    Summary,
    Target,
)
from awp_publish.options import ActionOptions
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema, compile_schema, object_schema_of, schema_of

BACKGROUND_TIMEOUT: Final = 3600.0
"""Seconds that a background action may take if it does not say."""

_INTENTS: Final[Mapping[str, Intent]] = {"GET": "read", "DELETE": "delete"}
_STYLES: Final = {"data-awas": ("data-awas-action", "data-awas-param"), "data-ai": ("data-ai-action", "data-ai-param")}
_REMEDY: Final = "Declare inputs=... and outputs=... (a model or a JSON Schema)."


def title_of(identifier: str) -> str:
    """A readable name of an id: `search_books` is "Search books"."""
    return identifier.replace("_", " ").strip().capitalize()


# --- What stands behind an action ---


@dataclass(frozen=True, slots=True)
class Behind:
    """What a call of an action reaches, a route's target or a function, and what it takes and gives."""

    operation: Operation
    target: Target | None = None
    function: Function | None = None


def describe_route_action(subject: str, chosen: tuple[Route, str], options: ActionOptions) -> Behind:
    """What a route takes and gives; declared `inputs` and `outputs` take precedence. Raises DeclarationError."""
    route, method = chosen
    try:
        operation = _with_inputs(subject, _describe(route, method, options), chosen, options)
        if "outputs" in options:
            operation = replace(operation, outputs=_outputs_of(options["outputs"], chosen))
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    return Behind(
        operation, Target(method, route.template, operation.parameters, operation.content_type, route.arrival)
    )


def _describe(route: Route, method: str, options: ActionOptions) -> Operation:
    if route.describe is None:
        return describe_by_path(route.path, docstring_of(route.handlers[0]) if route.handlers else None)
    try:
        return route.describe(method)
    except UnusableSchema:
        if "inputs" in options and "outputs" in options:
            return describe_by_path(route.path)
        raise


def _with_inputs(subject: str, operation: Operation, chosen: tuple[Route, str], options: ActionOptions) -> Operation:
    route, method = chosen
    declared = options.get("content_type")
    own = _understand(options.get("inputs"), chosen, "validation")
    if own is not None:
        known = tuple(one for one in operation.parameters if one.location == "path")
        operation = replace(operation, parameters=(*known, *own.parameters), content_type=own.content_type)
        return take_inputs(operation, own.inputs, method, route.path, declared)
    if "inputs" in options:
        return take_inputs(operation, object_schema_of(options["inputs"]), method, route.path, declared)
    if declared in (None, operation.content_type):
        return operation
    if operation.content_type is not None:
        raise DeclarationError(
            subject, f"content_type: its route takes {operation.content_type}.", "Leave it out, or declare inputs too."
        )
    return replace(operation, content_type=declared)


def _outputs_of(declared: object, chosen: tuple[Route, str]) -> JsonObject:
    own = _understand(declared, chosen, "serialization")
    return schema_of(declared, "serialization") if own is None else own.outputs


def _understand(declared: object, chosen: tuple[Route, str], mode: Mode) -> Operation | None:
    """What only the route's framework can read."""
    route, method = chosen
    return route.understand(declared, method, mode) if route.understand is not None and declared is not None else None


def describe_function_action(subject: str, function: Callable[..., object], options: ActionOptions) -> Behind:
    """What a plain function takes and gives. Raises DeclarationError."""
    for name in ("method", "path", "content_type"):
        if name in options:
            raise DeclarationError(
                subject, f"{name}: no route leads to this function.", "Register one, or leave it out."
            )
    try:
        described = describe_function(function, options.get("inputs"), options.get("outputs", Any))
    except UnusableFunction as error:
        raise DeclarationError(subject, f"{error}.") from error
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    return Behind(Operation(described.inputs, described.outputs), None, described.call)


# --- The action ---


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the site says for every action that does not say it itself. `timeout` in seconds."""

    timeout: float
    enforce_prerequisites: bool = False


def make_action(
    subject: str, action_id: str, description: str, options: ActionOptions, behind: Behind, defaults: Defaults
) -> Action:
    """The frozen action. What is not declared is derived from the route. Raises DeclarationError."""
    operation, (intent, side_effect) = behind.operation, _consequences(subject, behind, options)
    described = Action(
        id=action_id,
        name=options.get("name") or title_of(action_id),
        description=description,
        inputs=operation.inputs,
        outputs=operation.outputs,
        agent_id=options.get("agent") or action_id,
        operation=options.get("operation") or (action_id if "agent" in options else DEFAULT_OPERATION),
        target=behind.target,
        function=behind.function,
        type=options.get("type") or _type(behind, intent),
        intent=intent,
        side_effect=side_effect,
        tags=tuple(options.get("tags", ())),
        examples=_examples(subject, options, operation.inputs),
        selector=options.get("selector"),
        selectors=_selectors(subject, action_id, options, operation.inputs),
        result=options.get("result"),
        preview_url=options.get("preview_url"),
        dry_run=options.get("dry_run", False),
        success_status=operation.success_status,
        operation_id=operation.operation_id,
        extensions=dict(options.get("extensions", {})),
    )
    return _with_policy(described, subject, options, behind, defaults)


def _with_policy(action: Action, subject: str, options: ActionOptions, behind: Behind, defaults: Defaults) -> Action:
    """What is enforced of an action, and how it is carried out."""
    operation, background = behind.operation, options.get("execution") == "async"
    return replace(
        action,
        auth_required=_auth_required(operation, options),
        route_authenticates=operation.auth_required,
        route_credentials=operation.credentials,
        scopes=tuple(options.get("scopes", operation.scopes if _auth_required(operation, options) else ())),
        rate_limit=cast(RateLimit | None, options.get("rate_limit")),
        idempotency=cast(Idempotency | None, options.get("idempotency")),
        sensitivity=options.get("sensitivity"),
        reversible=options.get("reversible"),
        requires_human_confirmation=options.get("requires_human_confirmation", False),
        confirmation_summary=_summary(subject, options, operation.inputs),
        repeatable=_is_repeatable(behind, action.intent, options),
        enforce_prerequisites=options.get("enforce_prerequisites", defaults.enforce_prerequisites),
        preconditions=tuple(options.get("preconditions", ())),
        depends_on=tuple(options.get("depends_on", ())),
        execution="async" if background else "sync",
        success_status=202 if background else action.success_status,
        timeout=options.get("timeout", BACKGROUND_TIMEOUT if background else defaults.timeout),
    )


def _auth_required(operation: Operation, options: ActionOptions) -> bool:
    """As declared; else whether scopes are, or the route has a security scheme."""
    return options.get("auth_required", bool(options.get("scopes")) or operation.auth_required)


def _consequences(subject: str, behind: Behind, options: ActionOptions) -> tuple[Intent, SideEffect]:
    intent = options.get("intent") or _intent(behind)
    side_effect = options.get("side_effect") or _side_effect(behind, intent, options)
    _refuse_contradictions(subject, options, intent, side_effect)
    return intent, side_effect


def _refuse_contradictions(subject: str, options: ActionOptions, intent: Intent, side_effect: SideEffect) -> None:
    sensitivity = options.get("sensitivity")
    is_harmful = sensitivity in ("destructive", "irreversible")
    contradictions = (
        (sensitivity == "irreversible" and options.get("reversible"), "reversible: an irreversible action is not."),
        (options.get("scopes") and not options.get("auth_required", True), "scopes: need auth_required=True."),
        (is_harmful and intent == "read", f"intent: a {sensitivity} action does not only read."),
        (is_harmful and side_effect != "destructive", f"side_effect: a {sensitivity} action is not {side_effect}."),
        (intent == "read" and side_effect == "destructive", "side_effect: an action that reads destroys nothing."),
        (intent in ("write", "delete") and side_effect == "safe", f"side_effect: to {intent} is not safe."),
    )
    for holds, words in contradictions:
        if holds:
            raise DeclarationError(subject, words, "Change one of the two.")


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


def _is_repeatable(behind: Behind, intent: Intent, options: ActionOptions) -> bool:
    """Whether a call that was cut off may be made again: reads, what HTTP calls idempotent, and what is declared so.

    An idempotency key alone says nothing of the handler: it is we who keep a second call from it.
    """
    if options.get("sensitivity") in ("destructive", "irreversible"):
        return False
    is_idempotent = behind.target is not None and behind.target.method in ("PUT", "DELETE")
    return intent == "read" or is_idempotent or options.get("side_effect") in ("safe", "idempotent")


def _summary(subject: str, options: ActionOptions, inputs: JsonObject) -> Summary | None:
    """What a confirmation asks; it may name inputs."""
    summary = options.get("confirmation_summary")
    if isinstance(summary, str):
        names = property_names(inputs)
        for _, name, _, _ in Formatter().parse(summary):
            if name is not None and name not in names:
                raise DeclarationError(
                    subject, f'confirmation_summary: "{name}" is not an input.', f"There are: {', '.join(names)}."
                )
    return summary


def _examples(subject: str, options: ActionOptions, inputs: JsonObject) -> tuple[JsonObject, ...]:
    examples = tuple(options.get("examples", ()))
    try:
        validate = compile_schema(inputs) if examples else None
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    for index, example in enumerate(examples):
        for violation in validate(example) if validate else ():
            raise DeclarationError(subject, f"examples.{index}: {violation.pointer or 'it'} {violation.detail}.")
    return examples


def _selectors(subject: str, action_id: str, options: ActionOptions, inputs: JsonObject) -> Mapping[str, str]:
    given, names = options.get("selectors", {}), property_names(inputs)
    if isinstance(given, str):
        action_attribute, parameter_attribute = _STYLES[given]
        return {
            name: f"[{action_attribute}={_quoted(action_id)}] [{parameter_attribute}={_quoted(name)}]" for name in names
        }
    for name in given:
        if name not in names:
            known = ", ".join(names) or "none"
            raise DeclarationError(subject, f'selectors: "{name}" is not an input.', f"There are: {known}.")
    return given


def _quoted(text: str) -> str:
    """A CSS string."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
