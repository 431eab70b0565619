"""drf-spectacular: what `@extend_schema` says of queries, bodies, answers and words."""

import pytest
from awp_publish_django.project import DjangoProject
from django.test import Client, override_settings
from django.urls import path
from django.utils.translation import gettext_lazy
from rest_framework import serializers, viewsets
from rest_framework.authentication import BasicAuthentication, SessionAuthentication, TokenAuthentication
from rest_framework.decorators import action, api_view
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter
from rest_framework.versioning import AcceptHeaderVersioning
from rest_framework.views import APIView

from tests.django.shop.models import Book
from tests.django.sites import make_site

pytest.importorskip("drf_spectacular")

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiRequest,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
    inline_serializer,
)


class OwnTokens(TokenAuthentication):
    """Reads the same header, of which callers need not know twice."""


class BookSerializer(serializers.ModelSerializer):
    class Meta:
        model = Book
        fields = ("id", "title")


class LinkSerializer(serializers.Serializer):
    url = serializers.URLField()


class CopiesSerializer(serializers.Serializer):
    count = serializers.IntegerField(min_value=1)


with override_settings(REST_FRAMEWORK={"DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema"}):

    @extend_schema_view(
        list=extend_schema(
            description="List books that are in stock.",
            parameters=[
                OpenApiParameter("author", str, description="A part of a name."),
                OpenApiParameter("genre", OpenApiTypes.INT, many=True),
                OpenApiParameter("format", enum=["short", gettext_lazy("long")], required=True),
                OpenApiParameter("shelf", pattern=r"\A[A-Z]+\Z"),
                OpenApiParameter("X-Trace", str, OpenApiParameter.HEADER),
            ],
        )
    )
    class Books(viewsets.ModelViewSet):
        queryset = Book.objects.all()
        serializer_class = BookSerializer
        permission_classes = (IsAuthenticated,)
        authentication_classes = (TokenAuthentication, SessionAuthentication, BasicAuthentication, OwnTokens)

        @extend_schema(request=CopiesSerializer, responses=LinkSerializer)
        @action(detail=True, methods=["post"])
        def order(self, request, pk):
            """Order copies of a book."""
            return Response({"url": f"/{pk}/{request.data['count']}"})

        @extend_schema(request=None, responses={204: OpenApiResponse(description="Gone")})
        @action(detail=True, methods=["post"])
        def lend(self, request, pk):
            """Lend a book."""
            self.get_serializer()
            return Response(status=204)

    class ByVersion(AcceptHeaderVersioning):
        default_version = "2"
        allowed_versions = ("1", "2")

    @extend_schema(parameters=[OpenApiParameter("since", OpenApiTypes.DATE)], versions=["2"])
    class Versions(APIView):
        """Show links."""

        versioning_class = ByVersion

        @extend_schema(parameters=[OpenApiParameter("until", OpenApiTypes.DATE)], versions=["1"])
        def get(self, request):
            return Response([])

    class Inner(APIView):
        schema = None

        def get(self, request):
            return Response([])

    class Hidden(APIView):
        @extend_schema(exclude=True)
        def get(self, request):
            return Response([])

    class Fetch(APIView):
        @extend_schema(
            summary="Read a book from an address.",
            parameters=[CopiesSerializer],
            request=OpenApiRequest(inline_serializer("Fetched", {"url": serializers.URLField()})),
        )
        def post(self, request):
            return Response({"url": request.data["url"], "count": request.query_params["count"]})

    @extend_schema(
        request={
            "multipart/form-data": {
                "type": "object",
                "properties": {"cover": {"type": "string", "format": "binary"}, "size": {"type": "integer"}},
                "required": ["cover"],
            }
        }
    )
    @api_view(["POST"])
    def upload(request):
        """Give a book a cover."""
        return Response({"cover": request.data["cover"].read().decode(), "size": request.data.get("size")})


router = DefaultRouter()
router.register("books", Books, basename="book")
urlpatterns = [
    *router.urls,
    path("fetch", Fetch.as_view(), name="fetch"),
    path("versions", Versions.as_view(), name="versions"),
    path("upload", upload, name="upload"),
]
site = make_site()
site.include(operations=["book-list", "book-order", "book-lend", "fetch", "upload", "versions"])


def actions():
    return {one.id: one for one in site.freeze(DjangoProject(tuple(urlpatterns))).actions}


def test_parameters_of_the_query_are_inputs_of_a_list():
    listed = actions()["book_list_get"]
    assert listed.description == "List books that are in stock."
    assert listed.inputs["properties"] == {
        "author": {"type": "string", "description": "A part of a name."},
        "genre": {"type": "array", "items": {"type": "integer"}},
        "format": {"type": "string", "enum": ["short", "long"]},
        "shelf": {"type": "string", "pattern": "^[A-Z]+$"},
    }
    assert listed.inputs["required"] == ["format"]


def test_parameters_of_the_usual_version_are_inputs():
    assert list(actions()["versions"].inputs["properties"]) == ["since"]


def test_a_body_that_is_said_comes_before_that_of_the_views_serializer():
    found = actions()
    assert list(found["book_order"].inputs["properties"]) == ["count", "pk"]
    assert list(found["book_order"].outputs["properties"]) == ["url"]
    assert list(found["book_lend"].inputs["properties"]) == ["pk"]
    assert found["fetch"].description == "Read a book from an address."
    assert sorted(found["fetch"].inputs["properties"]) == ["count", "url"]
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        client, where = Client(SERVER_NAME="shop.example"), "/agents/{}/invoke"
        sent = {"input": {"url": "https://a.example", "count": 2}}
        answer = client.post(where.format("fetch"), sent, content_type="application/json")
        assert answer.json() == {"url": "https://a.example", "count": "2"}
        sent = {"input": {"cover": "aGk=", "size": 3}}
        answer = client.post(where.format("upload"), sent, content_type="application/json")
        assert answer.json() == {"cover": "hi", "size": "3"}


def test_views_that_are_hidden_from_the_projects_own_document_are_left_out():
    own = make_site()
    own.include()
    hidden = [path("inner", Inner.as_view(), name="inner"), path("hidden", Hidden.as_view(), name="hidden")]
    own.freeze(DjangoProject((*urlpatterns, *hidden)))
    assert {one.path for one in own.left_out if "hidden" in one.why} == {"/inner", "/hidden"}


def test_documents_say_how_a_views_own_classes_know_its_callers():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        client = Client(SERVER_NAME="shop.example")
        schemes = client.get("/agent.json").json()["auth"]["x-security-schemes"]
        assert schemes == {
            "TokenAuthentication": {"type": "http", "scheme": "token"},
            "BasicAuthentication": {"type": "http", "scheme": "basic"},
        }
        assert "Authorization: Token ..." in client.get("/llms.txt").content.decode()
        answer = client.post("/agents/book_lend/invoke", {"input": {"pk": 1}}, content_type="application/json")
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Token")
