"""What `site.include()` takes of a Django project: known reads, pages as pages, and nothing by the way."""

import json
from io import StringIO
from types import FunctionType

import pytest
from awp_publish_django.management.commands.agents import Command
from awp_publish_django.project import DjangoProject
from awp_publish_django.publication import get_publication
from django.conf.urls.static import static
from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.core.management import CommandError, call_command
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.test import Client, override_settings
from django.urls import include, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_safe
from django.views.generic import CreateView, DetailView, ListView, RedirectView, TemplateView, View
from ninja import NinjaAPI
from rest_framework import generics, routers, serializers, viewsets
from rest_framework.decorators import action, api_view
from rest_framework.response import Response
from rest_framework.schemas import get_schema_view
from rest_framework.urlpatterns import format_suffix_patterns

from tests.django.shop.models import Book
from tests.django.sites import make_site

HELD: list[str] = []


def hold(request: HttpRequest, pk: int) -> HttpResponse:
    """Hold a ticket; anybody's GET does."""
    HELD.append(str(pk))
    return HttpResponse("held")


def release(request: HttpRequest, pk: int) -> HttpResponse:
    """Release a ticket."""
    if request.method != "POST":
        raise PermissionDenied
    HELD.remove(str(pk))
    return HttpResponse(status=204)


@require_GET
def tickets(request: HttpRequest) -> HttpResponse:
    """List tickets."""
    return JsonResponse({"tickets": []})


@never_cache
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """See how things are."""
    return render(request, "order.html", {})


@require_GET
def about(request: HttpRequest) -> HttpResponse:
    """Read about the shop."""
    return HttpResponse(f"<h1>About {request.get_host()}</h1>")


def written(title: str) -> HttpResponse:
    return render(HttpRequest(), "order.html", {"title": title})


@require_GET
def terms(request: HttpRequest) -> HttpResponse:
    """Read the terms."""
    return written("Terms")


@require_GET
def stocks(request: HttpRequest) -> HttpResponse:
    """Read the stock as a table."""
    return HttpResponse("emma,3", content_type="text/csv")


def as_json(what: object) -> HttpResponse:
    return JsonResponse({"what": what})


@require_GET
def counted(request: HttpRequest) -> HttpResponse:
    """Count the books."""
    return as_json(3)


