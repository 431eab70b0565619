import asyncio

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.translation import get_language
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_GET, require_POST
from django.views.generic import CreateView, FormView
from pydantic import BaseModel

from awp_publish import current_caller
from tests.django.shop.agents import site
from tests.django.shop.models import Book


class Search(BaseModel):
    q: str
    limit: int = 10


class Found(BaseModel):
    titles: list[str]


@require_GET
@site.action("search", inputs=Search, outputs=Found)
def search(request: HttpRequest) -> HttpResponse:
    """Search books by title."""
    books = Book.objects.filter(title__icontains=request.GET["q"])[: int(request.GET.get("limit", 10))]
    return JsonResponse({"titles": [book.title for book in books]})


@site.action("search_later", method="GET", inputs=Search)
@transaction.non_atomic_requests
async def search_later(request: HttpRequest) -> HttpResponse:
    """Search books, on the event loop."""
    await asyncio.sleep(0)
    books = Book.objects.filter(title__icontains=request.GET["q"])[: int(request.GET.get("limit", 10))]
    return JsonResponse({"titles": [book.title async for book in books]})


@site.action("add_book", inputs={"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]})
@require_POST
def add_book(request: HttpRequest) -> HttpResponse:
    """Add a book; fails after it was written if its title says so."""
    import json

    title = json.loads(request.body)["title"]
    Book.objects.create(title=title)
    if title == "cursed":
        raise RuntimeError("cursed")
    return JsonResponse({"atomic": connection.in_atomic_block, "title": title}, status=201)


@site.action("whoami")
@require_GET
def whoami(request: HttpRequest) -> HttpResponse:
    """Who is asking."""
    caller = current_caller()
    session = request.session
    session["seen"] = session.get("seen", 0) + 1
    values = {"user": request.user.get_username(), "caller": caller and caller.id, "seen": session["seen"]}
    return JsonResponse({**values, "agent": request.headers.get("User-Agent"), "language": get_language()})


@site.action("post_later", execution="async", timeout=20)
@require_POST
def post_later(request: HttpRequest) -> HttpResponse:
    """Say who asked, some time later."""
    return JsonResponse({"user": request.user.get_username(), "path": request.path})


@site.action("secret")
@login_required
@require_GET
def secret(request: HttpRequest) -> HttpResponse:
    """Only for those who are logged in."""
    return JsonResponse({"secret": request.user.get_username()})


@site.action("stock", scopes=["shop.add_book"])
@require_GET
def stock(request: HttpRequest) -> HttpResponse:
    """Only for those who may add books."""
    return JsonResponse({"user": request.user.get_username()})


@site.action("guarded", auth_required=True)
@require_GET
def guarded(request: HttpRequest) -> HttpResponse:
    """Only for callers that the site knows."""
    return JsonResponse({"user": request.user.get_username()})


@ensure_csrf_cookie
@require_POST
def plain_post(request: HttpRequest) -> HttpResponse:
    return HttpResponse("done")


class OrderForm(forms.Form):
    title = forms.CharField(max_length=20, help_text="Which book.")
    copies = forms.IntegerField(min_value=1, max_value=5, initial=1)
    wrapping = forms.ChoiceField(choices=[("none", "No wrapping"), ("gift", "Gift paper")], required=False)
    email = forms.EmailField(label="Where to write to")

    def clean(self):
        if self.cleaned_data.get("title") == "sold out":
            raise forms.ValidationError("This one is sold out.")
        if self.cleaned_data.get("title") == "rare":
            self.add_error("copies", "There is only one.")


@site.action("order")
class Order(FormView):
    """Order a book."""

    http_method_names = ("post",)
    form_class = OrderForm
    template_name = "order.html"
    success_url = "/thanks/"


@site.action("order_by_hand", inputs=OrderForm)
@require_POST
def order_by_hand(request: HttpRequest) -> HttpResponse:
    """Order a book, answered as JSON."""
    form = OrderForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"errors": form.errors}, status=422)
    return JsonResponse(form.cleaned_data)


@site.action("subscribe")
@require_POST
def subscribe(request: HttpRequest, letter: str) -> HttpResponse:
    """Subscribe to a letter; a page that follows tells people whether that was done."""
    if letter == "secret":
        messages.error(request, format_html("Nobody gets the <em>{}</em> letter.", letter))
    messages.info(request, format_html("You get <b>{}</b> & more.", letter))
    return redirect("/thanks/")


@method_decorator(never_cache, name="dispatch")
class Books(LoginRequiredMixin, View):
    """All books."""

    @site.action("read_book")
    @method_decorator(never_cache)
    def get(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Read one book."""
        return JsonResponse({"pk": pk})

    def delete(self, request: HttpRequest, pk: int) -> HttpResponse:
        with transaction.atomic():
            Book.objects.filter(pk=pk).delete()
        return HttpResponse(status=204)


class NewBook(CreateView):
    model = Book
    fields = ("title", "pages")
    template_name = "order.html"
    success_url = "/thanks/"


site.declare("new_book", method="POST", path="/books/new/", description="Add a book by its form.")


@site.action("greet", method="GET")
def greet(request: HttpRequest, name: str) -> HttpResponse:
    """Greet somebody in the language of the path."""
    return JsonResponse({"language": get_language(), "name": name})


@site.action("old_archive")
@require_GET
def archive(request: HttpRequest, year: str) -> HttpResponse:
    """The books of a year."""
    return JsonResponse({"year": year})


def ship(request: HttpRequest) -> HttpResponse:
    told = async_to_sync(site.emit)("order_shipped", {"order": request.GET["order"]}, audience="public")
    return HttpResponse(told)
