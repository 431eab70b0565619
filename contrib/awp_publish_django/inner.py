"""The request that reaches a view for an agent's call: the caller's own, with what middleware has added to it.

An inner request needs no CSRF token, which agents do not have: the doors have already refused what another site's page
sends with the visitor's cookies, by headers that a page cannot remove (Origin, Sec-Fetch-Site) and by a media type that
needs a preflight.
"""

from collections.abc import Callable
from functools import wraps
from io import BytesIO
from typing import Any, Final

from asgiref.sync import iscoroutinefunction
from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.wsgi import WSGIRequest
from django.forms import BaseForm, BaseFormSet
from django.http import Http404, HttpRequest
from django.urls import ResolverMatch

from awp_publish.http.exchange import Scope, read_fields
from awp_publish.http.reentry import SessionPass
from awp_publish.http.route_exchange import RouteCall
from awp_publish.model import ROUTE_CALL
from awp_publish_django.languages import in_language_of_caller

PARSED: Final = frozenset(
    {
        "COOKIES",
        "FILES",
        "GET",
        "_body",
        "_found",
        "_files",
        "_post",
        "_upload_handlers",
        "accepted_types",
        "accepted_types_by_precedence",
        "csrf_processing_done",
        "headers",
        "resolver_match",
    }
)
"""Attributes that Django caches on a request. Middleware has put all other attributes there."""

_OF_REQUEST: Final = frozenset(
    {"REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "CONTENT_TYPE", "CONTENT_LENGTH", "SCRIPT_NAME", "RAW_URI"}
)


class RouteRequest(HttpRequest):
    """A request made in this process. A call of an action reaches the view of its own route, or none.

    Django sets `resolver_match` when it has found the route, before any view runs.
    """

    route_call: RouteCall | SessionPass | None = None
    cleaned: "list[BaseForm | BaseFormSet[Any]]"  # the bound forms that its view has cleaned
    prefixes: tuple[str, str] | None = None  # of the caller's language and of the published one, where they differ
    view_status: int | None = None  # of the view's own answer, before any middleware makes another one of it
    _found: ResolverMatch | None = None

    @property
    def resolver_match(self) -> ResolverMatch | None:
        return self._found

    @resolver_match.setter
    def resolver_match(self, found: ResolverMatch | None) -> None:
        call = self.route_call if isinstance(self.route_call, RouteCall) else None
        own = call.target if call is not None else None
        if found is not None and own is not None and call is not None:
            arrival = own.arrival
            spoken, published = self.prefixes or ("", "")
            route = published + found.route.removeprefix(spoken)
            is_own = arrival is not None and arrival.path == route and arrival.endpoint in (None, found.func)
            if not is_own:
                call.mark_misrouted()
                raise Http404("The call of an action leads to another address.")
            found.func = self._noting_status(found.func)
        self._found = found

    def _noting_status(self, view: Callable[..., Any]) -> Callable[..., Any]:
        """Return a view that notes the status of its answer."""

        @wraps(view)
        def answer(*args: Any, **kwargs: Any) -> Any:
            try:
                response = view(*args, **kwargs)
            except Http404:
                self.view_status = 404
                raise
            self.view_status = response.status_code
            return response

        @wraps(view)
        async def answer_async(*args: Any, **kwargs: Any) -> Any:
            try:
                response = await view(*args, **kwargs)
            except Http404:
                self.view_status = 404
                raise
            self.view_status = response.status_code
            return response

        return answer_async if iscoroutinefunction(view) else answer


class InnerASGIRequest(RouteRequest, ASGIRequest):
    """Under ASGI, and for calls that come from no HTTP request."""


class InnerWSGIRequest(RouteRequest, WSGIRequest):
    """Under WSGI."""


def make_inner_request(outer: HttpRequest, scope: Scope, body: bytes, *, is_fresh: bool = False) -> HttpRequest:
    """A request for the route in `scope`, with the user, the session and all else that middleware gave the `outer` one.

    A fresh request has none of these, because it passes through all middleware itself.
    """
    inner: InnerASGIRequest | InnerWSGIRequest
    prefixes = None
    if isinstance(scope.get(ROUTE_CALL), RouteCall):
        scope, prefixes = in_language_of_caller(scope, getattr(outer, "urlconf", None))
    if isinstance(outer, ASGIRequest):
        inner = InnerASGIRequest(scope, BytesIO(body))
        _copy_meta(outer, inner)
    else:
        inner = InnerWSGIRequest(_environ_of(outer, scope, body))
    for name, value in vars(outer).items():
        if not is_fresh and name not in PARSED and name not in vars(inner):
            setattr(inner, name, value)
    inner.prefixes = prefixes
    inner.route_call = scope.get(ROUTE_CALL)
    exempt_from_csrf(inner)
    return inner


def exempt_from_csrf(request: HttpRequest) -> None:
    """Require no CSRF token of an in-process request: its door has checked the origin of the call."""
    request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]


def _copy_meta(outer: HttpRequest, inner: HttpRequest) -> None:
    """Copy what middleware put into META, such as the address of a client behind a proxy."""
    for name, value in outer.META.items():
        if _is_kept(name):
            inner.META[name] = value


def _environ_of(outer: HttpRequest, scope: Scope, body: bytes) -> dict[str, object]:
    """A WSGI environ (PEP 3333), whose strings are bytes decoded as Latin-1."""
    kept = {name: value for name, value in outer.META.items() if _is_kept(name)}
    script_name: str = scope.get("root_path", "")
    path: str = scope["path"].removeprefix(script_name)
    query: bytes = scope["query_string"]
    headers = {_variable(name): value.decode("latin-1") for name, value in read_fields(scope["headers"]).items()}
    return {
        **kept,
        **headers,
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": script_name.encode().decode("latin-1"),
        "PATH_INFO": path.encode().decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": BytesIO(body),
    }


def _is_kept(name: str) -> bool:
    return not name.startswith("HTTP_") and name not in _OF_REQUEST


def _variable(name: bytes) -> str:
    upper = name.decode("latin-1").upper().replace("-", "_")
    return upper if upper in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{upper}"
