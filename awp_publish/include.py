"""`site.include(...)`: publish routes that are already there, without touching their handlers."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.describe import Defaults, describe_route_action, make_action, title_of
from awp_publish.discover import Route
from awp_publish.discover.routes import docstring_of, listing
from awp_publish.model import Action
from awp_publish.options import ActionOptions
from awp_publish.problems import DeclarationError

READING: Final = "GET"
SUBJECT: Final = "site.include()"


@dataclass(frozen=True, slots=True)
class Inclusion:
    """One `site.include(...)`."""

    tags: tuple[str, ...]
    paths: tuple[str, ...]
    operations: tuple[str, ...]
    exclude: tuple[str, ...]
    options: ActionOptions


def include_routes(
    inclusion: Inclusion, routes: Sequence[Route], declared: Sequence[Action], defaults: Defaults
) -> list[Action]:
    """The actions of one inclusion, without the routes that are `declared` already. Raises DeclarationError."""
    shown = [route for route in routes if not route.is_opaque]
    if not shown:
        raise DeclarationError(SUBJECT, "this application shows no routes.", "State its actions with site.declare().")
    _refuse_unmatched(inclusion, shown)
    selected = list(_select(inclusion, shown))
    if not selected:
        raise DeclarationError(
            SUBJECT, "finds no reading route (GET).", "Name writing ones in operations=..., or use site.declare()."
        )
    by_id = {action.id: action for action in declared}
    taken = {(action.target.method, action.target.path) for action in declared if action.target}
    included: list[Action] = []
    for route, method in selected:
        if (method, route.template) not in taken:
            included.append(_include(route, method, selected, inclusion, defaults))
            _refuse_duplicate(included[-1], by_id)
    return included


# --- Which routes ---


def _select(inclusion: Inclusion, routes: Sequence[Route]) -> Iterator[tuple[Route, str]]:
    for route in routes:
        named = not _names_of(route).isdisjoint(inclusion.operations)
        if _is_excluded(inclusion, route) or not (named or (route.listed and _is_meant(inclusion, route))):
            continue
        yield from ((route, method) for method in route.methods if named or method == READING)


def _is_meant(inclusion: Inclusion, route: Route) -> bool:
    if not (inclusion.tags or inclusion.paths or inclusion.operations):
        return True
    return not set(inclusion.tags).isdisjoint(route.tags) or _is_on_path(route, inclusion.paths)


def _is_on_path(route: Route, patterns: Sequence[str]) -> bool:
    return any(
        pattern in (route.template, route.path) or fnmatch.fnmatchcase(route.template, pattern) for pattern in patterns
    )


def _is_excluded(inclusion: Inclusion, route: Route) -> bool:
    return not _names_of(route).isdisjoint(inclusion.exclude) or _is_on_path(route, inclusion.exclude)


def _names_of(route: Route) -> frozenset[str]:
    return frozenset((route.name, *route.aliases))


def _refuse_unmatched(inclusion: Inclusion, routes: Sequence[Route]) -> None:
    tags = {tag for route in routes for tag in route.tags}
    names = {name for route in routes for name in _names_of(route)}
    listed = [route for route in routes if route.listed]
    known = {route.name for route in listed}
    for wanted in inclusion.tags:
        _refuse_unless("tags", wanted, wanted in tags, tags)
    for wanted in inclusion.operations:
        _refuse_unless("operations", wanted, wanted in names, known)
    for wanted in inclusion.paths:
        _refuse_unless("paths", wanted, _is_on_some(routes, wanted), {route.template for route in listed})
    for wanted in inclusion.exclude:
        _refuse_unless("exclude", wanted, wanted in names or _is_on_some(routes, wanted), known)


def _is_on_some(routes: Sequence[Route], pattern: str) -> bool:
    return any(_is_on_path(route, [pattern]) for route in routes)


def _refuse_unless(field: str, wanted: str, is_known: bool, known: Iterable[str]) -> None:
    if not is_known:
        listed = listing(known, wanted)
        raise DeclarationError(SUBJECT, f'{field}: "{wanted}" matches no route.', f"There are: {listed}.")


# --- Their actions ---


def _include(
    route: Route, method: str, selected: Sequence[tuple[Route, str]], inclusion: Inclusion, defaults: Defaults
) -> Action:
    """The action of an included route, named after its operation."""
    methods = [other for found, other in selected if found is route]
    name = route.name if len(methods) == 1 else f"{route.name}_{method}"
    action_id = _identifier(name)
    subject = f'action "{action_id}" (included from {method} {route.template})'
    if not re.match("[a-z]", action_id):
        raise DeclarationError(subject, f'"{name}" gives no usable id.', "State it with site.declare().")
    behind = describe_route_action(subject, (route, method), inclusion.options)
    described = behind.operation.description or _described_by_handler(route) or behind.operation.summary
    return make_action(subject, action_id, described or title_of(action_id), inclusion.options, behind, defaults)


def _described_by_handler(route: Route) -> str | None:
    return next((text for text in map(docstring_of, route.handlers) if text), None)


def _identifier(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def _refuse_duplicate(action: Action, by_id: dict[str, Action]) -> None:
    other = by_id.setdefault(action.id, action)
    if other is not action:
        routes = " and ".join(f"{one.target.method} {one.target.path}" for one in (other, action) if one.target)
        raise DeclarationError(
            f'action "{action.id}"', f"stands for {routes}.", "State one with site.declare() and an id of its own."
        )
