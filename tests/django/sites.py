"""Sites and URLconfs with one thing wrong each."""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path

from awp_publish import ApplicationUser, Site


def make_site(**options: object) -> Site:
    given: dict[str, Any] = {"name": "Shop", "description": "Sells books.", "url": "https://shop.example", **options}
    return Site(**given)


def copy_of(project: str) -> str:
    """Import a project of other tests anew, which have not used this one. Returns the name of the module."""
    name = f"tests.django.copy_of_{project}"
    spec = spec_from_file_location(name, Path(__file__).with_name(f"test_{project}.py"))
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return name


def view(request: HttpRequest) -> HttpResponse:
    """Answer."""
    return HttpResponse("answer")


def insecure() -> Site:
    return make_site(url="http://shop.example")


def several_methods() -> Site:
    site = make_site()
    site.action("view")(view)
    return site


def no_route() -> Site:
    site = make_site()
    site.action("lost")(lambda request: HttpResponse())
    return site


def several_errors() -> Site:
    site = no_route()
    site.action("view")(view)
    return site


def forgetful() -> Site:
    site = make_site()
    site.declare("order", method="POST", path="/view", description="Order.", idempotency=True)
    return site


def forgetful_of_tasks() -> Site:
    site = make_site(plugins=["a2a"])
    site.declare("view", method="GET", path="/view", description="View.")
    return site


def forgetful_of_people() -> Site:
    site = make_site(plugins=["sign_in"])
    site.declare("view", method="GET", path="/view", description="View.")
    return site


def forgetful_of_all() -> Site:
    site = make_site(plugins=["sign_in", "a2a"])
    site.declare("order", method="POST", path="/view", description="Order.", idempotency=True)
    site.declare("view", method="GET", path="/view", description="View.", execution="async")
    return site


def six() -> Site:
    return make_site(url="https://[::1]")


def local() -> Site:
    return make_site(url="http://localhost:8000")


def shadowing() -> Site:
    return make_site(plugins=["mcp"], paths={"mcp": "/view"})


def users() -> Site:
    return make_site(authenticate=ApplicationUser())


MAKERS: tuple[Callable[[], Site], ...] = (
    insecure,
    several_methods,
    no_route,
    several_errors,
    forgetful,
    forgetful_of_tasks,
    forgetful_of_people,
    forgetful_of_all,
    six,
    local,
    shadowing,
    users,
)
globals().update({f"{make.__name__}_site": make() for make in MAKERS})
plain = make_site()
urlpatterns = [path("view", view), path("agent.json", view)]
