"""`wagtail start`, with a blog and a form page: as its command leaves the project, with DEBUG, and ours at the end."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.django.servers import environment
from tests.processes import run

pytest.importorskip("wagtail", reason="Wagtail is not installed")
django = pytest.importorskip("django")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(django.VERSION < (5, 2), reason="this Wagtail needs Django 5.2"),
]

OURS = """
INSTALLED_APPS += ["awp_publish_django", "tests.django.wagtail_shop"]
MIDDLEWARE += ["awp_publish_django.middleware.AgentPublisherMiddleware"]
AWP_PUBLISH = {"SITE": "tests.django.wagtail_shop.agents.site"}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"


class WithoutMigrations(dict):
    def __contains__(self, label):
        return True

    def __getitem__(self, label):
        return None


MIGRATION_MODULES = WithoutMigrations()  # tables as the models are, which is quicker than their history
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("bakery")
    start = "from wagtail.bin.wagtail import main; main()"
    assert run("-c", start, "start", "bakery", str(folder), cwd=folder).returncode == 0
    with (folder / "bakery" / "settings" / "base.py").open("a") as settings:
        settings.write(OURS)
    there = {**environment(), "DJANGO_SETTINGS_MODULE": "bakery.settings.dev"}
    done = run("tests.django.wagtail_shop.run", cwd=folder, env=there)
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_the_project_starts_and_its_admin_is_nobodys_action(told):
    assert "awp_publish.E" not in told["check"]
    lines = told["list"].splitlines()
    published = [line.split()[:3] for line in lines if line.startswith(("action", "page"))]
    assert published == [
        ["action", "GET", "/{path}"],
        ["action", "POST", "/contact/"],
        ["page", "GET", "/"],
        ["page", "GET", "/bread/"],
    ]
    [of_admin] = [line for line in told["show"].splitlines() if "/admin/" in line]
    assert of_admin in lines
    assert "routes below /admin/: it is part of the admin" in of_admin
    assert any("/static/{path}" in line and "static files" in line for line in lines)


def test_pages_behind_the_catch_all_pattern_are_named_and_read(told):
    status, page = told["read"]
    assert status == 200
    assert "Rye and wheat." in page
    assert told["read nothing"][0] == 404
    assert told["page"][:2] == [200, "text/html"]
    assert told["markdown"][:2] == [200, "text/markdown"]
    assert told["without a slash"][0] == 301  # as Wagtail's visitors know it


def test_a_form_page_that_shows_its_form_again_is_a_refusal(told):
    status, problem = told["contact nobody"]
    assert (status, [error["pointer"] for error in problem["errors"]]) == (422, ["/email"])
    status, page = told["contact"]
    assert status == 200
    assert "Thank you." in page


@pytest.mark.parametrize("asked", ["unknown agent", "unknown address", "posted to nothing"])
def test_an_unknown_path_of_ours_is_not_redirected_to_wagtail(told, asked):
    assert told[asked][0] == 404
    if asked != "unknown agent":
        assert told[asked][1] == "application/problem+json"
