"""Why `site.include()` leaves a route out, and which routes are pages of a site that declares none."""

import fnmatch
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from awp_publish.model import IN_ANOTHER_FORMAT
from awp_publish.plugins.include.routes import READING, ListedRoute, answers_html, names_of, redirects, signs_in
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema


@dataclass(frozen=True, slots=True)
class Inclusion:
    """The arguments of one `site.include(...)`."""

    tags: Sequence[str]
    paths: Sequence[str]
    operations: Sequence[str]
    exclude: Sequence[str]
    mounts: Sequence[str]
    options: Any

    @property
    def is_open(self) -> bool:
        """True for all routes that only read, which may be none."""
        return not (self.tags or self.paths or self.operations)


_FILE: Final = re.compile(
    r"\.(?:ico|txt|xml|css|js|mjs|map|png|jpe?g|gif|svg|webp|avif|woff2?|ttf|webmanifest)$", re.IGNORECASE
)

_FORMAT: Final = re.compile(r"(?:\.(?:\w+|\{\w+\})|\{format\})/?$")
_TEST: Final = re.compile(r"(?:^|[/_-])(?:tests?|testing|debug)(?:[/_-]|$)", re.IGNORECASE)


def is_in_mounts(route: ListedRoute, inclusion: Inclusion) -> bool:
    mounts = {mount.rstrip("/") for mount in inclusion.mounts}
    return not route.mount or route.template in inclusion.paths or route.mount.rstrip("/") in mounts


def is_selected(route: ListedRoute, inclusion: Inclusion) -> bool:
    return inclusion.is_open or not set(inclusion.tags).isdisjoint(route.tags) or is_on_path(route, inclusion.paths)


def why_left_out(route: ListedRoute, method: str, inclusion: Inclusion, paths: Collection[str]) -> str:
    """Return why a route is left out, or "" if it is published. A route that is named is always published."""
    names = names_of(route)
    if not names.isdisjoint(inclusion.exclude) or is_on_path(route, inclusion.exclude):
        return "excluded by exclude"
    if not route.is_opaque and not names.isdisjoint(inclusion.operations):
        if route.usual_method not in ("", method):
            return f"it takes any method, and is included as {route.usual_method}; use site.declare() for others"
        return route.kept_out if route.kept_out.endswith(IN_ANOTHER_FORMAT) else ""
    if route.kept_out:
        return route.kept_out
    if route.is_opaque:
        return "this application does not show its routes; use site.declare()"
    if route.is_deprecated:
        return f'it is deprecated; name it: operations=["{route.name}"]'
    if not route.listed:
        return "it is hidden (include_in_schema=False)"
    if not is_in_mounts(route, inclusion):
        return f'it is in a mounted application; name that: mounts=["{route.mount}"]'
    if not is_selected(route, inclusion):
        return "not selected by tags, paths or operations"
    if signs_in(route):
        return "it signs people in or out"
    if method != READING:
        return f'it writes; name it: operations=["{route.name}"]'
    if not (route.methods == (READING,) if route.reads is None else route.reads):
        return f'its GET may change something, since it takes other methods too; name it: operations=["{route.name}"]'
    if _FILE.search(route.template):
        return "it is a file"
    if inclusion.is_open and (route.redirects or any(map(redirects, route.handlers))):
        return f'it redirects; name it: operations=["{route.name}"]'
    if inclusion.is_open and _TEST.search(f"{route.template}/{route.name}"):
        return f'its name looks like a test route; name it: operations=["{route.name}"]'
    plain = _FORMAT.sub("", route.template)
    if plain != route.template and not {plain, plain + "/"}.isdisjoint(paths):
        return f"it is {plain} {IN_ANOTHER_FORMAT}"
    return ""


def is_on_path(route: ListedRoute, patterns: Sequence[str]) -> bool:
    return any(
        pattern in (route.template, route.path) or fnmatch.fnmatchcase(route.template, pattern) for pattern in patterns
    )


_NOTHING_NAMED: Final = Inclusion((), (), (), (), (), None)


def find_pages(routes: Sequence[ListedRoute]) -> Iterator[ListedRoute]:
    """Yield the routes that answer with an HTML page for everybody, at one address each, as far as that is known.

    Routes that the framework hides, that need credentials, or that `site.include()` would leave out are none.
    """
    paths = {route.template for route in routes if not route.is_opaque}
    for route in routes:
        if route.is_opaque or READING not in route.methods or "{" in route.path or route.is_page is False:
            continue
        if why_left_out(route, READING, _NOTHING_NAMED, paths):
            continue
        if route.is_page or answers_html(route.handlers[0]):
            with suppress(UnusableSchema, DeclarationError):
                if route.describe is None or not route.describe(READING).auth_required:
                    yield route
