"""`AgentPublisherMiddleware`: it answers documents and doors itself, and passes on all else after one lookup.

Its place in MIDDLEWARE: below SessionMiddleware and AuthenticationMiddleware, if the site identifies callers by them.
Middleware below it sees agents' calls as requests for the views behind them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cached_property, partial
from typing import Final

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_cache_control

from awp_publish.calls.threads import RUNNER
from awp_publish.http.admission import largest_body
from awp_publish.http.exchange import Message, Receive, Reply, Scope, Send
from awp_publish.http.guarded_routes import ARRIVED
from awp_publish.http.problem_details import render_problem
from awp_publish.http.route_exchange import RouteCall
from awp_publish.model import ROUTE_CALL
from awp_publish.problems import HandlerUnavailable
from awp_publish.stores.threads import EVENTLET, is_eventlet
from awp_publish_django.apps import FAILED
from awp_publish_django.callers import identify
from awp_publish_django.conf import place_of_middleware
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
from awp_publish_django.languages import speaking
from awp_publish_django.own_middleware import GetResponse, enclose
from awp_publish_django.pages import alternates_of, answer_page, answer_page_async
from awp_publish_django.portal import Conversation, is_wanted
from awp_publish_django.project import BRIDGE, Bridge, OwnWay
from awp_publish_django.publication import Publication, get_publication
from awp_publish_django.responses import is_stream, read_response, read_response_async, send_made

logger: Final = logging.getLogger("awp_publish")

_HTML: Final = "text/html"
_JSON: Final = "application/json"
_PAGE_CACHE: Final = "django.middleware.cache.UpdateCacheMiddleware"


class AgentPublisherMiddleware:
    """Serves the project's site to agents, under WSGI and ASGI."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], object]) -> None:
        self._get_response: GetResponse = get_response  # type: ignore[assignment]
        if FAILED:
            logger.error("Nothing is published to agents: an agents.py cannot be imported.", exc_info=FAILED[0])
            raise MiddlewareNotUsed("an agents.py cannot be imported")
        self._publication = get_publication()
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if isinstance(getattr(request, "route_call", None), RouteCall):  # on its way from a door of ours to its view
            return self._get_response(request)
        if self._is_async:
            return _answer_async(self._publication, request, self._get_response, self._call_view)  # type: ignore[arg-type]
        return _answer(self._publication, request, self._get_response, self._call_view)  # type: ignore[arg-type]

    @cached_property
    def _call_view(self) -> GetResponse:
        """The view that answers calls of actions, made for the first: much middleware has work to do at its start."""
        above = self._publication.middleware_above
        return enclose(self._get_response, above, is_async=self._is_async) if above else self._get_response


# --- WSGI ---


def _answer(
    publication: Publication,
    request: HttpRequest,
    get_response: Callable[[HttpRequest], HttpResponseBase],
    call_view: Callable[[HttpRequest], HttpResponseBase],
    *,
    is_outside: bool = False,
) -> HttpResponseBase:
    scope = _own_scope(publication, request)
    if scope is None:
        response = _or_document(publication, request, answer_page(publication, request, get_response))
        return _with_links(publication, request, response)
    if ARRIVED in scope:
        return _answer_directly(publication, request, scope, get_response)
    if (reply := publication.publisher.document(scope)) is not None:
        return _own_response(request, response_of(reply))
    if is_eventlet():
        return _refuse(publication, request)
    scope.update(identify(publication, request))
    conversation = Conversation(
        read_body(request, largest_body(publication.site.settings, publication.site.catalog.actions))
    )

    async def respond(inner: HttpRequest, is_fresh: bool, send: Send) -> None:
        answer = publication.project.answer if is_fresh else call_view

        def run() -> Reply | HttpResponseBase:
            with speaking(inner):
                response = answer(inner)
                has_parts = is_stream(response) and not response.is_async  # type: ignore[attr-defined]
                return response if has_parts else read_response(inner, response, is_wanted)

        await send_made(await conversation.in_thread(run), conversation.in_thread, send)

    bridge = Bridge(request, respond, is_outside)
    app = partial(publication.publisher, {**scope, BRIDGE: bridge})
    response = response_of_messages(conversation.messages(app, publication.portal.loop()))
    return _recorded(publication, _own_response(request, response))


def answer_here(publication: Publication, request: HttpRequest) -> HttpResponseBase | None:
    """The answer at a URL of ours in a project without our middleware; None for a URL that is not ours."""
    if _own_scope(publication, request) is None:
        return None
    whole = publication.project.answer
    return _answer(publication, request, whole, whole, is_outside=True)


