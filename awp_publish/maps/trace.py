"""The progress of a call, step by step."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from awp_publish.maps.performing import HARMLESS
from awp_publish.schema import JsonObject

Progress: TypeAlias = Callable[[str, bool], None]
"""Called before each step with its id and whether it may change something."""


@dataclass(slots=True)
class Trace:
    """The progress of a call: summaries of completed steps, the current step, and differences (drift) found."""

    steps: list[dict[str, object]] = field(default_factory=list)
    current: str | None = None
    has_changed: bool = False
    drift: list[str] = field(default_factory=list)
    on_step: Progress | None = None

    def begin(self, step_id: str, primitive: str) -> None:
        """Record that a step begins."""
        changes = primitive not in HARMLESS
        self.current, self.has_changed = step_id, self.has_changed or changes
        if self.on_step is not None:
            self.on_step(step_id, changes)

    def end(
        self,
        step: JsonObject,
        began: float,
        *,
        ok: bool = True,
        skipped: bool = False,
        settle: JsonObject | None = None,
    ) -> None:
        """Record how a step ended."""
        summary = {"id": step.get("id"), "primitive": step.get("primitive", step.get("type")), "ok": ok}
        summary |= {"skipped": skipped, "duration_ms": round((time.monotonic() - began) * 1000)}
        self.steps.append(summary | ({} if settle is None else {"settle": settle}))
        self.current = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The output of a tool, and each step that led to it: `{id, primitive, ok, skipped, duration_ms, settle?}`."""

    output: object
    steps: Sequence[JsonObject] = ()
    drift: Sequence[str] = ()
    """Differences between the page and the map that did not prevent the tool from running."""
