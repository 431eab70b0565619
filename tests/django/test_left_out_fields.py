"""Fields that a caller leaves out are sent as a browser sends them: as the form shows them."""

import json
from collections.abc import Callable
from typing import Any

import django
import pytest
from asgiref.sync import sync_to_async
from awp_publish_django.filling import find_form
from awp_publish_django.publication import get_publication
from django import forms
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.template import engines
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from django.views.decorators.http import require_POST
from django.views.generic import UpdateView, View

from tests.django.sites import make_site

PAGE = engines["django"].from_string(
    '<form action="/search" method="get"><input name="email"></form>'
    '<form method="post">{{ form.as_p }}<button name="save" value="1">Save</button></form>'
)
site = make_site()
SENT: list[dict[str, Any]] = []
ASKED: list[dict[str, object]] = []


HTTPS: Any = {"assume_scheme": "https"} if django.VERSION >= (5, 0) else {}


class Profile(forms.ModelForm):
    """A bookmark's form in small: what is not a column is initial on the page only."""

    tags = forms.CharField(required=False, help_text="Words")
    home = forms.URLField(required=False, **HTTPS)

    class Meta:
        model = User
        fields = ("username", "first_name", "email", "is_active")


@site.action("edit", inputs=Profile, method="POST")
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Edit a profile."""
    user = get_object_or_404(User, pk=pk)
    if request.method == "POST":
        form = Profile(request.POST, instance=user)
        if form.is_valid():
            SENT.append({"tags": form.cleaned_data["tags"], **request.POST.dict()})
            form.save()
            return redirect("/done/")
    elif user.last_name == "broken":
        raise RuntimeError("the template of the page fails")
    elif user.last_name == "elsewhere":
        return HttpResponse("<title>The form is made by a script</title>")
    else:
        form = Profile(instance=user, initial={"tags": "red blue", "home": "https://a.example/"})
    return HttpResponse(PAGE.render({"form": form}))


class EditByClass(UpdateView):
    """Edit a name."""

    model = User
    fields = ("username", "first_name", "email", "is_active")
    success_url = "/done/"

    def render_to_response(self, context, **kwargs):
        return HttpResponse(PAGE.render(context))


class Settings(forms.Form):
    language = forms.CharField()


def preferences(request: HttpRequest) -> HttpResponse:
    """Change a name, on a page whose form has the settings of another form too."""
    both = (
        Name(request.POST or None, initial={"name": "Ann"}),
        Settings(request.POST or None, initial={"language": "de"}),
    )
    if request.method == "POST" and all(form.is_valid() for form in both):
        SENT.append(request.POST.dict())
        return redirect("/done/")
    hidden = '<input type="hidden" name="version" value="7"><input type="hidden" name="csrfmiddlewaretoken" value="x">'
    return HttpResponse(f'<form method="post">{hidden}{both[0].as_p()}{both[1].as_p()}</form>')


class Name(forms.Form):
    name = forms.CharField()


class Place(forms.Form):
    town = forms.CharField(label="Town")
    zip = forms.CharField(required=False)


class Wizard(View):
    """Sign up on two pages at one address; its GET begins anew."""

    form_list: Any = None
    condition_dict: Any = None

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show the first page."""
        return self._show(0, {})

    def post(self, request: HttpRequest) -> HttpResponse:
        """Take a page and show the next one."""
        step, done = int(request.POST["step"]), json.loads(request.COOKIES.get("done", "{}"))
        form = self.form_list[str(step)](request.POST, prefix=str(step))
        if not form.is_valid():
            return HttpResponse(PAGE.render({"form": form}))
        done |= form.cleaned_data
        if step == 1:
            SENT.append(done)
            return redirect("/done/")
        return self._show(step + 1, done)

    def _show(self, step: int, done: dict[str, Any]) -> HttpResponse:
        form = self.form_list[str(step)](prefix=str(step))
        hidden = f'<input type="hidden" name="step" value="{step}">'
        response = HttpResponse(f'<h1>Page {step + 1}</h1><form method="post">{hidden}{form.as_p()}</form>')
        response.set_cookie("done", json.dumps(done))
        return response


class Update(forms.Form):
    name = forms.CharField()
    slug = forms.CharField(required=False)
    note = forms.CharField(required=False, widget=forms.Textarea)
    size = forms.IntegerField(required=False, initial=3)
    kind = forms.CharField(required=False, initial="plain")
    loud = forms.BooleanField(required=False, initial=True)
    quiet = forms.BooleanField(required=False)
    shape = forms.ChoiceField(required=False, choices=[("a", "A"), ("b", "B")])
    cover = forms.FileField(required=False)


class WithoutFile(Update):
    cover = None  # type: ignore[assignment]


@site.action("rename", inputs=Update)
@require_POST
def rename(request: HttpRequest, pk: int) -> JsonResponse:
    """Rename a check, whose form is on another page."""
    return JsonResponse({**request.POST, "files": list(request.FILES), "empty": request.POST["note"] == ""})


