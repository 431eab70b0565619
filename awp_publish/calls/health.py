"""The present status of a site (agent.json section 13): set by its owner, and found out by its probes."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from awp_publish.calls.threads import run_in_thread
from awp_publish.model import Action, Status
from awp_publish.problems import DeclarationError

logger: Final = logging.getLogger("awp_publish.status")

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


@dataclass(frozen=True, slots=True)
class _Findings:
    """The combined results of all probes."""

    operational: bool = True
    degraded_actions: frozenset[str] = frozenset()


class Liveness:
    """The status set by the owner, combined with the results of the probes. Either can mark something as not working.

    `endpoint` is the address at which a monitor reads the status.
    """

    def __init__(self, endpoint: str) -> None:
        self._declared = Status(status_endpoint=endpoint)
        self._probed = _Findings()
        self.probes: tuple[Probe, ...] = ()

    @property
    def status(self) -> Status:
        declared, probed = self._declared, self._probed
        return replace(
            declared,
            operational=declared.operational and probed.operational,
            degraded_actions=declared.degraded_actions | probed.degraded_actions,
        )

    @property
    def interval(self) -> float:
        """Seconds between two rounds of probes: the shortest interval that a probe has."""
        return min((probe.interval for probe in self.probes), default=30.0)

    def add(self, check: Check, actions: tuple[str, ...], interval: float) -> None:
        self.probes += (Probe(check, actions, interval),)

    def set_status(self, operational: bool | None, degraded_actions: Sequence[str] | None) -> None:
        """Set the owner's status; what is None stays as it is. Raises DeclarationError."""
        if isinstance(degraded_actions, str):
            raise DeclarationError("site", "degraded_actions: must be a list, not one string.")
        before = self._declared
        self._declared = replace(
            before,
            operational=before.operational if operational is None else operational,
            degraded_actions=before.degraded_actions if degraded_actions is None else frozenset(degraded_actions),
        )

    async def run_probes(self) -> bool:
        """Run all probes concurrently. Returns True if the results have changed."""
        before, probes = self._probed, self.probes
        answers = await asyncio.gather(*(probe.works() for probe in probes))
        failed = [probe for probe, works in zip(probes, answers, strict=True) if not works]
        self._probed = _Findings(
            operational=all(probe.actions for probe in failed),
            degraded_actions=frozenset(action for probe in failed for action in probe.actions),
        )
        return self._probed != before

    def check(self, actions: Sequence[Action]) -> None:
        """Raise DeclarationError for a degraded action that does not exist, and drop it from the status."""
        ids = {action.id for action in actions}
        for probe in self.probes:
            for named in sorted(set(probe.actions) - ids):
                raise DeclarationError("site.status()", f'there is no action "{named}".')
        for named in sorted(self._declared.degraded_actions - ids):
            self._declared = replace(self._declared, degraded_actions=self._declared.degraded_actions & ids)
            raise DeclarationError("site", f'degraded_actions: there is no action "{named}".')
