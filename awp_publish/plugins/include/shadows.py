"""Routes that no request reaches, because one that stands before them takes all of theirs."""

import re
from collections.abc import Iterable, Mapping

from awp_publish.plugins.include.routes import ListedRoute
from awp_publish.schema.paths import PLACEHOLDER, pattern_of

ANY_SEGMENT = frozenset({"str", "path"})
"""Convertors of placeholders that take any text. What others take depends on the text."""


def find_shadows(routes: Iterable[ListedRoute]) -> Mapping[tuple[int, str], ListedRoute]:
    """Return the route that stands before another one, by that one's identity and the method.

    Only what is sure is found: equal paths, and paths without placeholders that a placeholder for any text takes.
    """
    shadows: dict[tuple[int, str], ListedRoute] = {}
    first: dict[tuple[str, str, str], ListedRoute] = {}  # by method, host and path
    wide: dict[int, list[tuple[re.Pattern[str], ListedRoute]]] = {}  # by number of slashes, -1 for any number
    for route in routes:
        if route.is_opaque:
            continue
        own = route.path if route.arrival is None else route.arrival.path
        is_own_template = own == route.path  # not an expression of another framework
        earlier = () if not is_own_template or "{" in own else (*wide.get(own.count("/"), ()), *wide.get(-1, ()))
        for method in route.methods:
            equal = [found for host in {"", route.host} if (found := first.get((method, host, own))) is not None]
            taking = (
                other
                for pattern, other in earlier
                if method in other.methods and other.host in ("", route.host) and pattern.fullmatch(own)
            )
            if (before := next(iter(equal), None) or next(taking, None)) is not None:
                shadows[id(route), method] = before
            else:
                first[method, route.host, own] = route
        convertors = {convertor or "str" for _, convertor in PLACEHOLDER.findall(own)}
        if is_own_template and convertors and convertors <= ANY_SEGMENT:
            length = -1 if "path" in convertors else own.count("/")
            wide.setdefault(length, []).append((re.compile(pattern_of(own), re.DOTALL), route))
    return shadows
