"""A site whose one route streams a text in two parts."""

import asyncio
from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from awp_publish import AgentPublisher, Site


def make_storyteller(site: Site, is_told: asyncio.Event) -> FastAPI:
    """Make an application with the action `story`, whose second part waits until its first one `is_told`."""
    app = FastAPI()

    @app.get("/story")
    @site.action("story")
    async def story() -> StreamingResponse:
        """Tell a story."""

        async def parts() -> AsyncIterator[str]:
            yield "Once "
            await asyncio.wait_for(is_told.wait(), 20)
            yield "upon a time"

        return StreamingResponse(parts(), media_type="text/plain")

    app.add_middleware(AgentPublisher, site=site)
    return app
