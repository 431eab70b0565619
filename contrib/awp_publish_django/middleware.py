"""`AgentPublisherMiddleware`: documents and doors are answered here, all else goes on at the cost of one lookup.

Its place in MIDDLEWARE: below SessionMiddleware and AuthenticationMiddleware, if the site knows its callers by them.
What stands below it sees agents' calls as requests for the views behind them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from awp_publish.serve.http import Message, Receive, Reply, Scope, Send
from awp_publish.threads import RUNNER
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
from awp_publish_django.languages import speaking
from awp_publish_django.pages import answer_page, answer_page_async
from awp_publish_django.portal import Visit, is_wanted
from awp_publish_django.project import BRIDGE, Bridge
from awp_publish_django.publication import Publication, get_publication
from awp_publish_django.responses import read_response, read_response_async

T = TypeVar("T")
_HTML: Final = "text/html"


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
        if getattr(request, "route_call", None) is not None:  # on its way from a door of ours to its view
            return self._get_response(request)
        if self._is_async:
            return _answer_async(self._publication, request, self._get_response)  # type: ignore[arg-type]
        return _answer(self._publication, request, self._get_response)  # type: ignore[arg-type]


# --- WSGI ---


def _answer(
    publication: Publication, request: HttpRequest, go_on: Callable[[HttpRequest], HttpResponseBase]
) -> HttpResponseBase:
    scope = _own_scope(publication, request)
    if scope is None:
        return _linked(publication, answer_page(publication, request, go_on))
    if (reply := publication.publisher.document(scope)) is not None:
        return response_of(reply)
    scope.update(identify(publication, request))
    visit = Visit(read_body(request, publication.site.settings.max_body_bytes))

    answer = publication.project.answer if publication.is_enclosed else go_on

    async def respond(inner: HttpRequest) -> Reply:
        return await visit.in_thread(partial(_call_view, answer, inner))

    talk = partial(publication.publisher, {**scope, BRIDGE: Bridge(request, respond, publication.is_enclosed)})
    return _recorded(publication, response_of_messages(visit.converse(talk, publication.portal.loop())))


def _call_view(go_on: Callable[[HttpRequest], HttpResponseBase], inner: HttpRequest) -> Reply:
    with speaking(inner):
        return read_response(inner, go_on(inner), is_wanted)


# --- ASGI ---


async def _answer_async(
    publication: Publication, request: HttpRequest, go_on: Callable[[HttpRequest], Awaitable[HttpResponseBase]]
) -> HttpResponseBase:
    scope = _own_scope(publication, request)
    if scope is None:
        return _linked(publication, await answer_page_async(publication, request, go_on))
    if (reply := publication.publisher.document(scope)) is not None:
        return response_of(reply)
    if publication.knows_callers:
        scope.update(await sync_to_async(identify)(publication, request))
    sent = Sent(read_body(request, publication.site.settings.max_body_bytes))

    answer = publication.project.answer_async if publication.is_enclosed else go_on

    async def respond(inner: HttpRequest) -> Reply:
        with speaking(inner):
            return await read_response_async(inner, await answer(inner))

    talk = partial(publication.publisher, {**scope, BRIDGE: Bridge(request, respond, publication.is_enclosed)})
    response = await response_of_stream(_converse(talk, sent))
    when_closed(response, partial(asyncio.get_running_loop().call_soon_threadsafe, sent.leave))
    return _recorded(publication, response)


async def _converse(talk: Callable[[Receive, Send], Awaitable[None]], sent: Sent) -> AsyncIterator[Message]:
    """The messages that `talk(receive, send)` sends from a task of its own.

    Django cancels the request of a caller who has gone. That is told to `receive`, so that what must come to its end
    does; who cancels once more is obeyed.
    """
    queue: asyncio.Queue[Message | None] = asyncio.Queue()

    async def run() -> None:
        RUNNER.set(_in_thread)
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


async def _in_thread(function: Callable[[], T]) -> T:
    return await sync_to_async(function)()


# --- Both ---


def _own_scope(publication: Publication, request: HttpRequest) -> Scope | None:
    """The scope of a request that is ours, None for all others, of which no more is read than their path and host."""
    asked: Scope = {
        "path": request.path,
        "root_path": script_name_of(request),
        "query_string": str(request.META.get("QUERY_STRING", "")).encode("latin-1", "replace"),
        "headers": [(b"host", host_of(request).encode("latin-1", "replace"))],
    }
    return scope_of(request) if publication.publisher.owns(asked) else None


def _recorded(publication: Publication, response: HttpResponseBase) -> HttpResponseBase:
    """The calls of this request are written when its answer has gone out, after all that the request itself writes."""
    if publication.recorder is not None:
        when_closed(response, publication.recorder.write)
    return response


def _linked(publication: Publication, response: HttpResponseBase) -> HttpResponseBase:
    is_page = response.status_code == 200 and response.get("Content-Type", "").startswith(_HTML)
    if publication.settings.link_headers and is_page:
        links = response.get("Link")
        response["Link"] = f"{links}, {publication.link}" if links else publication.link
    return response