@site.action("add", inputs=WithoutFile)
@require_POST
def add(request: HttpRequest) -> JsonResponse:
    """Add a check."""
    form = WithoutFile(request.POST)
    return JsonResponse({"sent": dict(request.POST), "seen": form.cleaned_data if form.is_valid() else None})


class Letter(forms.Form):
    prefix = "letter"
    title = forms.CharField(required=False)
    note = forms.CharField(required=False, widget=forms.Textarea)


class Parcel(Letter):
    cover = forms.FileField(required=False)


LETTER = """<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="of this page">
<input type="hidden" name='of "the" page' value="caf\u00e9 &amp; more"><input name="letter-title" value="Emma">
<textarea name="letter-note">\nOld</textarea><input type="file" name="letter-cover">
<input name="other" value="1"></form>"""
SHOWN: dict[str, Callable[[], HttpResponse]] = {
    "shown": lambda: HttpResponse(LETTER),
    "western": lambda: HttpResponse(LETTER.encode("latin-1"), content_type="TEXT/HTML; charset=latin-1"),
    "json": lambda: JsonResponse({"title": LETTER}),
    "missing": lambda: HttpResponse(LETTER, status=404),
    "failing": lambda: HttpResponse("not now", status=503, headers={"Retry-After": "9"}),
    "long": lambda: HttpResponse(LETTER + " " * 4_000_000),
}


def tell(request: HttpRequest, page: str) -> HttpResponse:
    """Tell what has been asked and sent, and show a page on GET."""
    if request.method == "GET":
        facts = {name: request.headers.get(name) for name in ("Accept", "Accept-Language", "Content-Type")}
        ASKED.append({**facts, "has a body": request.headers.get("Content-Length", "0") != "0"})
        return SHOWN[page]()
    size, asked = len(request.body), [ASKED.pop() for _ in ASKED[:]]
    files = {name: [file.read().decode() for file in files] for name, files in request.FILES.lists()}
    kind = {"type": request.content_type, "is whole": request.headers["Content-Length"] == str(size)}
    return JsonResponse({"asked": asked, **kind, "sent": {**request.POST, **files}})


STEPS = {"0": Name, "1": Place}
urlpatterns = [
    path("wizard", Wizard.as_view(form_list=STEPS)),
    path("halfway", Wizard.as_view(form_list=STEPS, condition_dict={"1": bool})),
    path("preferences", preferences),
    path("edit/<int:pk>", edit),
    path("edit-by-class/<int:pk>", EditByClass.as_view()),
    path("rename/<int:pk>", rename),
    path("add", add),
    path("letter/<page>", tell),
    path("parcel/<page>", tell),
    path("first-letter", tell, {"page": "json"}),
]
site.declare("write_letter", method="POST", path="/letter/{page}", inputs=Letter)
site.declare("write_first", method="POST", path="/first-letter", inputs=Letter)
site.declare("send_parcel", method="POST", path="/parcel/{page}", inputs=Parcel)
site.declare("preferences", method="POST", path="/preferences", inputs=Name)
site.declare("sign_up", method="POST", path="/wizard")
site.declare("begin", method="POST", path="/halfway", inputs=[type("First", (Name,), {"prefix": "0"})])
site.declare("edit_by_class", method="POST", path="/edit-by-class/{pk}")


@pytest.fixture(autouse=True)
def _project():
    SENT.clear()
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


@pytest.fixture(params=["wsgi", "asgi"])
def call(request):
    async def ask(action: str, **given: object) -> tuple[int, Any]:
        sent: dict[str, Any] = {"data": json.dumps({"input": given}), "content_type": "application/json"}
        place = f"/agents/{action}/invoke"
        if request.param == "wsgi":
            answer: Any = await sync_to_async(Client(raise_request_exception=False).post)(place, **sent)
        else:
            answer = await AsyncClient(raise_request_exception=False).post(place, **sent)
        return answer.status_code, answer.json()

    return ask


def properties(action: str) -> Any:
    return get_publication().site.catalog.action(action).inputs["properties"]


@pytest.mark.parametrize("action", ["edit", "edit_by_class"])
async def test_an_update_keeps_what_is_not_given(call, action):
    user = await sync_to_async(User.objects.create)(username="ann", first_name='Ann & "Co"', email="a@a.example")
    status, answer = await call(action, pk=user.pk, username="anna")
    assert (status, answer) == (200, {"location": "/done/"})
    await sync_to_async(user.refresh_from_db)()
    assert (user.username, user.first_name, user.email) == ("anna", 'Ann & "Co"', "a@a.example")
    assert user.is_active
    if action == "edit":
        assert (SENT[0]["tags"], SENT[0]["home"]) == ("red blue", "https://a.example/")
        assert "save" not in SENT[0]


