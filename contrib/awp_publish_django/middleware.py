"""`AgentPublisherMiddleware`: documents and doors are answered here, all else goes on at the cost of one lookup.

Its place in MIDDLEWARE: below SessionMiddleware and AuthenticationMiddleware, if the site knows its callers by them.
What stands below it sees agents' calls as requests for the views behind them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from awp_publish.problems import HandlerUnavailable
from awp_publish.serve.dispatch import ROUTE_CALL, RouteCall
from awp_publish.serve.endpoint import largest_body
from awp_publish.serve.guarded_routes import ARRIVED
from awp_publish.serve.http import Message, Receive, Reply, Scope, Send, render_problem
from awp_publish.threads import EVENTLET, RUNNER, is_eventlet
from awp_publish_django.callers import identify
from awp_publish_django.gateway import (
    Sent,
    host_of,
    read_body,
    response_of,
    response_of_messages,
    response_of_stream,
    scope_of,
    script_name_of,
    when_closed,
)
from awp_publish_django.pages import answer_page, answer_page_async
from awp_publish_django.portal import Visit, is_wanted
from awp_publish_django.project import BRIDGE, Bridge, OwnWay
from awp_publish_django.publication import Publication, get_publication
from awp_publish_django.responses import calling, read_response, read_response_async

_HTML: Final = "text/html"
_JSON: Final = "application/json"


class AgentPublisherMiddleware:
    """Serves the project's site to agents, under WSGI and ASGI."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], object]) -> None:
        self._get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]
        self._get_response = get_response  # type: ignore[assignment]
        self._publication = get_publication()
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if isinstance(getattr(request, "route_call", None), RouteCall):  # on its way from a door of ours to its view
            return self._get_response(request)
        if self._is_async:
            return _answer_async(self._publication, request, self._get_response)  # type: ignore[arg-type]
        return _answer(self._publication, request, self._get_response)  # type: ignore[arg-type]


# --- WSGI ---


def _answer(
    publication: Publication,
    request: HttpRequest,
    go_on: Callable[[HttpRequest], HttpResponseBase],
    *,
    is_enclosed: bool = False,
) -> HttpResponseBase:
    scope = _own_scope(publication, request)
    if scope is None:
        response = _fallen_back(publication, request, answer_page(publication, request, go_on))
        return _linked(publication, request, response)
    if ARRIVED in scope:
        return _answer_directly(publication, request, scope, go_on)
    if (reply := publication.publisher.document(scope)) is not None:
        return _final(request, response_of(reply))
    if is_eventlet():
        return _refuse(publication, request)
    scope.update(identify(publication, request))
    visit = Visit(read_body(request, largest_body(publication.site.settings, publication.site.catalog.actions)))

    async def respond(inner: HttpRequest, is_fresh: bool) -> Reply:
        def call_view() -> Reply:
            with calling(inner):
                return read_response(inner, (publication.project.answer if is_fresh else go_on)(inner), is_wanted)

        return await visit.in_thread(call_view)

    bridge = Bridge(request, respond, is_enclosed or publication.is_enclosed)
    talk = partial(publication.publisher, {**scope, BRIDGE: bridge})
    response = response_of_messages(visit.converse(talk, publication.portal.loop()))
    return _recorded(publication, _final(request, response))


def answer_here(publication: Publication, request: HttpRequest) -> HttpResponseBase | None:
    """The answer of a URL of ours, where no middleware of ours stands; None for what is not ours."""
    if _own_scope(publication, request) is None:
        return None
    return _answer(publication, request, publication.project.answer, is_enclosed=True)


def _answer_directly(
    publication: Publication, request: HttpRequest, scope: Scope, go_on: Callable[[HttpRequest], HttpResponseBase]
) -> HttpResponseBase:
    """The answer of a guarded route to a request that comes straight to it."""
    if is_eventlet():
        return _refuse(publication, request)
    scope.update(identify(publication, request))
    visit = Visit(_whole_body(publication, request))

    async def respond() -> Reply:
        return await visit.in_thread(lambda: read_response(request, go_on(request), is_wanted))

    talk = partial(publication.publisher, {**scope, BRIDGE: OwnWay(respond)})
    response = response_of_messages(visit.converse(talk, publication.portal.loop()))
    return _recorded(publication, _linked(publication, request, response))


def _refuse(publication: Publication, request: HttpRequest) -> HttpResponseBase:
    """The answer to a call where no loop may run."""
    catalog = publication.site.catalog
    problem = HandlerUnavailable(EVENTLET)
    return response_of(
        render_problem(problem, catalog.absolute(catalog.paths.problems), catalog.site.errors, request.path)
    )


# --- ASGI ---


