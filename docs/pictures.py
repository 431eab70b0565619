"""Take the pictures of the overview anew: `make pictures`. Needs chromium."""

import asyncio
from pathlib import Path
from typing import Final

from awp_publish.maps.script_page import open_chromium
from demo_site.agents import DOORS
from demo_site.app import create_app
from tests.serve.live_server import serve

PICTURE: Final = Path(__file__).parent / "pictures" / "overview.png"


async def take_picture() -> None:
    """Search the demo's books through all doors, and keep what is seen of it."""
    async with serve(lambda url: create_app(url=url, doors=DOORS)) as url, open_chromium([url]) as browser:
        page = (await browser.open(f"{url}/agents/try/search_books?q=sea&page_size=1")).page
        await page.set_viewport_size({"width": 1280, "height": 1180})
        await page.click("text=Send through all doors")
        await page.wait_for_selector("#answers article:nth-of-type(6)")
        await page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        PICTURE.write_bytes(await page.screenshot())


if __name__ == "__main__":
    asyncio.run(take_picture())
