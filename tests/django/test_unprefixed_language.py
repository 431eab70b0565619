"""A default language whose paths have no prefix: a call goes to its caller's language, whatever stands around us."""

import json

import pytest
from awp_publish_django.publication import MIDDLEWARE
from django.conf import settings
from django.conf.urls.i18n import i18n_patterns
from django.http import HttpRequest, JsonResponse
from django.test import Client, override_settings
from django.urls import path
from django.utils.translation import get_language
from django.views.decorators.http import require_POST

from tests.django.sites import make_site

site = make_site()
LOCALES = "django.middleware.locale.LocaleMiddleware"
WITHOUT = [name for name in settings.MIDDLEWARE if name != MIDDLEWARE]


@site.action("tell")
@require_POST
def tell(request: HttpRequest, name: str) -> JsonResponse:
    """Tell where we are."""
    return JsonResponse({"language": get_language(), "name": name, "path": request.path})


@site.action("tell_fixed")
@require_POST
def tell_fixed(request: HttpRequest) -> JsonResponse:
    """Tell where we are, at an address that only looks like one with a language."""
    return JsonResponse({"path": request.path})


urlpatterns = [
    path("en/fixed", tell_fixed),
    *i18n_patterns(path("tell/<str:name>", tell), prefix_default_language=False),
]


@pytest.mark.parametrize("enclosing", [[], ["tests.django.test_unprefixed_language.Enclosing"]])
def test_a_default_language_without_a_prefix_has_its_path_and_the_others_theirs(enclosing):
    with override_settings(
        ROOT_URLCONF=__name__,
        AWP_PUBLISH={"SITE": f"{__name__}.site"},
        MIDDLEWARE=[*enclosing, *WITHOUT, LOCALES, MIDDLEWARE],
    ):
        body = json.dumps({"input": {"name": "ä b"}})

        def told(agent: str, language: str):
            headers = {"accept-language": language}
            sent = body if agent == "tell" else '{"input": {}}'
            address = f"/agents/{agent}/invoke"
            return Client().post(address, sent, content_type="application/json", headers=headers).json()

        assert told("tell", "de") == {"language": "de", "name": "ä b", "path": "/de/tell/ä b"}
        assert told("tell", "en") == {"language": "en", "name": "ä b", "path": "/tell/ä b"}
        assert told("tell_fixed", "de") == {"path": "/en/fixed"}


class Enclosing:
    """Middleware of the project's own, above ours."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)
