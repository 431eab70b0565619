"""A view's response as a neutral reply: its body read, its resources closed, and the results of forms made explicit.

The view of a form reports success by a redirect (Post/Redirect/Get), and mistakes by showing the page again with status
200. To a program both would mean the opposite, so it gets a result or errors as JSON.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from html import unescape
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.messages import ERROR, get_messages
from django.contrib.messages.storage.base import Message
from django.core.exceptions import NON_FIELD_ERRORS
from django.core.signals import got_request_exception
from django.forms import BaseForm, BaseFormSet
from django.forms.formsets import DELETION_FIELD_NAME
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, Resolver404, resolve
from django.utils.html import strip_tags

from awp_publish.declare.discover.routes import has_sign_in_name
from awp_publish.http.exchange import RawHeaders, Reply, Send, send_reply
from awp_publish.http.redirects import AFTER_WRITE
from awp_publish.http.route_answers import SURE_PLACE
from awp_publish.http.route_exchange import RouteExchange
from awp_publish_django.answering import closers_of
from awp_publish_django.asking import read_words
from awp_publish_django.cleaned import Cleaned
from awp_publish_django.inner import RouteRequest

FORM_TYPES: Final = ("application/x-www-form-urlencoded", "multipart/form-data", "")
"""Media types of forms that are sent; a form without fields has none."""

READING: Final = ("GET", "HEAD")

LOGIN_VIEW: Final = ("django.contrib.auth.views", "LoginView")
"""By name, because the module cannot be imported without the application."""

_JSON: Final = (b"content-type", b"application/json")


IsWanted: TypeAlias = Callable[[], bool]
"""Tells whether anybody still waits for an answer."""


class Unwanted(Exception):
    """The call timed out or was cancelled; nobody needs its complete answer."""


def read_response(request: HttpRequest, response: HttpResponseBase, is_wanted: IsWanted) -> Reply:
    """The reply of a view, in the thread that called it. Raises Unwanted."""
    try:
        if not response.streaming:
            return make_reply(request, response, _content(response))
        if response.is_async:  # type: ignore[attr-defined]
            return make_reply(request, response, async_to_sync(_gather)(response, is_wanted))
        return make_reply(request, response, _read_parts(response, is_wanted))
    finally:
        close_response(response)


async def read_response_async(request: HttpRequest, response: HttpResponseBase) -> Reply:
    """The same on an event loop."""
    try:
        if not response.streaming:
            return make_reply(request, response, _content(response))
        if response.is_async:  # type: ignore[attr-defined]
            return make_reply(request, response, await _gather(response, lambda: True))
        return make_reply(request, response, await _read_in_thread(response))
    finally:
        close_response(response)


def is_stream(response: HttpResponseBase) -> bool:
    """Return True for an answer whose parts may be passed on as they come. Pages are read: they may refuse."""
    is_success = response.streaming and 200 <= response.status_code < 300
    return is_success and not response.get("Content-Type", "").startswith("text/html")


async def send_made(
    answer: Reply | HttpResponseBase, in_thread: Callable[[Callable[[], Any]], Awaitable[Any]], send: Send
) -> None:
    """Send a reply, or a streamed answer: one that is not asynchronous part by part, each made `in_thread`."""
    if isinstance(answer, Reply):
        await send_reply(answer, send)
        return
    response: Any = answer
    try:
        await send({"type": "http.response.start", "status": answer.status_code, "headers": list(headers_of(answer))})
        if response.is_async:
            async for part in response:
                await send({"type": "http.response.body", "body": _as_bytes(part), "more_body": True})
        else:
            parts = iter(response)
            while (part := await in_thread(partial(next, parts, None))) is not None:
                await send({"type": "http.response.body", "body": _as_bytes(part), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        await in_thread(partial(close_response, answer))


async def _gather(response: HttpResponseBase, is_wanted: IsWanted) -> bytes:
    parts: list[bytes] = []
    async for part in response:  # type: ignore[attr-defined]
        if not is_wanted():
            raise Unwanted
        parts.append(_as_bytes(part))
    return b"".join(parts)


async def _read_in_thread(response: HttpResponseBase) -> bytes:
    """Read a synchronous iterator, which may block or be endless: it is abandoned when nobody waits for it."""
    abandoned = threading.Event()
    reading = asyncio.ensure_future(sync_to_async(_read_parts)(response, lambda: not abandoned.is_set()))
    try:
        return await asyncio.shield(reading)
    finally:
        abandoned.set()
        await asyncio.gather(reading, return_exceptions=True)


def _read_parts(response: HttpResponseBase, is_wanted: IsWanted) -> bytes:
    parts: list[bytes] = []
    for part in response:
        if not is_wanted():
            raise Unwanted
        parts.append(_as_bytes(part))
    return b"".join(parts)


def _content(response: HttpResponseBase) -> bytes:
    content: bytes = response.content  # type: ignore[attr-defined]
    return content


def _as_bytes(part: object) -> bytes:
    return part if isinstance(part, bytes) else str(part).encode()


def close_response(response: HttpResponseBase) -> None:
    """Close the resources of a response, as its own `close` does, but without ending the whole request."""
    closers = closers_of(response)
    while closers:
        with suppress(Exception):  # as in Django
            closers.pop()()


def note_request_id(request: HttpRequest | None = None, **_: object) -> None:
    """Add the caller's request id to a traceback that Django is about to log."""
    exchange = getattr(request, "route_call", None)
    error = sys.exc_info()[1]
    if isinstance(exchange, RouteExchange) and error is not None:
        note = f"request_id={exchange.call.request_id}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)


