"""What works at the moment, for monitors (agent.json section 13): asked of the probes, and answered at one address."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import orjson

from awp_publish.problems import MethodNotAllowed, Problem
from awp_publish.serve.credentials import refuse_foreign_host
from awp_publish.serve.endpoint import Exchange, Telling
from awp_publish.serve.http import (
    ANY_ORIGIN,
    NO_SNIFFING,
    Receive,
    Reply,
    Scope,
    Send,
    preflight,
    read_fields,
    send_reply,
)
from awp_publish.site import Site

METHODS: Final = "GET, HEAD, OPTIONS"


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


class StatusDoor:
    """Answers GET with what works: the site, and each of its actions."""

    def __init__(self, site: Site, keeper: StatusKeeper, own_hosts: frozenset[str]) -> None:
        self._site = site
        self._keeper = keeper
        self._own_hosts = own_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fields, method = read_fields(scope["headers"]), scope["method"]
        if method == "OPTIONS":
            await send_reply(preflight(METHODS), send)
            return
        try:
            refuse_foreign_host(fields, self._own_hosts)
            if method not in ("GET", "HEAD"):
                raise MethodNotAllowed(f"Read the status with GET, not {method[:20]}.", headers=[("Allow", METHODS)])
        except Problem as problem:
            await Exchange(Telling(self._site.catalog), scope, fields, (ANY_ORIGIN,), send).deliver(problem)
        else:
            await self._keeper.freshen()
            await send_reply(self._reply(method), send)

    def _reply(self, method: str) -> Reply:
        body = orjson.dumps(self._describe())
        headers = (
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            ANY_ORIGIN,
            NO_SNIFFING,
        )
        return Reply(200, headers, b"" if method == "HEAD" else body)

    def _describe(self) -> dict[str, object]:
        status, actions = self._site.liveness.status, self._site.catalog.actions
        degraded = status.degraded_actions
        return {
            "operational": status.operational,
            "degraded_actions": sorted(degraded),
            "actions": {action.id: "degraded" if action.id in degraded else "operational" for action in actions},
            "checked_at": self._keeper.checked_at,
        }
