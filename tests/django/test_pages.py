"""Pages of a Django project as SOM and Markdown, with Django's own middleware around and below."""

import gzip
import itertools

import pytest
from asgiref.sync import async_to_sync
from awp_publish_django.publication import get_publication
from django.db import transaction
from django.http import FileResponse, HttpResponse, HttpResponseNotModified, HttpResponseRedirect, StreamingHttpResponse
from django.test import Client, override_settings
from django.urls import include, path, re_path
from django.views.decorators.http import require_GET, require_POST
from som_parser import parse_som

from awp_publish import Pages, Site
from awp_publish.plugins.pages.rendering import MAX_PAGE_BYTES
from awp_publish.plugins.traffic.report import OTHERS

MARKDOWN = {"accept": "text/markdown"}
OURS = "awp_publish_django.middleware.AgentPublisherMiddleware"


def page(request):
    seen = [
        request.method,
        request.META.get("HTTP_RANGE"),
        request.headers.get("If-None-Match"),
        request.GET.urlencode(),
    ]
    response = HttpResponse(f"<h1>Shelf</h1><p>{' '.join(map(str, seen))}</p>")
    response.set_cookie("visits", "1", httponly=True)
    return response


def seen(request):
    facts = (*map(str, request.accepted_types), request.headers.get("If-None-Match"), request.GET.urlencode())
    return HttpResponse(f"<h1>Seen</h1><p>{' '.join(map(str, facts))}</p>")


def public(request):
    caching = {"Cache-Control": "public, max-age=60, s-maxage=600", "CDN-Cache-Control": "max-age=600"}
    return HttpResponse("<h1>Public</h1>", headers=caching)


def public_by_token(request, *args, **kwargs):
    return HttpResponse("<h1>Public</h1>")


def redirect(request):
    return HttpResponseRedirect("/page")


def data(request):
    return HttpResponse("{}", content_type="application/json")


def packed(request):
    return HttpResponse(gzip.compress(b"<h1>Packed</h1>"), headers={"Content-Encoding": "gzip"})


def endless(request):
    return StreamingHttpResponse(itertools.repeat("<p>more</p>" * 10_000))


@transaction.non_atomic_requests
async def endless_async(request):
    async def pieces():
        while True:
            yield "<p>more</p>" * 10_000

    return StreamingHttpResponse(pieces())


@transaction.non_atomic_requests
async def later(request):
    async def pieces():
        yield "<h1>Later</h1>"
        yield "<p>and more</p>"

    return StreamingHttpResponse(pieces())


def file(request):
    return FileResponse(open(__file__, "rb"), content_type="text/html")


@require_GET
def get_only(request):
    return HttpResponse("<h1>Got</h1>")


@require_POST
def post_only(request):
    return HttpResponse("<h1>Sent</h1>")


def own(request):
    kind = "text/markdown" if "text/markdown" in request.headers["Accept"] else "text/html"
    return HttpResponse("# My own", content_type=kind)


urlpatterns = [
    path("page", page),
    path("seen", seen),
    path("public", public),
    path("redirect", redirect),
    path("data", data),
    path("packed", packed),
    path("endless", endless),
    path("endless-async", endless_async),
    path("later", later),
    path("file", file),
    path("own", own),
    path("get-only", get_only),
    path("post-only", post_only),
    path("reset/<str:token>/", public_by_token),
    re_path(r"^archive/(?P<year>[0-9]{4})/(.*)$", public_by_token),
    path("admin-of-the-shop/", include(([path("users/<int:pk>/", public_by_token)], "admin"))),
]
site = Site("Shop", "Sells books.", url="https://shop.example")
cached_site = Site("Shop", "Sells books.", url="https://shop.example", plugins=[Pages(shared_cache=True)])
counted_site = Site("Shop", "Sells books.", url="https://shop.example")
asking_site = Site("Shop", "Sells books.", url="https://shop.example", plugins=[Pages(in_query=True)])


@pytest.fixture(autouse=True)
def _shop():
    changed = {"ROOT_URLCONF": __name__, "AWP_PUBLISH": {"SITE": f"{__name__}.site"}}
    with override_settings(**changed, MIDDLEWARE=["django.middleware.http.ConditionalGetMiddleware", OURS]):
        yield


