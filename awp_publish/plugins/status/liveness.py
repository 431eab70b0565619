"""What works at the moment: set by the owner, and found out by probes."""

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from awp_publish.calls.threads import run_in_thread
from awp_publish.model import Action, Status, seconds_of
from awp_publish.plugin import DeclaredSite
from awp_publish.problems import DeclarationError
from awp_publish.schema.options import Duration, Flag, LazyAdapter, check

F = TypeVar("F", bound=Callable[..., Any])

logger: Final = logging.getLogger("awp_publish.status")

FLAG: Final[LazyAdapter[bool | None]] = LazyAdapter(Flag | None)
_DURATION: Final[LazyAdapter[str]] = LazyAdapter(Duration)

PROBE_TIMEOUT: Final = 5.0
"""Seconds after which a probe that has not answered counts as failed."""

Check = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Probe:
    """A function that checks whether some actions work, or the site as a whole if `actions` is empty."""

    check: Check
    actions: tuple[str, ...] = ()
    interval: float = 30.0
    _busy: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    async def works(self) -> bool:
        """Return False if the check returns False, raises or times out; any other answer counts as working."""

        def look() -> object:
            # A thread cannot be stopped: while the last check hangs in one, no further thread may hang in it too.
            if not self._busy.acquire(timeout=PROBE_TIMEOUT):
                raise TimeoutError("The probe has not returned since it was last called.")
            try:
                return self.check()
            finally:
                self._busy.release()

        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                if inspect.iscoroutinefunction(self.check):
                    return await self.check() is not False
                answer = await run_in_thread(look)
                return (await answer if isinstance(answer, Awaitable) else answer) is not False
        except (Exception, asyncio.CancelledError) as error:
            # Either this task is being cancelled, or something that the probe awaited was, which is a failed probe.
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0:
                raise
            logger.warning("the status probe %s failed", getattr(self.check, "__qualname__", self.check), exc_info=True)
            return False


class Liveness:
    """The status set by the owner, combined with the results of the probes. Either can mark something as not working.

    The probes run together at the shortest of their intervals; without a lifespan, at requests for the status.
    """

    def __init__(self, site: DeclaredSite) -> None:
        self.probes: tuple[Probe, ...] = ()
        self.checked_at: datetime | None = None
        """When the probes have run last."""
        self._site = site
        self._declared = Status(status_endpoint=site.settings.paths.status)
        self._probed = Status()
        self._last_run = float("-inf")
        self._lock = asyncio.Lock()

    @property
    def status(self) -> Status:
        declared, probed = self._declared, self._probed
        return replace(
            declared,
            operational=declared.operational and probed.operational,
            degraded_actions=declared.degraded_actions | probed.degraded_actions,
        )

    def set_status(self, *, operational: bool | None = None, degraded_actions: Sequence[str] | None = None) -> None:
        """Set the owner's status; what is None stays as it is. `refresh()` publishes it. Raises DeclarationError."""
        if isinstance(degraded_actions, str):
            raise DeclarationError("site", "degraded_actions: must be a list, not one string.")
        check("site", FLAG, operational, "operational")
        before = self._declared
        self._declared = replace(
            before,
            operational=before.operational if operational is None else operational,
            degraded_actions=before.degraded_actions if degraded_actions is None else frozenset(degraded_actions),
        )
        for tell in self._site.change_listeners:
            tell()

    def declare(self, *actions: str, every: str = "30s") -> Callable[[F], F]:
        """Declare a probe: a function that checks whether `actions` work, or the whole site if none is given.

        It returns False or raises if they do not. All probes run together, at the shortest of their intervals; their
        results are published, and calls of an action that does not work are refused. Returns the function unchanged.
        """
        if actions and not isinstance(actions[0], str):
            raise DeclarationError(
                "site.status", 'needs parentheses: write @site.status("action_id") or @site.status().'
            )
        self._site.refuse_when_frozen("site.status()")
        interval = float(seconds_of(check("site.status()", _DURATION, every, "every")))

        def mark(function: F) -> F:
            self.probes += (Probe(function, actions, interval),)
            return function

        return mark

    def publish(self) -> None:
        """Publish the documents again with the present status.

        Each request sees either all old documents or all new ones. Affects this process only: each worker publishes its
        own. Raises DeclarationError for unknown degraded actions.
        """
        self._site.derive_again("status")

    async def probe(self) -> None:
        """Run all probes now, and publish the results if they have changed."""
        before, probes = self._probed, self.probes
        answers = await asyncio.gather(*(probe.works() for probe in probes))
        self.checked_at = datetime.now(UTC)
        failed = [probe for probe, works in zip(probes, answers, strict=True) if not works]
        self._probed = Status(
            operational=all(probe.actions for probe in failed),
            degraded_actions=frozenset(action for probe in failed for action in probe.actions),
        )
        if self._probed != before:
            self.publish()

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Run the probes at their interval while the application runs."""

        async def keep() -> None:
            while True:
                await self.look_again()
                await asyncio.sleep(self._interval)

        task = asyncio.create_task(keep(), name="awp_publish status")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def look_again(self) -> None:
        """Run the probes unless they have run within the interval."""
        async with self._lock:
            if self.probes and time.monotonic() - self._last_run >= self._interval:
                self._last_run = time.monotonic()
                await self.probe()

    @property
    def _interval(self) -> float:
        return min(probe.interval for probe in self.probes)

    def check(self, actions: Sequence[Action]) -> None:
        """Raise DeclarationError for a degraded action that does not exist, and drop it from the status."""
        ids = {action.id for action in actions}
        for probe in self.probes:
            for action_id in sorted(set(probe.actions) - ids):
                raise DeclarationError("site.status()", f'there is no action "{action_id}".')
        for action_id in sorted(self._declared.degraded_actions - ids):
            self._declared = replace(self._declared, degraded_actions=self._declared.degraded_actions & ids)
            raise DeclarationError("site", f'degraded_actions: there is no action "{action_id}".')
