"""Take the pictures of the overview anew: `make pictures`. Needs chromium."""

import asyncio
import random
import time
from pathlib import Path
from typing import Final

from fastapi import FastAPI

from awp_publish import Site
from awp_publish.maps.script_page import open_chromium
from awp_publish.plugins.traffic.record import TrafficRecord
from demo_site.agents import DOORS
from demo_site.app import create_app
from tests.serve.live_server import serve

PICTURES: Final = Path(__file__).parent / "pictures"
DAY: Final = 86_400.0
OUTCOMES: Final = {"ok": 85, "CONFIRMATION_REQUIRED": 8, "INVALID_INPUT": 4, "RATE_LIMITED": 2, "HANDLER_FAILED": 1}


async def seed(site: Site, days: int = 30) -> None:
    """Record calls of a month, the same ones each time."""
    chance = random.Random(7)
    actions = [action.id for action in site.catalog.actions]
    for ago in range(days):
        record = TrafficRecord(lambda: site.store, clock=lambda ago=ago: time.time() - ago * DAY)  # type: ignore[misc]
        for _ in range(chance.randint(60, 120) + 4 * (days - ago)):
            [outcome] = chance.choices(list(OUTCOMES), list(OUTCOMES.values()))
            [door] = chance.choices(["mcp", "woa", "plain", "a2a"], [6, 2, 2, 1])
            record.add(door, chance.choice(actions), "", "unknown", outcome, chance.lognormvariate(2.2, 0.9))
        await record.flush()


async def take_pictures() -> None:
    """Keep the first screen, and the page of one action after a search through all doors."""
    apps: list[FastAPI] = []

    def make(url: str) -> FastAPI:
        apps.append(create_app(url=url, doors=DOORS))
        return apps[-1]

    async with serve(make) as url, open_chromium([url]) as browser:
        page = (await browser.open(f"{url}/agents/try/search_books?q=sea&page_size=1")).page
        await page.set_viewport_size({"width": 1280, "height": 1180})
        await page.click("text=Send through all doors")
        await page.wait_for_selector("#answers article:nth-of-type(6)")
        await page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        (PICTURES / "overview-form.png").write_bytes(await page.screenshot())
        [site] = (one.kwargs["site"] for one in apps[0].user_middleware if "site" in one.kwargs)
        assert isinstance(site, Site)
        await seed(site)
        await page.goto(f"{url}/agents")
        (PICTURES / "overview.png").write_bytes(await page.screenshot())


if __name__ == "__main__":
    asyncio.run(take_pictures())
