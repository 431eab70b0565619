"""What `site.include()` without a choice takes, and how it words it."""

from fastapi import FastAPI
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Site


def test_a_summary_of_the_route_describes_its_action(site, start):
    app = FastAPI()

    @app.get("/shelf", summary="Show the first shelf.")
    @site.action("show_shelf")
    async def shelf() -> int:
        return 1

    assert start(app).awas("show_shelf")["description"] == "Show the first shelf."


def test_a_public_address_without_tls_is_said_at_start_up(open_client, caplog):
    for url, is_said in (("http://shop.example.org", True), ("http://10.0.0.1", False), ("https://shop.org", False)):
        caplog.clear()
        open_client(AgentPublisher(Starlette(), Site("Shop", "Sells books.", url=url))).get("/agent.json")
        assert ("start-http" in caplog.text) is is_said, url
