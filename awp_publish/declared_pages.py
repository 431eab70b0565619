"""`site.page(...)`: pages that agents are told of by name. What else a site has, they find by its links.

A page has one address, so its route takes GET and has no parameters in its path.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

from awp_publish.describe import title_of
from awp_publish.discover import Route
from awp_publish.discover.routes import RouteIndex, docstring_of, is_bound_for_a_call, listing, mark
from awp_publish.model import Page
from awp_publish.options import PageOptions, check_page
from awp_publish.problems import DeclarationError

F = TypeVar("F", bound=Callable[..., Any] | type)

_PLAIN: Final = "/%:@!$&'()*+,;=~"
"""Characters of a path that stay as they are."""

_ONE_ADDRESS: Final = 'Declare single addresses of it: site.page("/books/emma").'


@dataclass(frozen=True, slots=True)
class _Declared:
    subject: str
    path: str | None
    options: PageOptions
    function: Callable[..., object] | None = None


class DeclaredPages:
    """The pages of one site, as they are declared."""

    def __init__(self, refuse_when_frozen: Callable[[str], None]) -> None:
        self._declared: list[_Declared] = []
        self._refuse_when_frozen = refuse_when_frozen

    def declare(self, path: str | None, options: PageOptions) -> Callable[[F], F]:
        """Note a page by its path, or by the handlers that are decorated with what this returns.

        Raises DeclarationError.
        """
        if callable(path):
            raise DeclarationError("site.page", 'is called: write @site.page() or site.page("/path").')
        subject = f'page "{path}"' if path is not None else "site.page()"
        self._refuse_when_frozen(subject)
        declared = _Declared(subject, path, check_page(subject, path, options))
        if path is not None:
            _check_is_one(subject, path)
            self._declared.append(declared)
        return self._noting(declared)

    def _noting(self, declared: _Declared) -> Callable[[F], F]:
        place = len(self._declared) - 1 if declared.path is not None else None
        noted: list[object] = []

        def note(function: F) -> F:
            if noted and is_bound_for_a_call(function):
                return function
            self._refuse_when_frozen(declared.subject)
            noted.append(function)
            self._note(declared, function, place)
            return function

        return note

    def _note(self, declared: _Declared, function: Callable[..., object], place: int | None) -> None:
        """A page with a path is one page; without, each function that is decorated is another."""
        if not callable(getattr(function, "__func__", function)):
            raise DeclarationError(declared.subject, f"decorates {function!r}, which is not a function.")
        subject = declared.subject if place is not None else f"page {_name_of(function)}"
        found = replace(declared, subject=subject, function=function)
        if place is None:
            self._declared.append(found)
        else:
            self._declared[place] = found
        mark(function, f"page {len(self._declared)}")

    def resolve(self, routes: Sequence[Route], site_name: str) -> tuple[Page, ...]:
        """All pages, in the order of their declaration. Raises DeclarationError."""
        if not self._declared:
            return ()
        index, found = RouteIndex(routes), dict[str, Page]()
        for declared in self._declared:
            page = _resolve(declared, index, site_name)
            if page.path in found:
                raise DeclarationError(declared.subject, f'the page "{page.path}" is declared twice.', "Leave one out.")
            found[page.path] = page
        return tuple(found.values())


def _resolve(declared: _Declared, index: RouteIndex, site_name: str) -> Page:
    options, route = declared.options, _route_of(declared, index)
    path = quote(declared.path or route.template, safe=_PLAIN)
    title = options.get("title") or _title_of(unquote(path), site_name)
    return Page(path=path, title=title, description=options.get("description") or _described(declared, route))


def _described(declared: _Declared, route: Route) -> str | None:
    """What the handler says of itself. A class's docstring is about all of its methods, so the method's comes first."""
    function, behind = declared.function, route.handlers[:1]
    handlers = (*behind, function) if isinstance(function, type) else (function, *behind)
    return next((text for text in map(docstring_of, filter(None, handlers)) if text), None)


def _route_of(declared: _Declared, index: RouteIndex) -> Route:
    subject, path = declared.subject, declared.path
    if declared.function is None:
        assert path is not None
        return index.of_path(subject, "GET", path)
    found = index.of_handler(declared.function)
    readable = {route.template: route for route in reversed(found) if "GET" in route.methods}
    if path is not None:
        fitting = {template: route for template, route in readable.items() if route.takes("GET", path)}
    else:
        fitting = {template: route for template, route in readable.items() if "{" not in template} or readable
    if len(fitting) != 1:
        raise DeclarationError(subject, *_wrong(found, list(fitting), path))
    (template, route), *_ = fitting.items()
    if path is None:
        _check_is_one(subject, template)
    return route


def _wrong(found: Sequence[Route], fitting: Sequence[str], path: str | None) -> tuple[str, str]:
    """Why a handler stands for no page, or for several; and what to do."""
    if not found:
        remedy = 'Register it with a route, or name its path: site.page("/path").'
        return "no route of this application leads to what it decorates.", remedy
    known = listing(route.template for route in found)
    if fitting:
        return f"is reachable in several ways ({known}).", 'Choose one: @site.page("/path").'
    if path is not None:
        return f"path: none of the routes of what it decorates takes GET {path} ({known}).", "Name one of them."
    return f"its route ({known}) does not take GET; a page is read.", "Declare what it does as an action."


def _check_is_one(subject: str, path: str) -> None:
    if "{" in path:
        raise DeclarationError(subject, f"path: {path} has parameters; a page has one address.", _ONE_ADDRESS)


def _title_of(path: str, site_name: str) -> str:
    """The end of the path in words; the site's own name for what stands at its top."""
    end = path.rstrip("/").rpartition("/")[2]
    return title_of(end.replace("-", "_")) if end else site_name


def _name_of(function: object) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', '?')}.{getattr(named, '__qualname__', '?')}"
