"""The bridge of a Django project: over WebSocket under ASGI, and a sentence in its place under WSGI."""

import pytest
from awp_publish_django.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path

from awp_publish import Site
from tests.django.sites import make_site
from tests.plugins.actions_json.bridge_client import connected


def find(request: HttpRequest) -> HttpResponse:
    words = request.GET.get("words", "")
    form = '<form id="find" action="/find"><input name="words" aria-label="Words"><button>Go</button></form>'
    return HttpResponse(f"<html lang=en><title>Find</title><body>{form}<p class=found>{words}</p></body></html>")


def bridged() -> Site:
    site = make_site(plugins=["bridge"])
    text = {"type": "string"}
    site.declare(
        "find_titles",
        method="GET",
        path="/find",
        description="Find titles.",
        inputs={"type": "object", "properties": {"words": text}, "required": ["words"]},
        outputs={},
        awas={"selector": "#find", "selectors": {"words": "#find input"}},
    )
    site.page(
        "/find",
        id="find",
        title="Find",
        actions=["find_titles"],
        map={
            "targets": {"submit": "#find button", "done": "p.found"},
            "states": [{"name": "ready", "diagnostics": [{"name": "form", "target": {"selector": "#find"}}]}],
        },
    )
    return site


urlpatterns = [path("find", find)]
site = bridged()


@pytest.fixture(autouse=True)
def project():
    options = {"SITE": f"{__name__}.site"}
    with override_settings(AWP_PUBLISH=options, ROOT_URLCONF=__name__, ALLOWED_HOSTS=["shop.example"]):
        yield


def test_under_wsgi_the_bridge_answers_a_sentence():
    answer = Client(headers={"host": "shop.example"}).get("/actions-bridge", secure=True)
    assert answer.status_code == 426
    assert answer.content == b"The bridge is spoken to over WebSocket.\n"


async def test_under_asgi_a_workflow_runs_on_the_pages_of_the_project():
    async with connected(get_asgi_application()) as agent:
        await agent.ask("browser.navigate", {"url": "/find"}, "c1")
        answer = await agent.ask("find_titles", {"words": "emma"}, "c2")
        assert answer["output"]["url"] == "https://shop.example/find?words=emma"
