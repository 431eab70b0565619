"""Checks that a request arrives at the route of its action and at no other."""

import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from typing import Any, Final
from urllib.parse import unquote

from starlette.exceptions import HTTPException

from awp_publish.declare.discover import ITSELF, Routed, asks_for_host, compares_routes, find_arrival, fixed_arrivals
from awp_publish.http.exchange import Scope, mount_of
from awp_publish.http.route_exchange import RouteExchange
from awp_publish.model import Action, Catalog, Target
from awp_publish.problems import DeclarationError, InvalidInput, Violation
from awp_publish.schema import pointer_to
from awp_publish.schema.paths import pattern_of

MAX_DECODINGS: Final = 4
"""How often an application whose routes are unknown is assumed to percent-decode a path, at most."""

ELSEWHERE: Final = "names another address of this site"

_NOWHERE: Final = "does not fit the action's address"

Compare = Callable[[Scope], tuple[object, ...]]
"""Returns the endpoints on the way to the action's route. Raises InvalidInput if a request arrives at another one."""


def compare_arrivals(app: object, catalog: Catalog, among: Catalog) -> Mapping[str, Compare]:
    """Return the route checks of the actions whose routing depends on the request. The others are checked now.

    Raises DeclarationError for a route that another one hides.
    """
    if compares_routes(app):
        return {}
    by_host, comparisons, fixed = asks_for_host(app), {}, fixed_arrivals(app)
    addresses = cache(partial(_addresses_of, among))
    for action in catalog.actions:
        if action.target is None:
            continue
        compare = _Arrivals(app, addresses, action, action.target)
        if by_host or any(parameter.location == "path" for parameter in action.target.parameters):
            comparisons[action.id] = compare
            if action.target.arrival is None:
                addresses()  # fill the cache now, not during the first call
        else:
            compare.check_fixed(action.target, fixed)
    return comparisons


class _Arrivals:
    """Checks that the requests of one action arrive at its own route.

    The application's routes are matched in their order, for each request, because routes may be added at runtime. If
    its routes are unknown, the known addresses of the site take their place: other actions, pages, and our own paths.
    """

    def __init__(
        self, app: object, addresses: Callable[[], Mapping[str, re.Pattern[str]]], action: Action, target: Target
    ) -> None:
        self._app = app
        self._known = addresses
        self._action = action
        self._own = target.arrival
        spans = any(parameter.spans_segments for parameter in target.parameters)
        self._slashes = None if spans else target.path.count("/")
        self._path = target.path

    @cached_property
    def _rivals(self) -> list[re.Pattern[str]]:
        """Patterns of other addresses that only some values of the action's path parameters lead to."""
        others = (pattern for path, pattern in self._known().items() if path != self._path)
        return [pattern for pattern in others if not pattern.fullmatch(self._path)]

    def __call__(self, scope: Scope) -> tuple[object, ...]:
        routed = find_arrival(self._app, dict(scope))
        if routed is None:
            raise arrival_refusal(self._action, _NOWHERE)
        if not self._is_own(routed):
            raise arrival_refusal(self._action, ELSEWHERE)
        if self._own is None:
            self._check_unknown_routes(scope["path"][len(mount_of(scope)) :])
        return routed.endpoints

    def check_fixed(self, target: Target, find: Callable[[Scope], Routed | None]) -> None:
        """Check a path without parameters, at start-up. Raises DeclarationError if another route answers it."""
        scope: Scope = {"type": "http", "method": target.method, "path": target.path, "headers": [], "root_path": ""}
        routed = find(scope)
        if routed is not None and not self._is_own(routed):
            raise DeclarationError(
                f'action "{self._action.id}"',
                f"path: another route, which comes before its own, answers {target.method} {target.path}"
                f"{f' ({routed.arrival.path})' if routed.arrival.endpoint is not None else ''}.",
                "Register its route first.",
            )

    def _is_own(self, routed: Routed) -> bool:
        arrival = routed.arrival
        if arrival.endpoint is ITSELF:
            return True
        if self._own is None or arrival.endpoint is None:
            return self._own is None and arrival.endpoint is None
        return arrival.endpoint is self._own.endpoint and arrival.path == self._own.path

    def _check_unknown_routes(self, path: str) -> None:
        plain = path
        for _ in range(MAX_DECODINGS):
            plain = unquote(plain)
        if unquote(plain) != plain:
            raise arrival_refusal(self._action, "must not be percent-encoded so many times")
        plain = plain.replace("\\", "/").strip()
        if self._slashes is not None and plain.count("/") != self._slashes:
            raise arrival_refusal(self._action, "must not hold an encoded slash")
        if not {".", ".."}.isdisjoint(plain.split("/")):
            raise arrival_refusal(self._action, "must not hold an encoded . or ..")
        if any(rival.fullmatch(plain) or rival.fullmatch(plain.rstrip("/")) for rival in self._rivals):
            raise arrival_refusal(self._action, ELSEWHERE)


def _addresses_of(catalog: Catalog) -> Mapping[str, re.Pattern[str]]:
    """Return patterns of all known addresses of a site, by path template."""
    addresses = {action.target.path for action in catalog.actions if action.target is not None}
    addresses |= {unquote(page.path) for page in catalog.pages} | catalog.own_paths
    return {path: re.compile(pattern_of(path), re.IGNORECASE | re.DOTALL) for path in addresses}


def arrival_refusal(action: Action, detail: str) -> InvalidInput:
    parameters = action.target.parameters if action.target is not None else ()
    names = [parameter.name for parameter in parameters if parameter.location == "path"]
    pointers = [pointer_to([name]) for name in names] or [""]
    subject = "The address" if not names else " and ".join(pointers)
    return InvalidInput(
        f"The input cannot be sent to the action: {subject} {detail}.",
        errors=[Violation(pointer, detail) for pointer in pointers],
    )


class GuardedScope(dict[str, Any]):
    """A scope in which the routing may set only endpoints on the way to the action's own route.

    The route was checked beforehand; this applies if middleware inside of us changes the path afterwards.
    """

    def __init__(self, scope: Scope, way: tuple[object, ...], exchange: RouteExchange) -> None:
        super().__init__(scope)
        self._ahead = (scope.get("endpoint"), *way)
        self._exchange = exchange
        self._has_arrived = False

    def update(self, *args: Any, **members: Any) -> None:
        super().update(*args, **members)
        endpoint = self.get("endpoint")
        if self._has_arrived:
            return  # the endpoint may change its own scope
        if all(endpoint is not expected for expected in self._ahead):
            self._exchange.mark_misrouted()
            raise HTTPException(404)
        self._has_arrived = endpoint is self._ahead[-1]
