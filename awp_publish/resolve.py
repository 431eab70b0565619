"""From declarations and the application's routes to frozen actions and agents.

Every mistake is a DeclarationError that names the action and says what to do.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from string import Formatter
from typing import Any, Final, Literal, cast

from awp_publish.discover.functions import UnusableFunction, describe_function
from awp_publish.discover.routes import (
    FORM_TYPES,
    Mode,
    Operation,
    Route,
    answers_json,
    describe_by_path,
    docstring_of,
    identity_of,
    layers_of,
    take_inputs,
    wrappings_of,
)
from awp_publish.model import (
    DEFAULT_OPERATION,
    Action,
    ActionType,
    Agent,
    Door,
    Effect,
    Function,
    Idempotency,
    JsonObject,
    SiteFacts,
    Target,
)
from awp_publish.problems import DeclarationError, end_sentence
from awp_publish.redaction import answer_redactor
from awp_publish.schema import UnusableSchema, compile_schema, member_names, object_schema_of, schema_of
from awp_publish.settings import UNSET, ActionSettings, AgentSettings, read_rate

# --- Which route a declaration means: found by its handler, or by method and path ---

MOST_LISTED: Final = 20


class RouteIndex:
    """The routes of an application, by each layer of their handlers and by path."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._by_layer: dict[object, list[Route]] = {}
        self._by_template: dict[str, list[Route]] = {}
        for route in routes:
            self._by_template.setdefault(route.template, []).append(route)
            for layer in {identity_of(layer): None for handler in route.handlers for layer in layers_of(handler)}:
                self._by_layer.setdefault(layer, []).append(route)

    def of_handler(self, handler: object) -> Sequence[Route]:
        """The routes that lead to a handler: those that hold it, else those that hold what it wraps."""
        for layer in wrappings_of(handler):
            found = self._by_layer.get(identity_of(layer))
            if found:
                return found
        return ()

    def of_path(self, subject: str, method: str, path: str) -> Route:
        """The application's own route where it shows one, else one of which only this is known.

        Raises DeclarationError when the application shows its routes and none of them takes this.
        """
        wanted = Route(path, (method,), (), "")
        own = self._by_template.get(wanted.template, ())
        exact = next((route for route in own if method in route.methods), None)
        if exact is not None or not self._routes:
            return exact or wanted
        taking = next((route for route in self._routes if route.takes(method, wanted.template)), None)
        if taking is None:
            raise DeclarationError(
                subject,
                f"method, path: no route of this application takes {method} {wanted.template}.",
                f"There are: {listing(_ways(self._routes), f'{method} {wanted.template}')}.",
            )
        return replace(wanted, arrival=taking.arrival)


def _ways(routes: Sequence[Route]) -> list[str]:
    return [f"{method} {route.template}" for route in routes if not route.is_opaque for method in route.methods]


def listing(known: Iterable[str], wanted: str = "") -> str:
    """What there is, for a message: the nearest to what was wanted first, and not too many."""
    names = sorted(set(known))
    near = get_close_matches(wanted, names, n=3) if wanted else []
    ordered = [*near, *(name for name in names if name not in near)]
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return (", ".join(ordered[:MOST_LISTED]) or "none") + more


def choose(subject: str, found: Sequence[Route], options: ActionSettings) -> tuple[Route, str]:
    """The one route and method that is meant. Raises DeclarationError when several could be, or none."""
    choices = [(route, method) for route in found for method in route.methods]
    if not choices:
        raise DeclarationError(subject, "its route has none of the methods GET, POST, PUT, PATCH and DELETE.")
    matching = [
        (route, method)
        for route, method in choices
        if options.path in (None, route.template, route.path) and options.method in (None, method)
    ]
    if len(matching) == 1:
        return matching[0]
    known = listing(_ways([route for route, _ in choices]))
    if not matching:
        raise DeclarationError(subject, f"method, path: match none of its routes ({known}).")
    raise DeclarationError(
        subject, f"is reachable in several ways ({known}).", "Choose one with path=... or method=..."
    )


# --- One action from what was declared and what stands behind it, a route or a function ---

BACKGROUND_TIMEOUT: Final = 3600.0
"""Seconds that a background action may take if it does not say."""

_EFFECTS: Final[Mapping[str, Effect]] = {
    "GET": "read",
    "PUT": "idempotent",
    "POST": "write",
    "PATCH": "write",
    "DELETE": "delete",
}
"""What a method promises (RFC 9110 section 9.2)."""

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


