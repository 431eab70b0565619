"""What the project's own settings say in place of the site's; and the signal that tells of calls."""

import json

import pytest
from awp_publish_django.publication import get_publication
from awp_publish_django.signals import agent_called
from awp_publish_django.store import DjangoStore
from django.http import HttpRequest, JsonResponse
from django.test import Client, override_settings
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from awp_publish import DeclarationError, Site
from tests.django.sites import make_site


def make_shop(**options: object) -> Site:
    site = make_site(**options)
    site.declare("look", method="GET", path="/look", description="Look.")
    site.declare("order", method="POST", path="/order", description="Order.", confirm=True)
    return site


@require_GET
def look(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"seen": True})


@require_POST
def order(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"ordered": True})


urlpatterns = [path("look", look), path("order", order)]
overridden, signed, other, signalling, published, debugged = (make_shop() for _ in range(6))
plain = make_shop(plugins=["no:overview"])


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__):
        yield


def call(agent: str, **members: object):
    body = json.dumps({"input": {}, **members})
    return Client().post(f"/agents/{agent}/invoke", body, content_type="application/json")


def test_url_store_and_doors_are_those_of_the_settings():
    given = {"SITE": f"{__name__}.overridden", "URL": "https://test.example", "STORE": "django", "PLUGINS": ["mcp"]}
    with override_settings(AWP_PUBLISH=given):
        published = get_publication().site
        assert published.catalog.url == "https://test.example"
        assert isinstance(published.settings.store, DjangoStore)
        assert [door.protocol for door in published.catalog.doors if door.protocol == "mcp"] == ["mcp"]
        assert call("look").json() == {"seen": True}


def test_confirmations_are_signed_with_the_secret_key_and_its_fallbacks():
    """What one process signs another one knows, before and after the key is replaced."""
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.signed"}, SECRET_KEY="the old key, long enough"):
        old = get_publication().site.keys
        asked = call("order").json()
        assert call("order", confirmation=asked["confirmation"]["token"]).json() == {"ordered": True}
    with override_settings(
        AWP_PUBLISH={"SITE": f"{__name__}.other"},
        SECRET_KEY="the new key, long enough",
        SECRET_KEY_FALLBACKS=["the old key, long enough"],
    ):
        new = get_publication().site.keys
    assert new[1:] == old
    assert "the old key" not in str(old)


def test_a_signal_tells_of_each_call_and_what_its_receivers_raise_harms_nobody():
    heard = []

    def hear(sender: Site, facts: dict[str, object], **_: object) -> None:
        heard.append((sender, facts["action"], facts["status"]))
        raise RuntimeError("a receiver")

    agent_called.connect(hear)
    try:
        with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.signalling"}):
            assert call("look").status_code == 200
    finally:
        agent_called.disconnect(hear)
    assert heard == [(signalling, "look", 200)]


def test_the_overview_is_there_while_debugging():
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.published"}, DEBUG=False):
        assert Client().get("/agents").status_code == 404
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.debugged"}, DEBUG=True):
        client = Client(enforce_csrf_checks=True)
        assert "default-src 'self'" in client.get("/agents")["content-security-policy"]
        assert client.get("/agents", headers={"accept": "text/markdown"})["content-type"].startswith("text/markdown")
        page = client.post("/agents/try/look", {"awp-do": "all"}).content.decode()
        assert page.count("&quot;seen&quot;: true") >= 2
        assert client.post("/agents/try/look", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_an_overview_that_a_site_leaves_out_is_not_there_while_debugging_either():
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.plain"}, DEBUG=True):
        assert Client().get("/agents").status_code == 404
        assert Client().get("/agents/status").status_code == 200


def test_a_site_that_gives_no_address_has_the_one_of_the_settings(monkeypatch):
    monkeypatch.delenv("AWP_PUBLISH_URL", raising=False)
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.site", "URL": "https://told.example"}):
        assert Site(name="Shop", description="Sells books.").settings.urls == ("https://told.example",)
        assert Site(name="S", description="S.", url="https://own.example").settings.urls == ("https://own.example",)
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.site"}), pytest.raises(DeclarationError, match="required"):
        Site(name="Shop", description="Sells books.")
