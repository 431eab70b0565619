"""`site.model`: a model's rows are listed, searched and read, through its manager and permissions."""

import json

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings
from django.urls import path

from awp_publish import ApplicationUser, DeclarationError
from tests.django.shop.models import Book
from tests.django.sites import make_site, view

urlpatterns = [path("view", view)]
site, own, known = make_site(), make_site(), make_site(authenticate=ApplicationUser())
site.model(Book, fields=["title", "pages"], search=["title"])
known.model(Book, fields=["title"])


@own.model(Book, fields=["title"])
def long_books():
    return Book.objects.filter(pages__gt=100)


def call(agent: str, client: Client | None = None, **given: object):
    body = json.dumps({"input": given})
    return (client or Client()).post(f"/agents/{agent}/invoke", body, content_type="application/json")


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


@pytest.fixture
def books() -> list[Book]:
    titles = {"Emma": 90, "Emma in Bath": 200, "Persuasion": 300}
    return [Book.objects.create(title=title, pages=pages) for title, pages in titles.items()]


def test_rows_are_listed_searched_ordered_and_paged(books):
    told = call("list_books").json()
    assert (told["count"], told["pages"]) == (3, 1)
    assert told["results"][0] == {"id": books[0].pk, "title": "Emma", "pages": 90}
    found = call("list_books", search="emma bath").json()
    assert [one["title"] for one in found["results"]] == ["Emma in Bath"]
    second = call("list_books", ordering="-pages", page=2, page_size=1).json()
    assert ([one["title"] for one in second["results"]], second["pages"]) == (["Emma in Bath"], 3)
    for wrong in ({"page": 0}, {"page_size": 101}, {"ordering": "secret"}, {"search": 3}, {"id": 1}):
        assert call("list_books", **wrong).status_code == 422


def test_one_row_is_read(books):
    assert call("get_book", id=books[1].pk).json()["title"] == "Emma in Bath"
    assert call("get_book", id=999).status_code == 404
    assert call("get_book", id=2**62).status_code in (404, 422)


def test_a_function_says_which_rows_there_are(books):
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.own"}):
        assert call("list_books").json()["count"] == 2
        assert call("get_book", id=books[0].pk).status_code == 404


def test_callers_that_the_site_knows_need_the_permission_to_view(books):
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.known"}):
        assert call("list_books").status_code == 401
        user, client = User.objects.create_user("ann"), Client()
        client.force_login(user)
        assert call("list_books", client).status_code == 403
        user.user_permissions.add(Permission.objects.get(codename="view_book"))
        assert call("list_books", client).json()["count"] == 3


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (Book, {"fields": ["tilte"]}, 'there is no field "tilte"'),
        (Book, {"fields": ["title"], "search": ["tilte"]}, "search"),
        (dict, {"fields": ["title"]}, "no model"),
    ],
)
def test_typing_errors_are_told_where_they_are(model, options, words):
    with pytest.raises(DeclarationError, match=words):
        make_site().model(model, **options)
