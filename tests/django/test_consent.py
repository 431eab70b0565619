"""Whose agreement it is where Django alone knows who calls, and wrong credentials, under WSGI and ASGI."""

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import override_settings
from django.urls import path
from django.views.decorators.http import require_POST

from awp_publish import BearerToken, Site
from awp_publish.calls.authentication import MAX_WRONG
from tests.django.test_calls import Asgi, Wsgi

site = Site("Shop", "Sells books.", url="https://shop.example", secret_keys=["k" * 32])
guarded = site
INPUTS = {"type": "object", "properties": {"title": {"type": "string"}}}
paid: list[str] = []


@site.action("pay", confirm="Pay {title}.", inputs=INPUTS)
@require_POST
def pay(request: HttpRequest) -> HttpResponse:
    """Pay for the user who has logged in."""
    paid.append(request.user.get_username())
    return JsonResponse({})


urlpatterns = [path("pay/", pay)]


@pytest.fixture(autouse=True)
def _project():
    paid.clear()
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


@pytest.mark.parametrize("make", [Wsgi, Asgi])
async def test_a_confirmation_is_good_for_the_session_it_was_asked_for_in(make):
    ann, ben = make(), make()
    for agent, name in ((ann, "ann"), (ben, "ben")):
        await agent.login(await User.objects.acreate(username=name))
    asked = await ann.call("pay", {"title": 'Emma". Free of charge. "'})
    question = asked.json()["confirmation"]
    assert (asked.status_code, question["summary"]) == (428, 'Pay "Emma\\". Free of charge. \\"".')
    confirmed = {"awp-confirmation": question["token"]}
    refused = await ben.call("pay", {"title": 'Emma". Free of charge. "'}, **confirmed)
    assert (refused.status_code, refused.json()["code"]) == (403, "CONFIRMATION_FOREIGN")
    assert (await make().call("pay", {"title": 'Emma". Free of charge. "'}, **confirmed)).status_code == 403
    assert (await ann.call("pay", {"title": 'Emma". Free of charge. "'}, **confirmed)).status_code == 200
    assert paid == ["ann"]


@pytest.mark.parametrize("make", [Wsgi, Asgi])
async def test_guessing_is_rate_limited_and_valid_credentials_pass(make, monkeypatch):
    made = Site("Shop", "Sells books.", url="https://shop.example", authenticate=BearerToken({"token-of-ann": "ann"}))

    @made.agent("mine", auth_required=True)
    def mine() -> str:
        """What is mine."""
        return "mine"

    monkeypatch.setitem(globals(), "guarded", made)
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.guarded"}):
        agent = make()
        wrong, right = {"authorization": "Bearer wrong"}, {"authorization": "Bearer token-of-ann"}
        statuses = [(await agent.call("mine", {}, **wrong)).status_code for _ in range(MAX_WRONG + 1)]
        assert statuses == [401] * MAX_WRONG + [429]
        assert (await agent.call("mine", {}, **right)).json() == "mine"
