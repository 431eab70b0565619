"""What a plug-in may read of a route of the application, and what its name and its handlers say of it."""

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any, Final, Protocol, get_type_hints

from starlette.responses import Response

from awp_publish.schema.handlers import layers_of, syntax_of

READING: Final = "GET"


class ListedRoute(Protocol):
    """A route as discovery describes it (`declare.discover.routes.Route`)."""

    path: str
    template: str
    methods: tuple[str, ...]
    handlers: tuple[object, ...]
    name: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    describe: Callable[[str], Any] | None
    arrival: Any
    host: str
    mount: str
    listed: bool
    is_opaque: bool
    is_deprecated: bool
    is_page: bool | None
    reads: bool | None
    redirects: bool
    kept_out: str
    usual_method: str


def names_of(route: ListedRoute) -> frozenset[str]:
    """Return the names by which an owner may mean a route."""
    return frozenset((route.name, *route.aliases))


_SIGN: Final = re.compile(
    r"(?:(?:user|auth|account|accounts|admin|get|do|show|site|oauth|sso|member|customer)_)*"
    r"(?:log|sign)_?(?:in|out|off|on)(?:_(?:page|form|view|user|get|post|redirect|callback|for_access_token))*"
    r"|(?:(?:oauth2?|oidc|openid|saml|sso|auth)_)*callback(?:_view)?"
)


def signs_in(route: ListedRoute) -> bool:
    """Return True if a route's name or the end of its path says that it signs callers in or out."""
    end = next((part for part in reversed(route.path.split("/")) if part and "{" not in part), "")
    words = (re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+", "_", word).lower().strip("_") for word in (end, route.name))
    return any(_SIGN.fullmatch(word) is not None for word in words)


def redirects(handler: object) -> bool:
    """Return True if a handler does nothing but redirect, by its annotation or by all that it returns."""
    layers = list(layers_of(handler))
    notes = (getattr(layer, "__annotations__", {}).get("return") for layer in layers)
    if any(getattr(note, "__name__", str(note)).endswith("RedirectResponse") for note in notes if note is not None):
        return True
    code = getattr(layers[-1], "__code__", None)
    if code is None or _REDIRECTS.isdisjoint(code.co_names) or (definition := syntax_of(handler)) is None:
        return False
    returned = [node.value for node in ast.walk(definition) if isinstance(node, ast.Return)]
    return bool(returned) and all(
        isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _REDIRECTS for value in returned
    )


_REDIRECTS: Final = frozenset(
    {
        *("RedirectResponse", "HttpResponseRedirect", "HttpResponsePermanentRedirect"),
        *("redirect", "redirect_to_login"),  # Django's functions, and Quart's
    }
)
_HTML: Final = frozenset({"TemplateResponse", "HTMLResponse"})

_NO_HTML: Final = frozenset(
    {"JSONResponse", "ORJSONResponse", "UJSONResponse", "PlainTextResponse", "StreamingResponse"}
)


def answers_html(handler: object) -> bool:
    """Return True if a handler answers with an HTML page, by its annotation or by the responses named in its body."""
    function = next(
        (layer for layer in layers_of(handler) if inspect.isfunction(layer) and not hasattr(layer, "__wrapped__")), None
    )
    if function is None:
        return False
    try:
        annotation = get_type_hints(function).get("return")
    except Exception:  # a name that is imported for type checkers only
        annotation = None
    if isinstance(annotation, type) and issubclass(annotation, Response) and annotation is not Response:
        media_type = getattr(annotation, "media_type", None)
        return "html" in str(media_type) or any(kind.__name__ == "_TemplateResponse" for kind in annotation.__mro__)
    names = set(function.__code__.co_names)
    return not _HTML.isdisjoint(names) and _NO_HTML.isdisjoint(names)