@pytest.mark.parametrize(
    ("name", "status", "pointers"),
    [("broken", 500, []), ("elsewhere", 422, ["/first_name", "/email", "/is_active", "/tags", "/home"])],
)
async def test_nothing_is_emptied_where_the_page_does_not_show_it(call, name, status, pointers):
    user = await sync_to_async(User.objects.create)(username="ann", email="a@a.example", last_name=name)
    refused, answer = await call("edit", pk=user.pk, username="anna")
    assert (refused, [error["pointer"] for error in answer.get("errors", [])]) == (status, pointers)
    await sync_to_async(user.refresh_from_db)()
    assert (user.username, user.email) == ("ann", "a@a.example")
    if name == "elsewhere":
        rest = {"first_name": "", "email": None, "is_active": True, "tags": "", "home": ""}
        assert (await call("edit", pk=user.pk, username="anna", **rest))[0] == 200


async def test_other_fields_of_the_form_are_sent_too(call):
    assert (await call("preferences", name="Bea"))[0] == 200
    assert SENT == [{"name": "Bea", "language": "de", "version": "7"}]


async def test_a_wizard_is_one_action_whose_pages_are_filled_in_one_after_the_other(call):
    assert await call("sign_up", name="Ann", town="Bath") == (200, {"location": "/done/"})
    assert SENT == [{"name": "Ann", "town": "Bath", "zip": ""}]
    status, answer = await call("sign_up", name="Ann", town=" ")
    assert (status, [error["pointer"] for error in answer["errors"]]) == (422, ["/town"])
    status, answer = await call("begin", name="Ann")
    assert (status, answer["detail"]) == (
        428,
        'The site first asks for something on the page "Page 2": Town, Zip.',
    )


async def test_null_empties_a_field_and_false_unchecks_a_box(call):
    user = await sync_to_async(User.objects.create)(username="ann", first_name="Ann", email="a@a.example")
    given = {"first_name": "", "email": None, "tags": None, "is_active": False}
    assert (await call("edit", pk=user.pk, username="ann", **given))[0] == 200
    await sync_to_async(user.refresh_from_db)()
    assert (user.first_name, user.email, user.is_active, SENT[0]["tags"]) == ("", "", False, "")
    assert SENT[0]["home"] == "https://a.example/"
    assert "is_active" not in SENT[0]


async def test_without_a_page_a_form_is_sent_as_it_is_at_first(call):
    status, answer = await call("add", name="x")
    assert status == 200
    expected = {"name": ["x"], "slug": [""], "note": [""], "size": ["3"], "kind": ["plain"], "loud": ["on"]}
    assert answer["sent"] == expected
    assert (answer["seen"]["loud"], answer["seen"]["quiet"], answer["seen"]["shape"]) == (True, False, "")
    assert "loud" not in (await call("add", name="x", loud=False))[1]["sent"]


async def test_fields_are_added_to_a_body_with_files_too(call):
    answer = (await call("rename", pk=1, name="x", quiet=False, loud=False, cover="aGVsbG8="))[1]
    files = answer.pop("files")
    assert files == ["cover"]
    assert answer == {"name": ["x"], "slug": [""], "note": [""], "size": ["3"], "kind": ["plain"], "empty": True}


def test_descriptions_say_what_becomes_of_a_field_that_is_left_out():
    edited, renamed, added = properties("edit"), properties("rename"), properties("add")
    assert edited["tags"]["description"] == "Words. Left out, it stays as it is; null empties it."
    assert edited["tags"]["type"] == ["string", "null"]
    assert "Left out, it stays as it is." in edited["is_active"]["description"]
    assert "default" not in json.dumps(edited)
    assert "Left out" not in edited["username"].get("description", "")
    assert renamed["slug"]["description"].endswith("Left out, it is sent empty, which clears it.")
    assert (added["size"]["default"], added["kind"]["default"], added["loud"]["default"]) == (3, "plain", True)
    assert "Left out" not in json.dumps(added)


FORMS = """
<form method=post action="/other"><input name=a value=wrong></form>
<form method=post id=f><textarea name=t>
 &lt;b&gt; two
lines</textarea>
<select name=s><option>First one<option value=2 selected>Two</select>
<select name=u><option value=>-<option value=1>One</select>
<select name=m multiple><option selected>x<option selected>y</select>
<input type=checkbox name=c checked><input type=checkbox name=d value=1>
<input type=radio name=r value=1><input type=radio name=r value=2 checked>
<input name=off disabled value=1><input type=submit name=go value=1><input type=file name=file></form>
<input form=f name=a value="1 &amp; 2">
"""


def test_the_entries_of_a_form_are_those_of_a_browser():
    form = find_form(FORMS, "/here", {"a", "t"})
    assert form is not None
    assert form.entries == [
        *(("t", " <b> two\nlines"), ("s", "2"), ("u", ""), ("m", "x"), ("m", "y"), ("c", "on"), ("r", "2")),
        ("a", "1 & 2"),
    ]
    assert find_form(FORMS, "/other", {"a"}) is None  # both forms are sent there
    assert find_form(FORMS * 2, "/nowhere", {"t"}) is None
    assert find_form("<form method=post><input name=b>", "/here", {"a"}) is None
