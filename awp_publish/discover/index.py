"""Which route a declaration means: found by its handler, or by method and path."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from awp_publish.discover.layers import identity_of, layers_of, wrappings_of
from awp_publish.discover.route import Route
from awp_publish.options import ActionOptions
from awp_publish.problems import DeclarationError

MOST_LISTED: Final = 20


class RouteIndex:
    """The routes of an application, by each layer of their handlers and by path."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._by_layer: dict[object, list[Route]] = {}
        self._by_template: dict[str, list[Route]] = {}
        for route in routes:
            self._by_template.setdefault(route.template, []).append(route)
            for layer in {identity_of(layer): None for handler in route.handlers for layer in layers_of(handler)}:
                self._by_layer.setdefault(layer, []).append(route)

    def of_handler(self, handler: object) -> Sequence[Route]:
        """The routes that lead to a handler: those that hold it, else those that hold what it wraps."""
        for layer in wrappings_of(handler):
            found = self._by_layer.get(identity_of(layer))
            if found:
                return found
        return ()

    def of_path(self, subject: str, method: str, path: str) -> Route:
        """The application's own route where it shows one, else one of which only this is known.

        Raises DeclarationError when the application shows its routes and none of them takes this.
        """
        wanted = Route(path, (method,), (), "")
        own = self._by_template.get(wanted.template, ())
        exact = next((route for route in own if method in route.methods), None)
        if exact is not None or not self._routes:
            return exact or wanted
        taking = next((route for route in self._routes if route.takes(method, wanted.template)), None)
        if taking is None:
            raise DeclarationError(
                subject,
                f"method, path: no route of this application takes {method} {wanted.template}.",
                f"There are: {listing(_ways(self._routes), f'{method} {wanted.template}')}.",
            )
        return replace(wanted, arrival=taking.arrival)


def _ways(routes: Sequence[Route]) -> list[str]:
    return [f"{method} {route.template}" for route in routes if not route.is_opaque for method in route.methods]


def listing(known: Iterable[str], wanted: str = "") -> str:
    """What there is, for a message: the nearest to what was wanted first, and not too many."""
    names = sorted(set(known))
    near = get_close_matches(wanted, names, n=3) if wanted else []
    ordered = [*near, *(name for name in names if name not in near)]
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return (", ".join(ordered[:MOST_LISTED]) or "none") + more


def choose(subject: str, found: Sequence[Route], options: ActionOptions) -> tuple[Route, str]:
    """The one route and method that is meant. Raises DeclarationError when several could be, or none."""
    choices = [(route, method) for route in found for method in route.methods]
    if not choices:
        raise DeclarationError(subject, "its route has none of the methods GET, POST, PUT, PATCH and DELETE.")
    matching = [choice for choice in choices if _matches(choice, options)]
    if len(matching) == 1:
        return matching[0]
    known = listing(_ways([route for route, _ in choices]))
    if not matching:
        raise DeclarationError(subject, f"method, path: match none of its routes ({known}).")
    raise DeclarationError(
        subject, f"is reachable in several ways ({known}).", "Choose one with path=... or method=..."
    )


def _matches(choice: tuple[Route, str], options: ActionOptions) -> bool:
    route, method = choice
    path = options.get("path", route.path)
    return path in (route.template, route.path) and options.get("method", method) == method
