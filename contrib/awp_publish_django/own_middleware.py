"""The project's own middleware above ours, which calls of actions pass a second time: it may look at addresses.

Django's own does not, so that neither session nor user is looked up again.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

from django.core.exceptions import MiddlewareNotUsed
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string

GetResponse: TypeAlias = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]

OF_DJANGO: Final = "django."


def is_own(name: str) -> bool:
    """Return True for middleware that is not Django's own."""
    return not name.startswith(OF_DJANGO)


def enclose(get_response: GetResponse, names: Sequence[str], *, is_async: bool) -> GetResponse:
    """Return `get_response` with this middleware around it, the first outermost, as Django puts it together."""
    adapt: Callable[..., Any] = BaseHandler().adapt_method_mode
    handler, handler_is_async = get_response, is_async
    for name in reversed(names):
        middleware: Any = import_string(name)
        can_sync = getattr(middleware, "sync_capable", True)
        takes_async = getattr(middleware, "async_capable", False) and (handler_is_async or not can_sync)
        try:
            instance = middleware(adapt(takes_async, handler, handler_is_async))
        except MiddlewareNotUsed:
            continue
        handler, handler_is_async = convert_exception_to_response(instance), takes_async
    outermost: GetResponse = adapt(is_async, handler, handler_is_async)
    return outermost
