"""The tables that declarations ask for can be made, whatever is wrong with the site that agents see."""

from pathlib import Path

import django
import pytest
from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from tests.django.servers import environment
from tests.processes import run

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


def test_the_migrations_make_what_the_models_say():
    made, meant = MigrationLoader(None), ProjectState.from_apps(apps)
    changes = MigrationAutodetector(made.project_state(), meant).changes(made.graph)
    assert changes.get("awp_publish_django", []) == []


@pytest.mark.slow
@pytest.mark.parametrize("agents", BROKEN)
def test_commands_make_its_tables_and_check_tells_the_error(agents, tmp_path: Path):
    shop = tmp_path / "shop"
    shop.mkdir()
    source, told = BROKEN[agents]
    files = {"__init__": "", "settings": SETTINGS, "urls": URLS, "agents": source}
    for name, text in files.items():
        (shop / f"{name}.py").write_text(text)
    there = {**environment(), "DJANGO_SETTINGS_MODULE": "shop.settings"}
    checked = run("django", "check", cwd=tmp_path, env=there)
    assert (checked.returncode == 0) is told.startswith("W")
    assert f"awp_publish.{told}" in checked.stderr
    if told == "W007":  # that of a table which is missing
        prepared = run("django", "makemigrations", "--check", cwd=tmp_path, env=there)
        assert "awp_publish.W007" in prepared.stderr
        assert "SystemCheckError" not in prepared.stderr
    migrated = run("django", "migrate", "--run-syncdb", cwd=tmp_path, env=there)
    if told.startswith("W") or django.VERSION < (6, 1):
        assert migrated.returncode == 0, migrated.stderr
        assert (tmp_path / "shop.db").stat().st_size > 0
    else:
        assert f"awp_publish.{told}" in migrated.stderr
