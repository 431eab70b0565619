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
written, bounded = make_site(authenticate=ApplicationUser()), make_site(authenticate=ApplicationUser())
written.model(Book, fields=["title", "pages"], read_only=False)
site.model(Book, fields=["title", "pages"], search=["title"])
known.model(Book, fields=["title"])


@own.model(Book, fields=["title"])
def long_books():
    return Book.objects.filter(pages__gt=100)


@bounded.model(Book, fields=["title", "pages"], read_only=False)
def short_books():
    return Book.objects.filter(pages__lte=100)


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
    assert call("list_books", search="emma\0bath").json() == found
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
        (dict, {"fields": ["title"]}, "is not a model"),
        (Book, {"fields": ["title"], "read_only": False}, "does not know its callers"),
        (Book, {"fields": ["title"], "read_only": "no"}, "read_only"),
    ],
)
def test_typing_errors_are_told_where_they_are(model, options, words):
    with pytest.raises(DeclarationError, match=words):
        make_site().model(model, **options)


def signed_in(*permissions: str) -> Client:
    user, client = User.objects.create_user("ann"), Client()
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    return client


def test_rows_are_written_where_that_is_said_by_those_who_may():
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.written"}):
        client = signed_in("add_book", "change_book", "view_book")
        assert call("create_book", title="Emma").status_code == 401
        made = call("create_book", client, title="Emma", pages=90).json()
        assert (made["title"], made["pages"]) == ("Emma", 90)
        changed = call("update_book", client, id=made["id"], pages=91).json()
        assert changed == {"id": made["id"], "title": "Emma", "pages": 91}
        assert call("delete_book", client, id=made["id"]).status_code == 403
        user = User.objects.get(username="ann")
        user.user_permissions.add(Permission.objects.get(codename="delete_book"))
        assert call("delete_book", client, id=made["id"]).json() == {"id": made["id"]}
        assert call("delete_book", client, id=made["id"]).status_code == 404
        assert not Book.objects.exists()


def test_a_models_errors_name_its_fields_and_nothing_is_written(books):
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.written"}):
        client = signed_in("add_book", "change_book")
        wrong: list[dict[str, object]] = [{}, {"title": ""}, {"title": "x" * 10_000}, {"title": "Emma", "id": 1}]
        wrong += [{"title": "Emma", "pages": "many"}, {"title": "Emma", "secret": 1}]
        for given in wrong:
            assert call("create_book", client, **given).status_code == 422, given
        assert Book.objects.count() == 3
        assert call("update_book", client, id=books[0].pk, title="").status_code == 422
        assert call("update_book", client, id=999, title="No").status_code == 404


def test_no_row_is_written_that_the_function_would_not_show(books):
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.bounded"}):
        client = signed_in("add_book", "change_book", "delete_book")
        assert call("create_book", client, title="Long", pages=101).status_code == 403
        assert call("update_book", client, id=books[0].pk, pages=101).status_code == 403
        assert call("update_book", client, id=books[1].pk, pages=1).status_code == 404
        assert call("delete_book", client, id=books[1].pk).status_code == 404
        assert sorted(Book.objects.values_list("pages", flat=True)) == [90, 200, 300]


def test_a_model_is_only_read_unless_something_else_is_said():
    assert {one["id"] for one in Client().get("/.well-known/woa.json").json()["agents"]} == {"list_books", "get_book"}
