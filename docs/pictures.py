"""Take the pictures of the overview and of sign-in anew: `make pictures`. Needs chromium."""

import asyncio
import random
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httpx
from fastapi import FastAPI

from awp_publish import Site
from awp_publish.maps.chromium import open_chromium
from awp_publish.plugins.traffic.record import TrafficRecord
from benchmarks.person import ACCOUNT
from demo_site.agents import DOORS
from demo_site.app import create_app
from tests.live_server import serve

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


async def ask_for_consent(url: str, page: Any) -> None:
    """Sign the reader in, and stop where they are asked whether Claude may act for them."""
    back = "https://claude.ai/api/mcp/auth_callback"
    async with httpx.AsyncClient() as http:
        client = {"client_name": "Claude", "redirect_uris": [back]}
        client_id = (await http.post(f"{url}/agents/sign-in/register", json=client)).json()["client_id"]
    asked = {"response_type": "code", "client_id": client_id, "redirect_uri": back}
    asked |= {"code_challenge": "x" * 43, "code_challenge_method": "S256"}
    await page.goto(f"{url}/agents/sign-in/authorize?{urlencode(asked)}")
    for name, value in ACCOUNT.items():
        await page.fill(f".sign-in-form input[name={name}]", value)
    await page.click(".sign-in-form button")
    await page.wait_for_selector("button.allow")


async def take_pictures() -> None:
    """Keep the first screen, the page of one action after a search through all doors, and the question of sign-in."""
    apps: list[FastAPI] = []

    def make(url: str) -> FastAPI:
        apps.append(create_app(url=url, doors=DOORS))
        return apps[-1]

    async with serve(make) as url, open_chromium([url]) as browser:
        page = (await browser.open(f"{url}/agents/try/search_books?q=sea&page_size=1")).page
        await page.set_viewport_size({"width": 1280, "height": 1560})
        await page.click("text=Send through all doors")
        await page.wait_for_selector("#answers article:nth-of-type(6)")
        await page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        (PICTURES / "overview-form.png").write_bytes(await page.screenshot())
        await page.set_viewport_size({"width": 720, "height": 860})
        await ask_for_consent(url, page)
        (PICTURES / "sign-in.png").write_bytes(await page.screenshot())
        await page.set_viewport_size({"width": 1280, "height": 1180})
        [site] = (one.kwargs["site"] for one in apps[0].user_middleware if "site" in one.kwargs)
        assert isinstance(site, Site)
        await seed(site)
        await page.goto(f"{url}/agents")
        (PICTURES / "overview.png").write_bytes(await page.screenshot())


if __name__ == "__main__":
    asyncio.run(take_pictures())