def describe_route_action(subject: str, chosen: tuple[Route, str], options: ActionSettings) -> Behind:
    """What a route takes and gives; declared `inputs` and `outputs` take precedence. Raises DeclarationError."""
    route, method = chosen
    try:
        operation = _with_inputs(subject, _describe(route, method, options), chosen, options)
        if options.outputs is not UNSET:
            own = _understand(options.outputs, chosen, "serialization")
            outputs = schema_of(options.outputs, "serialization") if own is None else own.outputs
            operation = replace(operation, outputs=outputs)
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    return Behind(
        operation, Target(method, route.template, operation.parameters, operation.content_type, route.arrival)
    )


def _describe(route: Route, method: str, options: ActionSettings) -> Operation:
    if route.describe is None:
        if not route.handlers:
            return describe_by_path(route.path)
        handler = route.handlers[0]
        operation = describe_by_path(route.path, docstring_of(handler))
        return replace(operation, answers_json=answers_json(handler) is True)
    try:
        return route.describe(method)
    except UnusableSchema:
        if options.inputs is not UNSET and options.outputs is not UNSET:
            return describe_by_path(route.path)
        raise


def _with_inputs(subject: str, operation: Operation, chosen: tuple[Route, str], options: ActionSettings) -> Operation:
    route, method = chosen
    declared = options.content_type
    if options.inputs is not UNSET:
        own = _understand(options.inputs, chosen, "validation")
        if own is None:
            return take_inputs(operation, object_schema_of(options.inputs), method, route.path, declared)
        known = tuple(one for one in operation.parameters if one.location == "path")
        operation = replace(operation, parameters=(*known, *own.parameters), content_type=own.content_type)
        return take_inputs(operation, own.inputs, method, route.path, declared)
    if declared in (None, operation.content_type):
        return operation
    if operation.content_type is not None:
        raise DeclarationError(
            subject, f"content_type: its route takes {operation.content_type}.", "Leave it out, or declare inputs too."
        )
    return replace(operation, content_type=declared)


def _understand(declared: object, chosen: tuple[Route, str], mode: Mode) -> Operation | None:
    """What only the route's framework can read."""
    route, method = chosen
    return route.understand(declared, method, mode) if route.understand is not None and declared is not None else None


def describe_function_action(subject: str, function: Callable[..., object], options: ActionSettings) -> Behind:
    """What a plain function takes and gives. Raises DeclarationError."""
    for name in ("method", "path", "content_type"):
        if getattr(options, name) is not None:
            raise DeclarationError(
                subject, f"{name}: no route leads to this function.", "Register one, or leave it out."
            )
    inputs = None if options.inputs is UNSET else options.inputs
    try:
        described = describe_function(function, inputs, Any if options.outputs is UNSET else options.outputs)
    except UnusableFunction as error:
        raise DeclarationError(subject, f"{error}.") from error
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    return Behind(Operation(described.inputs, described.outputs), None, described.call)


# --- The action ---


