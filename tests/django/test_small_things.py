"""What projects met in passing: subclasses of middleware, names of views that take anything, options of commands."""

import json
from io import StringIO
from pathlib import Path

import pytest
from awp_publish_django.admin import RecentCallAdmin, register_admin
from awp_publish_django.checks import TRACEBACK
from awp_publish_django.conf import place_of_middleware
from awp_publish_django.management.commands.agents import Command
from awp_publish_django.models import RecentCall
from awp_publish_django.project import DjangoProject
from awp_publish_django.publication import get_publication
from django.contrib import admin
from django.contrib.auth import middleware
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.checks import run_checks
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.locale import LocaleMiddleware
from django.test import override_settings
from django.urls import path
from rest_framework import serializers, viewsets
from rest_framework.routers import DefaultRouter

from tests.django.shop.models import Book
from tests.django.sites import make_site
from tests.processes import run

OURS = "awp_publish_django.middleware.AgentPublisherMiddleware"


class Sessions(SessionMiddleware):
    pass


class Users(AuthenticationMiddleware):
    pass


class Locales(LocaleMiddleware):
    pass


class Required(getattr(middleware, "LoginRequiredMiddleware", AuthenticationMiddleware)):
    """A subclass of a middleware that came with Django 5.1."""


OWN = [f"{__name__}.{item.__name__}" for item in (Sessions, Users, Locales, Required)]


class BookSerializer(serializers.ModelSerializer):
    class Meta:
        model = Book
        fields = ("id", "title")


class Books(viewsets.ModelViewSet):
    """Books of the shop."""

    queryset = Book.objects.all()
    serializer_class = BookSerializer


def search(request: HttpRequest) -> HttpResponse:
    """Search."""
    return JsonResponse({"at": request.build_absolute_uri("/")})


def write(request: HttpRequest) -> HttpResponse:
    """Write."""
    return JsonResponse({"ok": request.POST.get("text")})


def tell(request: HttpRequest, name: str) -> HttpResponse:
    """Tell what a request is."""
    names = ("REQUEST_METHOD", "PATH_INFO", "SCRIPT_NAME", "QUERY_STRING", "CONTENT_TYPE", "SERVER_NAME", "HTTP_X_OWN")
    facts = {
        each: request.META.get(each)
        for each in (*names, "HTTP_HOST", "HTTP_COOKIE", "HTTP_ACCEPT", "HTTP_FORWARDED", "HTTP_CONTENT_LENGTH")
    }
    parts = {"method": request.method, "path": request.path, "info": request.path_info, "type": request.content_type}
    addresses = [request.get_full_path(), request.build_absolute_uri(), request.scheme, request.get_host()]
    read = {"query": {**request.GET}, "form": {**request.POST}, "cookies": request.COOKIES, "name": name}
    found = request.resolver_match and [request.resolver_match.route, request.resolver_match.kwargs]
    return JsonResponse({"meta": facts, **parts, "addresses": addresses, **read, "found": found})


router = DefaultRouter()
router.register("books", Books, basename="book")
urlpatterns = [
    path("search", search, name="search"),
    path("write", write, name="write"),
    path("tell/<name>", tell),
    *router.urls,
]
site = make_site()
WORDS = {"type": "object", "properties": {"name": {"type": "string"}, "word": {"type": "string"}}}
site.declare("ask", method="GET", path="/tell/{name}", inputs=WORDS)
site.declare("say", method="POST", path="/tell/{name}", inputs=WORDS)
site.declare("fill", method="PUT", path="/tell/{name}", inputs=WORDS)
site_at_a_port = make_site(url="https://shop.example:8443")
site_at_a_port.declare("search", method="GET", path="/search")


def test_subclasses_of_djangos_middleware_count_as_these():
    with override_settings(MIDDLEWARE=[*OWN, OURS]):
        names = (
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.middleware.locale.LocaleMiddleware",
        )
        assert [place_of_middleware(name) for name in names] == [0, 1, 2]
        assert place_of_middleware("django.middleware.gzip.GZipMiddleware") is None
        assert DjangoProject().awp_has_sessions
        given = {"AWP_PUBLISH": {"SITE": "tests.django.sites.users_site"}, "ROOT_URLCONF": "tests.django.sites"}
        with override_settings(**given):
            assert "awp_publish.E004" not in {check.id for check in run_checks(tags=["agents"])}
            needed = {route.describe(route.methods[0]).auth_required for route in DjangoProject().awp_routes()}
        assert needed == {hasattr(middleware, "LoginRequiredMiddleware")}


