"""A site that leaves the inclusion of routes out."""

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from awp_publish import AgentPublisher, Site
from tests.client import TestClient


def test_a_site_without_inclusion_says_how_to_get_it() -> None:
    site = Site("Shop", "Sells tea.", "https://shop.example", plugins=["no:include"])
    with pytest.raises(AttributeError, match=r"of the plug-in include: take \"no:include\" out of plugins=\[...\]\.$"):
        site.include()


@pytest.mark.needs("pages")
def test_a_site_without_inclusion_has_no_pages_but_those_that_it_declares() -> None:
    paths = {}
    for plugins in (["pages"], ["pages", "no:include"]):
        site, app = Site("Shop", "Sells tea.", "https://shop.example", plugins=plugins), FastAPI()

        @app.get("/about", response_class=HTMLResponse)
        async def about() -> str:
            return "<h1>About us</h1>"

        app.add_middleware(AgentPublisher, site=site)
        with TestClient(app) as client:
            paths[len(plugins)] = client.get("/.well-known/som.json").json()["urls"]
    assert paths == {1: ["https://shop.example/about"], 2: []}