def make_action(
    subject: str, action_id: str, description: str, options: ActionSettings, behind: Behind, timeout: float
) -> Action:
    """Return the frozen action. What is not declared is derived from the route; `timeout` is the site's, in seconds.

    Raises DeclarationError.
    """
    operation, target, awas = behind.operation, behind.target, options.awas
    effect: Effect = options.effect or (_EFFECTS[target.method] if target is not None else "write")
    confirm = effect == "irreversible" if options.confirm is None else options.confirm
    auth_required = options.auth_required
    if auth_required is None:
        auth_required = bool(options.scopes) or operation.auth_required
    scopes = options.scopes
    if scopes is None:
        scopes = operation.scopes if auth_required else ()
    if effect == "irreversible" and confirm is False:
        raise DeclarationError(subject, "confirm: an irreversible action is always confirmed.", "Leave it out.")
    if options.scopes and not auth_required:
        raise DeclarationError(subject, "scopes: need auth_required=True.", "Change one of the two.")
    if isinstance(confirm, str):
        _refuse_unknown_names(subject, "confirm", (name for _, name, _, _ in Formatter().parse(confirm)), operation)
    kind: ActionType = "state_change"
    if target is None:
        kind = "custom"
    elif effect == "read":
        kind = "data_retrieval"
    elif target.content_type in FORM_TYPES:
        kind = "form_submission"
    selectors = awas.get("selectors", {})
    if isinstance(selectors, str):
        of_action, of_input = _STYLES[selectors]
        names = member_names(operation.inputs)
        escaped = [name.replace("\\", "\\\\").replace("'", "\\'") for name in names]  # a CSS string
        found = (f"[{of_action}='{action_id}'] [{of_input}='{name}']" for name in escaped)
        selectors = dict(zip(names, found, strict=True))
    else:
        _refuse_unknown_names(subject, "awas.selectors", selectors, operation)
    is_background = options.execution == "async"
    if is_background and answer_redactor(operation.outputs) is not None:
        told = "outputs: have a member with readOnce, which a background job would have to keep until it is fetched."
        raise DeclarationError(subject, told, 'Hand it out in an action with execution="sync".')
    return Action(
        id=action_id,
        name=options.name or title_of(action_id),
        description=description,
        inputs=operation.inputs,
        outputs=operation.outputs,
        agent_id=options.agent or action_id,
        operation=options.operation or (action_id if options.agent is not None else DEFAULT_OPERATION),
        target=target,
        function=behind.function,
        type=awas.get("type") or kind,
        effect=effect,
        tags=tuple(options.tags),
        examples=_examples(subject, options, operation.inputs),
        selector=awas.get("selector"),
        selectors=selectors,
        result=awas.get("result"),
        auth_required=auth_required,
        route_authenticates=operation.auth_required,
        route_credentials=operation.credentials,
        scopes=tuple(scopes),
        rate_limit=read_rate(options.rate_limit) if options.rate_limit is not None else None,
        idempotency=cast(Idempotency | None, options.idempotency),
        needs_confirmation=confirm is not False,
        confirmation_summary=None if isinstance(confirm, bool) else confirm,
        preconditions=tuple(options.preconditions),
        depends_on=tuple(dict.fromkeys((*options.requires, *options.depends_on))),
        requires=tuple(dict.fromkeys(options.requires)),
        answers_json=operation.answers_json and "contentMediaType" not in operation.outputs,
        guards_route=options.guard_routes,
        preview_url=awas.get("preview_url"),
        dry_run=awas.get("dry_run", False),
        execution=options.execution,
        success_status=202 if is_background else operation.success_status,
        timeout=options.timeout or (BACKGROUND_TIMEOUT if is_background else timeout),
        max_body_bytes=options.max_body_bytes,
        operation_id=operation.operation_id,
        extensions=dict(options.extensions),
    )


def _refuse_unknown_names(subject: str, option: str, names: Iterable[str | None], operation: Operation) -> None:
    known = member_names(operation.inputs)
    for name in names:
        if name is not None and name not in known:
            listed = ", ".join(known) or "none"
            raise DeclarationError(subject, f'{option}: "{name}" is not an input.', f"There are: {listed}.")


def _examples(subject: str, options: ActionSettings, inputs: JsonObject) -> tuple[JsonObject, ...]:
    examples = tuple(options.examples)
    try:
        validate = compile_schema(inputs, asserts_formats=True) if examples else None
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    for index, example in enumerate(examples):
        for violation in validate(example) if validate else ():
            raise DeclarationError(
                subject, end_sentence(f"examples.{index}: {violation.pointer or 'it'} {violation.detail}")
            )
    return examples


# --- `site.include(...)`: publish routes that are already there, without touching their handlers ---

READING: Final = "GET"
SUBJECT: Final = "site.include()"


@dataclass(frozen=True, slots=True)
class Inclusion:
    """One `site.include(...)`."""

    tags: Sequence[str]
    paths: Sequence[str]
    operations: Sequence[str]
    exclude: Sequence[str]
    options: ActionSettings


def include_routes(
    inclusion: Inclusion, routes: Sequence[Route], declared: Sequence[Action], timeout: float
) -> list[Action]:
    """The actions of one inclusion, without the routes that are `declared` already. Raises DeclarationError."""
    shown = [route for route in routes if not route.is_opaque]
    if not shown:
        raise DeclarationError(SUBJECT, "this application shows no routes.", "State its actions with site.declare().")
    _refuse_unmatched(inclusion, shown)
    is_open = not (inclusion.tags or inclusion.paths or inclusion.operations)
    selected: list[tuple[Route, str]] = []
    for route in shown:
        names = _names_of(route)
        if not names.isdisjoint(inclusion.exclude) or _is_on_path(route, inclusion.exclude):
            continue
        is_named = not names.isdisjoint(inclusion.operations)
        is_meant = is_open or not set(inclusion.tags).isdisjoint(route.tags) or _is_on_path(route, inclusion.paths)
        if is_named or (route.listed and is_meant):
            selected += ((route, method) for method in route.methods if is_named or method == READING)
    if not selected:
        raise DeclarationError(
            SUBJECT, "finds no reading route (GET).", "Name writing ones in operations=..., or use site.declare()."
        )
    by_id = {action.id: action for action in declared}
    taken = {(action.target.method, action.target.path) for action in declared if action.target}
    included: list[Action] = []
    for route, method in selected:
        if (method, route.template) in taken:
            continue
        action = _include(route, method, selected, inclusion, timeout)
        other = by_id.setdefault(action.id, action)
        if other is not action:
            twice = " and ".join(f"{one.target.method} {one.target.path}" for one in (other, action) if one.target)
            raise DeclarationError(
                f'action "{action.id}"', f"stands for {twice}.", "State one with site.declare() and an id of its own."
            )
        included.append(action)
    return included