def test_a_page_is_given_as_markdown_with_the_cookie_of_its_view(client):
    answer = client.get("/page?q=1", headers=MARKDOWN)
    assert answer["content-type"] == "text/markdown; charset=utf-8"
    assert answer.content.decode().startswith("# Shelf\n")
    assert answer["vary"] == "Accept, Prefer"
    assert answer["link"].startswith('<https://shop.example/page?q=1>; rel="canonical"')
    assert answer["content-length"] == str(len(answer.content))
    assert answer.cookies["visits"]["httponly"]


def test_a_page_is_given_as_som_that_others_can_read(client):
    answer = client.get("/page", headers={"accept": "application/som+json"})
    assert parse_som(answer.json()).url == "https://shop.example/page"


def test_the_view_is_asked_for_the_whole_page_and_middleware_around_sees_what_the_caller_sent(client):
    conditions = {"range": "bytes=0-1", "if-none-match": '"other"', **MARKDOWN}
    answer = client.get("/page?q=1", headers=conditions)
    assert "GET None None" in answer.content.decode()
    tag = {"if-none-match": answer["etag"], **MARKDOWN}
    assert client.get("/page?q=1", headers=tag).status_code == 304
    assert client.head("/page?q=1", headers=MARKDOWN)["etag"] == answer["etag"]


@pytest.mark.parametrize("accept", ["*/*", "text/html,*/*;q=0.8", "text/html, text/markdown;q=0.5"])
def test_nothing_is_negotiated_that_nobody_asked_for(client, accept):
    answer = client.get("/page", headers={"accept": accept})
    assert answer["content-type"].startswith("text/html")
    assert answer["vary"] == "Accept"


def test_a_negotiated_page_is_private_to_caches_unless_the_site_allows_sharing(client):
    answer = client.get("/public", headers=MARKDOWN)
    assert (answer["cache-control"], answer["vary"]) == ("private, max-age=60", "Accept, Prefer")
    assert "cdn-cache-control" not in answer.headers
    assert client.get("/public")["cache-control"] == "public, max-age=60, s-maxage=600"
    assert client.get("/public")["vary"] == "Accept"
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.cached_site"}):
        assert Client().get("/public", headers=MARKDOWN)["cache-control"] == "public, max-age=60, s-maxage=600"


def test_the_answer_to_a_form_is_negotiated_as_its_page_is_and_its_conditions_are_the_views(client):
    answer = client.post("/page", {"a": "1"}, headers={"if-none-match": '"x"', **MARKDOWN})
    assert answer["content-type"] == "text/markdown; charset=utf-8"
    assert answer.content.decode() == '# Shelf\n\nPOST None "x"\n'
    assert client.post("/page")["content-type"].startswith("text/html")


def test_head_of_a_page_that_knows_get_only_is_answered_in_other_formats_only(client):
    got, headed = (ask("/get-only", headers=MARKDOWN) for ask in (client.get, client.head))
    assert (headed.status_code, headed.content) == (200, b"")
    assert headed["content-type"] == got["content-type"]
    assert client.head("/get-only").status_code == 405, "as without us"
    assert client.head("/post-only").status_code == 405


def test_an_answer_that_is_not_a_page_passes_unchanged(client):
    assert client.get("/redirect", headers=MARKDOWN)["location"] == "/page"
    assert client.get("/data", headers=MARKDOWN).content == b"{}"
    assert client.get("/own", headers=MARKDOWN).content == b"# My own"


def test_a_compressed_page_is_read(client):
    answer = client.get("/packed", headers=MARKDOWN)
    assert answer.content.decode() == "# Packed\n"
    assert "content-encoding" not in answer.headers


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
def test_a_page_that_is_streamed_asynchronously_is_given_under_wsgi(client):
    assert client.get("/later", headers=MARKDOWN).content == b"# Later\n\nand more\n"


def test_a_header_that_no_server_could_have_read_costs_no_page(client):
    for place in ("/page", "/page.md"):
        answer = client.get(f"{place}?q=\u20ac", headers={"accept": "text/markdown, \u20ac/x", "x-own": "\u20ac"})
        assert b"# Shelf" in answer.content


def test_a_file_is_read_and_closed(client):
    assert b"Pages of a Django project" in client.get("/file", headers=MARKDOWN).content