def test_the_name_of_a_view_includes_one_action_and_no_other_format():
    own = make_site()
    own.include(operations=["search", "write", "book-list"])
    own.freeze(DjangoProject(tuple(urlpatterns)))
    ways = {action.id: (action.target.method, action.target.path) for action in own.catalog.actions if action.target}
    assert ways == {
        "search": ("GET", "/search"),
        "write": ("POST", "/write"),
        "book_list_get": ("GET", "/books/"),
        "book_list_post": ("POST", "/books/"),
    }
    assert any("included as GET" in item.why for item in own.left_out if item.path == "/search")


def test_options_of_django_may_stand_behind_the_verb():
    parser = Command().create_parser("manage.py", "agents")
    options = parser.parse_args(["list", "--settings=tests.django.shop.settings", "--pythonpath", "."])
    assert (options.command, options.settings, options.pythonpath) == ("list", "tests.django.shop.settings", ".")
    run = Command(stdout=StringIO())
    run.run_from_argv(["manage.py", "agents", "list", "--settings=tests.django.shop.settings"])


def test_the_command_calls_at_the_address_of_the_site_with_its_port():
    answer = StringIO()
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site_at_a_port"}):
        call_command("agents", "call", "search", stdout=answer)
    assert json.loads(answer.getvalue()) == {"at": "https://shop.example:8443/"}


def test_recent_calls_are_kept_only_where_an_admin_shows_them():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        assert get_publication().recorder is None
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site", "RECENT_CALLS": 5}):
        assert get_publication().recorder is not None


def test_an_admin_takes_the_place_of_one_of_a_project_that_registers_all_models_by_itself():
    try:
        admin.site.unregister(RecentCall)
        admin.site.register(RecentCall)
    finally:
        register_admin(RecentCall)(RecentCallAdmin)
    assert isinstance(admin.site._registry[RecentCall], RecentCallAdmin)


BROKEN = """
import sys
from pathlib import Path
import django
from django.conf import settings
settings.configure(SECRET_KEY="x" * 50, ALLOWED_HOSTS=["*"], ROOT_URLCONF="urls", DEBUG=False,
    INSTALLED_APPS=[{apps}], MIDDLEWARE=["awp_publish_django.middleware.AgentPublisherMiddleware"],
    AWP_PUBLISH={{"SITE": "fine.site", {more}}})
django.setup()
from django.core.checks import run_checks
print([one.id for one in run_checks(tags=["agents"])])
from django.test import Client
print([Client().get(where).status_code for where in ("/page", "/agent.json")])
"""
URLS = """
from django.http import HttpResponse
from django.urls import path
urlpatterns = [path("page", lambda request: HttpResponse("page"))]
"""
FINE = """
from awp_publish import Site
site = Site(name="Shop", description="Sells books.", url="https://testserver")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("apps", "more", "said", "logged"),
    [
        ('"awp_publish_django", "broken"', "", ["['awp_publish.E006']", "[200, 404]"], "no such thing"),
        ('"awp_publish_django", "broken"', '"AUTODISCOVER": False', ["[]", "[200, 200]"], ""),
        ("", "", ["[]", "[200, 200]"], 'Add "awp_publish_django" to INSTALLED_APPS'),
    ],
)
def test_an_agents_py_that_raises_is_an_error_of_the_checks_and_not_the_end_of_the_site(
    tmp_path: Path, apps, more, said, logged
):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "__init__.py").touch()
    (tmp_path / "broken" / "agents.py").write_text("raise RuntimeError('no such thing')")
    (tmp_path / "urls.py").write_text(URLS)
    (tmp_path / "fine.py").write_text(FINE)
    program = BROKEN.format(apps=apps, more=more)
    done = run("-c", program, cwd=tmp_path)
    assert done.stdout.split("\n")[:2] == said, done.stderr
    assert logged in done.stderr


def test_the_hint_of_a_failure_shows_its_traceback(tmp_path: Path):
    (tmp_path / "urls.py").write_text("raise RuntimeError('no such thing')")
    (tmp_path / "fine.py").write_text(FINE)
    program = BROKEN.partition("from django.core.checks")[0].format(apps='"awp_publish_django"', more="")
    called = TRACEBACK.partition('"')[2].rstrip('"')
    done = run("-c", f"{program}\n{called}", cwd=tmp_path)
    assert "Traceback" in done.stderr
    assert "urls.py" in done.stderr
