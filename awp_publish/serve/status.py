"""The status for monitors (agent.json section 13): asked of the probes, and answered at one address."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import orjson

from awp_publish.health import Liveness
from awp_publish.model import Catalog
from awp_publish.policy.call import Outcome
from awp_publish.serve.credentials import refuse_foreign_host
from awp_publish.serve.endpoint import DoorRequest, Endpoint, ProblemRenderer
from awp_publish.serve.http import Fields, PublicCors


class StatusKeeper:
    """Asks a site's probes at their interval, or, where no server keeps it running, whenever somebody asks.

    `ask` asks them, and publishes what they find.
    """

    def __init__(self, liveness: Liveness, ask: Callable[[], Awaitable[None]]) -> None:
        self.liveness = liveness
        self._ask = ask
        self._asked = float("-inf")
        self._asking = asyncio.Lock()
        self.checked_at: datetime | None = None

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Ask again and again, as long as the application runs."""

        async def keep() -> None:
            while True:
                await self.freshen()
                await asyncio.sleep(self.liveness.interval)

        task = asyncio.create_task(keep(), name="awp_publish status")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def freshen(self) -> None:
        """Ask the probes unless they were asked within the interval."""
        async with self._asking:
            if self.liveness.probes and time.monotonic() - self._asked >= self.liveness.interval:
                self._asked = time.monotonic()
                await self._ask()
                self.checked_at = datetime.now(UTC)


class StatusDoor(Endpoint):
    """Answers GET with what works: the site, and each of its actions."""

    methods = "GET, HEAD, OPTIONS"
    usage = "Read the status with GET"

    def __init__(self, catalog: Catalog, keeper: StatusKeeper, own_hosts: frozenset[str]) -> None:
        super().__init__(ProblemRenderer(catalog), PublicCors(), own_hosts)
        self._actions = catalog.public.actions
        self._keeper = keeper

    def refuse_foreign(self, fields: Fields) -> None:
        """Refuse a browser that asks under another name; cookies do nothing here."""
        refuse_foreign_host(fields, self._own_hosts)

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer with what works, after the probes were asked if their answers are old."""
        await self._keeper.freshen()
        status = self._keeper.liveness.status
        # A site that does not work has no action that does.
        degraded = status.degraded_actions if status.operational else {one.id for one in self._actions}
        works = {one.id: "degraded" if one.id in degraded else "operational" for one in self._actions}
        described = {
            "operational": status.operational,
            "degraded_actions": sorted(degraded.intersection(works)),
            "actions": works,
            "checked_at": self._keeper.checked_at,
        }
        await request.deliver(Outcome(orjson.dumps(described), None))
