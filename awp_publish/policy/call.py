"""What goes through the gates: a `Call` on its way in, an `Outcome` or a Problem on its way out."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from awp_publish.model import Action, JsonObject
from awp_publish.policy.authentication import Credentials, Principal
from awp_publish.problems import Problem

RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]


class Call:
    """One call, whichever door it came through.

    `context` is the door's own request, from which that of a route is made. `gone()` returns when the caller has
    disconnected. For the gates: `credentials()` reads what the request shows of its caller, `claim` is the mark under
    which an idempotent call is in flight, `headers` are what gates add to the answer, whatever it is.

    While it runs: `answer` is the handler's complete one, though the handler may work on; from then on nothing
    interrupts the call. Exactly one result is delivered, before the `deadline` (monotonic seconds) or because of it.
    """

    # Defaults of the class: most calls meet no gate and end soon, and should not pay for what others want to know.
    credentials: Callable[[], Credentials] | None = None
    idempotency_key: str | None = None
    confirmation: str | None = None
    receipts: tuple[str, ...] = ()
    principal: Principal | None = None
    address: str = ""
    headers: RawHeaders = ()
    claim: "Claim | None" = None

    # For sessions: `session` is the id that the caller shows; `conversation` is the id of one that the door keeps for
    # its caller, which need not have begun. `session_id` names the session that the call has, and is no secret.
    # `on_cookies` is told every Set-Cookie of a route's answer; `is_fresh` says that the route is reached from outside.
    session: str | None = None
    conversation: str | None = None
    session_id: str = ""
    has_cookie_jar: bool = False
    on_cookies: "Callable[[list[bytes]], None] | None" = None
    is_fresh: bool = False

    deliver: "Deliver"
    deadline: float = math.inf
    task: "asyncio.Task[Any] | None" = None
    answer: "Result | None" = None
    is_delivered: bool = False
    interrupted: bool = False
    finisher: "asyncio.Future[None] | None" = None
    listener: "asyncio.Future[None] | None" = None

    def __init__(
        self,
        action: Action,
        given: JsonObject,
        request_id: str,
        door: str,
        context: object = None,
        gone: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.action = action
        self.input = given
        self.request_id = request_id
        self.door = door
        self.context = context
        self.gone = gone

    @property
    def caller_id(self) -> str:
        """The known caller's id, "" for nobody."""
        return self.principal.id if self.principal is not None else ""

    def interrupt(self) -> None:
        """Cancel the task in which the call runs."""
        self.interrupted = True
        if self.task is not None:
            self.task.cancel()


@dataclass(slots=True)
class Outcome:
    """What an action answered: JSON text, the same decoded, and the headers worth carrying to the caller."""

    body: bytes
    output: object
    status: int = 200
    headers: RawHeaders = ()


Result: TypeAlias = Outcome | Problem

Deliver: TypeAlias = Callable[[Result], Awaitable[None]]
"""Gives a result to whoever waits for it."""

CallListener: TypeAlias = Callable[[Mapping[str, object]], object]
"""Is given the facts of each call, in the event loop: it must not block."""


async def never_disconnected() -> None:
    """The `gone` of a call that nobody's hanging up shall end."""
    await asyncio.get_running_loop().create_future()


class Claim(NamedTuple):
    """What stands in the store under an idempotency key while its call is in flight."""

    key: str
    value: bytes
    fingerprint: str
