"""What can be called at each door, and the answers to names that nobody offers."""

from collections.abc import Collection, Mapping
from itertools import islice
from typing import Final

from awp_publish.model import DEFAULT_OPERATION, Action, Agent, Catalog
from awp_publish.problems import Problem, UnknownAgent, UnknownOperation, did_you_mean

MAX_KNOWN: Final = 20
"""Names that are listed in the refusal of an unknown one."""

NOBODY: Final = "\n"
"""A scope that no token has: scopes are separated by white space."""


class OfferedActions:
    """The actions of a catalog, by the doors that offer them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._offered: dict[str, Mapping[tuple[str, str | None], Action]] = {}
        self._public: dict[str, Mapping[str, Agent]] = {}

    def at(self, door: str) -> Mapping[tuple[str, str | None], Action]:
        """Return the actions that a door offers, by agent and operation.

        An omitted operation (None) means "default" (WoA section 5.1). Actions for a limited audience are included;
        their guards decide whether a caller may know of them.
        """
        agents = self._offered.get(door)
        if agents is None:
            actions = {action.id: action for action in self._catalog.actions}
            agents = self._offered[door] = {
                (agent.id, named): actions[action_id]
                for agent in self._catalog.exposed_at(door).agents
                for name, action_id in agent.operations.items()
                for named in ((name, None) if name == DEFAULT_OPERATION else (name,))
            }
        return agents

    def find(self, door: str, agent_id: str, operation: str | None) -> Action:
        """Return the action of an agent and operation at a door. Raises UnknownAgent or UnknownOperation."""
        action = self.at(door).get((agent_id, operation))
        if action is None:
            raise self.unknown(door, agent_id, operation)
        return action

    def unknown(self, door: str, agent_id: str, operation: str | None) -> Problem:
        """Return the problem for an unknown agent or operation. It lists only names that are public."""
        agents = self._public.get(door)
        if agents is None:
            agents = self._public[door] = {agent.id: agent for agent in self._catalog.exposed_at(door).public.agents}
        agent = agents.get(agent_id)
        if agent is None:
            suggestion = did_you_mean(agent_id, agents) or _names("agents", agents)
            return UnknownAgent(f'This site has no agent "{agent_id[:100]}". {suggestion}')
        named = "no default operation" if operation is None else f'no operation "{operation[:100]}"'
        suggestion = did_you_mean(operation or "", agent.operations)
        names = _names("operations", agent.operations)
        return UnknownOperation(f'Agent "{agent_id}" has {named}. {suggestion}{" " if suggestion else ""}{names}')


def _names(what: str, names: Collection[str]) -> str:
    more = f" and {len(names) - MAX_KNOWN} more" if len(names) > MAX_KNOWN else ""
    return f"Known {what}: {', '.join(islice(names, MAX_KNOWN)) or 'none'}{more}."


def absent_action(catalog: Catalog) -> Action | None:
    """Return an action that nobody may know of, None if the catalog has no other such one.

    At a site with actions for a limited audience, a call of an unknown name is made as one of this action: it is then
    refused after the same steps as that of a name that exists, so that nobody can tell the two apart.
    """
    if all(action.is_public for action in catalog.actions):
        return None
    return Action(
        id="",
        name="",
        description="",
        inputs={},
        outputs={},
        agent_id="",
        type="custom",
        effect="write",
        audience=NOBODY,
    )
