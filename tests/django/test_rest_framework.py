"""The tutorial of Django REST framework, and what its developers use beside: agents know what their views know."""

import base64
import json
from datetime import UTC, datetime
from typing import Any, ClassVar

import django
import pytest
from awp_publish_django.project import DjangoProject
from awp_publish_django.publication import get_publication
from django.contrib.auth.decorators import login_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.models import User
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client, override_settings
from django.urls import include, path
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.http import require_GET
from rest_framework import filters, generics, pagination, permissions, routers, serializers, viewsets
from rest_framework.authentication import SessionAuthentication, TokenAuthentication
from rest_framework.decorators import action, api_view, permission_classes
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.response import Response

from tests.django.shop.models import Book
from tests.django.sites import make_site

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Tokens(TokenAuthentication):
    """Its tokens are the names of users."""

    keyword = "Bearer"

    def authenticate_credentials(self, key):
        user = User.objects.filter(username=key).first()
        if user is None:
            raise AuthenticationFailed("There is no such token.")
        return user, key


site = make_site(authenticate=[Tokens], plugins=["mcp"])


class Author(serializers.Serializer):
    name = serializers.CharField(max_length=20)
    towns = serializers.ListField(child=serializers.CharField(max_length=5), required=False)


class BookSerializer(serializers.ModelSerializer):
    class Meta:
        model = Book
        fields = ("id", "title", "pages")


class Full(serializers.Serializer):
    authors = Author(many=True)
    secret = serializers.CharField(
        write_only=True, style={"input_type": "password"}, help_text="<b>Nobody</b> sees it &amp; knows it."
    )

    def create(self, validated_data):
        return validated_data


class WithCover(serializers.Serializer):
    title = serializers.CharField()
    cover = serializers.ImageField()

    def create(self, validated_data):
        return {"title": f"{validated_data['title']}: {validated_data['cover'].name}"}

    def to_representation(self, instance):
        return {"title": instance["title"]}


class Shelf(serializers.Serializer):
    books = serializers.SerializerMethodField()

    def get_books(self, shelf):
        return len(shelf)


class Edition(serializers.Serializer):
    isbn = serializers.CharField(allow_blank=True, min_length=3, validators=[RegexValidator(r"^[0-9]+\Z")])
    kind = serializers.ChoiceField(choices=["novel", "poem"])
    mail = serializers.EmailField(allow_blank=True, required=False)
    cover = serializers.FileField(required=False)
    editor = serializers.CharField(read_only=True)
    shelves = Shelf(many=True, read_only=True)

    def create(self, validated_data):
        return validated_data


class Print(serializers.Serializer):
    in_stock = serializers.BooleanField(default=True)
    is_signed = serializers.BooleanField(required=False)
    authors = Author(many=True, required=False)
    image = serializers.FileField(required=False, allow_null=True)

    def create(self, validated_data):
        return validated_data

    def to_representation(self, instance):
        image = instance.get("image")
        return {**instance, "image": image.name if image else None}


PRINT: dict[str, Any] = {}


class OnePrint(Print):
    authors = None  # type: ignore[assignment]
    history = serializers.ListSerializer(child=serializers.CharField(), read_only=True)
    kinds = serializers.MultipleChoiceField(choices=["a", "b"], required=False)

    def update(self, instance, validated_data):
        instance.update({**validated_data, "kinds": sorted(validated_data.get("kinds", instance["kinds"]))})
        return instance


class PrintView(generics.RetrieveUpdateAPIView):
    """A print."""

    serializer_class = OnePrint

    def get_object(self):
        return PRINT


class Sum(serializers.Serializer):
    sum = serializers.DecimalField(max_digits=30, decimal_places=2, coerce_to_string=False)
    count = serializers.IntegerField(max_value=10**25)
    papers = serializers.MultipleChoiceField(choices=["a4", "a5"], default={"a4"})

    def create(self, validated_data):
        return validated_data

    def to_representation(self, instance):
        return {**instance, "sum": str(instance["sum"])}


class Sums(generics.CreateAPIView):
    """Add a sum."""

    serializer_class = Sum


class Pages(pagination.PageNumberPagination):
    page_size = 2
    page_size_query_param = "size"


