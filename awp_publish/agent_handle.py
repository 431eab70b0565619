"""What `site.agent(...)` returns: a decorator for a single function, and a namespace for several operations."""

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, TypeVar, Unpack, cast

from awp_publish.model import DEFAULT_OPERATION
from awp_publish.options import ActionOptions, AgentOptions
from awp_publish.problems import DeclarationError

_ACTION_OPTIONS: Final = frozenset(ActionOptions.__annotations__)
_NAMING: Final = ("name", "description")
"""What an agent's decorator gives to its one operation, and to none of several."""

F = TypeVar("F", bound=Callable[..., Any] | type)


class Declaring(Protocol):
    """How a site declares an action: a decorator that returns what it is given."""

    def __call__(
        self, subject: str, action_id: str, options: ActionOptions, kind: Literal["route", "either"], /
    ) -> Callable[[F], F]: ...


class AgentHandle:
    """One declared agent, whose operations are still to be declared."""

    def __init__(self, declaring: Declaring, agent_id: str, options: AgentOptions) -> None:
        """`options` are as they were given: those of an action hold for each operation."""
        self._declaring = declaring
        self._id = agent_id
        given = cast(ActionOptions, {key: value for key, value in options.items() if key in _ACTION_OPTIONS})
        self._named: ActionOptions = cast(ActionOptions, {key: given[key] for key in _NAMING if key in given})
        self._shared: ActionOptions = cast(
            ActionOptions, {key: value for key, value in given.items() if key not in _NAMING}
        )
        self._declare: Callable[[Callable[..., Any] | type], object] | None = None

    def __call__(self, function: F) -> F:
        """Declare `function` as the agent's default operation, under its name and description. Returns it unchanged."""
        if self._declare is None:
            self._declare = self.operation(DEFAULT_OPERATION, **self._named)
        self._declare(function)
        return function

    def operation(self, name: str, /, **options: Unpack[ActionOptions]) -> Callable[[F], F]:
        """Declare a function (with or without a route) as the operation `name` of this agent.

        The action behind it is called `{agent}_{name}`, and just `{agent}` for "default".
        """
        subject = f'operation "{name}" of agent "{self._id}"'
        if not isinstance(name, str):
            raise DeclarationError(f'agent "{self._id}"', 'an operation has a name: @agent.operation("find").')
        suffix = "" if name == DEFAULT_OPERATION else "_" + name.lower().replace("-", "_")
        merged: ActionOptions = {**self._shared, **options, "agent": self._id, "operation": name}
        return self._declaring(subject, self._id + suffix, merged, "either")
