"""The runtime of an actions.json: a valid map, composed with its imports, at work upon one page.

    action_map = ActionMap.read(document)
    runtime = Runtime(action_map, page, handlers={"agents.invoke": invoke})
    result = await runtime.call("search_books", {"q": "Emma"})

A call ends with a `ToolResult` or raises `RuntimeFailure`, which has the codes of the Actions Bridge Protocol.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

from awp_publish.browsing.live_page import LivePage
from awp_publish.checks import Finding
from awp_publish.model import JsonObject

Code: TypeAlias = Literal[
    "unknown_action",
    "invalid_input",
    "runtime_not_ready",
    "permission_denied",
    "ambiguous_runtime",
    "runtime_not_found",
    "capability_unavailable",
    "missing_handler",
    "handler_failed",
    "handler_timeout",
    "invalid_result",
    "target_not_found",
    "state_mismatch",
    "drift_detected",
    "unsafe_state",
    "transport_failed",
]
"""The stable codes of the Actions Bridge Protocol; there are no others at the top of a failure."""


class RuntimeFailure(Exception):
    """A call, a reading or a check that failed: the `error` of an `action_error`.

    Codes of workflows and projections stand in `evidence["code"]`; what was done stands in `evidence["steps"]`.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        evidence: Mapping[str, object] | None = None,
        *,
        severity: str = "major",
        recoverable: bool = True,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code: Code = code
        self.message = message
        self.severity, self.recoverable = severity, recoverable
        self.evidence: JsonObject = dict(evidence or {})

    def describe(self) -> JsonObject:
        """Return the `error` member: code, message, severity, recoverable, evidence."""
        return {
            "code": self.code,
            "message": self.message,
            "severity": self.severity,
            "recoverable": self.recoverable,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True)
class HandlerCall:
    """A call of a handler: the tool, the agent's own arguments, and those that the map binds (`x_actions.binding`)."""

    tool: str
    arguments: JsonObject
    bound: JsonObject

    def merged(self) -> JsonObject:
        """Return both together; the agent's own win."""
        return {**self.bound, **self.arguments}


Handler: TypeAlias = Callable[[HandlerCall], Awaitable[object]]
"""What carries a tool out beside the page. It may raise RuntimeFailure; anything else becomes `handler_failed`."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The output of a tool, and each step that led to it: `{id, primitive, ok, skipped, duration_ms, settle?}`."""

    output: object
    steps: Sequence[JsonObject] = ()


Progress: TypeAlias = Callable[[str, bool], None]
"""Told before each step: its id, and whether it may change something (for resuming, and for hang-ups)."""


@dataclass(frozen=True, slots=True)
class ActionMap:
    """A map that was read and checked, with its imports composed in. Shared by all runtimes of a process.

    A map with errors exposes nothing: its `document` is empty, and `findings` say why.
    """

    document: JsonObject
    findings: Sequence[Finding]

    @property
    def is_valid(self) -> bool:
        """Whether there is nothing that a reader has to refuse."""
        return not any(finding.level == "error" for finding in self.findings)

    @classmethod
    def read(cls, document: bytes | str | Mapping[str, object], *, path: str = "", lenient: bool = False) -> ActionMap:
        """Return a map that is checked. Imports are left out; see `composed`."""
        raise NotImplementedError


CALL_SECONDS: Final = 30.0


class Runtime:
    """One map at work upon one page. Calls are made one after the other.

    `handlers` are the approved functions outside of the page, by the name that maps have for them; functions of the
    page's own scripts are asked for after them. `private` says whose map it is where it is nobody else's.
    """

    def __init__(
        self,
        action_map: ActionMap,
        page: LivePage,
        *,
        handlers: Mapping[str, Handler] | None = None,
        seconds: float = CALL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.map, self.page = action_map, page

    @property
    def is_ready(self) -> bool:
        """Whether the map is valid. Until then everything raises `runtime_not_ready` with the findings."""
        return self.map.is_valid

    async def list(self) -> JsonObject:
        """Return `actions` and `projections` that can be used here and now (`actions.site`, mode list).

        An action has `name`, `description`, `input_schema` and, where it is bound to addresses, `target_url_contains`.
        """
        raise NotImplementedError

    async def context(self, task: str = "") -> Sequence[JsonObject]:
        """Return the context blocks that the address, the states, the targets and the task select."""
        raise NotImplementedError

    async def states(self) -> JsonObject:
        """Return `current` (names), `unknown` (those without diagnostics) and `diagnostics` of each state."""
        raise NotImplementedError

    async def status(self) -> JsonObject:
        """Return `url`, `states`, `attachments` and `observed_at`: a `runtime_status` but for its ids.

        Attachments are installed, removed and attached again as their lifecycle says.
        """
        raise NotImplementedError

    async def call(
        self,
        tool: str,
        arguments: object,
        *,
        seconds: float | None = None,
        on_step: Progress | None = None,
    ) -> ToolResult:
        """Carry out a tool. Raises RuntimeFailure, after which the runtime can be used again.

        `seconds` bounds the call, within the runtime's own bound; then `handler_timeout` has `elapsed_ms` and
        `step_id`, and steps that have not begun do not begin.
        """
        raise NotImplementedError

    async def state_read(self, projection: str | None = None) -> JsonObject:
        """Return the state of a projection, of the only one in scope without a name. Raises RuntimeFailure."""
        raise NotImplementedError

    async def state_summary(
        self, projection: str | None = None, summary: str | None = None, max_bytes: int | None = None
    ) -> JsonObject:
        """Return a summary of a projection's state, its first without a name. Raises RuntimeFailure."""
        raise NotImplementedError

    async def state_diff(self, projection: str | None = None) -> JsonObject:
        """Return what changed in a projection's state since it was last read. Raises RuntimeFailure."""
        raise NotImplementedError

    async def check(self, ids: Sequence[str] | None = None) -> Sequence[JsonObject]:
        """Run checks of the map, all without ids, and return their results, each with its evidence."""
        raise NotImplementedError

    async def signals(self) -> Sequence[JsonObject]:
        """Return the events of the page since the last call that the map enables and whose payload is valid.

        Each has `event_id`, `name`, `event`, `url`, `payload`, `observed_at`: a `dom_event` but for its runtime.
        """
        raise NotImplementedError

    @property
    def dropped_events(self) -> int:
        """The number of events that were not forwarded, for their payload does not fit."""
        raise NotImplementedError