def test_a_page_without_end_passes_as_it_comes(client):
    answer = client.get("/endless", headers=MARKDOWN)
    assert answer["content-type"].startswith("text/html")
    assert answer["vary"] == "Accept"
    sizes = itertools.accumulate(len(part) for part in answer.streaming_content)
    assert next(size for size in sizes if size > 2 * MAX_PAGE_BYTES)
    answer.close()


async def test_a_page_without_end_passes_as_it_comes_under_asgi(async_client):
    answer = await async_client.get("/endless-async", headers=MARKDOWN)
    assert answer["content-type"].startswith("text/html")
    size = 0
    async for part in answer.streaming_content:
        size += len(part)
        if size > 2 * MAX_PAGE_BYTES:
            break
    assert size > 2 * MAX_PAGE_BYTES


@pytest.mark.parametrize(
    ("where", "begins"), [("/page", "# Shelf\n"), ("/later", "# Later\n"), ("/packed", "# Packed\n")]
)
async def test_pages_are_given_under_asgi(async_client, where, begins):
    answer = await async_client.get(where, headers=MARKDOWN)
    assert answer.content.decode().startswith(begins)
    assert answer["vary"] == "Accept, Prefer"


async def test_the_endpoint_gives_pages_under_asgi(async_client):
    answer = await async_client.get("/agents/som?url=/page&format=md")
    assert answer.content.decode().startswith("# Shelf\n")


def test_the_endpoint_gives_pages_under_wsgi(client):
    answer = client.get("/agents/som", {"url": "https://shop.example/page", "format": "md"})
    assert answer.content.decode().startswith("# Shelf\n")
    assert client.get("/agents/som", {"url": "https://evil.example/"}).status_code == 400


def test_a_format_in_the_address_is_not_seen_by_the_view():
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.asking_site"}):
        get_publication()
        answer = Client().get("/page?q=1&format=md")
        assert answer.content.decode() == "# Shelf\n\nGET None None q=1\n"
        assert answer["content-location"] == "https://shop.example/page?q=1&format=md"


def curious(get_response):
    """Middleware that reads of a request what Django then keeps."""

    def answer(request):
        assert request.accepts("text/markdown")
        assert request.headers["If-None-Match"] == '"x"'
        assert request.GET["format"] == "md"
        return get_response(request)

    return answer


def test_the_view_sees_a_request_as_it_is_asked_whatever_middleware_above_has_read_of_it():
    middleware = [f"{__name__}.curious", OURS]
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.asking_site"}, MIDDLEWARE=middleware):
        answer = Client().get("/seen?q=1&format=md", headers={"if-none-match": '"x"', **MARKDOWN})
        kinds = r"text/markdown text/html; q=0.9 application/xhtml+xml; q=0.8 \*/\*; q=0.1"
        assert answer.content.decode() == f"# Seen\n\n{kinds} None q=1\n"


def test_links_and_formats_go_together():
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.site", "LINK_HEADERS": True}):
        answer = Client().get("/page")
        assert "/.well-known/woa.json" in answer["link"]
        assert answer["vary"] == "Accept"


def _answers(request, name):
    headers = {"location": "/there"} if name == "redirect" else {}
    status = {"page": 200, "error": 404, "failure": 500, "redirect": 302, "refusal": 403}.get(name, 200)
    if name == "stream":
        return StreamingHttpResponse(iter(["<h1>Str", "eam</h1>"]))
    if name == "unchanged":
        return HttpResponseNotModified()
    kind = "TEXT/HTML" if name == "capitals" else "text/html"
    return HttpResponse("<h1>Page</h1>", status=status, headers=headers, content_type=kind)


urlpatterns.append(path("answers/<name>", _answers))


@pytest.mark.parametrize("name", ["page", "error", "failure", "redirect", "refusal", "stream", "unchanged", "capitals"])
def test_every_page_of_the_sites_own_hosts_and_nothing_else_varies_by_accept(client, name):
    for accept in ("*/*", "text/html", "image/png", "text/markdown"):
        for method in ("get", "head", "post"):
            answer = getattr(client, method)(f"/answers/{name}", headers={"accept": accept})
            is_page = answer.status_code in (200, 304) or answer["content-type"].startswith("text/markdown")
            assert ("Accept" in answer.get("vary", "")) == is_page, (accept, method)


