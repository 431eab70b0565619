"""What is ours of a request and of its response, under WSGI and ASGI alike."""

from typing import Final

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_cache_control

from awp_publish.http.dispatch import ARRIVED
from awp_publish.http.exchange import Scope
from awp_publish.http.served_address import is_missing
from awp_publish.model import ROUTE_CALL
from awp_publish_django.answering import response_of, when_closed
from awp_publish_django.conf import place_of_middleware
from awp_publish_django.gateway import host_of, scope_of, script_name_of
from awp_publish_django.pages import alternates_of
from awp_publish_django.publication import Publication

_HTML: Final = "text/html"
_JSON: Final = "application/json"
_PAGE_CACHE: Final = "django.middleware.cache.UpdateCacheMiddleware"


def own_scope(publication: Publication, request: HttpRequest) -> Scope | None:
    """The scope of a request that is ours or goes to a guarded route, None for all others.

    Of these no more is read than their method, path and host.
    """
    request_scope: Scope = {
        "method": request.method or "GET",
        "path": request.path,
        "root_path": script_name_of(request),
        "query_string": str(request.META.get("QUERY_STRING", "")).encode("latin-1", "replace"),
        "headers": [(b"host", host_of(request).encode("latin-1", "replace"))],
    }
    publisher = publication.publisher
    if not publisher.owns(request_scope):
        context = publisher.context(request_scope, "guarded_routes")
        guarded = None if context is None else context.ask("guarded_routes")
        action = None if guarded is None else guarded.find(request_scope)
        return None if action is None else {**scope_of(request), ARRIVED: action}
    scope = scope_of(request)
    if (passing := getattr(request, "route_call", None)) is not None:  # a call that comes in with its session's cookies
        scope[ROUTE_CALL] = passing
    return scope


def whole_body(publication: Publication, request: HttpRequest) -> bytes:
    """The body, which the view reads too; b"" if it is too large, for its length is enough to refuse it."""
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    is_too_large = length.isdecimal() and int(length[:20]) > publication.site.settings.limits.max_body_bytes
    return b"" if is_too_large else request.body


def own_response(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """An answer of ours, which the middleware around ours must neither redirect nor cache.

    CommonMiddleware and LocaleMiddleware redirect a 404 (or raise, with DEBUG) if a URL of the project matches the path
    with a slash or a language added; they look it up in the request's URLconf. UpdateCacheMiddleware would cache an
    answer that is for its caller only: it heeds "private", and not "no-store".
    """
    if (
        request.method in ("GET", "HEAD")
        and "no-store" in response.get("Cache-Control", "")
        and place_of_middleware(_PAGE_CACHE) is not None
    ):
        patch_cache_control(response, private=True)
    if response.status_code == 404:
        request.urlconf = ()  # type: ignore[assignment]
    return response


def recorded(publication: Publication, response: HttpResponseBase) -> HttpResponseBase:
    """Have this request's calls recorded once its answer is sent, after everything that it writes itself."""
    if publication.recorder is not None:
        when_closed(response, publication.recorder.write)
    return response


def or_document(publication: Publication, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Our document where the project has none, the view's response otherwise."""
    location = response.get("Location", "")
    is_asked = response.status_code == 404 or "." in request.path
    if not is_asked or not is_missing(response.status_code, location, _beginning_of(response)):
        return response
    reply = publication.publisher.document(scope_of(request), is_fallback=True)
    if reply is None:
        return response
    response.close()
    return response_of(reply)


def _beginning_of(response: HttpResponseBase) -> bytes:
    if isinstance(response, FileResponse):  # its type is guessed from the name of the file
        return b"<html>" if response.get("Content-Type", "").startswith(_HTML) else b""
    return response.content if isinstance(response, HttpResponse) else b""


def with_links(publication: Publication, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    setting = publication.settings.link_headers
    kind = response.get("Content-Type", "").lower() if setting is not False else ""
    if response.status_code == 200 and kind.startswith((_HTML, _JSON) if setting else _HTML):
        links = response.get("Link")
        scope = scope_of(request)
        ours = publication.publisher.links(scope)
        if kind.startswith(_HTML) and (alternates := alternates_of(publication, request, scope)):
            ours = f"{ours}, {alternates}"
        response["Link"] = f"{links}, {ours}" if links else ours
    return response
