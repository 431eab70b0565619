"""How routes are reached, and how plug-ins take part in every call."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from awp_publish.calls.call import Call, Deliver, Outcome, Result
from awp_publish.calls.observe import Carry

Reach: TypeAlias = Callable[[Call], Awaitable[Result]]
"""Handles a call. Sets the call's `answer` once it is complete; returns when the handler has ended."""

Accept: TypeAlias = Callable[[Call], Awaitable[Outcome]]
"""Accepts a call of a background action, to be run later. Raises StoreUnavailable."""

Handle: TypeAlias = Callable[[Any], Awaitable[Any]]
"""A handler that takes an input or a whole call."""


class Routes:
    """The routes behind the actions of a catalog, which `call` reaches."""

    def __init__(self, call: Reach) -> None:
        self.call = call

    def check(self, call: Call) -> None:
        """Raise InvalidInput if a call cannot be sent to its route."""

    async def rehearse(self, call: Call) -> None:
        """Run only the security checks of a call's route. Raises the Problem of a caller who may not call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHooks:
    """How a plug-in takes part in every call of one address.

    `accept` takes calls of background actions to be run later. `carry` runs a call within something of its own, such as
    the cookies of its caller's session. `handlers` take the calls of actions that the plug-in has declared, by their
    ids. `around` wraps the whole path of a call, and `around_handler` every handler.
    """

    accept: Accept | None = None
    carry: Callable[[Carry, Call, Deliver], Awaitable[None]] | None = None
    handlers: Mapping[str, Reach] = field(default_factory=dict)
    around: Callable[[Carry], Carry] | None = None
    around_handler: Callable[[Handle], Handle] | None = None
