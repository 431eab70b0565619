"""What Django projects answer, whole, under WSGI and ASGI alike: `transcripts/answers.txt`, see `tests/transcript.py`.

Those of the shop are in `answers.txt` and, under WSGI, `jobs.txt`; sections of the files in `projects` are of other
projects, each named by a module.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import django
import pytest
from awp_publish_django.asgi import get_asgi_application
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings

from tests.client import TestClient
from tests.django.shop.models import Book
from tests.django.sites import copy_of
from tests.transcript import compare, play

TEXTS = Path(__file__).parent / "transcripts"
CHANGING = [
    (r"(set-cookie: (?:csrftoken|sessionid|messages)=)[^;]*", r"\1..."),
    (r"expires=[^;]*", "expires=..."),
    (r"(?<=awp-session: )\S+", "TOKEN"),
    (r"(requestId\W+)\w+", r"\1ID"),
    (r'(request_id\\*":\\*")\w+', r"\1ID"),
    (r"(x-ratelimit-reset: ).*", r"\1..."),
    (r"(?<=/jobs/)[\w-]{22}|(?<=job_id\":\")[\w-]{22}", "JOB"),
    (r"(^  expires: ).*", r"\1..."),
    (r"evt_[\w-]+", "evt_ID"),
    (r"(server: ).*", r"\1..."),
]
pytestmark = pytest.mark.skipif(django.VERSION < (5, 2), reason="older versions have other words")


class Answer:
    """An answer as transcripts read it."""

    def __init__(self, status: int, fields: Iterable[tuple[str, str]], content: bytes) -> None:
        self.status_code, self.content, self.headers = status, content, self
        self._fields = sorted(((name.lower(), value) for name, value in fields), key=lambda field: field[0])

    def without(self, root: str) -> "Answer":
        """Return the same without a path."""
        fields = [(name, value.replace(root, "")) for name, value in self._fields]
        return Answer(self.status_code, fields, self.content.replace(root.encode(), b"")) if root else self

    def multi_items(self) -> list[tuple[str, str]]:
        return self._fields

    @property
    def text(self) -> str:
        return self.content.decode(errors="backslashreplace")

    def json(self) -> Any:
        return json.loads(self.content)


class Wsgi:
    """A client of Django, as transcripts call it. The `root` below which a project is stands in no answer."""

    def __init__(self, root: str = "") -> None:
        self._client, self._root = Client(raise_request_exception=False, SERVER_NAME="shop.example"), root
        self._client.defaults["SCRIPT_NAME"] = root
        self.cookies = self._client.cookies

    def request(self, method: str, address: str, *, content: bytes, headers: dict[str, str], **_: Any) -> Answer:
        headers = {"user-agent": "tests", **headers}
        kind = headers.pop("content-type", "application/octet-stream")
        given: dict[str, Any] = {"data": content, "content_type": kind, "headers": headers, "secure": True}
        answer: Any = self._client.generic(method, address, **given)
        body = b"".join(answer)
        cookies = [("set-cookie", cookie.OutputString()) for cookie in answer.cookies.values()]
        for name in [name for name, cookie in answer.cookies.items() if cookie["max-age"] == 0]:
            self.cookies.pop(name, None)  # as browsers do
        return Answer(answer.status_code, [*answer.items(), *cookies], body).without(self._root)


class Asgi:
    """The same of the application under ASGI."""

    def __init__(self, root: str = "") -> None:
        self._root = root
        given: dict[str, Any] = {
            "base_url": "https://shop.example",
            "raise_server_exceptions": False,
            "root_path": root,
        }
        self._client = TestClient(get_asgi_application(), **given)
        self.cookies = self._client.cookies

    def request(self, method: str, address: str, *, headers: dict[str, str], **given: Any) -> Answer:
        silent = {"user-agent": "tests", "accept": "", "accept-encoding": "", "connection": ""}
        answer = self._client.request(method, self._root + address, headers=silent | headers, **given)
        return Answer(answer.status_code, answer.headers.multi_items(), answer.content).without(self._root)


def people() -> None:
    """Make two users, of whom Ann may add books, and two books."""
    ann = User.objects.create_user("ann", password="ann")
    ann.user_permissions.add(Permission.objects.get(codename="add_book"))
    User.objects.create_user("ben", password="ben")
    Book.objects.create(title="Emma", pages=3)
    Book.objects.create(title="Persuasion", pages=5)


@pytest.mark.parametrize("make", [Wsgi, Asgi])
def test_a_django_shop_answers_as_in_the_transcript(request, make):
    people()
    shop: Any = make()
    compare(TEXTS / "answers.txt", shop, request, *CHANGING)


def test_jobs_of_a_django_site_are_as_in_the_transcript(request):
    people()
    shop: Any = Wsgi()
    compare(TEXTS / "jobs.txt", shop, request, *CHANGING)


@pytest.mark.parametrize("make", [Wsgi, Asgi])
@pytest.mark.parametrize("about", ["callers", "forms", "languages", "pages", "rest"])
def test_django_projects_answer_as_in_the_transcript(request, about, make):
    """Each section names a module of this folder that has a site and addresses, and middleware beside that of the shop.

    The projects are below a path, which is left out of what they answer.
    """
    path, made = TEXTS / "projects" / f"{about}.txt", list[str]()
    people()
    for section in re.split(r"\n(?=# )", path.read_text().rstrip("\n")):
        project, _, *middleware = section.partition("\n")[0].split()[1:]
        module = copy_of(project)
        given = {"AWP_PUBLISH": {"SITE": f"{module}.site"}, "MIDDLEWARE": [*middleware[1:], *settings.MIDDLEWARE]}
        with override_settings(ROOT_URLCONF=module, **given):
            made.append(play(section, make("/tea"), CHANGING))
    if request.config.getoption("--golden"):
        path.write_text("\n".join(made))
    assert "\n".join(made) == path.read_text()
