"""`AgentPublisherMiddleware`: it answers documents and doors itself, and passes on all else after one lookup.

Its place in MIDDLEWARE: below SessionMiddleware and AuthenticationMiddleware, if the site identifies callers by them.
Middleware below it sees agents' calls as requests for the views behind them.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Final

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from awp_publish.http.route_exchange import RouteExchange
from awp_publish_django.answering_asgi import answer_async
from awp_publish_django.answering_wsgi import answer
from awp_publish_django.apps import FAILED
from awp_publish_django.own_middleware import GetResponse, enclose
from awp_publish_django.publication import get_publication

logger: Final = logging.getLogger("awp_publish")


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
        if isinstance(
            getattr(request, "route_call", None), RouteExchange
        ):  # on its way from a door of ours to its view
            return self._get_response(request)
        if self._is_async:
            return answer_async(self._publication, request, self._get_response, self._call_view)  # type: ignore[arg-type]
        return answer(self._publication, request, self._get_response, self._call_view)  # type: ignore[arg-type]

    @cached_property
    def _call_view(self) -> GetResponse:
        """The view that answers calls of actions, made for the first: much middleware has work to do at its start."""
        above = self._publication.middleware_above
        return enclose(self._get_response, above, is_async=self._is_async) if above else self._get_response
