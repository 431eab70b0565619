"""What works at the moment (agent.json section 13): said by the site, and found out by its probes."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from awp_publish.model import Action, Status
from awp_publish.problems import DeclarationError
from awp_publish.threads import run_in_thread

logger: Final = logging.getLogger("awp_publish.status")

LONGEST_PROBE: Final = 5.0
"""Seconds after which a probe that has not answered means no."""

Check = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Probe:
    """A function that looks whether some actions work; with no action named, whether the site as a whole does."""

    check: Check
    actions: tuple[str, ...] = ()
    _busy: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    async def works(self) -> bool:
        """False and an exception mean no; anything else means yes."""
        try:
            async with asyncio.timeout(LONGEST_PROBE):
                return await self._answer() is not False
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            logger.warning("the status probe %s failed", getattr(self.check, "__qualname__", self.check), exc_info=True)
            return False

    async def _answer(self) -> object:
        if inspect.iscoroutinefunction(self.check):
            return await self.check()
        answer = await run_in_thread(self._look)
        return await answer if isinstance(answer, Awaitable) else answer

    def _look(self) -> object:
        """A thread cannot be stopped: while the last look hangs in one, others must not join it there."""
        if not self._busy.acquire(timeout=LONGEST_PROBE):
            raise TimeoutError("The probe has not come back from the last time.")
        try:
            return self.check()
        finally:
            self._busy.release()


@dataclass(frozen=True, slots=True)
class _Findings:
    """What the probes found."""

    operational: bool = True
    degraded_actions: frozenset[str] = frozenset()


class Liveness:
    """What the site says of itself, and what its probes found. Either is enough for something not to work.

    `endpoint` is where a monitor reads all this.
    """

    def __init__(self, endpoint: str) -> None:
        self._said = Status(status_endpoint=endpoint)
        self._found = _Findings()
        self.probes: tuple[Probe, ...] = ()

    @property
    def status(self) -> Status:
        said, found = self._said, self._found
        return replace(
            said,
            operational=said.operational and found.operational,
            degraded_actions=said.degraded_actions | found.degraded_actions,
        )

    def add(self, check: Check, actions: tuple[str, ...]) -> None:
        self.probes += (Probe(check, actions),)

    def say(self, operational: bool | None, degraded_actions: Sequence[str] | None) -> None:
        """Take the site's word; what is None stays as it is. Raises DeclarationError."""
        if isinstance(degraded_actions, str):
            raise DeclarationError("site", "degraded_actions: must be a list, not one text.")
        said = self._said
        self._said = replace(
            said,
            operational=said.operational if operational is None else operational,
            degraded_actions=said.degraded_actions if degraded_actions is None else frozenset(degraded_actions),
        )

    async def ask(self) -> bool:
        """Ask all probes at the same time. True if they find something else than before."""
        before, probes = self._found, self.probes
        answers = await asyncio.gather(*(probe.works() for probe in probes))
        failed = [probe for probe, works in zip(probes, answers, strict=True) if not works]
        self._found = _Findings(
            operational=all(probe.actions for probe in failed),
            degraded_actions=frozenset(action for probe in failed for action in probe.actions),
        )
        return self._found != before

    def check(self, actions: Sequence[Action]) -> None:
        """Refuse what names no action, and forget that it was said. Raises DeclarationError."""
        known = {action.id for action in actions}
        for probe in self.probes:
            for named in sorted(set(probe.actions) - known):
                raise DeclarationError("site.status()", f'there is no action "{named}".')
        for named in sorted(self._said.degraded_actions - known):
            self._said = replace(self._said, degraded_actions=self._said.degraded_actions & known)
            raise DeclarationError("site", f'degraded_actions: there is no action "{named}".')


def _is_cancelled() -> bool:
    """Whether somebody wants this task to end; else a CancelledError is a failure of what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