@require_http_methods(["GET", "POST"])
def either(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


class Listing(ListView):
    """All books."""

    model = Book


class Detail(DetailView):
    model = Book


class New(CreateView):
    model = Book
    fields = ("title",)


class Stock(View):
    """How many there are."""

    http_method_names = ("get", "head")

    def get(self, request: HttpRequest) -> HttpResponse:
        return JsonResponse({"stock": 3})


@require_GET
def moved(request: HttpRequest) -> HttpResponse:
    """Go to where it is now."""
    if request.user.is_anonymous:
        return redirect_to_login(request.path)
    return redirect("about")


class Back(View):
    """Ask for what is to be dropped, which takes a POST."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(self.home())

    def home(self) -> str:
        return "/about/"

    def post(self, request: HttpRequest) -> HttpResponse:
        return JsonResponse({})


class Drop(View):
    """Drop it at once."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.post(request)

    def post(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()


class BookSerializer(serializers.ModelSerializer):
    class Meta:
        model = Book
        fields = ("id", "title")


class BookSet(viewsets.ModelViewSet):
    queryset = Book.objects.all()
    serializer_class = BookSerializer

    @action(detail=True)
    def cover(self, request, pk):
        """Say what the cover looks like."""
        return Response({"cover": pk})


class Riddle(generics.ListAPIView):
    """A view that nobody can ask beforehand."""

    queryset = Book.objects.all()

    def get_permissions(self):
        raise RuntimeError("too early")


class Untold(TemplateView):
    @property
    def template_name(self):  # type: ignore[override]
        raise RuntimeError("too early")

    render_to_response = 5  # type: ignore[assignment]


@api_view(["GET", "POST"])
def snippets(request, format=None):  # noqa: A002 - as REST framework calls it
    """List snippets."""
    return Response({"snippets": []})


def list_books(request: HttpRequest) -> HttpResponse:
    """List books."""
    return JsonResponse({})


first, second = (require_GET(FunctionType(list_books.__code__, globals(), "list_books")) for _ in range(2))
api = NinjaAPI(urls_namespace="included")


@api.get("/things")
def list_things(request) -> dict[str, int]:
    """List things."""
    return {"things": 2}


@api.post("/things")
def add_thing(request) -> dict[str, int]:
    return {}


router = routers.DefaultRouter()
router.register("set", BookSet)

urlpatterns = [
    path("schema/", get_schema_view(title="Shop"), name="schema"),
    path("riddle/", Riddle.as_view(), name="riddle"),
    path("untold/", Untold.as_view(), name="untold"),
    path("tickets/<int:pk>/hold/", hold),
    path("tickets/<int:pk>/release/", release),
    path("tickets/", tickets),
    path("overview/", overview),
    path("written/about/", about),
    path("written/terms/", terms),
    path("written/stocks/", stocks),
    path("written/counted/", counted),
    path("either/", either),
    path("listing/", Listing.as_view(), name="listing"),
    path("listing/<int:pk>/", Detail.as_view(), name="detail"),
    path("listing/new/", New.as_view(), name="new"),
    path("about/", TemplateView.as_view(template_name="order.html"), name="about"),
    path("away/", RedirectView.as_view(url="/about/"), name="away"),
    path("moved/", moved),
    path("back/", Back.as_view()),
    path("stock/", Stock.as_view()),
    path("drop/", Drop.as_view()),
    path("accounts/login/", auth_views.LoginView.as_view(), name="login"),
    path("accounts/leave/", auth_views.LogoutView.as_view(), name="leave"),
    path("accounts/password/", auth_views.PasswordResetDoneView.as_view(), name="done"),
    path("logout/", require_GET(hold), {"pk": 1}),
    path("admin/", admin.site.urls),
    path("v1/books/", first),
    path("v2/books/", second),
    *format_suffix_patterns([path("snippets/", snippets)]),
    path("", include(router.urls)),
    path("ninja/", api.urls),
]
with override_settings(DEBUG=True):
    urlpatterns += [*static("/media/", document_root="/tmp"), *static("/static/", document_root="/tmp")]

site = make_site()
site.include()
site_with_form = make_site()
site_with_form.include(operations=["new"])

ACTIONS = {
    ("GET", "/tickets/"),
    ("GET", "/stock/"),
    ("GET", "/written/stocks/"),
    ("GET", "/written/counted/"),
    ("GET", "/v1/books/"),
    ("GET", "/v2/books/"),
    ("GET", "/snippets/"),
    ("GET", "/set/"),
    ("GET", "/set/{pk}/"),
    ("GET", "/set/{pk}/cover/"),
    ("GET", "/ninja/things"),
}
PAGES = {"/overview/", "/written/about/", "/written/terms/", "/listing/", "/listing/{pk}/", "/about/"}


@pytest.fixture(autouse=True)
def _project():
    HELD.clear()
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def test_reads_that_are_known_to_be_some_become_actions_and_html_becomes_pages():
    catalog = get_publication().site.catalog
    assert {(one.target.method, one.target.path) for one in catalog.actions if one.target} == ACTIONS
    assert {page.path for page in catalog.pages} == PAGES
    assert all(one.effect == "read" for one in catalog.actions)
    assert {"list_books_v1_books_get", "list_books_v2_books_get"} <= {one.id for one in catalog.actions}


def test_routes_that_were_left_out_are_listed_with_the_reason():
    get_publication()
    left = {(item.method, item.path): item.why for item in site.left_out}
    assert "may change something" in left["GET", "/tickets/{pk}/hold/"]
    assert "may change something" in left["GET", "/either/"]
    assert "may change something" in left["GET", "/drop/"]
    assert "may change something" in left["GET", "/listing/new/"]
    assert "signs people in or out" in left["GET", "/accounts/login/"]
    assert "signs people in or out" in left["POST", "/accounts/leave/"]
    assert "signs people in or out" in left["GET", "/accounts/password/"]
    assert "signs people in or out" in left["GET", "/logout/"]
    assert "static" in left["GET", "/media/{path}"]
    assert "admin" in left["GET", "/admin/"]
    assert "another format" in left["GET", "/snippets{format}"]
    assert "another format" in left["GET", "/set.{format}"]
    assert all("redirects" in left["GET", where] for where in ("/away/", "/moved/", "/back/"))
    assert "it writes" in left["POST", "/back/"]
    assert "it writes" in left["POST", "/set/"]


def test_a_view_that_cannot_be_read_is_left_out_and_the_others_are_published():
    values = {item.path: item.why for item in get_publication().site.left_out}
    assert values["/schema/"].startswith("it is for programs")
    assert values["/riddle/"] == "its inputs cannot be read: Riddle cannot be read: too early"
    assert values["/untold/"].startswith("its view cannot be read: ")
    warned = [finding.message for finding in get_publication().site.findings if finding.check == "start-unreadable"]
    assert warned == ["GET /riddle/ is left out, because its inputs cannot be read: Riddle cannot be read: too early."]


def test_a_view_of_a_form_has_no_action_for_the_put_with_which_nothing_can_be_sent():
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.site_with_form"}):
        actions = get_publication().site.catalog.actions
    assert {(one.target.method, one.target.path) for one in actions if one.target} == {
        ("GET", "/listing/new/"),
        ("POST", "/listing/new/"),
    }


def test_the_command_lists_what_is_published_and_what_was_left():
    answer = StringIO()
    call_command("agents", "list", stdout=answer)
    lines = answer.getvalue().splitlines()
    assert any(line.split()[:3] == ["action", "GET", "/tickets/"] for line in lines)
    assert any(line.split()[:3] == ["page", "GET", "/overview/"] for line in lines)
    assert any(line.startswith("left") and "/tickets/{pk}/hold/" in line and "may change" in line for line in lines)


def test_nothing_that_was_left_can_be_called():
    refused = Client().post("/agents/hold/invoke", json.dumps({"input": {"pk": 1}}), content_type="application/json")
    assert refused.status_code == 404
    assert HELD == []


def test_an_unrestricted_view_is_taken_where_it_is_named():
    own = make_site()
    own.include(operations=["hold", "release"])
    catalog = own.freeze(DjangoProject((path("hold/<int:pk>", hold), path("release/<int:pk>", release))))
    assert [one.target.method for one in catalog.actions if one.target] == ["GET", "POST"]


def test_a_view_at_a_path_that_another_one_has_already_is_left_out():
    own = make_site()
    own.include()
    catalog = own.freeze(DjangoProject((path("tickets/", tickets), path("tickets/", first))))
    assert [one.id for one in catalog.actions] == ["tickets"]


def test_a_decorated_view_with_format_suffixes_is_one_action():
    own = make_site()

    @own.action("list_snippets")
    @api_view(["GET"])
    def listed(request, format=None):  # noqa: A002 - as REST framework calls it
        """List snippets."""
        return Response([])

    own.freeze(DjangoProject(tuple(format_suffix_patterns([path("snippets/", listed)]))))
    assert [one.target.path for one in own.catalog.actions if one.target] == ["/snippets/"]


def test_the_command_calls_an_action_as_an_agent_would(capsys):
    answer = StringIO()
    call_command("agents", "call", "book_cover", "pk=7", stdout=answer)
    assert json.loads(answer.getvalue()) == {"cover": "7"}
    Command().run_from_argv(["manage.py", "agents", "--skip-checks", "call", "book_cover", "--key", "k-1", "pk=7"])
    assert json.loads(capsys.readouterr().out) == {"cover": "7"}
    for wrong, words in (
        (["nothing"], "There are:"),
        (["book_cover"], "INVALID_INPUT"),
        (["book_cover", "7"], "name=value"),
    ):
        with pytest.raises(CommandError, match=words):
            call_command("agents", "call", *wrong, stdout=answer)
    with pytest.raises(CommandError, match="no user"):
        call_command("agents", "call", "book_cover", "pk=7", "--user", "ann", stdout=answer)
