"""`site.agent(...)`: an agent's handle, on which its operations are declared."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, Literal, Protocol, TypeVar

from awp_publish.declare.settings.actions import ActionOptions, ActionSettings, AgentSettings
from awp_publish.declare.settings.keywords import Options, takes_id
from awp_publish.model import DEFAULT_OPERATION
from awp_publish.problems import DeclarationError
from awp_publish.schema.options import TOKEN, check

ACTION_OPTIONS: Final = frozenset(field.name for field in fields(ActionSettings))
AGENT_OPTIONS: Final = frozenset(field.name for field in fields(AgentSettings))

_NAMING: Final = ("name", "description")
"""Options of an agent's decorator that also hold for its default operation, but not for named operations."""

F = TypeVar("F", bound=Callable[..., Any] | type)


class Declaring(Protocol):
    """The method of a site that declares an action; it returns a decorator that returns its function unchanged."""

    def __call__(
        self,
        subject: str,
        action_id: str,
        options: Options,
        kind: Literal["route", "either"],
        operation: str | None = None,
        agent: str | None = None,
        /,
    ) -> Callable[[F], F]: ...


class AgentHandle:
    """A declared agent, on which operations are declared."""

    def __init__(self, declaring: Declaring, agent_id: str, options: Options) -> None:
        """Take the agent's options as given; those of an action or of a plug-in hold for each operation."""
        own = (AGENT_OPTIONS - ACTION_OPTIONS).union(_NAMING)
        self._declaring = declaring
        self._id = agent_id
        self._named = {name: value for name, value in options.items() if name in _NAMING}
        self._shared = {name: value for name, value in options.items() if name not in own}
        self._declare: Callable[[Callable[..., Any] | type], object] | None = None

    def __call__(self, function: F) -> F:
        """Declare `function` as the agent's default operation, with its name and description. Returns it unchanged."""
        if self._declare is None:
            self._declare = self.operation(DEFAULT_OPERATION, **self._named)
        self._declare(function)
        return function

    @takes_id(ActionOptions)
    def operation(self, operation_name: str, options: Options) -> Callable[[F], F]:
        """Declare a function (with or without a route) as the operation `operation_name` of this agent.

        The id of its action is `{agent}_{operation_name}`, or `{agent}` for the operation "default".
        """
        subject = f'operation "{operation_name}" of agent "{self._id}"'
        if not isinstance(operation_name, str):
            raise DeclarationError(f'agent "{self._id}"', 'an operation has a name: @agent.operation("find").')
        suffix = "" if operation_name == DEFAULT_OPERATION else "_" + operation_name.lower().replace("-", "_")
        check(subject, TOKEN, operation_name, "operation")
        return self._declaring(
            subject, self._id + suffix, {**self._shared, **options}, "either", operation_name, self._id
        )
