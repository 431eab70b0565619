"""The request that reaches a view for an agent's call: the caller's own, with what middleware has added to it.

An inner request needs no CSRF token, which agents do not have: the doors have already refused what another site's page
sends with the visitor's cookies, by headers that a page cannot remove (Origin, Sec-Fetch-Site) and by a media type that
needs a preflight.
"""

from collections.abc import Callable, Set
from functools import cache, cached_property, wraps
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.contrib.messages import get_messages
from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.wsgi import WSGIRequest
from django.http import Http404, HttpRequest, QueryDict
from django.urls import ResolverMatch
from django.utils import functional
from django.utils.datastructures import MultiValueDict

from awp_publish.http.exchange import Scope, read_fields
from awp_publish.http.reentry import SessionPass
from awp_publish.http.route_exchange import RouteExchange
from awp_publish.model import ROUTE_CALL
from awp_publish_django.cleaned import Cleaned, noting
from awp_publish_django.filling import NEXT_FORM, NextForm
from awp_publish_django.languages import in_language_of_caller

_OF_REQUEST: Final = frozenset(
    {"REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "CONTENT_TYPE", "CONTENT_LENGTH", "SCRIPT_NAME", "RAW_URI"}
)


class RouteRequest(HttpRequest):
    """A request made in this process. A call of an action reaches the view of its own route, or none.

    Django sets `resolver_match` when it has found the route, before any view runs.
    """

    route_call: RouteExchange | SessionPass | None = None
    prefixes: tuple[str, str] | None = None  # of the caller's language and of the published one, where they differ
    next_form: NextForm | None = None
    view_status: int | None = None  # of the view's own answer, before any middleware makes another one of it
    messages_before = 0  # for the visitor's next page, from earlier requests
    _match: ResolverMatch | None = None

    @cached_property
    def cleaned(self) -> list[Cleaned]:
        """The bound forms that its view has cleaned."""
        return []

    if not TYPE_CHECKING:  # to the stubs, these are attributes of other types

        @cached_property
        def GET(self) -> QueryDict:  # noqa: N802
            return noting(super().GET, self.cleaned)

        @property
        def POST(self) -> QueryDict:  # noqa: N802
            return noting(super().POST, self.cleaned)

        @POST.setter
        def POST(self, fields: QueryDict) -> None:  # noqa: N802
            super(RouteRequest, type(self)).POST.__set__(self, fields)

        @property
        def FILES(self) -> MultiValueDict[str, Any]:  # noqa: N802
            return noting(super().FILES, self.cleaned)

    @property
    def resolver_match(self) -> ResolverMatch | None:
        return self._match

    @resolver_match.setter
    def resolver_match(self, match: ResolverMatch | None) -> None:
        exchange = self.route_call if isinstance(self.route_call, RouteExchange) else None
        own = exchange.call.action.target if exchange is not None else None
        if match is not None and own is not None and exchange is not None:
            arrival = own.arrival
            spoken, published = self.prefixes or ("", "")
            route = published + match.route.removeprefix(spoken)
            is_own = arrival is not None and arrival.path == route and arrival.endpoint in (None, match.func)
            if not is_own:
                exchange.mark_misrouted()
                raise Http404("The call of an action leads to another address.")
            match.func = self._observed(match.func)
        self._match = match

    def _observed(self, view: Callable[..., Any]) -> Callable[..., Any]:
        """Return a view of which is noted what there was before, and the status of its answer."""

        def note_before() -> None:
            if self.method not in ("GET", "HEAD"):
                self.messages_before = len(get_messages(self))

        @wraps(view)
        def answer(*args: Any, **kwargs: Any) -> Any:
            note_before()
            try:
                response = view(*args, **kwargs)
            except Http404:
                self.view_status = 404
                raise
            self.view_status = response.status_code
            return response

        @wraps(view)
        async def answer_async(*args: Any, **kwargs: Any) -> Any:
            await sync_to_async(note_before)()
            try:
                response = await view(*args, **kwargs)
            except Http404:
                self.view_status = 404
                raise
            self.view_status = response.status_code
            return response

        return answer_async if iscoroutinefunction(view) else answer


class InnerASGIRequest(RouteRequest, ASGIRequest):
    """The request under ASGI, and for calls that come from no HTTP request."""


class InnerWSGIRequest(RouteRequest, WSGIRequest):
    """The request under WSGI."""


def make_inner_request(
    outer: HttpRequest, scope: Scope, body: bytes, *, is_fresh: bool = False, without: Set[str] = frozenset()
) -> HttpRequest:
    """A request for the route in `scope`, with the user, the session and all else that middleware gave the `outer` one.

    A fresh request has none of these, because it passes through all middleware itself.
    """
    inner: InnerASGIRequest | InnerWSGIRequest
    prefixes = None
    if isinstance(scope.get(ROUTE_CALL), RouteExchange):
        scope, prefixes = in_language_of_caller(scope, getattr(outer, "urlconf", None))
    if isinstance(outer, ASGIRequest):
        inner = InnerASGIRequest(scope, BytesIO(body))
        _copy_meta(outer, inner)
    else:
        inner = InnerWSGIRequest(_environ_of(outer, scope, body))
    if not is_fresh:
        parsed = _parsed_names(isinstance(outer, ASGIRequest))
        for name, value in vars(outer).items():
            if name not in parsed and name not in vars(inner) and name not in without:
                setattr(inner, name, value)
    inner.prefixes = prefixes
    inner.route_call, inner.next_form = scope.get(ROUTE_CALL), scope.get(NEXT_FORM)
    exempt_from_csrf(inner)
    return inner


_OF_CALLER: Final = frozenset({"session", "user", "auser"})
"""What a view may change of a request, to sign somebody in for one: it is true of the page after its redirect too."""

_OF_CALL: Final = frozenset({*RouteRequest.__annotations__, "messages_before", "cleaned"})


def give_back(inner: HttpRequest, outer: HttpRequest, names: set[str]) -> None:
    """Give the `outer` request what middleware and the view have set on the `inner` one, and note it in `names`.

    Middleware above ours sees an answer with what is set below, as for a request that comes straight to the view.
    """
    own = vars(outer).keys() | _parsed_names(isinstance(outer, ASGIRequest)) | _OF_CALL | _OF_CALLER
    names |= vars(inner).keys() - own
    for name in vars(inner).keys() & (names | _OF_CALLER):
        setattr(outer, name, getattr(inner, name))


@cache
def _parsed_names(is_async: bool) -> frozenset[str]:
    """Return the attributes in which a request keeps what it has parsed. All others, middleware has put there."""
    kind: type = ASGIRequest if is_async else WSGIRequest
    environ = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": "application/x-www-form-urlencoded", "wsgi.input": BytesIO()}
    parsed = WSGIRequest(environ)
    _ = parsed.body, parsed.POST, parsed.FILES, parsed.upload_handlers
    exempt_from_csrf(parsed)
    cached = (cached_property, functional.cached_property)
    computed = (name for base in kind.__mro__ for name, value in vars(base).items() if isinstance(value, cached))
    return frozenset({*vars(parsed), *computed, "csrf_processing_done", "resolver_match"})


def exempt_from_csrf(request: HttpRequest) -> None:
    """Require no CSRF token of an in-process request: its door has checked the origin of the call."""
    # Private, and the only way: a decorator would exempt the view for browsers too. Django's test client and the REST
    # framework set it as well.
    request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]


def _copy_meta(outer: HttpRequest, inner: HttpRequest) -> None:
    """Copy what middleware put into META, such as the address of a client behind a proxy."""
    for name, value in outer.META.items():
        if _is_kept(name):
            inner.META[name] = value


def _environ_of(outer: HttpRequest, scope: Scope, body: bytes) -> dict[str, object]:
    """A WSGI environ (PEP 3333), whose strings are bytes decoded as Latin-1."""
    meta = {name: value for name, value in outer.META.items() if _is_kept(name)}
    script_name: str = scope.get("root_path", "")
    path: str = scope["path"].removeprefix(script_name)
    query: bytes = scope["query_string"]
    headers = {_variable(name): value.decode("latin-1") for name, value in read_fields(scope["headers"]).items()}
    return {
        **meta,
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
