"""The same name from another issuer is another caller under Django, too: of a token, or of the project's own users."""

import itertools
import json

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import override_settings
from django.urls import path
from django.views.decorators.http import require_POST

from awp_publish import ApplicationUser, BearerToken
from tests.django.sites import make_site
from tests.django.test_calls import Agent, Wsgi
from tests.django.test_calls_through_doors import call_tool
from tests.django.test_own_route import OURS, OWN, FreshAsgi


def caller_of(issuer: str):
    """Return a check of tokens such as "left-7", for the caller "7" of an issuer."""
    return lambda token: token.removeprefix(f"{issuer}-") if token.startswith(f"{issuer}-") else None


site = make_site(
    plugins=["mcp"],
    secret_keys=["a key of this test, long enough for it"],
    authenticate=[
        BearerToken(caller_of("left"), people="left"),
        BearerToken(caller_of("right"), people="right"),
        ApplicationUser(),
    ],
)
ran: list[str] = []
NUMBERS = itertools.count(1000)


@site.action("note", auth_required=True, idempotency="24h", outputs={"type": "object"})
@require_POST
def note(request: HttpRequest) -> HttpResponse:
    """Note."""
    ran.append("note")
    return JsonResponse({"noted": len(ran)})


@site.action("pay", auth_required=True, confirm=True, outputs={"type": "object"})
@require_POST
def pay(request: HttpRequest) -> HttpResponse:
    """Pay."""
    return JsonResponse({"paid": True})


@site.action("rare", auth_required=True, rate_limit="1/minute by user", outputs={"type": "object"})
@require_POST
def rare(request: HttpRequest) -> HttpResponse:
    """Be rare."""
    return JsonResponse({"rare": True})


@site.action("later", auth_required=True, execution="async", outputs={"type": "object"})
@require_POST
def later(request: HttpRequest) -> HttpResponse:
    """Later."""
    return JsonResponse({"later": True})


urlpatterns = [path("note", note), path("pay", pay), path("rare", rare), path("later", later)]


@pytest.fixture(params=[Wsgi, FreshAsgi])
def agent(request: pytest.FixtureRequest) -> Agent:
    made: Agent = request.param()
    return made


@pytest.fixture(autouse=True)
def shop():
    given = {"ROOT_URLCONF": __name__, "AWP_PUBLISH": {"SITE": f"{__name__}.site"}, "MIDDLEWARE": [*OWN, OURS]}
    with override_settings(**given):
        yield


@pytest.fixture(params=["another token's", "the project's own"])
async def callers(request: pytest.FixtureRequest, agent):
    """Two functions that call an agent, for callers of one name: the first has a token of the issuer on the left."""
    user = await User.objects.acreate(pk=next(NUMBERS), username="ann")  # the site remembers those of other tests

    async def first(name, **members):
        agent.client.cookies.clear()
        return await tell(name, members, authorization=f"Bearer left-{user.pk}")

    async def second(name, **members):
        if request.param == "another token's":
            return await tell(name, members, authorization=f"Bearer right-{user.pk}")
        await agent.login(user)
        return await tell(name, members)

    async def tell(name, members, **headers):
        answer = await agent.tell(f"/agents/{name}/invoke", {"input": {}, **members}, **headers)
        return answer, json.loads(answer.content)

    return first, second


async def test_a_name_from_another_issuer_is_another_caller(callers):
    first, second = callers
    for is_replayed in (False, True):
        answer, _ = await first("note", idempotency_key="k")
        assert ("idempotent-replayed" in answer.headers) is is_replayed
    answer, _ = await second("note", idempotency_key="k")
    assert (answer.status_code, "idempotent-replayed" in answer.headers) == (200, False)

    token = (await first("pay"))[1]["confirmation"]["token"]
    assert (await second("pay", confirmation=token))[1]["code"] == "CONFIRMATION_FOREIGN"
    assert (await first("pay", confirmation=token))[1] == {"paid": True}

    assert (await first("rare"))[1] == {"rare": True}
    assert (await first("rare"))[1]["code"] == "RATE_LIMITED"
    assert (await second("rare"))[1] == {"rare": True}


async def test_a_job_is_for_the_caller_of_its_issuer_alone(agent, callers):
    job = (await callers[0]("later"))[0].headers["location"].partition("shop.example")[2]
    pk = (await User.objects.aget()).pk
    seen = {of: (await agent.get(job, authorization=f"Bearer {of}-{pk}")).status_code for of in ("left", "right")}
    assert seen == {"left": 200, "right": 404}


async def test_the_application_user_calls_tools_as_another_caller(agent):
    results = [
        await call_tool(agent, "note", {"idempotency_key": "of a tool"}, authorization=f"Bearer {of}-7")
        for of in ("left", "left", "right")
    ]
    noted = [item["structuredContent"]["noted"] for item in results]
    assert noted[0] == noted[1] != noted[2]