class BookSet(viewsets.ModelViewSet):
    """Books of the shop.

    destroy: Throw a book away.
    """

    queryset = Book.objects.order_by("pk")
    pagination_class = Pages
    filter_backends = (filters.SearchFilter, filters.OrderingFilter)
    search_fields = ("title",)
    ordering_fields = ("title", "pages")
    permission_classes = (permissions.IsAuthenticatedOrReadOnly,)
    authentication_classes = (Tokens,)

    def get_serializer_class(self):
        return BookSerializer if self.action != "nothing" else None

    @action(detail=True)
    def cover(self, request, pk):
        """Say what the cover looks like."""
        return Response({"cover": pk})

    @action(detail=True, methods=["post"])
    def hold(self, request, pk):
        """Keep a book for somebody."""
        return Response({"held": pk})


class Authors(generics.CreateAPIView):
    serializer_class = Full


class Covers(generics.CreateAPIView):
    serializer_class = WithCover


@api_view(["GET"])
@permission_classes([permissions.IsAuthenticated])
def mine(request):
    """Say who I am."""
    return Response({"name": request.user.username})


mine.cls.authentication_classes = [Tokens]


@api_view(["GET"])
@permission_classes([permissions.IsAuthenticated])
def drafts(request):
    """Read drafts, as members whom REST framework knows by their session."""
    return Response([])


drafts.cls.authentication_classes = [SessionAuthentication]


@api_view(["GET"])
@permission_classes([permissions.IsAdminUser])
def ledger(request):
    """Read the ledger, as staff."""
    return Response([])


ledger.cls.authentication_classes = [Tokens]


@require_GET
@login_required
def decorated(request: HttpRequest) -> HttpResponse:
    """For members."""
    return JsonResponse({})


class Mixed(LoginRequiredMixin, View):
    def get(self, request: HttpRequest) -> HttpResponse:
        """For members."""
        return JsonResponse({})


