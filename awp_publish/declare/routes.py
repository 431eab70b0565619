"""The route that a declaration means, by its handler or by method and path."""

from collections.abc import Sequence
from dataclasses import replace

from awp_publish.declare.discover.handlers import identity_of, wrappings_of
from awp_publish.declare.discover.routes import Route
from awp_publish.declare.settings.actions import ActionSettings
from awp_publish.problems import DeclarationError
from awp_publish.schema.handlers import layers_of
from awp_publish.schema.options import listing


class RouteIndex:
    """The routes of an application, indexed by each layer of their handlers and by path."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._by_layer: dict[object, list[Route]] = {}
        self._by_template: dict[str, list[Route]] = {}
        for route in routes:
            self._by_template.setdefault(route.template, []).append(route)
            for layer in {identity_of(layer): None for handler in route.handlers for layer in layers_of(handler)}:
                self._by_layer.setdefault(layer, []).append(route)

    def of_handler(self, handler: object) -> Sequence[Route]:
        """Return the routes of a handler: those registered with it, or else those registered with what it wraps."""
        for layer in wrappings_of(handler):
            routes = self._by_layer.get(identity_of(layer))
            if routes:
                return routes
        return ()

    def of_path(self, subject: str, method: str, path: str) -> Route:
        """Return the application's route for a path, or one made from the path if the application exposes no routes.

        Raises DeclarationError if the application exposes its routes and none of them matches.
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


def choose(subject: str, routes: Sequence[Route], options: ActionSettings) -> tuple[Route, str]:
    """Return the one route and method of a declaration. Raises DeclarationError if several match, or none."""
    choices = [(route, method) for route in routes for method in route.methods]
    if not choices:
        raise DeclarationError(subject, "its route has none of the methods GET, POST, PUT, PATCH and DELETE.")
    matching = [
        (route, method)
        for route, method in choices
        if options.path in (None, route.template, route.path) and options.method in (None, method)
    ]
    if len(matching) == 1:
        return matching[0]
    ways = listing(_ways([route for route, _ in choices]))
    if not matching:
        raise DeclarationError(subject, f"method, path: match none of its routes ({ways}).")
    raise DeclarationError(subject, f"is reachable in several ways ({ways}).", "Choose one with path=... or method=...")
