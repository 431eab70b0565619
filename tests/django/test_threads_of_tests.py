"""Tests of a project that override settings leave no event loops behind: each publication has its own."""

import threading

from django.test import Client, override_settings
from django.urls import path

from tests.django.sites import make_site, view

urlpatterns = [path("view", view)]
site, other = make_site(), make_site()


def loops() -> int:
    return sum(thread.name == "awp_publish loop" for thread in threading.enumerate())


def test_an_overridden_setting_ends_the_loop_of_the_publication_before_it():
    counts = []
    for name in ("site", "other") * 3:
        with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.{name}"}):
            assert Client().post("/agents/nobody/invoke", "{}", "application/json").status_code == 404
            counts.append(loops())
    assert counts == [counts[0]] * 6
    assert loops() == counts[0] - 1
