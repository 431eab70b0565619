"""The status for monitors (agent.json section 13): runs the probes, and serves their results at one address."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import orjson

from awp_publish.calls.call import Outcome
from awp_publish.calls.health import Liveness
from awp_publish.http.cors import PublicCors
from awp_publish.http.endpoint import Endpoint
from awp_publish.http.exchange import Fields
from awp_publish.http.origins import refuse_foreign_host
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.model import Catalog


class StatusKeeper:
    """Runs a site's probes at their interval; without a lifespan, at requests for the status.

    `ask` runs the probes and publishes their results.
    """

    def __init__(self, liveness: Liveness, ask: Callable[[], Awaitable[None]]) -> None:
        self.liveness = liveness
        self._run_probes = ask
        self._last_run = float("-inf")
        self._lock = asyncio.Lock()
        self.checked_at: datetime | None = None

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Run the probes at their interval while the application runs."""

        async def keep() -> None:
            while True:
                await self.refresh()
                await asyncio.sleep(self.liveness.interval)

        task = asyncio.create_task(keep(), name="awp_publish status")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def refresh(self) -> None:
        """Run the probes unless they have run within the interval."""
        async with self._lock:
            if self.liveness.probes and time.monotonic() - self._last_run >= self.liveness.interval:
                self._last_run = time.monotonic()
                await self._run_probes()
                self.checked_at = datetime.now(UTC)


class StatusDoor(Endpoint):
    """Answers GET with the status of the site and of each action."""

    methods = "GET, HEAD, OPTIONS"
    usage = "Read the status with GET"

    def __init__(self, catalog: Catalog, keeper: StatusKeeper, own_origins: frozenset[str]) -> None:
        super().__init__(ProblemRenderer(catalog), PublicCors(), own_origins)
        self._actions = catalog.public.actions
        self._keeper = keeper

    def refuse_foreign(self, fields: Fields) -> None:
        """Refuse a browser's request with a foreign Host. Cookies have no effect here."""
        refuse_foreign_host(fields, self._own_origins)

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer with the status, after running the probes if their results are out of date."""
        await self._keeper.refresh()
        status = self._keeper.liveness.status
        # If the site is not operational, no action is.
        degraded = status.degraded_actions if status.operational else {action.id for action in self._actions}
        works = {action.id: "degraded" if action.id in degraded else "operational" for action in self._actions}
        described = {
            "operational": status.operational,
            "degraded_actions": sorted(degraded.intersection(works)),
            "actions": works,
            "checked_at": self._keeper.checked_at,
        }
        await request.deliver(Outcome(orjson.dumps(described), None))
