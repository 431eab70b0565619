"""From declarations and the application's routes to frozen actions and agents.

Every mistake is a DeclarationError that names the action and says what to do.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal, cast

from awp_publish.describe import (
    Behind,
    describe_function_action,
    describe_route_action,
    docstring_of,
    make_action,
    title_of,
)
from awp_publish.discover import Route, innermost
from awp_publish.include import Inclusion, include_route, select_routes
from awp_publish.model import DEFAULT_OPERATION, Action, Agent, JsonObject, SiteFacts
from awp_publish.options import ActionOptions, AgentOptions
from awp_publish.problems import DeclarationError


@dataclass(frozen=True, slots=True)
class Declaration:
    """One decorator's or one `declare()`'s words. `kind`: must have a route, may have one, or names its path itself."""

    subject: str
    id: str
    kind: Literal["route", "either", "path"]
    function: Callable[..., object] | None
    options: ActionOptions


@dataclass(frozen=True, slots=True)
class AgentDeclaration:
    """What `site.agent(...)` said about the agent itself. `metadata` are further members of its WoA object."""

    id: str
    name: str
    description: str | None
    version: str | None
    capabilities: tuple[str, ...]
    metadata: JsonObject

    @classmethod
    def read(cls, agent_id: str, options: AgentOptions) -> "AgentDeclaration":
        return cls(
            agent_id,
            options.get("name") or title_of(agent_id),
            options.get("description"),
            options.get("version"),
            tuple(options.get("capabilities", ())),
            dict(options.get("metadata", {})),
        )


def resolve(
    declarations: Sequence[Declaration],
    agents: Mapping[str, AgentDeclaration],
    inclusions: Sequence[Inclusion],
    routes: Sequence[Route],
    timeout: float,
) -> tuple[tuple[Action, ...], tuple[Agent, ...]]:
    """All actions and agents of a site, in the order of their declaration. Raises DeclarationError."""
    by_handler = _index(routes)
    actions = [_resolve_one(declaration, agents, by_handler, routes, timeout) for declaration in declarations]
    taken = {(action.target.method, action.target.path) for action in actions if action.target}
    for inclusion in inclusions:
        included = [
            include_route(route, method, inclusion, timeout)
            for route, method in select_routes(inclusion, routes, taken)
        ]
        taken |= {(action.target.method, action.target.path) for action in included if action.target}
        actions += included
    _refuse_duplicates(actions)
    _check_dependencies(actions)
    return tuple(actions), tuple(_group(actions, agents))


# --- One declaration ---


def _index(routes: Sequence[Route]) -> dict[object, list[Route]]:
    by_handler: dict[object, list[Route]] = {}
    for route in routes:
        for handler in route.handlers:
            by_handler.setdefault(_key(handler), []).append(route)
    return by_handler


def _key(handler: object) -> object:
    try:
        hash(handler)
    except TypeError:
        return id(handler)
    return handler


def _resolve_one(
    declaration: Declaration,
    agents: Mapping[str, AgentDeclaration],
    by_handler: Mapping[object, list[Route]],
    routes: Sequence[Route],
    timeout: float,
) -> Action:
    behind = _find_behind(declaration, by_handler, routes)
    options = declaration.options
    agent = agents.get(options.get("agent", declaration.id))
    if "agent" in options and agent is None:
        raise DeclarationError(
            declaration.subject,
            f'agent: "{options["agent"]}" is not declared.',
            f'Add site.agent("{options["agent"]}", description="...").',
        )
    description = options.get("description") or docstring_of(declaration.function) or behind.description
    if description is None and agent is not None:
        description = agent.description
    if not description:
        raise DeclarationError(
            declaration.subject, "description: is missing.", "Write a docstring or give description=..."
        )
    return make_action(
        declaration.subject, declaration.id, title_of(declaration.id), description, options, behind, timeout
    )


def _find_behind(declaration: Declaration, by_handler: Mapping[object, list[Route]], routes: Sequence[Route]) -> Behind:
    if declaration.kind == "path":
        return describe_route_action(declaration.subject, _declared_route(declaration, routes), declaration.options)
    found = by_handler.get(_key(innermost(declaration.function)), [])
    if found:
        route, method = _choose(declaration, found)
        return describe_route_action(declaration.subject, (route, method), declaration.options)
    if declaration.kind == "route" or declaration.function is None:
        raise DeclarationError(
            declaration.subject,
            f"no route of this application leads to {_name_of(declaration.function)}.",
            "Register it with a route, keep functools.wraps in decorators around it, or use @site.agent.",
        )
    return describe_function_action(declaration.subject, declaration.function, declaration.options)


def _declared_route(declaration: Declaration, routes: Sequence[Route]) -> tuple[Route, str]:
    """The application's own route where it shows one, else what the declaration says."""
    method, path = declaration.options["method"], declaration.options["path"]
    if re.search(r"[?#]", path):
        raise DeclarationError(
            declaration.subject, f'path: "{path}" must not hold "?" or "#".', "Declare inputs instead."
        )
    wanted = Route(path, (method,), (), declaration.id)
    own = (route for route in routes if route.template == wanted.template and method in route.methods)
    return next(own, wanted), method


