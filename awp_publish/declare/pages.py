"""`site.page(...)`: the pages that a site declares.

The route of a page takes GET. A path with placeholders stands for several addresses.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from awp_publish.calls.complete import choices_of, read_complete
from awp_publish.declare.agents import F
from awp_publish.declare.discover import Route
from awp_publish.declare.discover.functions import describe_function
from awp_publish.declare.discover.handlers import is_bound_for_a_call, mark
from awp_publish.declare.plugins import read_options
from awp_publish.declare.routes import RouteIndex
from awp_publish.declare.settings.pages import PAGE, PageOptions, PageSettings
from awp_publish.model import SAFE_IN_PATH, Page, title_of
from awp_publish.plugin import Setup
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema
from awp_publish.schema.handlers import docstring_of, name_of
from awp_publish.schema.options import PATH, check, listing

_MAPPED: Final = frozenset(("id", "guide", "actions"))
"""Options of a page that are published in the site's actions.json."""


@dataclass(frozen=True, slots=True)
class _DeclaredPage:
    subject: str
    path: str | None
    options: PageSettings
    of_plugins: Mapping[str, object]
    function: Callable[..., object] | None = None


class DeclaredPages:
    """The pages that a site declares."""

    def __init__(self, refuse_when_frozen: Callable[[str], None], plugins: Mapping[str, Setup]) -> None:
        self._declared: list[_DeclaredPage] = []
        self._refuse_when_frozen, self._plugins = refuse_when_frozen, plugins

    @property
    def has_any(self) -> bool:
        """Return True if pages are declared."""
        return bool(self._declared)

    def declare(self, path: str | None, given: PageOptions) -> Callable[[F], F]:
        """Declare a page by its path, or by decorating its handler with the returned decorator.

        With a path there is one page; without, each decorated function is another. Raises DeclarationError.
        """
        if callable(path):
            raise DeclarationError("site.page", 'needs parentheses: write @site.page() or site.page("/path").')
        name = path if path is not None else given.get("id", given.get("title"))
        subject = f'page "{name}"' if name is not None else "site.page()"
        self._refuse_when_frozen(subject)
        names, written = PageSettings.__annotations__, cast(Mapping[str, object], given)
        declared = _DeclaredPage(subject, path, *read_options(subject, PAGE, names, written, self._plugins, "page"))
        if path is not None:
            check(subject, PATH, path, "path")
            self._declared.append(declared)
        place = len(self._declared) - 1
        noted: list[object] = []

        def note(function: F) -> F:
            if noted and is_bound_for_a_call(function):
                return function
            self._refuse_when_frozen(subject)
            if not callable(getattr(function, "__func__", function)):
                raise DeclarationError(subject, f"decorates {function!r}, which is not a function.")
            noted.append(function)
            if path is not None:
                self._declared[place] = replace(declared, function=function)
            else:
                self._declared.append(replace(declared, subject=f"page {name_of(function)}", function=function))
            mark(function, f"page {len(self._declared)}")
            return function

        return note

    def resolve(
        self, routes: Sequence[Route], site_name: str, actions: Collection[str], included: Iterable[Route] = ()
    ) -> tuple[Page, ...]:
        """Return all pages in the order of their declaration, then those of `included` that are not declared.

        `actions` are the ids of the site's actions. Raises DeclarationError.
        """
        index, pages = RouteIndex(routes if self._declared else ()), dict[str, Page]()
        for declared in self._declared:
            route, function, options = _route_of(declared, index), declared.function, declared.options
            # A class's docstring describes all of its methods, so the method's own comes first.
            behind = route.handlers[:1]
            handlers = (*behind, function) if isinstance(function, type) else (function, *behind)
            plain = _page_of(declared.path or route.template, handlers, site_name)
            page = replace(
                plain,
                title=options.get("title") or plain.title,
                description=options.get("description") or plain.description,
            )
            path = page.path
            if (complete := options.get("complete")) is not None:
                page = replace(page, complete=read_complete(declared.subject, complete, page.placeholders))
            if path in pages:
                raise DeclarationError(declared.subject, f'the page "{path}" is declared twice.', "Leave one out.")
            if declared.of_plugins or not _MAPPED.isdisjoint(options):
                page = _with_id(declared.subject, page, options, actions)
                page = replace(page, options=declared.of_plugins)
                if page.id in {other.id for other in pages.values()}:
                    remedy = 'Give one of them an id of its own: site.page(..., id="...").'
                    raise DeclarationError(declared.subject, f'id: another page has the id "{page.id}", too.', remedy)
            pages[path] = page
        for route in included:
            page = _page_of(route.template, route.handlers, site_name)
            pages.setdefault(page.path, page)
        return tuple(pages.values())


def _page_of(template: str, handlers: Iterable[object], site_name: str) -> Page:
    """Make a page from its path and the docstrings and parameters of its handlers."""
    path = quote(template, safe=SAFE_IN_PATH + "{}")
    end = next((part for part in reversed(unquote(path).split("/")) if part and "{" not in part), "")
    described = next((text for text in map(docstring_of, filter(None, handlers)) if text), None)
    page = Page(path, title_of(end.replace("-", "_")) if end else site_name, described)
    if not page.placeholders:
        return page
    choices = dict[str, tuple[str, ...]]()
    for handler in handlers:
        if not inspect.isroutine(handler):
            continue
        with suppress(UnusableSchema):
            inputs = cast(Mapping[str, Any], describe_function(handler).inputs)
            listed = {name: choices_of(inputs.get("properties", {}).get(name), inputs) for name in page.placeholders}
            choices |= {name: values for name, values in listed.items() if values}
    return replace(page, choices=choices)


def _with_id(subject: str, page: Page, options: PageSettings, known_actions: Collection[str]) -> Page:
    """Return the page with its id, guide and actions. Raises DeclarationError for an action that is not declared."""
    for action in options.get("actions", ()):
        if action not in known_actions:
            wrong = f'actions: there is no action "{action}".'
            raise DeclarationError(subject, wrong, f"There are {listing(known_actions, action)}.")
    # The default id is the last part of the path that is not a placeholder, or "home" for the root.
    parts = [re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in page.path.split("/") if "{" not in part]
    named = next((part for part in reversed(parts) if part), "home")
    return replace(
        page,
        id=options.get("id") or (named if named[0].isalpha() else f"page_{named}"),
        guide=options.get("guide"),
        actions=tuple(options.get("actions", ())),
    )


def _route_of(declared: _DeclaredPage, index: RouteIndex) -> Route:
    subject, path = declared.subject, declared.path
    if declared.function is None:
        assert path is not None
        return index.of_path(subject, "GET", path)
    routes = index.of_handler(declared.function)
    readable = {route.template: route for route in reversed(routes) if "GET" in route.methods}
    if path is not None:
        fitting = {template: route for template, route in readable.items() if route.takes("GET", path)}
    else:
        fitting = {template: route for template, route in readable.items() if "{" not in template} or readable
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    templates = listing(route.template for route in routes)
    if not routes:
        wrong = "no route of this application leads to the decorated function."
        raise DeclarationError(subject, wrong, 'Register it with a route, or name its path: site.page("/path").')
    if fitting:
        raise DeclarationError(
            subject, f"is reachable in several ways ({templates}).", 'Choose one: @site.page("/path").'
        )
    if path is not None:
        wrong = f"path: none of the routes of what it decorates takes GET {path} ({templates})."
        raise DeclarationError(subject, wrong, "Name one of them.")
    wrong = f"its route ({templates}) does not take GET, and a page is read with GET."
    raise DeclarationError(subject, wrong, "Declare what it does as an action.")
