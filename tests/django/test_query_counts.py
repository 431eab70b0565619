"""A call asks the database little more than the view itself does."""

import json

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import path
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


def own(get_response):
    return get_response


site = make_site(authenticate=ApplicationUser())
site.declare("list_books", method="GET", path="/books")
urlpatterns = [path("books", Books.as_view())]


def queries(ask) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        answer = ask()
        b"".join(answer) if answer.streaming else answer.content
        answer.close()
    assert answer.status_code == 200, answer.content
    return [one["sql"] for one in captured.captured_queries]


@pytest.mark.parametrize(
    ("order", "more"),
    [(MIDDLEWARE, 1), ([f"{__name__}.own", *MIDDLEWARE], 3)],
    ids=["the record alone", "who calls, again, where middleware of the project's own stands above ours"],
)
def test_a_call_asks_for_little_more_than_its_view(order, more):
    options = {"SITE": f"{__name__}.site", "RECENT_CALLS": 50}
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=order, AWP_PUBLISH=options):
        client = Client(SERVER_NAME="shop.example")
        client.force_login(User.objects.create(username="ann"))
        Book.objects.create(title="Emma")
        direct = queries(lambda: client.get("/books"))
        called = queries(
            lambda: client.post("/agents/list_books/invoke", json.dumps({"input": {}}), content_type="application/json")
        )
        assert len(direct) == 5  # session, user, books, and the transaction around the view
        assert len(called) == len(direct) + more, called
        assert sum("recentcall" in one for one in called) == 1
