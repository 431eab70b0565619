"""A call asks the database little more than the view itself does."""

import json

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import path
from django.utils.decorators import async_only_middleware
from rest_framework import generics, permissions, serializers

from awp_publish import ApplicationUser
from tests.django.shop.models import Book
from tests.django.shop.settings import MIDDLEWARE
from tests.django.sites import make_site

OURS = "awp_publish_django.middleware.AgentPublisherMiddleware"


class BookSerializer(serializers.ModelSerializer):
    class Meta:
        model = Book
        fields = ("id", "title")


class Books(generics.ListAPIView):
    """List books."""

    queryset = Book.objects.order_by("pk")
    serializer_class = BookSerializer
    permission_classes = (permissions.IsAuthenticated,)


SEEN: list[str] = []


def own(get_response):
    def answer(request):
        SEEN.append(request.path)
        return get_response(request)

    return answer


@async_only_middleware
def own_async(get_response):
    async def answer(request):
        SEEN.append(request.path)
        return await get_response(request)

    return answer


site = make_site(authenticate=ApplicationUser())
site.declare("list_books", method="GET", path="/books")
urlpatterns = [path("books", Books.as_view())]


def queries(ask) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        answer = ask()
        b"".join(answer) if answer.streaming else answer.content
        answer.close()
    assert answer.status_code == 200, answer.content
    return [query["sql"] for query in captured.captured_queries]


@pytest.mark.parametrize("above", [[], [f"{__name__}.own"], [f"{__name__}.own_async"]], ids=str)
def test_a_call_writes_its_record_and_asks_for_nothing_else_than_its_view(above):
    options = {"SITE": f"{__name__}.site", "RECENT_CALLS": 50}
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[*above, *MIDDLEWARE], AWP_PUBLISH=options):
        client = Client(SERVER_NAME="shop.example")
        client.force_login(User.objects.create(username="ann"))
        Book.objects.create(title="Emma")
        SEEN.clear()
        direct = queries(lambda: client.get("/books"))
        called = queries(
            lambda: client.post("/agents/list_books/invoke", json.dumps({"input": {}}), content_type="application/json")
        )
        assert len(direct) == 5  # session, user, books, and the transaction around the view
        assert len(called) == len(direct) + 1, called
        assert "/books" in SEEN[2:] or not above, "the project's own middleware sees where the call goes"
        assert sum("recentcall" in item for item in called) == 1