def _choose(declaration: Declaration, found: Sequence[Route]) -> tuple[Route, str]:
    """The one route and method that is meant. Raises DeclarationError when several could be."""
    options = declaration.options
    choices = [
        (route, method)
        for route in found
        for method in route.methods
        if options.get("path", route.template) in (route.template, route.path)
        and options.get("method", method) == method
    ]
    if len(choices) == 1:
        return choices[0]
    known = ", ".join(f"{method} {route.template}" for route in found for method in route.methods)
    if not choices:
        raise DeclarationError(declaration.subject, f"method, path: match none of its routes ({known}).")
    raise DeclarationError(
        declaration.subject, f"is reachable in several ways ({known}).", "Choose one with path=... or method=..."
    )


def _name_of(function: object) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"


# --- The whole ---


def _refuse_duplicates(actions: Sequence[Action]) -> None:
    seen: dict[str, Action] = {}
    for action in actions:
        if action.id in seen:
            raise DeclarationError(
                f'action "{action.id}"',
                "stands for two routes.",
                "State one of them with site.declare() and its own id.",
            )
        seen[action.id] = action


def _check_dependencies(actions: Sequence[Action]) -> None:
    known = {action.id for action in actions}
    for action in actions:
        for needed in action.depends_on:
            if needed not in known:
                raise DeclarationError(f'action "{action.id}"', f'depends_on: there is no action "{needed}".')
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
                raise DeclarationError("site", f'workflows: "{workflow.id}" names the unknown action "{step}".')


def _group(actions: Sequence[Action], agents: Mapping[str, AgentDeclaration]) -> Iterable[Agent]:
    grouped: dict[str, dict[str, Action]] = {}
    for action in actions:
        operations = grouped.setdefault(action.agent_id, {})
        if action.operation in operations:
            raise DeclarationError(
                f'action "{action.id}"', f'operation: "{action.operation}" of agent "{action.agent_id}" exists twice.'
            )
        operations[action.operation] = action
    for unused in sorted(set(agents) - set(grouped)):
        raise DeclarationError(f'agent "{unused}"', "has no operation.", "Decorate a function with it.")
    for agent_id, operations in grouped.items():
        yield _agent(agent_id, operations, agents.get(agent_id))


def _agent(agent_id: str, operations: Mapping[str, Action], declared: AgentDeclaration | None) -> Agent:
    first = operations.get(DEFAULT_OPERATION) or next(iter(operations.values()))
    ids = {name: action.id for name, action in operations.items()}
    if declared is None:
        return Agent(id=agent_id, name=first.name, description=first.description, operations=ids)
    if declared.description is None and len(operations) > 1:
        raise DeclarationError(f'agent "{agent_id}"', "description: is missing.", "It has several operations.")
    return Agent(
        id=agent_id,
        name=declared.name,
        description=declared.description or first.description,
        operations=ids,
        version=declared.version,
        capabilities=declared.capabilities,
        extensions=declared.metadata,
    )
