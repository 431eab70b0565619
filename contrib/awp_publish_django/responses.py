"""What a view answered, as a neutral reply: its body read, what it holds open closed, and forms made plain.

A form's view tells people of success by a redirect (Post/Redirect/Get) and of mistakes by the page again, with status
200. To a program both would say the opposite of what they mean, so they are told in words of their own.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from html import unescape
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.contrib.messages import ERROR, get_messages
from django.contrib.messages.storage.base import Message
from django.forms import BaseForm
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.html import strip_tags

from awp_publish.serve.http import RawHeaders, Reply
from awp_publish_django.inner import RouteRequest

FORM_TYPES: Final = ("application/x-www-form-urlencoded", "multipart/form-data", "")
"""What forms are sent as; one without fields sends nothing."""

REDIRECTS: Final = (301, 302, 303)
_JSON: Final = (b"content-type", b"application/json")


IsWanted: TypeAlias = Callable[[], bool]
"""Whether anybody still waits for an answer."""


class Unwanted(Exception):
    """The call has timed out or was called off; its answer need not be complete."""


def read_response(request: HttpRequest, response: HttpResponseBase, is_wanted: IsWanted) -> Reply:
    """The reply of a view, in the thread that called it. Raises Unwanted."""
    try:
        if not response.streaming:
            return tell(request, response, _content(response))
        if response.is_async:  # type: ignore[attr-defined]
            return tell(request, response, async_to_sync(_gather)(response, is_wanted))
        return tell(request, response, _read_parts(response, is_wanted))
    finally:
        close_response(response)


async def read_response_async(request: HttpRequest, response: HttpResponseBase) -> Reply:
    """The same on an event loop."""
    try:
        if not response.streaming:
            return tell(request, response, _content(response))
        if response.is_async:  # type: ignore[attr-defined]
            return tell(request, response, await _gather(response, lambda: True))
        return tell(request, response, await _read_in_thread(response))
    finally:
        close_response(response)


async def _gather(response: HttpResponseBase, is_wanted: IsWanted) -> bytes:
    parts: list[bytes] = []
    async for part in response:  # type: ignore[attr-defined]
        if not is_wanted():
            raise Unwanted
        parts.append(_as_bytes(part))
    return b"".join(parts)


async def _read_in_thread(response: HttpResponseBase) -> bytes:
    """A synchronous iterator, which may block and need not end: it is left when nobody waits for it any more."""
    has_left = threading.Event()
    reading = asyncio.ensure_future(sync_to_async(_read_parts)(response, lambda: not has_left.is_set()))
    try:
        return await asyncio.shield(reading)
    finally:
        has_left.set()
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
    """Close what a response holds open, and not the request as a whole, as its own `close` would say."""
    closers: list[Callable[[], object]] = response._resource_closers  # type: ignore[attr-defined]
    while closers:
        closers.pop()()


def tell(request: HttpRequest, response: HttpResponseBase, body: bytes) -> Reply:
    """A reply with the view's own status, headers and body, unless a call is told about a form or the login page."""
    status = response.status_code
    if not isinstance(request, RouteRequest):  # a visitor's own request, to a route that is guarded
        return Reply(status, headers_of(response), body)
    if status in REDIRECTS and is_login(response["Location"]):
        return _as_json(401, {"detail": "The site asks its visitors to log in here."}, response)
    if status == 400 and (refused := _errors_of_serializer(response)):
        return _as_json(422, {"detail": refused}, response)
    if not _is_form(request):
        return Reply(status, headers_of(response), body)
    if status in REDIRECTS:
        return _as_json(*_result_of(request, response["Location"]), response)
    errors = [error for form in _forms_of(response) for error in _errors_of(form)] if status == 200 else []
    if errors:
        return _as_json(422, {"detail": errors}, response)
    return Reply(status, headers_of(response), body)


def _result_of(request: HttpRequest, location: str) -> tuple[int, dict[str, object]]:
    """What a form came to whose page leads on: a refusal if that would tell people of an error."""
    queued = getattr(get_messages(request), "_queued_messages", ())
    errors = [text_of(message) for message in queued if message.level >= ERROR]
    if errors:
        return 422, {"detail": " ".join(errors)}
    told = [text_of(message) for message in queued]
    return 200, {"location": location, **({"messages": told} if told else {})}


def text_of(message: Message) -> str:
    """The words of a message, which may be a piece of a page."""
    return " ".join(unescape(strip_tags(str(message.message))).split())


def is_login(location: str) -> bool:
    """Whether a redirect leads to where the project logs people in."""
    return urlsplit(location).path == urlsplit(resolve_url(settings.LOGIN_URL)).path


def _is_form(request: HttpRequest) -> bool:
    return request.method == "POST" and request.content_type in FORM_TYPES


def _forms_of(response: HttpResponseBase) -> Iterable[BaseForm]:
    """The forms that a page was made with, as far as it tells."""
    context = getattr(response, "context_data", None)
    values = context.values() if isinstance(context, Mapping) else ()
    return [value for value in values if isinstance(value, BaseForm) and value.is_bound]


def _errors_of(form: BaseForm) -> Iterable[Mapping[str, object]]:
    """As the core reads them: a place in the body, and words."""
    for name, errors in form.errors.items():
        place = ["body"] if name == "__all__" else ["body", name]
        yield from ({"loc": place, "msg": str(error)} for error in errors)


def _errors_of_serializer(response: HttpResponseBase) -> list[Mapping[str, object]]:
    """Django REST framework's validation errors: texts in a list for each field; nothing for any other body."""
    data = getattr(response, "data", None)
    if not isinstance(data, Mapping) or not all(isinstance(texts, list) for texts in data.values()):
        return []
    return [
        {"loc": ["body"] if name == "non_field_errors" else ["body", name], "msg": str(text)}
        for name, texts in data.items()
        for text in texts
    ]


def _as_json(status: int, document: object, response: HttpResponseBase) -> Reply:
    named = (b"content-type", b"content-length", b"location")
    kept = tuple(pair for pair in headers_of(response) if pair[0] not in named)
    return Reply(status, (_JSON, *kept), json.dumps(document).encode())


def headers_of(response: HttpResponseBase) -> RawHeaders:
    own = ((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items())
    cookies = ((b"set-cookie", cookie.OutputString().encode("latin-1")) for cookie in response.cookies.values())
    return (*own, *cookies)