# --- Which routes ---


def _is_on_path(route: Route, patterns: Sequence[str]) -> bool:
    return any(
        pattern in (route.template, route.path) or fnmatch.fnmatchcase(route.template, pattern) for pattern in patterns
    )


def _names_of(route: Route) -> frozenset[str]:
    return frozenset((route.name, *route.aliases))


def _refuse_unmatched(inclusion: Inclusion, routes: Sequence[Route]) -> None:
    tags = {tag for route in routes for tag in route.tags}
    names = {name for route in routes for name in _names_of(route)}
    listed = [route for route in routes if route.listed]
    known, paths = {route.name for route in listed}, {route.template for route in listed}

    def is_on_some(pattern: str) -> bool:
        return any(_is_on_path(route, [pattern]) for route in routes)

    unmatched = [
        *(("tags", wanted, tags) for wanted in inclusion.tags if wanted not in tags),
        *(("operations", wanted, known) for wanted in inclusion.operations if wanted not in names),
        *(("paths", wanted, paths) for wanted in inclusion.paths if not is_on_some(wanted)),
        *(("exclude", one, known) for one in inclusion.exclude if one not in names and not is_on_some(one)),
    ]
    for option, wanted, there in unmatched:
        known_names = listing(there, wanted)
        raise DeclarationError(SUBJECT, f'{option}: "{wanted}" matches no route.', f"There are: {known_names}.")


# --- Their actions ---


def _include(
    route: Route, method: str, selected: Sequence[tuple[Route, str]], inclusion: Inclusion, timeout: float
) -> Action:
    """The action of an included route, named after its operation."""
    methods = [other for found, other in selected if found is route]
    name = route.name if len(methods) == 1 else f"{route.name}_{method}"
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    action_id = re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")
    subject = f'action "{action_id}" (included from {method} {route.template})'
    if not re.match("[a-z]", action_id):
        raise DeclarationError(subject, f'"{name}" gives no usable id.', "State it with site.declare().")
    behind = describe_route_action(subject, (route, method), inclusion.options)
    told = next((text for text in map(docstring_of, route.handlers) if text), None)
    described = behind.operation.description or told or behind.operation.summary
    return make_action(subject, action_id, described or title_of(action_id), inclusion.options, behind, timeout)


@dataclass(frozen=True, slots=True)
class Declaration:
    """One decorator's or one `declare()`'s words. `kind`: must have a route, may have one, or names its path itself."""

    subject: str
    id: str
    kind: Literal["route", "either", "path"]
    function: Callable[..., object] | None
    options: ActionSettings


def resolve(
    declarations: Sequence[Declaration],
    agents: Mapping[str, AgentSettings],
    inclusions: Sequence[Inclusion],
    routes: Sequence[Route],
    timeout: float,
) -> tuple[tuple[Action, ...], tuple[Agent, ...]]:
    """All actions and agents of a site, in the order of their declaration. Raises DeclarationError."""
    index = RouteIndex(routes)
    actions = [_resolve_one(declaration, agents, index, timeout) for declaration in declarations]
    for inclusion in inclusions:
        actions += include_routes(inclusion, routes, actions, timeout)
    _check_dependencies(actions)
    required = {needed for action in actions for needed in action.requires}
    pages = {route.template for route in routes if "GET" in route.methods and not route.is_opaque}
    known = [
        replace(
            action,
            is_required=action.id in required,
            page=action.target.path if action.target is not None and action.target.path in pages else None,
        )
        for action in actions
    ]
    return tuple(known), tuple(_group(known, agents))


# --- One declaration ---