got_request_exception.connect(note_request_id)


def make_reply(request: HttpRequest, response: HttpResponseBase, body: bytes) -> Reply:
    """The view's own status, headers and body, or the result in JSON of a form or a redirect to the login page."""
    status = response.status_code
    if not isinstance(request, RouteRequest):  # a visitor's own request, to a route that is guarded
        return Reply(status, headers_of(response), body)
    sets = [formset for formset in request.cleaned if isinstance(formset, BaseFormSet)]
    parts = {
        id(part) for formset in sets for part in (*vars(formset).get("forms", ()), vars(formset).get("management_form"))
    }
    cleaned = {
        id(form): form for form in request.cleaned if id(form) not in parts
    }  # a formset reports its own forms' errors
    forms = [form for form in cleaned.values() if _is_of_call(form, request)]
    if status in AFTER_WRITE and request.view_status == 404:  # LocaleMiddleware looks for the page in another language
        return _as_json(404, {"detail": "The site has no such page or object."}, response)
    if status in AFTER_WRITE and _asks_to_log_in(request, response["Location"], any(map(_is_valid, forms))):
        return _as_json(401, {"detail": "The site asks its visitors to log in here."}, response)
    if status == 403 and getattr(_rest_detail(response), "code", "") in ("not_authenticated", "authentication_failed"):
        return _as_json(401, {"detail": str(_rest_detail(response))}, response)
    if status == 400 and (refused := list(_places_in(getattr(response, "data", None), ["body"]))):
        return _as_json(422, {"detail": refused}, response)
    if status in AFTER_WRITE and request.method not in READING and _is_form(request):
        return _result_of(request, response, forms)
    is_page = response.get("Content-Type", "").startswith("text/html")
    if status in (200, 400) or (status == 422 and is_page):
        errors = [error for form in forms for error in _errors_of(form, request)]
        if errors:
            return _as_json(422, {"detail": errors}, response)
    # An empty answer is no page, and 201 or 202 says itself that something was done.
    is_unsure = is_page and status == 200 and bool(body.strip())
    if is_unsure and _expects_no_page(request):
        text = body.decode(response.charset or "utf-8", "replace")
        page, valid = (
            read_words(text, request.path),
            {name for form in forms if _is_valid(form) for name in _names_of(form)},
        )
        goes_on = bool(valid and page.fields) and valid.isdisjoint(page.fields)
        if goes_on and request.next_form is not None:
            request.next_form.page = text
        if goes_on or not valid:
            refused_with, words = page.refusal({*request.POST, *request.FILES})
            return _as_json(refused_with, {"detail": words}, response)
    return Reply(status, headers_of(response), body)


def _expects_no_page(request: RouteRequest) -> bool:
    """Return True if a page is no success: the action writes, and does not say that it answers with one."""
    exchange = request.route_call
    action = exchange.call.action if isinstance(exchange, RouteExchange) else None
    return action is not None and request.method not in READING and action.effect != "read" and not action.outputs


def _rest_detail(response: HttpResponseBase) -> object:
    """Return REST framework's detail; it answers 403 in place of 401 where its first authenticator has no challenge."""
    data = getattr(response, "data", None)
    return data.get("detail") if isinstance(data, Mapping) else None


def _result_of(request: RouteRequest, response: HttpResponseBase, forms: list[Cleaned]) -> Reply:
    """Return the redirect of a form, or a refusal if an error message is queued or no form is valid.

    What the queued messages say is its body in JSON; the core makes the result of both (`http.redirects`).
    """
    queued = new_messages(request)
    errors = [text_of(message) for message in queued if message.level >= ERROR]
    if errors:
        return _as_json(422, {"detail": " ".join(errors)}, response)
    if not any(map(_is_valid, forms)) and (
        details := [detail for form in forms for detail in _errors_of(form, request)]
    ):
        return _as_json(422, {"detail": details}, response)
    texts = [text_of(message) for message in queued]
    if is_sign_in(urlsplit(response["Location"]).path):  # to which the core would send its caller
        return _as_json(200, {"location": response["Location"], **({"messages": texts} if texts else {})}, response)
    others = tuple(pair for pair in headers_of(response) if pair[0] not in (b"content-type", b"content-length"))
    return Reply(response.status_code, (*others, _JSON), json.dumps({"messages": texts} if texts else {}).encode())


def new_messages(request: RouteRequest) -> list[Message]:
    """Return the messages that the view has left for the next page, which still shows them."""
    storage = get_messages(request)
    is_used = getattr(storage, "used", False)
    messages = list(storage)
    if not isinstance(storage, list):
        storage.used = is_used
    return messages[request.messages_before :]


