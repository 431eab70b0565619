"""The tables that declarations ask for can be made, whatever is wrong with the site that agents see."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.django.servers import environment

SETTINGS = """
SECRET_KEY = "only for tests, and long enough for a check"
ROOT_URLCONF = "shop.urls"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "awp_publish_django", "shop"]
MIDDLEWARE = ["awp_publish_django.middleware.AgentPublisherMiddleware"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
AWP_PUBLISH = {"SITE": "shop.agents.site"}
"""
URLS = "from django.urls import path\nurlpatterns = [path('there', lambda request: None)]"
SITE = 'from awp_publish import Site\nsite = Site(name="Shop", description="Sells.", url="https://shop.example")\n'
BROKEN = {
    "an option that is none": (SITE.replace("url=", "urls="), "E00"),
    "an action without a route": (f'{SITE}site.declare("a", method="GET", path="/nowhere", description="A.")', "E002"),
    "a table that is missing": (f"{SITE}from django.contrib.auth.models import User\nlist(User.objects.all())", "W007"),
}


@pytest.mark.slow
@pytest.mark.parametrize("agents", BROKEN)
def test_migrate_makes_its_tables_and_check_tells_the_error(agents, tmp_path: Path):
    shop = tmp_path / "shop"
    shop.mkdir()
    source, told = BROKEN[agents]
    files = {"__init__": "", "settings": SETTINGS, "urls": URLS, "agents": source}
    for name, text in files.items():
        (shop / f"{name}.py").write_text(text)
    path = os.pathsep.join((environment()["PYTHONPATH"], str(tmp_path)))
    there = {**environment(), "PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "shop.settings"}

    def manage(*words: str) -> subprocess.CompletedProcess[str]:
        run = [sys.executable, "-m", "django", *words]
        return subprocess.run(run, cwd=tmp_path, env=there, capture_output=True, text=True, check=False)

    checked = manage("check")
    assert (checked.returncode == 0) is told.startswith("W")
    assert f"awp_publish.{told}" in checked.stderr
    migrated = manage("migrate", "--run-syncdb")
    assert migrated.returncode == 0, migrated.stderr
    assert (tmp_path / "shop.db").stat().st_size > 0


def test_a_table_that_is_missing_keeps_no_command_from_making_it(tmp_path: Path):
    shop = tmp_path / "shop"
    shop.mkdir()
    source, _ = BROKEN["a table that is missing"]
    for name, text in {"__init__": "", "settings": SETTINGS, "urls": URLS, "agents": source}.items():
        (shop / f"{name}.py").write_text(text)
    path = os.pathsep.join((environment()["PYTHONPATH"], str(tmp_path)))
    there = {**environment(), "PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "shop.settings"}
    run = [sys.executable, "-m", "django", "makemigrations", "--check"]
    done = subprocess.run(run, cwd=tmp_path, env=there, capture_output=True, text=True, check=False)
    assert "awp_publish.W007" in done.stderr
    assert "SystemCheckError" not in done.stderr
