"""A person's token is good at every door of a Django project, and without it all of them say where to get one."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from awp_publish import SignIn
from tests.django.signing_in import FAST, PASSWORD, DjangoAgent, open_asgi, open_wsgi
from tests.django.sites import make_site
from tests.django.test_sign_in import settings_of, urlpatterns as urlpatterns
from tests.doors.adapters import DOORS

site = make_site(plugins=["mcp", "a2a", "awp", SignIn()], store="memory:", secret_keys=["a key of this test, and long"])
JSON = {"type": "object"}
site.declare("read_profile", method="GET", path="/profile", description="Read it.", outputs=JSON)
site.declare(
    "stock_book", method="POST", path="/stock", description="Stock it.", outputs=JSON, scopes=["shop.add_book"]
)
site.declare("show_basket", method="GET", path="/basket", description="Show it.", auth_required=True)

CASES = [(kind, door) for kind in ("wsgi", "asgi") for door in DOORS if (kind, door) != ("wsgi", "awp")]


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def opened(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    kind, door = request.param
    opening = open_wsgi if kind == "wsgi" else open_asgi
    given: dict[str, Any] = {"AWP_PUBLISH": {"SITE": f"{__name__}.site"}, "ROOT_URLCONF": __name__}
    with override_settings(**settings_of(**given)), opening() as client:
        yield client, DOORS[door](client)


@pytest.fixture
def ann() -> User:
    with override_settings(PASSWORD_HASHERS=FAST):
        return User.objects.create_user("ann", password=PASSWORD)


def test_a_call_with_a_token_is_the_persons(ann, opened):
    client, door = opened
    with open_wsgi() as browser:
        token = DjangoAgent(client, browser).sign_in(scope=None)["access_token"]
    assert door.call("read_profile", token=token).output == {"name": "ann"}
    assert door.call("stock_book", token=token).code == "INSUFFICIENT_PERMISSIONS"
    ann.is_superuser = True
    ann.save()
    assert door.call("stock_book", token=token).output == {"by": "ann"}
    ann.is_active = False
    ann.save()
    answer = door.call("show_basket", token=token)
    assert answer.code == "INVALID_CREDENTIALS"
    assert 'error="invalid_token"' in answer.challenge


@pytest.mark.parametrize("action", ["read_profile", "show_basket"])
def test_a_call_without_one_is_told_where_to_get_one(opened, action):
    _, door = opened
    answer = door.call(action)
    assert answer.code == "AUTHENTICATION_REQUIRED"
    assert "oauth-protected-resource" in answer.challenge
