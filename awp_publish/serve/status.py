"""What works at the moment, for monitors (agent.json section 13): asked of the probes, and answered at one address."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import orjson

from awp_publish.serve.credentials import refuse_foreign_host
from awp_publish.serve.endpoint import DoorRequest, Endpoint, ProblemRenderer
from awp_publish.serve.http import ANY_ORIGIN, NO_SNIFFING, Fields, PublicCors, Reply
from awp_publish.site import Site


class StatusKeeper:
    """Asks a site's probes every `interval` seconds, or, where no server keeps it running, whenever somebody asks."""

    def __init__(self, site: Site, interval: float) -> None:
        self._site = site
        self._interval = interval
        self._asked = float("-inf")
        self._asking = asyncio.Lock()
        self.checked_at: datetime | None = None

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Ask again and again, as long as the application runs."""
        task = asyncio.create_task(self._keep(), name="awp_publish status")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _keep(self) -> None:
        while True:
            await self.freshen()
            await asyncio.sleep(self._interval)

    async def freshen(self) -> None:
        """Ask the probes unless they were asked within the interval."""
        async with self._asking:
            if self._site.liveness.probes and time.monotonic() - self._asked >= self._interval:
                self._asked = time.monotonic()
                await self._site.probe()
                self.checked_at = datetime.now(UTC)


class StatusDoor(Endpoint):
    """Answers GET with what works: the site, and each of its actions."""

    methods = "GET, HEAD, OPTIONS"
    usage = "Read the status with GET"

    def __init__(self, site: Site, keeper: StatusKeeper, own_hosts: frozenset[str]) -> None:
        super().__init__(ProblemRenderer(site.catalog), PublicCors(), own_hosts)
        self._site = site
        self._keeper = keeper

    def refuse_foreign(self, fields: Fields) -> None:
        """Refuse a browser that asks under another name; cookies do nothing here."""
        refuse_foreign_host(fields, self._own_hosts)

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer with what works, after the probes were asked if their answers are old."""
        await self._keeper.freshen()
        body = orjson.dumps(self._describe())
        headers = (
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            ANY_ORIGIN,
            NO_SNIFFING,
        )
        await request.reply(Reply(200, headers, body))

    def _describe(self) -> dict[str, object]:
        status, actions = self._site.liveness.status, self._site.catalog.actions
        # A site that does not work has no action that does.
        degraded = status.degraded_actions if status.operational else {action.id for action in actions}
        return {
            "operational": status.operational,
            "degraded_actions": sorted(degraded),
            "actions": {action.id: "degraded" if action.id in degraded else "operational" for action in actions},
            "checked_at": self._keeper.checked_at,
        }