def _resolve_one(
    declaration: Declaration, agents: Mapping[str, AgentSettings], index: RouteIndex, timeout: float
) -> Action:
    subject, options = declaration.subject, declaration.options
    if options.agent is None and options.operation is not None:
        raise DeclarationError(subject, "operation: is missing its agent.", 'Give agent="..." as well.')
    if options.agent is None and declaration.id in agents:
        raise DeclarationError(
            subject, f'has the id of agent "{declaration.id}".', "Make it an operation with agent=..., or rename it."
        )
    if options.agent is not None and options.agent not in agents:
        raise DeclarationError(
            subject,
            f'agent: "{options.agent}" is not declared.',
            f'Add site.agent("{options.agent}", description="...").',
        )
    behind = _find_behind(declaration, index)
    # A class endpoint's docstring is about all of its methods, so the method's own comes first.
    found = (docstring_of(declaration.function), behind.operation.description)
    first, second = reversed(found) if isinstance(declaration.function, type) else found
    of_agent = agents[options.agent].description if options.agent is not None else None
    description = options.description or first or second or of_agent
    if not description:
        raise DeclarationError(subject, "description: is missing.", "Write a docstring or give description=...")
    return make_action(subject, declaration.id, description, options, behind, timeout)


def _find_behind(declaration: Declaration, index: RouteIndex) -> Behind:
    subject, options = declaration.subject, declaration.options
    if declaration.kind == "path":
        method, path = cast(str, options.method), cast(str, options.path)
        return describe_route_action(subject, (index.of_path(subject, method, path), method), options)
    found = index.of_handler(declaration.function)
    if found:
        return describe_route_action(subject, choose(subject, found, options), options)
    if declaration.kind == "route" or declaration.function is None:
        raise DeclarationError(
            subject,
            f"no route of this application leads to {name_of(declaration.function)}.",
            "Register it with a route, keep functools.wraps in decorators around it, or use @site.agent.",
        )
    return describe_function_action(subject, declaration.function, options)


def name_of(function: object) -> str:
    """The full name of a function, a class or an object, for a message."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', '?')}.{getattr(named, '__qualname__', '?')}"


# --- The whole ---


def _check_dependencies(actions: Sequence[Action]) -> None:
    known = {action.id for action in actions}
    for action in actions:
        for needed in action.depends_on:
            if needed not in known:
                option = "requires" if needed in action.requires else "depends_on"
                raise DeclarationError(f'action "{action.id}"', f'{option}: there is no action "{needed}".')
    try:
        TopologicalSorter({action.id: action.depends_on for action in actions}).prepare()
    except CycleError as error:
        cycle = " -> ".join(reversed(cast(Sequence[str], error.args[1])))
        raise DeclarationError("site", f"depends_on: actions wait for each other: {cycle}.") from error


def check_names(site: SiteFacts, actions: Sequence[Action]) -> None:
    """Refuse workflows whose steps are not actions."""
    known = {action.id for action in actions}
    for workflow in site.workflows:
        for step in workflow.steps:
            if step not in known:
                raise DeclarationError("site", f'about.workflows: "{workflow.id}" names the unknown action "{step}".')


def check_skills(actions: Sequence[Action], doors: Iterable[Door]) -> None:
    """Refuse an A2A door behind which nothing can be called: an agent card names its skills (A2A 1.0, AgentCard)."""
    if not actions and any(door.protocol == "a2a" for door in doors):
        raise DeclarationError(
            "site",
            'doors: "a2a" has nothing to call; an agent card names a skill.',
            "Declare an action, or leave it out.",
        )


def _group(actions: Sequence[Action], agents: Mapping[str, AgentSettings]) -> Iterable[Agent]:
    grouped: dict[str, dict[str, Action]] = {}
    for action in actions:
        operations = grouped.setdefault(action.agent_id, {})
        if action.operation in operations:
            raise DeclarationError(
                f'action "{action.id}"',
                f'operation: "{action.operation}" of agent "{action.agent_id}" is action '
                f'"{operations[action.operation].id}" already.',
                "Give it another operation=...",
            )
        operations[action.operation] = action
    for unused in sorted(set(agents) - set(grouped)):
        raise DeclarationError(f'agent "{unused}"', "has no operation.", "Decorate a function with it.")
    for agent_id, operations in grouped.items():
        declared, first = agents.get(agent_id), operations.get(DEFAULT_OPERATION) or next(iter(operations.values()))
        if declared is not None and declared.description is None and len(operations) > 1:
            raise DeclarationError(f'agent "{agent_id}"', "description: is missing.", "It has several operations.")
        yield Agent(
            id=agent_id,
            name=first.name if declared is None else declared.name or title_of(agent_id),
            description=(declared and declared.description) or first.description,
            operations={name: action.id for name, action in operations.items()},
            version=declared.version if declared else None,
            capabilities=tuple(declared.capabilities) if declared else (),
            extensions=dict(declared.metadata) if declared else {},
        )