def test_other_hosts_of_the_project_are_as_without_us(client):
    own, other = client.get("/page.md"), client.get("/page.md", headers={"host": "docs.shop.example:8000"})
    assert (own.status_code, other.status_code) == (200, 404)
    for accept in ("text/html", "text/markdown"):
        answer = client.get("/page", headers={"host": "docs.shop.example", "accept": accept})
        assert answer["content-type"].startswith("text/html")
        assert "vary" not in answer.headers
    with override_settings(USE_X_FORWARDED_HOST=True):
        assert "vary" not in client.get("/page", headers={"x-forwarded-host": "docs.shop.example"}).headers
        seen = {"host": "inside.internal", "x-forwarded-host": "shop.example"}
        assert client.get("/page", headers=seen)["vary"] == "Accept"


@pytest.mark.parametrize("where", ["/redirect.md", "/data.md", "/post-only.md", "/nowhere.md"])
def test_a_markdown_file_of_what_is_no_page_is_the_projects_own_404(client, where):
    answer = client.get(where)
    assert (answer.status_code, answer["content-type"].partition(";")[0]) == (404, "text/html")


def _conditional(request):
    """A page that knows its validators, and would answer 304 to whatever it takes for one of them."""
    if any(name.startswith("HTTP_IF_") for name in request.META):
        return HttpResponseNotModified(headers={"ETag": '"html"'})
    return HttpResponse("<h1>Page</h1>", headers={"ETag": '"html"', "Last-Modified": "Sat, 21 Nov 2026 00:00:00 GMT"})


urlpatterns.append(path("conditional", _conditional))


@pytest.mark.parametrize("accept", ["text/markdown", "application/som+json"])
def test_the_validator_of_one_format_is_compared_with_that_format_alone(client, accept):
    asked = {"accept": accept}
    first = client.get("/conditional", headers=asked)
    for condition in ('"html"', 'W/"html"', '"other"'):
        answer = client.get("/conditional", headers={**asked, "if-none-match": condition})
        assert (answer.status_code, answer["etag"]) == (200, first["etag"]), condition
    unchanged = client.get("/conditional", headers={**asked, "if-none-match": first["etag"]})
    assert (unchanged.status_code, unchanged["etag"], unchanged["vary"]) == (304, first["etag"], first["vary"])
    assert client.get("/conditional", headers={"accept": "text/html", "if-none-match": '"html"'})["etag"] == '"html"'


def test_every_representation_of_a_page_has_the_links_of_its_html():
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.site", "LINK_HEADERS": True}):
        client = Client(SERVER_NAME="shop.example")
        links = client.get("/page")["link"]
        assert '<https://shop.example/page.md>; rel="alternate"' in links
        for path, accept in (("/page", "text/markdown"), ("/page", "application/som+json"), ("/page.md", "*/*")):
            assert client.get(path, headers={"accept": accept})["link"].endswith(links)
        assert client.get("/agents/som?url=/page")["link"].endswith(links)
        of_site, _, _ = links.partition(", <https://shop.example/page.md>")
        assert client.get("/data")["link"] == of_site
        assert client.post("/page")["link"] == of_site


@override_settings(AWP_PUBLISH={"SITE": f"{__name__}.counted_site"})
def test_pages_are_counted_by_the_templates_of_the_urlconf(client):
    for kind in ("text/markdown", "application/som+json"):
        for address in (
            "/reset/SECRET-1/",
            "/reset/SECRET-2/",
            "/archive/1999/SECRET-3",
            "/admin-of-the-shop/users/7/",
        ):
            assert client.get(address, headers={"accept": kind}).status_code == 200
    assert counted_site.ask("traffic") is not None
    report = async_to_sync(counted_site.ask("traffic").read)()
    counted = {action: calls for (action,), calls in report.sum_by("action").items()}
    assert "SECRET" not in str(report)
    assert counted["/reset/{token}/"] == 4
    assert counted[OTHERS] == 2  # the admin's
    assert sum(counted.values()) == 8
    assert [name for name in counted if name.startswith("/archive/{year}/")]


def test_options_says_who_may_read_the_markdown_of_a_page(client):
    origin = {"origin": "https://agent.example", "access-control-request-method": "GET"}
    asked = client.options("/page.md", headers=origin)
    assert (asked.status_code, asked["Allow"]) == (204, "GET, HEAD, OPTIONS")
    assert client.options("/nowhere.md", headers=origin).status_code == 404