@method_decorator(login_required, name="dispatch")
class Dispatched(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        """For members."""
        return JsonResponse({})


@require_GET
def open_to_all(request: HttpRequest) -> HttpResponse:
    """For everybody."""
    return JsonResponse({})


class OpenToAll(generics.ListAPIView):
    """For everybody."""

    queryset = Book.objects.all()
    serializer_class = BookSerializer


class Editions(generics.RetrieveAPIView, generics.CreateAPIView):
    """Editions."""

    serializer_class = Edition
    authentication_classes = ()

    def get_object(self):
        return {"isbn": "x", "kind": "play", "mail": "", "cover": None, "editor": None, "shelves": ["ab"]}


class Prints(generics.CreateAPIView):
    """Add a print."""

    serializer_class = Print
    authentication_classes = ()


class Scans(serializers.Serializer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        assert self.context["request"].user is not None, "a serializer may look at who asks"

    scans = serializers.ListField(child=serializers.FileField())


class Scanned(generics.CreateAPIView):
    """Scans of a book."""

    serializer_class = Scans

    def create(self, request):
        """Add scans, and hear only how they are called."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response([(file.name, file.content_type) for file in serializer.validated_data["scans"]])


class Price(serializers.Field):
    def to_representation(self, value):
        return value / 100


class Listed(serializers.Serializer):
    def to_representation(self, instance):
        return [instance]


class Loud(serializers.CharField):
    def to_representation(self, value):
        return {"text": value.upper()}


class Box(serializers.BooleanField):
    """As REST framework's own."""


class Loan(serializers.Serializer):
    book = serializers.PrimaryKeyRelatedField(read_only=True)
    books = serializers.PrimaryKeyRelatedField(read_only=True, many=True)
    pages = serializers.SlugRelatedField(source="book", slug_field="pages", read_only=True)
    price, shelf, title, box = Price(), Listed(), Loud(), Box()
    copies = serializers.IntegerField()
    places = serializers.ListField(child=serializers.IntegerField())
    notes = serializers.DictField(child=serializers.CharField())
    due = serializers.DateTimeField(format="%d.%m.%Y")


class Loans(generics.RetrieveAPIView):
    """Show a loan."""

    serializer_class = Loan

    def get_object(self):
        book = Book(pk=7, title="Emma", pages=3)
        none = {"copies": None, "places": [1, None], "notes": {"a": None}, "due": datetime(2026, 1, 31, 12, tzinfo=UTC)}
        return {"book": book, "books": [book], "price": 150, "shelf": 4, "title": "Emma", "box": True, **none}


router = routers.DefaultRouter()
router.register("books", BookSet)
urlpatterns = [
    path("authors/", Authors.as_view(), name="authors"),
    path("covers/", Covers.as_view(), name="covers"),
    path("print/", PrintView.as_view(), name="print"),
    path("loans/", Loans.as_view(), name="loans"),
    path("scans/", Scanned.as_view(), name="scans"),
    path("sums/", Sums.as_view(), name="sums"),
    path("prints/", Prints.as_view(), name="prints"),
    path("editions/", Editions.as_view(), name="editions"),
    path("mine/", mine),
    path("drafts/", drafts),
    path("ledger/", ledger),
    path("decorated/", decorated),
    path("mixed/", Mixed.as_view(), name="mixed"),
    path("dispatched/", Dispatched.as_view(), name="dispatched"),
    path("open/", open_to_all),
    path("", include(router.urls)),
]
site.include(
    operations=[
        "book-list",
        "book-detail",
        "book-hold",
        "book-cover",
        "authors",
        "covers",
        "editions",
        "prints",
        "print",
        "loans",
        "scans",
        "sums",
    ]
)
site.include()


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def published(method: str, place: str):
    actions = get_publication().site.catalog.actions
    return next(one for one in actions if one.target and (one.target.method, one.target.path) == (method, place))


def call(method: str, place: str, given: object, **headers: str) -> tuple[int, Any]:
    found = published(method, place)
    client = Client(raise_request_exception=False)
    body = json.dumps({"input": given, "operation": found.operation})
    answer = client.post(f"/agents/{found.agent_id}/invoke", body, content_type="application/json", headers=headers)
    return answer.status_code, answer.json()


@pytest.fixture
def ann() -> dict[str, str]:
    User.objects.create_user("ann")
    return {"authorization": "Bearer ann"}


def test_pages_search_and_order_are_inputs_and_a_page_is_the_output(ann):
    listed = published("GET", "/books/")
    assert set(listed.inputs["properties"]) == {"page", "size", "search", "ordering"}
    assert set(listed.outputs["properties"]) == {"count", "next", "previous", "results"}
    for title in ("Emma", "Persuasion", "Emmeline"):
        Book.objects.create(title=title, pages=len(title))
    status, answer = call("GET", "/books/", {"search": "emm", "ordering": "-title", "size": 1, "page": 2})
    assert (status, [result["title"] for result in answer["results"]], answer["count"]) == (200, ["Emma"], 2)
    assert call("GET", "/books/", {"ordering": "price"})[0] == 422


def test_a_field_that_returns_anything_has_no_output_schema():
    given = {"book": 7, "books": [7], "pages": 3, "price": 1.5, "shelf": [4], "title": {"text": "EMMA"}, "box": True}
    none = {"copies": None, "places": [1, None], "notes": {"a": None}, "due": "31.01.2026"}
    assert call("GET", "/loans/", {}) == (200, {**given, **none})
    assert published("GET", "/loans/").outputs["properties"]["due"] == {"type": ["string", "null"]}


def test_patch_requires_nothing_and_retrieve_has_outputs(ann):
    changed = published("PATCH", "/books/{pk}/")
    assert changed.inputs["required"] == ["pk"]
    assert published("PUT", "/books/{pk}/").inputs["required"] == ["title", "pk"]
    assert set(published("GET", "/books/{pk}/").outputs["properties"]) == {"id", "title", "pages"}
    book = Book.objects.create(title="Emma", pages=3)
    status, answer = call("PATCH", "/books/{pk}/", {"pk": book.pk, "pages": 5}, **ann)
    assert (status, answer) == (200, {"id": book.pk, "title": "Emma", "pages": 5})


def test_stored_values_are_returned_unvalidated():
    stored = {"isbn": "x", "kind": "play", "mail": "", "cover": None, "editor": None, "shelves": [{"books": 2}]}
    assert call("GET", "/editions/", {}) == (200, stored)
    assert published("GET", "/editions/").outputs["properties"]["kind"]["examples"] == ["novel", "poem"]
    assert call("POST", "/editions/", {"isbn": "12", "kind": "poem"})[0] == 422
    assert call("POST", "/editions/", {"isbn": "123", "kind": "play"})[0] == 422


def test_a_field_that_may_be_blank_takes_an_empty_text_whatever_else_it_is_checked_for():
    status, answer = call("POST", "/editions/", {"isbn": "", "mail": "", "kind": "poem"})
    assert (status, answer["isbn"], answer["mail"]) == (201, "", "")


def test_a_boolean_that_is_left_out_is_not_false_where_a_view_takes_files_too():
    image, jane = {"filename": "a.png", "content": "YQ=="}, [{"name": "Jane"}]
    assert call("POST", "/prints/", {}) == (201, {"in_stock": True, "image": None})
    assert call("POST", "/prints/", {"authors": jane, "image": None}) == (
        201,
        {"in_stock": True, "authors": jane, "image": None},
    )
    status, answer = call("POST", "/prints/", {"image": image})
    assert (status, answer["in_stock"], answer["image"]) == (201, True, "a.png")
    status, answer = call("POST", "/prints/", {"image": image, "in_stock": False, "is_signed": True})
    assert (status, answer["in_stock"], answer["is_signed"]) == (201, False, True)


def test_a_put_with_a_file_keeps_what_is_left_out():
    PRINT.update(in_stock=False, is_signed=True, kinds=["b"])
    image = {"filename": "a.png", "content": "YQ=="}
    status, answer = call("PUT", "/print/", {"image": image})
    assert (status, answer) == (200, {"in_stock": True, "is_signed": True, "kinds": ["b"], "image": "a.png"})
    status, answer = call("PUT", "/print/", {"image": image, "is_signed": False, "kinds": []})
    assert (status, answer["is_signed"], answer["kinds"]) == (200, False, [])


def test_a_decimal_with_more_digits_than_whole_numbers_have_bits_is_published_and_taken():
    added = {"sum": "12.50", "count": 10**18, "papers": ["a4"]}
    assert call("POST", "/sums/", {"sum": 12.5, "count": 10**18}) == (201, added)
    assert published("POST", "/sums/").inputs["properties"]["papers"]["default"] == ["a4"]
    assert call("POST", "/sums/", {"sum": 12.5, "count": 0.5})[0] == 422


def test_each_action_of_a_viewset_has_words_of_its_own():
    values = {way: published(*way).description for way in [("GET", "/books/"), ("POST", "/books/")]}
    assert values == {
        ("GET", "/books/"): "List books. Books of the shop.",
        ("POST", "/books/"): "Add a book. Books of the shop.",
    }
    assert published("DELETE", "/books/{pk}/").description == "Throw a book away."
    assert published("GET", "/books/{pk}/cover/").description == "Say what the cover looks like."


def test_an_action_that_reads_no_serializer_asks_for_nothing_of_it():
    assert set(published("POST", "/books/{pk}/hold/").inputs["properties"]) == {"pk"}
    assert call("GET", "/books/{pk}/cover/", {"pk": 7}) == (200, {"cover": "7"})


def test_a_view_that_answers_in_its_own_way_has_its_own_words_and_no_outputs_and_takes_several_files():
    scans = [{"filename": f"{page}.csv", "content_type": "text/csv", "content": "YQ=="} for page in (1, 2)]
    assert call("POST", "/scans/", {"scans": scans}) == (200, [["1.csv", "text/csv"], ["2.csv", "text/csv"]])
    answered = published("POST", "/scans/")
    assert (answered.description, answered.outputs) == ("Add scans, and hear only how they are called.", {})


def test_nested_errors_have_pointers():
    given = {"authors": [{"name": "Jane"}, {"name": "Anne", "towns": ["Bath", "Winchester"]}], "secret": "x"}
    status, answer = call("POST", "/authors/", given)
    assert status == 422
    assert [error["pointer"] for error in answer["errors"]] == ["/authors/1/towns/1"]


def test_a_write_only_input_is_declared_as_a_password():
    secret = published("POST", "/authors/").inputs["properties"]["secret"]
    assert (secret["writeOnly"], secret["format"]) == (True, "password")
    assert secret["description"] == "Nobody sees it & knows it."


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ({"filename": "front.png", "content": base64.b64encode(PIXEL).decode()}, "front.png"),
        (f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}", "cover.png"),
        (base64.b64encode(PIXEL).decode(), "cover.png"),
    ],
)
def test_a_file_is_sent_as_a_multipart_form(sent, name):
    assert call("POST", "/covers/", {"title": "Emma", "cover": sent}) == (201, {"title": f"Emma: {name}"})