def _answer_directly(
    publication: Publication,
    request: HttpRequest,
    scope: Scope,
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> HttpResponseBase:
    """The answer of a guarded route to a request that comes straight to it."""
    if is_eventlet():
        return _refuse(publication, request)
    scope.update(identify(publication, request))
    conversation = Conversation(_whole_body(publication, request))

    async def respond() -> Reply:
        return await conversation.in_thread(lambda: read_response(request, get_response(request), is_wanted))

    app = partial(publication.publisher, {**scope, BRIDGE: OwnWay(respond)})
    response = response_of_messages(conversation.messages(app, publication.portal.loop()))
    return _recorded(publication, _with_links(publication, request, response))


def _refuse(publication: Publication, request: HttpRequest) -> HttpResponseBase:
    """The answer to a call where no event loop can run."""
    catalog = publication.site.catalog
    problem = HandlerUnavailable(EVENTLET)
    return response_of(
        render_problem(problem, catalog.absolute(catalog.paths.problems), catalog.site.errors, request.path)
    )


# --- ASGI ---


async def _answer_async(
    publication: Publication,
    request: HttpRequest,
    get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]],
    call_view: Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> HttpResponseBase:
    scope = _own_scope(publication, request)
    if scope is None:
        response = await answer_page_async(publication, request, get_response)
        return _with_links(publication, request, _or_document(publication, request, response))
    if (reply := publication.publisher.document(scope)) is not None:
        return _own_response(request, response_of(reply))
    if publication.authenticates:
        scope.update(await sync_to_async(identify)(publication, request))
    is_direct, largest = ARRIVED in scope, largest_body(publication.site.settings, publication.site.catalog.actions)
    sent = Sent(_whole_body(publication, request) if is_direct else read_body(request, largest))

    async def respond(inner: HttpRequest, is_fresh: bool, send: Send) -> None:
        answer = publication.project.answer_async if is_fresh else call_view
        with speaking(inner):
            response = await answer(inner)
            made = response if is_stream(response) else await read_response_async(inner, response)
            await send_made(made, lambda function: sync_to_async(function)(), send)

    async def respond_directly() -> Reply:
        return await read_response_async(request, await get_response(request))

    way = OwnWay(respond_directly) if is_direct else Bridge(request, respond)
    app = partial(publication.publisher, {**scope, BRIDGE: way})
    response = await response_of_stream(_messages_of(app, sent))
    when_closed(response, partial(asyncio.get_running_loop().call_soon_threadsafe, sent.disconnect))
    return _recorded(
        publication, _with_links(publication, request, response) if is_direct else _own_response(request, response)
    )


async def _messages_of(app: Callable[[Receive, Send], Awaitable[None]], sent: Sent) -> AsyncIterator[Message]:
    """The messages that `app(receive, send)` sends from a task of its own.

    Django cancels the request of a caller who has disconnected. The task only gets a disconnect from `receive`, so that
    it can finish what it must; a second cancellation cancels it.
    """
    queue: asyncio.Queue[Message | None] = asyncio.Queue()

    async def run() -> None:
        RUNNER.set(lambda function: sync_to_async(function)())
        await app(sent.receive, queue.put)

    task = asyncio.create_task(run(), name="awp_publish call")
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (message := await queue.get()) is not None:
            yield message
        await task
    finally:
        sent.disconnect()
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
    """The body, which the view reads too; b"" if it is too large, for its length is enough to refuse it."""
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    is_too_large = length.isdecimal() and int(length[:20]) > publication.site.settings.limits.max_body_bytes
    return b"" if is_too_large else request.body


def _own_response(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
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


def _recorded(publication: Publication, response: HttpResponseBase) -> HttpResponseBase:
    """Have this request's calls recorded once its answer is sent, after everything that it writes itself."""
    if publication.recorder is not None:
        when_closed(response, publication.recorder.write)
    return response


def _or_document(publication: Publication, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Our document in place of a 404, the view's response otherwise."""
    reply = publication.publisher.fallback(scope_of(request)) if response.status_code == 404 else None
    if reply is None:
        return response
    response.close()
    return response_of(reply)


def _with_links(publication: Publication, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    wanted = publication.settings.link_headers
    kind = response.get("Content-Type", "").lower() if wanted is not False else ""
    if response.status_code == 200 and kind.startswith((_HTML, _JSON) if wanted else _HTML):
        links = response.get("Link")
        scope = scope_of(request)
        ours = publication.publisher.links(scope)
        if kind.startswith(_HTML) and (alternates := alternates_of(publication, request, scope)):
            ours = f"{ours}, {alternates}"
        response["Link"] = f"{links}, {ours}" if links else ours
    return response
