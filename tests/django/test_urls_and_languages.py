"""Our URLs without the middleware; and paths, prefixed or not, in the language that the caller accepts."""

import json

import pytest
from awp_publish_django.publication import MIDDLEWARE, get_publication
from django.conf import settings
from django.conf.urls.i18n import i18n_patterns
from django.core.checks import run_checks
from django.http import HttpRequest, JsonResponse
from django.test import Client, override_settings
from django.urls import include, path
from django.utils import translation
from django.utils.translation import get_language
from django.views.decorators.http import require_POST

from tests.django.shop.models import Book
from tests.django.sites import make_site

site = make_site(plugins=["mcp"], url=["https://shop.example", "https://laden.example"])
LOCALES = "django.middleware.locale.LocaleMiddleware"
WITHOUT = [name for name in settings.MIDDLEWARE if name != MIDDLEWARE]


@site.action("greet")
@require_POST
def greet(request: HttpRequest) -> JsonResponse:
    """Greet in the caller's language."""
    return JsonResponse({"language": get_language(), "books": Book.objects.count()})


@site.action("greet_prefixed")
@require_POST
def greet_prefixed(request: HttpRequest) -> JsonResponse:
    """Greet in the path's language."""
    return JsonResponse({"language": get_language()})


urlpatterns = [
    path("", include("awp_publish_django.urls")),
    path("greet", greet),
    *i18n_patterns(path("prefixed", greet_prefixed)),
]


def call(client: Client, agent: str, **headers: str):
    body = json.dumps({"input": {}})
    return client.post(f"/agents/{agent}/invoke", body, content_type="application/json", headers=headers)


@pytest.fixture(autouse=True)
def _project():
    with (
        translation.override("en"),
        override_settings(  # LocaleMiddleware leaves its language to the thread
            ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}, MIDDLEWARE=[*WITHOUT, LOCALES]
        ),
    ):
        yield


def test_documents_and_doors_are_urls_where_the_middleware_is_not():
    client = Client(SERVER_NAME="shop.example")
    assert client.get("/agent.json").status_code == 200
    assert call(client, "nothing").status_code == 404
    assert client.get("/nothing").status_code == 404
    assert not [check for check in run_checks(tags=["agents"]) if check.id in ("awp_publish.E003", "awp_publish.W002")]


def test_the_urls_stand_beside_the_middleware_too():
    with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, MIDDLEWARE]):
        assert Client().get("/agent.json").status_code == 200
        assert call(Client(), "greet").status_code == 200


@pytest.mark.parametrize("middleware", [[], [MIDDLEWARE]], ids=["urls", "middleware"])
def test_a_call_speaks_the_callers_language_with_a_prefix_or_without(middleware):
    with override_settings(MIDDLEWARE=[*WITHOUT, LOCALES, *middleware]):
        client = Client(SERVER_NAME="shop.example")
        assert call(client, "greet", **{"accept-language": "de"}).json() == {"language": "de", "books": 0}
        assert call(client, "greet").json()["language"] == "en"
        for accepted, language in {"de": "de", "de-AT,de;q=0.8": "de", "tlh": "en", "tlh, de": "de", "*": "en"}.items():
            assert call(client, "greet_prefixed", **{"accept-language": accepted}).json() == {"language": language}
        assert call(client, "greet_prefixed").json() == {"language": "en"}
        with translation.override("de"):  # what another request left to the thread
            assert call(client, "greet_prefixed").json() == {"language": "en"}


def test_the_published_path_is_one_that_exists():
    own = make_site()
    own.declare("prefixed", method="POST", path="/en/prefixed", description="Greet.")
    with override_settings(LANGUAGE_CODE="en-us", AWP_PUBLISH={"SITE": f"{__name__}.own"}):
        globals()["own"] = own
        assert get_publication().site.catalog.action("prefixed").target is not None
        assert call(Client(SERVER_NAME="shop.example"), "prefixed").json() == {"language": "en"}
