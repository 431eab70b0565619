"""From declarations and the application's routes to frozen actions and agents.

Every mistake is a DeclarationError that names the action and says what to do.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal, cast

from awp_publish.describe import (
    Behind,
    Defaults,
    describe_function_action,
    describe_route_action,
    make_action,
    title_of,
)
from awp_publish.discover import Route
from awp_publish.discover.routes import RouteIndex, choose, docstring_of
from awp_publish.include import Inclusion, include_routes
from awp_publish.model import DEFAULT_OPERATION, Action, Agent, Door, JsonObject, SiteFacts
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
    defaults: Defaults,
) -> tuple[tuple[Action, ...], tuple[Agent, ...]]:
    """All actions and agents of a site, in the order of their declaration. Raises DeclarationError."""
    index = RouteIndex(routes)
    actions = [_resolve_one(declaration, agents, index, defaults) for declaration in declarations]
    for inclusion in inclusions:
        actions += include_routes(inclusion, routes, actions, defaults)
    _check_dependencies(actions)
    return tuple(actions), tuple(_group(actions, agents))


# --- One declaration ---


def _resolve_one(
    declaration: Declaration, agents: Mapping[str, AgentDeclaration], index: RouteIndex, defaults: Defaults
) -> Action:
    agent = _agent_of(declaration, agents)
    behind = _find_behind(declaration, index)
    description = _description(declaration, behind) or (agent.description if agent else None)
    if not description:
        raise DeclarationError(
            declaration.subject, "description: is missing.", "Write a docstring or give description=..."
        )
    return make_action(declaration.subject, declaration.id, description, declaration.options, behind, defaults)


def _agent_of(declaration: Declaration, agents: Mapping[str, AgentDeclaration]) -> AgentDeclaration | None:
    """The agent that an action says to be an operation of."""
    subject, named = declaration.subject, declaration.options.get("agent")
    if named is None and "operation" in declaration.options:
        raise DeclarationError(subject, "operation: is missing its agent.", 'Give agent="..." as well.')
    if named is None and declaration.id in agents:
        raise DeclarationError(
            subject, f'has the id of agent "{declaration.id}".', "Make it an operation with agent=..., or rename it."
        )
    if named is not None and named not in agents:
        raise DeclarationError(
            subject, f'agent: "{named}" is not declared.', f'Add site.agent("{named}", description="...").'
        )
    return agents.get(named) if named is not None else None


def _description(declaration: Declaration, behind: Behind) -> str | None:
    """A class endpoint's docstring is about all of its methods, so the method's own comes first."""
    found = (docstring_of(declaration.function), behind.operation.description)
    first, second = reversed(found) if isinstance(declaration.function, type) else found
    return declaration.options.get("description") or first or second


def _find_behind(declaration: Declaration, index: RouteIndex) -> Behind:
    subject, options = declaration.subject, declaration.options
    if declaration.kind == "path":
        route = index.of_path(subject, options["method"], options["path"])
        return describe_route_action(subject, (route, options["method"]), options)
    found = index.of_handler(declaration.function)
    if found:
        return describe_route_action(subject, choose(subject, found, options), options)
    if declaration.kind == "route" or declaration.function is None:
        raise DeclarationError(
            subject,
            f"no route of this application leads to {_name_of(declaration.function)}.",
            "Register it with a route, keep functools.wraps in decorators around it, or use @site.agent.",
        )
    return describe_function_action(subject, declaration.function, options)


def _name_of(function: object) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', '?')}.{getattr(named, '__qualname__', '?')}"


# --- The whole ---


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


def check_skills(actions: Sequence[Action], doors: Iterable[Door]) -> None:
    """Refuse an A2A door behind which nothing can be called: an agent card names its skills (A2A 1.0, AgentCard)."""
    if not actions and any(door.protocol == "a2a" for door in doors):
        raise DeclarationError(
            "site",
            'doors: "a2a" has nothing to call; an agent card names a skill.',
            "Declare an action, or leave it out.",
        )


def _group(actions: Sequence[Action], agents: Mapping[str, AgentDeclaration]) -> Iterable[Agent]:
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
