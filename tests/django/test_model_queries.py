"""`site.model`: a model's rows are listed, searched and read, and written, as `transcripts/queries.txt` has it.

`call` names a site of this module, an agent, its input, and the permissions of whoever calls; without any, nobody is
signed in. --golden writes the answers anew; read the change.
"""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import django
import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.test import Client, override_settings
from django.urls import path
from starlette.applications import Starlette

from awp_publish import ApplicationUser
from tests.django.shop.models import Book, Issue
from tests.django.sites import make_site, view
from tests.function_transcripts import compare

urlpatterns = [path("view", view)]
site, own, known = make_site(), make_site(), make_site(authenticate=ApplicationUser())
written, bounded = make_site(authenticate=ApplicationUser()), make_site(authenticate=ApplicationUser())
written.model(Book, fields=["title", "pages"], read_only=False)
written.model(
    User, fields=["username", "password", "email", "is_active", "last_login"], search=["username"], read_only=False
)
written.model(Group, fields=["id", "name"], search=["name"], read_only=False)
written.model(Issue, fields=["key", "name", "book", "price", "facts"], read_only=False)
site.model(Book, fields=["title", "pages"], search=["title"])
known.model(Book, fields=["title"])
PEOPLE = count()
KEY = "0f8fad5b-d9cb-469f-a165-70867728950e"


@own.model(Book, fields=["title"])
def long_books():
    return Book.objects.filter(pages__gt=100)


@bounded.model(Book, fields=["title", "pages"], read_only=False)
def short_books():
    return Book.objects.filter(pages__lte=100)


def call(name: str, agent: str, inputs: Any, *permissions: str) -> list[object]:
    client, module = Client(), __name__
    if permissions:
        user = User.objects.create_user(f"caller {next(PEOPLE)}", is_active=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client.force_login(user)
    with override_settings(ROOT_URLCONF=module, AWP_PUBLISH={"SITE": f"{module}.{name}"}):
        answer = client.post(f"/agents/{agent}/invoke", json.dumps({"input": inputs}), "application/json")
    if permissions:
        user.delete()
    response = answer.json()
    facts = (
        [response[each] for each in ("detail", "errors") if each in response]
        if answer.status_code > 299
        else [response]
    )
    return [answer.status_code, *facts]


def declared(model: str, fields: Any, search: Any = (), read_only: Any = True, is_known: bool = True) -> list[object]:
    """Return what is published of a model, or raise what is wrong with its declaration."""
    made = make_site(**({"authenticate": ApplicationUser()} if is_known else {}))
    made.model(apps.get_model(model) if "." in model else dict, fields=fields, search=search, read_only=read_only)
    return [
        [
            action.id,
            action.description,
            action.effect,
            action.auth_required,
            action.scopes,
            action.inputs,
            action.outputs,
        ]
        for action in made.freeze(Starlette()).actions
    ]


@pytest.mark.skipif(django.VERSION < (5, 2), reason="older versions have other words")
def test_rows_are_read_and_written_as_in_the_transcript(request):
    for title, pages in {"Emma": 90, "Emma in Bath": 200, "Persuasion": 300}.items():
        Book.objects.create(title=title, pages=pages)
    Issue.objects.create(key=KEY, name="Autumn", book_id=3, price="1.50", facts=[1])
    functions: dict[str, Callable[..., Any]] = {"call": call, "declared": declared}
    compare(Path(__file__).parent / "transcripts" / "queries.txt", functions, request)