async def _answer_async(
    publication: Publication, request: HttpRequest, go_on: Callable[[HttpRequest], Awaitable[HttpResponseBase]]
) -> HttpResponseBase:
    scope = _own_scope(publication, request)
    if scope is None:
        response = await answer_page_async(publication, request, go_on)
        return _linked(publication, request, _fallen_back(publication, request, response))
    if (reply := publication.publisher.document(scope)) is not None:
        return _final(request, response_of(reply))
    if publication.knows_callers:
        scope.update(await sync_to_async(identify)(publication, request))
    is_direct, largest = ARRIVED in scope, largest_body(publication.site.settings, publication.site.catalog.actions)
    sent = Sent(_whole_body(publication, request) if is_direct else read_body(request, largest))

    async def respond(inner: HttpRequest, is_fresh: bool) -> Reply:
        answer = publication.project.answer_async if is_fresh else go_on
        with calling(inner):
            return await read_response_async(inner, await answer(inner))

    async def respond_directly() -> Reply:
        return await read_response_async(request, await go_on(request))

    way = OwnWay(respond_directly) if is_direct else Bridge(request, respond, publication.is_enclosed)
    talk = partial(publication.publisher, {**scope, BRIDGE: way})
    response = await response_of_stream(_converse(talk, sent))
    when_closed(response, partial(asyncio.get_running_loop().call_soon_threadsafe, sent.leave))
    return _recorded(publication, _linked(publication, request, response) if is_direct else _final(request, response))


async def _converse(talk: Callable[[Receive, Send], Awaitable[None]], sent: Sent) -> AsyncIterator[Message]:
    """The messages that `talk(receive, send)` sends from a task of its own.

    Django cancels the request of a caller who has gone. That is told to `receive`, so that what must come to its end
    does; who cancels once more is obeyed.
    """
    queue: asyncio.Queue[Message | None] = asyncio.Queue()

    async def run() -> None:
        RUNNER.set(lambda function: sync_to_async(function)())
        await talk(sent.receive, queue.put)

    task = asyncio.create_task(run(), name="awp_publish call")
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (message := await queue.get()) is not None:
            yield message
        await task
    finally:
        sent.leave()
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise


# --- Both ---


def _own_scope(publication: Publication, request: HttpRequest) -> Scope | None:
    """The scope of a request that is ours or goes to a guarded route, None for all others.

    Of these no more is read than their method, path and host.
    """
    asked: Scope = {
        "method": request.method or "GET",
        "path": request.path,
        "root_path": script_name_of(request),
        "query_string": str(request.META.get("QUERY_STRING", "")).encode("latin-1", "replace"),
        "headers": [(b"host", host_of(request).encode("latin-1", "replace"))],
    }
    publisher = publication.publisher
    if not publisher.owns(asked):
        return {**scope_of(request), ARRIVED: asked[ARRIVED]} if publisher.guards(asked) else None
    scope = scope_of(request)
    if (passing := getattr(request, "route_call", None)) is not None:  # a call that comes in with its session's cookies
        scope[ROUTE_CALL] = passing
    return scope


def _whole_body(publication: Publication, request: HttpRequest) -> bytes:
    """The body, which the view reads too; of one that is too large its length is enough."""
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    is_too_large = length.isdecimal() and int(length[:20]) > publication.site.settings.max_body_bytes
    return b"" if is_too_large else request.body


def _final(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """An answer of ours, which middleware around us takes for no missing page of the project.

    CommonMiddleware and LocaleMiddleware redirect a 404 (or raise, with DEBUG) where a URL of the project takes the
    path with a slash or a language; they ask the request for its URLconf. UpdateCacheMiddleware keeps what it is not
    told to leave, and an answer of ours may be for its caller only.
    """
    request._cache_update_cache = False  # type: ignore[attr-defined]
    if response.status_code == 404:
        request.urlconf = ()  # type: ignore[assignment]
    return response


def _recorded(publication: Publication, response: HttpResponseBase) -> HttpResponseBase:
    """The calls of this request are written when its answer has gone out, after all that the request itself writes."""
    if publication.recorder is not None:
        when_closed(response, publication.recorder.write)
    return response


def _fallen_back(publication: Publication, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Our document, where the project has no file of its own."""
    reply = publication.publisher.fallback(scope_of(request)) if response.status_code == 404 else None
    if reply is None:
        return response
    response.close()
    return response_of(reply)


def _linked(publication: Publication, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    kind = response.get("Content-Type", "").lower() if publication.settings.link_headers else ""
    if response.status_code == 200 and kind.startswith((_HTML, _JSON)):
        links = response.get("Link")
        ours = publication.publisher.links(scope_of(request), is_page=kind.startswith(_HTML))
        response["Link"] = f"{links}, {ours}" if links else ours
    return response
