"""Pages that are included and declared, and documents of the application's own."""

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from awp_publish import AgentPublisher, Site

site = Site("Tea", "Sells tea.", "https://tea.example", plugins=["discovery"])


async def home(_: object) -> HTMLResponse:
    """Read about tea."""
    return HTMLResponse("<title>Tea</title><h1>Tea</h1>")


async def own(_: object) -> JSONResponse:
    return JSONResponse({"agents": []})


async def sitemap(_: object) -> HTMLResponse:
    return HTMLResponse("<urlset/>", media_type="application/xml")


site.page("/")
site.include(paths=["/tea*"])
app = Starlette(routes=[Route("/", home), Route("/tea", home), Route("/own.json", own), Route("/sitemap.xml", sitemap)])
app.add_middleware(AgentPublisher, site=site)