def test_a_file_that_is_none_is_refused():
    assert call("POST", "/covers/", {"title": "Emma", "cover": {"filename": "../", "content": ""}})[0] == 422
    status, answer = call("POST", "/covers/", {"title": "Emma", "cover": "data:text/plain;base64,aGVsbG8="})
    assert (status, answer["errors"][0]["pointer"]) == (422, "/cover")


@pytest.mark.parametrize(
    ("method", "place", "asks"),
    [
        ("GET", "/mine/", True),
        ("GET", "/decorated/", True),
        ("GET", "/mixed/", True),
        ("GET", "/dispatched/", True),
        ("GET", "/open/", False),
        ("GET", "/books/", False),
        ("POST", "/books/", True),
    ],
)
def test_permissions_decorators_and_mixins_say_who_may_call(method, place, asks):
    assert published(method, place).auth_required is asks


@pytest.mark.skipif(django.VERSION < (5, 1), reason="LoginRequiredMiddleware came with Django 5.1")
def test_the_middleware_that_asks_everybody_says_so_too():
    listed = ["django.contrib.auth.middleware.LoginRequiredMiddleware"]
    own = make_site()
    own.include(operations=["open_to_all", "mine"])
    with override_settings(MIDDLEWARE=listed):
        own.freeze(DjangoProject((path("open/", open_to_all), path("for-all/", OpenToAll.as_view(), name="mine"))))
    assert own.catalog.action("open_to_all").auth_required
    assert not own.catalog.action("mine").auth_required  # REST framework has permissions of its own


