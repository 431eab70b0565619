"""Django REST framework and django-ninja: agents see the schemas they have, and calls reach their views."""

import json
from typing import Any

import pytest
from awp_publish_django.publication import get_publication
from django.test import Client, override_settings
from django.urls import include, path
from ninja import NinjaAPI, Query, Schema
from rest_framework import generics, routers, serializers, viewsets
from rest_framework.decorators import api_view, permission_classes
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from tests.django.shop.models import Book
from tests.django.sites import make_site

site = make_site()


class BookSerializer(serializers.ModelSerializer):
    shout = serializers.SerializerMethodField()

    class Meta:
        model = Book
        fields = ("id", "title", "pages", "shout")

    def get_shout(self, book: Book) -> str:
        return book.title.upper()

    def validate_title(self, title: str) -> str:
        if title == "taken":
            raise serializers.ValidationError("There is one of that title.")
        return title


class Price(serializers.Serializer):
    amount = serializers.DecimalField(5, 2, allow_null=True)
    note = serializers.CharField(required=False, help_text="Anything.")


@site.action("create_book", method="POST")
class Books(generics.ListCreateAPIView):
    """Add a book."""

    queryset = Book.objects.all()
    serializer_class = BookSerializer


class BookSet(viewsets.ModelViewSet):
    queryset = Book.objects.all()
    serializer_class = BookSerializer


@api_view(["POST"])
@site.action("price", inputs=Price, outputs=Price)
def price(request):
    """Say a price."""
    given = Price(data=request.data)
    given.is_valid(raise_exception=True)
    return Response(given.data)


@site.action("member")
@api_view(["GET"])
@permission_classes([IsAuthenticated])
def member(request):
    """For members."""
    return Response({"name": request.user.username})


@site.action("where", inputs={"type": "object", "properties": {"place": {"type": "string"}}})
class Where(APIView):
    def get(self, request):
        """Say where."""
        return Response({"place": request.query_params.get("place")})


site.declare("read_book", method="GET", path="/set/{pk}/", description="Read a book.")

# --- ninja ---

api = NinjaAPI(urls_namespace="tests")


class Thing(Schema):
    size: int
    name: str = "thing"


@api.post("/things/{int:pk}", response=Thing)
@site.action("change_thing")
def change_thing(request, pk: int, body: Thing, loud: bool = Query(False)):
    """Change a thing."""
    return {"size": body.size + pk, "name": body.name.upper() if loud else body.name}


@api.get("/things/{int:pk}", operation_id="readThing")
@site.action("read_thing")
def read_thing(request, pk: int):
    """Read a thing."""
    return {"pk": pk}


router = routers.SimpleRouter()
router.register("set", BookSet)

urlpatterns = [
    path("books", Books.as_view()),
    path("price", price),
    path("member", member),
    path("where", Where.as_view()),
    path("", include(router.urls)),
    path("api/", api.urls),
]


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def action(action_id: str):
    return get_publication().site.catalog.action(action_id)


def call(agent: str, given: object) -> tuple[int, Any]:
    client = Client(raise_request_exception=False)
    answer = client.post(f"/agents/{agent}/invoke", json.dumps({"input": given}), content_type="application/json")
    return answer.status_code, answer.json()


def test_a_generic_view_says_what_its_serializer_takes_and_gives():
    created = action("create_book")
    assert created.description == "Add a book."
    assert set(created.inputs["properties"]) == {"title", "pages"}
    assert created.inputs["required"] == ["title"]
    assert created.inputs["properties"]["title"]["maxLength"] == 50
    assert set(created.outputs["properties"]) == {"id", "title", "pages", "shout"}
    status, answer = call("create_book", {"title": "Emma"})
    assert (status, answer["shout"]) == (201, "EMMA")
    assert call("read_book", {"pk": answer["id"]})[1]["title"] == "Emma"


def test_errors_of_a_serializer_point_at_the_input():
    status, answer = call("create_book", {"title": "taken"})
    assert (status, answer["code"]) == (422, "INVALID_INPUT")
    assert answer["errors"] == [{"pointer": "/title", "detail": "There is one of that title."}]


def test_a_declared_serializer_is_inputs_and_outputs():
    declared = action("price")
    assert declared.inputs["properties"] == {
        "amount": {"type": ["string", "number", "null"]},
        "note": {"type": "string", "description": "Anything."},
    }
    assert call("price", {"amount": "1.50"}) == (200, {"amount": "1.50"})
    assert call("price", {"amount": None}) == (200, {"amount": None})


def test_permissions_of_the_view_hold():
    status, answer = call("member", {})
    assert (status, answer["code"]) == (401, "AUTHENTICATION_REQUIRED")  # REST framework has no challenge, and says 403
    assert "credentials" in answer["detail"]
    assert call("where", {"place": "here"}) == (200, {"place": "here"})


def test_ninja_operations_say_their_own_schemas():
    changed = action("change_thing")
    assert changed.description == "Change a thing."
    assert set(changed.inputs["properties"]) == {"pk", "loud", "size", "name"}
    assert changed.outputs["properties"].keys() == {"size", "name"}
    assert call("change_thing", {"pk": 2, "size": 3, "name": "a", "loud": True}) == (200, {"size": 5, "name": "A"})
    assert call("read_thing", {"pk": 2}) == (200, {"pk": 2})
    assert call("change_thing", {"pk": 2})[0] == 422
