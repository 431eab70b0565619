"""Actions are described in the project's words, never by a docstring of a framework."""

import pytest
from awp_publish_django.project import DjangoProject
from awp_publish_django.publication import get_publication
from django.core.checks import run_checks
from django.test import override_settings
from django.urls import path
from django.views.generic import CreateView
from rest_framework import serializers, viewsets
from rest_framework.decorators import action, api_view
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter
from rest_framework.views import APIView

from awp_publish import DeclarationError
from tests.django.shop.models import Book
from tests.django.sites import make_site


class BookSerializer(serializers.ModelSerializer):
    class Meta:
        model = Book
        fields = ("id", "title")


class Books(viewsets.ReadOnlyModelViewSet):
    serializer_class = BookSerializer

    def get_queryset(self):
        return Book.objects.all()

    @action(detail=False)
    def recent(self, request):
        return Response([])

    @action(detail=False)
    def worn(self, request):
        """List books that are worn."""
        return Response([])


class Status(APIView):
    def get(self, request):
        return Response({})


@api_view(["GET"])
def health(request):
    return Response({})


new = CreateView.as_view(model=Book, fields=["title"], success_url="/")
router = DefaultRouter()
router.register("books", Books, basename="book")
urlpatterns = [path("status", Status.as_view()), path("health", health), path("new", new), *router.urls]
site = make_site()
site.include()


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def test_no_description_is_a_docstring_of_a_framework():
    described = {one.target.path: one.description for one in get_publication().site.catalog.actions if one.target}
    assert described["/books/worn/"] == "List books that are worn."
    assert all(len(text) < 40 for text in described.values()), described


def test_an_action_without_words_is_found_by_its_name():
    said = [check.msg for check in run_checks(tags=["agents"]) if check.id == "awp_publish.W006"]
    assert any('"book_recent"' in item and "GET /books/recent/" in item for item in said), said
    assert any('"health"' in item for item in said)
    assert not any("worn" in item for item in said)


def test_a_view_of_the_framework_that_is_declared_without_words_is_refused_by_name():
    own = make_site()
    own.action("add_book", method="POST")(new)
    with pytest.raises(DeclarationError, match='action "add_book": description: is missing'):
        own.freeze(DjangoProject(tuple(urlpatterns)))