def test_authentication_classes_know_callers(ann):
    assert call("GET", "/mine/", {}, **ann) == (200, {"name": "ann"})
    assert call("GET", "/mine/", {}, authorization="Bearer bob")[0] == 401
    assert call("GET", "/open/", {}, authorization="Bearer bob")[0] == 401


def test_a_caller_whom_rest_framework_does_not_know_is_asked_who_they_are(ann):
    """It answers 403 where its first authenticator, SessionAuthentication by default, has no challenge."""
    status, answer = call("GET", "/drafts/", {})
    assert (status, answer["code"]) == (401, "AUTHENTICATION_REQUIRED")
    status, answer = call("GET", "/ledger/", {}, **ann)
    assert (status, answer["code"]) == (403, "INSUFFICIENT_PERMISSIONS")


def test_filters_of_django_filter_are_inputs():
    filters_of_django = pytest.importorskip("django_filters.rest_framework")

    class Filtered(generics.ListAPIView):
        """List books by title."""

        queryset = Book.objects.all()
        serializer_class = BookSerializer
        filter_backends = (filters_of_django.DjangoFilterBackend,)
        filterset_fields: ClassVar = {"title": ["exact"], "pages": ["gte", "lte", "in"]}

    own = make_site()
    own.include(paths=["/filtered/"])
    own.freeze(DjangoProject((path("filtered/", Filtered.as_view(), name="filtered"),)))
    members: Any = own.catalog.action("filtered").inputs["properties"]
    assert set(members) == {"title", "pages__gte", "pages__lte", "pages__in"}
    assert members["pages__gte"]["type"] == "number"
    several = "Multiple values may be separated by commas."
    assert members["pages__in"] == {"type": ["string", "integer"], "description": several}


def test_an_order_of_a_projects_own_may_be_by_other_fields():
    class OwnOrder(filters.OrderingFilter):
        def remove_invalid_fields(self, queryset, fields, view, request):
            return fields

    class Ordered(generics.ListAPIView):
        """List books in an order."""

        queryset = Book.objects.all()
        serializer_class = BookSerializer
        filter_backends = (OwnOrder,)
        ordering_fields = ("title",)

    own = make_site()
    own.include(paths=["/ordered/"])
    own.freeze(DjangoProject((path("ordered/", Ordered.as_view(), name="ordered"),)))
    ordering: Any = own.catalog.action("ordered").inputs["properties"]
    assert "pattern" not in ordering["ordering"]
