"""Requests that are ours, answered under ASGI."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from awp_publish.calls.threads import RUNNER
from awp_publish.http.admission import largest_body
from awp_publish.http.dispatch import ARRIVED
from awp_publish.http.exchange import Message, Receive, Send
from awp_publish_django.answering import response_of, response_of_stream, when_closed
from awp_publish_django.callers import identify
from awp_publish_django.gateway import Sent, read_body
from awp_publish_django.languages import speaking
from awp_publish_django.own_responses import or_document, own_response, own_scope, recorded, whole_body, with_links
from awp_publish_django.pages import answer_page_async
from awp_publish_django.project import BRIDGE, Bridge, OwnWay
from awp_publish_django.publication import Publication
from awp_publish_django.responses import is_stream, read_response_async, send_made


async def answer_async(
    publication: Publication,
    request: HttpRequest,
    get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]],
    call_view: Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> HttpResponseBase:
    scope = own_scope(publication, request)
    if scope is None:

        async def get_document(asked: HttpRequest) -> HttpResponseBase:
            return or_document(publication, asked, await get_response(asked))

        return with_links(publication, request, await answer_page_async(publication, request, get_document))
    if (reply := publication.publisher.document(scope)) is not None:
        return own_response(request, response_of(reply))
    if publication.authenticates:
        scope.update(await sync_to_async(identify)(publication, request))
    is_direct, largest = ARRIVED in scope, largest_body(publication.site.settings, publication.site.catalog.actions)
    sent = Sent(whole_body(publication, request) if is_direct else read_body(request, largest))

    async def respond(inner: HttpRequest, is_fresh: bool, send: Send) -> None:
        answer = publication.project.answer_async if is_fresh else call_view
        with speaking(inner):
            await send_response(inner, await answer(inner), send)

    async def respond_directly(send: Send) -> None:
        await send_response(request, await get_response(request), send)

    async def send_response(inner_request: HttpRequest, response: HttpResponseBase, send: Send) -> None:
        answer = response if is_stream(response) else await read_response_async(inner_request, response)
        await send_made(answer, lambda function: sync_to_async(function)(), send)

    way = OwnWay(respond_directly) if is_direct else Bridge(request, respond)
    app = partial(publication.publisher, {**scope, BRIDGE: way})
    response = await response_of_stream(_messages_of(app, sent))
    when_closed(response, partial(asyncio.get_running_loop().call_soon_threadsafe, sent.disconnect))
    return recorded(
        publication, with_links(publication, request, response) if is_direct else own_response(request, response)
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