def text_of(message: Message) -> str:
    """The plain text of a message, which may contain HTML."""
    return " ".join(unescape(strip_tags(str(message.message))).split())


def _asks_to_log_in(request: HttpRequest, location: str, is_done: bool) -> bool:
    """Return True if a redirect sends the visitor to a sign-in page, and not on to it after something was done.

    Django's own redirects say where to come back to (`next`), which is the page that was asked for.
    """
    target = urlsplit(location)
    back = [urlsplit(value).path for name, value in parse_qsl(target.query) if name == REDIRECT_FIELD_NAME]
    return is_sign_in(target.path) and (request.path in back or not is_done)


def is_sign_in(path: str) -> bool:
    """Return True if people sign in at this path: LOGIN_URL, a LoginView, or a name such as "sign-in"."""
    try:
        if path == urlsplit(resolve_url(settings.LOGIN_URL)).path:
            return True
    except NoReverseMatch:  # Django's default, in a project without such a page
        pass
    if has_sign_in_name(path):
        return True
    try:
        kind = getattr(resolve(path).func, "view_class", None)
    except Resolver404:
        return False
    return any((base.__module__, base.__name__) == LOGIN_VIEW for base in getattr(kind, "__mro__", ()))


def _is_form(request: HttpRequest) -> bool:
    return request.content_type in FORM_TYPES


def _is_of_call(form: Cleaned, request: HttpRequest) -> bool:
    """Return True if a form has the caller's input; a page may have others, such as a search box."""
    if request.method in READING:
        return form.data is request.GET or not request.GET.keys().isdisjoint(form.data or ())
    if form.data is request.GET:
        return False
    return not _is_form(request) or not form.data or not {*request.POST, *request.FILES}.isdisjoint(form.data)


def _is_valid(form: Cleaned) -> bool:
    """Return True if a form has no errors. It was cleaned already, so nothing is validated again."""
    return not any(True for _ in _places_of(form))


def _names_of(form: Cleaned) -> Iterator[str]:
    """Yield the names of a form's or a formset's fields in a request."""
    for part in [form] if isinstance(form, BaseForm) else [form.management_form, *form.forms]:
        yield from map(part.add_prefix, part.fields)


def _places_of(form: Cleaned) -> Iterator[tuple[list[str | int], str, str]]:
    """Yield the errors of a form or a formset: the place in the input, the field's name in the request, the words."""
    if isinstance(form, BaseForm):
        for name, errors in form.errors.items():
            wire = "" if name == NON_FIELD_ERRORS else form.add_prefix(name)
            for error in errors:
                yield [wire] if wire else [], wire, str(error)
        return
    prefix = str(form.prefix)
    for error in form.non_form_errors():
        yield [prefix], prefix, str(error)
    for index, part in enumerate(form.forms if form.management_form.is_valid() else ()):
        if form.can_delete and getattr(part, "cleaned_data", {}).get(DELETION_FIELD_NAME):
            continue
        for name, errors in part.errors.items():
            rest = [] if name == NON_FIELD_ERRORS else [name]
            for error in errors:
                yield [prefix, index, *rest], part.add_prefix(name), str(error)


def _errors_of(form: Cleaned, request: HttpRequest) -> Iterator[Mapping[str, object]]:
    """Yield errors as the core reads them: a place in the request and a text.

    A page fetched with GET may show a form that nobody has filled in: there only errors of sent fields count.
    """
    for place, wire, words in _places_of(form):
        if request.method in READING and wire not in request.GET:
            continue
        location = "query" if request.method in READING else "body"
        yield {"loc": [location, *place], "msg": words, "type": SURE_PLACE}


def _places_in(data: object, place: list[str | int]) -> Iterator[Mapping[str, object]]:
    """Yield Django REST framework's validation errors: texts in a list for each field, however deep."""
    if isinstance(data, Mapping):
        for name, inner in data.items():
            if isinstance(inner, (Mapping, list)):
                here = [*place] if name in ("non_field_errors", "__all__") else [*place, name]
                yield from _places_in(inner, here)
    elif isinstance(data, list):
        for index, inner in enumerate(data):
            if isinstance(inner, (Mapping, list)):
                yield from _places_in(inner, [*place, index])
            elif len(place) > 1 or hasattr(inner, "code"):
                yield {"loc": place, "msg": str(inner), "type": SURE_PLACE}


def _as_json(status: int, document: object, response: HttpResponseBase) -> Reply:
    dropped = (b"content-type", b"content-length", b"location")
    headers = tuple(pair for pair in headers_of(response) if pair[0] not in dropped)
    return Reply(status, (_JSON, *headers), json.dumps(document).encode())


def headers_of(response: HttpResponseBase) -> RawHeaders:
    own = ((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items())
    cookies = ((b"set-cookie", cookie.OutputString().encode("latin-1")) for cookie in response.cookies.values())
    return (*own, *cookies)
