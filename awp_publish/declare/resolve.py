"""Resolve the declarations of a site against the application's routes to frozen actions and agents.

Every mistake is a DeclarationError that names the action and says what to do.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from awp_publish.declare.actions import make_action
from awp_publish.declare.implementations import (
    Implementation,
    TargetApplication,
    describe_function_action,
    describe_route_action,
)
from awp_publish.declare.routes import RouteIndex, choose
from awp_publish.declare.settings.actions import ActionSettings, AgentSettings
from awp_publish.model import DEFAULT_OPERATION, Action, Agent, title_of
from awp_publish.problems import DeclarationError, DeclarationErrors
from awp_publish.schema.handlers import docstring_of, name_of


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared action. `kind`: it must have a route, it may have one, or it names its path itself.

    `operation` is its name as an operation of `agent`; without them it is an agent of its own.
    """

    subject: str
    id: str
    kind: Literal["route", "either", "path"]
    function: Callable[..., object] | None
    options: ActionSettings
    operation: str | None = None
    agent: str | None = None
    of_plugins: Mapping[str, Any] = field(default_factory=dict)
    """Options that plug-ins read."""


def resolve(
    declarations: Sequence[Declaration], agents: Mapping[str, AgentSettings], application: TargetApplication
) -> list[Action]:
    """Return the declared actions of a site in their order. Raises DeclarationError."""
    index, actions, errors = RouteIndex(application.routes), list[Action](), list[DeclarationError]()
    for declaration in declarations:
        try:
            actions.append(_resolve_one(declaration, agents, index, application))
        except DeclarationError as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else DeclarationErrors(errors)
    return actions


def group(
    actions: Iterable[Action], agents: Mapping[str, AgentSettings], application: TargetApplication
) -> tuple[tuple[Action, ...], tuple[Agent, ...]]:
    """Return the actions as they are published, and their agents. Raises DeclarationError."""
    pages = {route.template for route in application.routes if "GET" in route.methods and not route.is_opaque}
    finished = []
    for action in actions:
        page = action.target.path if action.target is not None and action.target.path in pages else None
        finished.append(action if page is None else replace(action, page=page))
    return tuple(finished), tuple(_group(finished, agents))


def _resolve_one(
    declaration: Declaration, agents: Mapping[str, AgentSettings], index: RouteIndex, application: TargetApplication
) -> Action:
    """Return the action that one declaration means. Raises DeclarationError."""
    subject, options = declaration.subject, declaration.options
    if declaration.agent is None and declaration.id in agents:
        wrong = f'has the id of agent "{declaration.id}".'
        raise DeclarationError(subject, wrong, "Make it an operation, @agent.operation(...), or rename it.")
    implementation = _find_implementation(declaration, index, application)
    # A class endpoint's docstring describes all of its methods, so the method's own comes first.
    descriptions = (docstring_of(declaration.function), implementation.operation.description)
    first, second = reversed(descriptions) if isinstance(declaration.function, type) else descriptions
    of_agent = agents[declaration.agent].description if declaration.agent is not None else None
    description = options.description or first or second or of_agent
    if not description:
        raise DeclarationError(subject, "description: is missing.", "Write a docstring or give description=...")
    named = (declaration.operation or DEFAULT_OPERATION, declaration.agent)
    action = make_action(subject, declaration.id, description, options, implementation, application, *named)
    return replace(action, options=declaration.of_plugins) if declaration.of_plugins else action


def _find_implementation(declaration: Declaration, index: RouteIndex, application: TargetApplication) -> Implementation:
    subject, options, function = declaration.subject, declaration.options, declaration.function
    if declaration.kind == "path":
        method, path = cast(str, options.method), cast(str, options.path)
        route = index.of_path(subject, method, path)
        return describe_route_action(subject, (route, method), options, application)
    if routes := index.of_handler(function):
        return describe_route_action(subject, choose(subject, routes, options), options, application)
    if declaration.kind == "route" or function is None:
        raise DeclarationError(
            subject,
            f"no route of this application leads to {name_of(function)}.",
            "Give it a route, keep functools.wraps in its decorators, declare it before as_view(), or use @site.agent.",
        )
    return describe_function_action(subject, declaration.id, function, options, application)


def _group(actions: Sequence[Action], agents: Mapping[str, AgentSettings]) -> Iterable[Agent]:
    grouped: dict[str, dict[str, Action]] = {}
    for action in actions:
        grouped.setdefault(action.agent_id, {})[action.operation] = action
    for unused in sorted(set(agents) - set(grouped)):
        raise DeclarationError(f'agent "{unused}"', "has no operation.", "Decorate a function with it.")
    for agent_id, operations in grouped.items():
        declared, first = agents.get(agent_id), operations.get(DEFAULT_OPERATION) or next(iter(operations.values()))
        if declared is not None and declared.description is None and len(operations) > 1:
            raise DeclarationError(f'agent "{agent_id}"', "description: is missing.", "It has several operations.")
        words = declared.metadata.get("operations", {}) if declared else {}
        if not isinstance(words, Mapping) or not all(isinstance(text, str) and text for text in words.values()):
            wrong = 'metadata: "operations" must map the names of operations to their descriptions.'
            raise DeclarationError(f'agent "{agent_id}"', wrong, 'Write {"operations": {"default": "..."}}.')
        if unknown := sorted(words.keys() - operations.keys()):
            wrong = f'metadata: "operations" names "{unknown[0]}", which is none of its operations.'
            raise DeclarationError(f'agent "{agent_id}"', wrong, f"It has {', '.join(sorted(operations))}.")
        yield Agent(
            id=agent_id,
            name=first.name if declared is None else declared.name or title_of(agent_id),
            description=(declared and declared.description) or first.description,
            operations={name: action.id for name, action in operations.items()},
            version=declared.version if declared else None,
            capabilities=tuple(declared.capabilities) if declared else (),
            extensions=dict(declared.metadata) if declared else {},
        )
