"""Requests that are ours, answered under WSGI."""

from collections.abc import Callable
from functools import partial

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from awp_publish.http.admission import largest_body
from awp_publish.http.dispatch import ARRIVED
from awp_publish.http.exchange import Reply, Scope, Send
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.problems import HandlerUnavailable
from awp_publish_django.answering import response_of, response_of_messages
from awp_publish_django.callers import identify
from awp_publish_django.gateway import read_body
from awp_publish_django.languages import speaking
from awp_publish_django.own_responses import or_document, own_response, own_scope, recorded, whole_body, with_links
from awp_publish_django.pages import answer_page
from awp_publish_django.portal import Conversation, is_wanted
from awp_publish_django.project import BRIDGE, Bridge, OwnWay
from awp_publish_django.publication import Publication
from awp_publish_django.responses import is_stream, read_response, send_made
from awp_publish_django.threads import EVENTLET, is_eventlet


def answer(
    publication: Publication,
    request: HttpRequest,
    get_response: Callable[[HttpRequest], HttpResponseBase],
    call_view: Callable[[HttpRequest], HttpResponseBase],
    *,
    is_outside: bool = False,
) -> HttpResponseBase:
    scope = own_scope(publication, request)
    if scope is None:

        def get_document(asked: HttpRequest) -> HttpResponseBase:
            return or_document(publication, asked, get_response(asked))

        return with_links(publication, request, answer_page(publication, request, get_document))
    if ARRIVED in scope:
        return _answer_directly(publication, request, scope, get_response)
    if publication.waits_for_approval and not is_eventlet():
        publication.portal.loop()
    if (reply := publication.publisher.document(scope)) is not None:
        return own_response(request, response_of(reply))
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
                return _unless_parts(inner, answer(inner))

        await send_made(await conversation.in_thread(run), conversation.in_thread, send)

    bridge = Bridge(request, respond, is_outside)
    app = partial(publication.publisher, {**scope, BRIDGE: bridge})
    response = response_of_messages(conversation.messages(app, publication.portal.loop()))
    return recorded(publication, own_response(request, response))


def answer_here(publication: Publication, request: HttpRequest) -> HttpResponseBase | None:
    """The answer at a URL of ours in a project without our middleware; None for a URL that is not ours."""
    if own_scope(publication, request) is None:
        return None
    whole = publication.project.answer
    return answer(publication, request, whole, whole, is_outside=True)


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
    conversation = Conversation(whole_body(publication, request))

    async def respond(send: Send) -> None:
        response = await conversation.in_thread(lambda: _unless_parts(request, get_response(request)))
        await send_made(response, conversation.in_thread, send)

    app = partial(publication.publisher, {**scope, BRIDGE: OwnWay(respond)})
    response = response_of_messages(conversation.messages(app, publication.portal.loop()))
    return recorded(publication, with_links(publication, request, response))


def _unless_parts(request: HttpRequest, response: HttpResponseBase) -> Reply | HttpResponseBase:
    """The reply of a view, or its response if that is streamed."""
    has_parts = is_stream(response) and not response.is_async  # type: ignore[attr-defined]
    return response if has_parts else read_response(request, response, is_wanted)


def _refuse(publication: Publication, request: HttpRequest) -> HttpResponseBase:
    """The answer to a call where no event loop can run."""
    catalog = publication.site.catalog
    problem = HandlerUnavailable(EVENTLET)
    return response_of(ProblemRenderer(catalog).reply(problem, request.path))
