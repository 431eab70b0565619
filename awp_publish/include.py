"""`site.include(...)`: publish routes that are already there, without touching their handlers."""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.describe import describe_route_action, docstring_of, make_action, title_of
from awp_publish.discover import Route
from awp_publish.model import Action
from awp_publish.options import ID_PATTERN, ActionOptions
from awp_publish.problems import DeclarationError

READING: Final = "GET"


@dataclass(frozen=True, slots=True)
class Inclusion:
    """One `site.include(...)`."""

    tags: tuple[str, ...]
    paths: tuple[str, ...]
    operations: tuple[str, ...]
    exclude: tuple[str, ...]
    options: ActionOptions


def select_routes(
    inclusion: Inclusion, routes: Sequence[Route], taken: set[tuple[str, str]]
) -> Iterable[tuple[Route, str]]:
    """The routes and methods that an inclusion means and that are not `taken` yet. Raises DeclarationError."""
    _refuse_unmatched(inclusion, routes)
    for route in routes:
        named = route.name in inclusion.operations
        if _excluded(inclusion, route) or not (named or (route.listed and _matches(inclusion, route))):
            continue
        for method in route.methods:
            if (method == READING or named) and (method, route.template) not in taken:
                yield route, method


def _matches(inclusion: Inclusion, route: Route) -> bool:
    if not (inclusion.tags or inclusion.paths or inclusion.operations):
        return True
    return bool(set(inclusion.tags) & set(route.tags)) or _on_path(route, inclusion.paths)


def _on_path(route: Route, patterns: Sequence[str]) -> bool:
    return any(route.template == pattern or fnmatch.fnmatchcase(route.template, pattern) for pattern in patterns)


def _excluded(inclusion: Inclusion, route: Route) -> bool:
    return route.name in inclusion.exclude or _on_path(route, inclusion.exclude)


def _refuse_unmatched(inclusion: Inclusion, routes: Sequence[Route]) -> None:
    known: dict[str, set[str]] = {
        "tags": {tag for route in routes for tag in route.tags},
        "operations": {route.name for route in routes},
    }
    for field_name, wanted in (("tags", inclusion.tags), ("operations", inclusion.operations)):
        for name in wanted:
            if name not in known[field_name]:
                listed = ", ".join(sorted(known[field_name])) or "none"
                raise DeclarationError(
                    "site.include()", f'{field_name}: "{name}" matches no route. There are: {listed}.'
                )
    for pattern in inclusion.paths:
        if not any(_on_path(route, [pattern]) for route in routes):
            raise DeclarationError("site.include()", f'paths: "{pattern}" matches no route.')


def include_route(route: Route, method: str, inclusion: Inclusion, timeout: float) -> Action:
    """The action of an included route, named after its operation. Raises DeclarationError."""
    action_id = _identifier(route.name)
    subject = f'action "{action_id}" (included from {method} {route.template})'
    if not re.fullmatch(ID_PATTERN, action_id):
        raise DeclarationError(subject, f'"{route.name}" gives no usable id.', "State it with site.declare().")
    behind = describe_route_action(subject, (route, method), inclusion.options)
    description = inclusion.options.get("description") or behind.description or _described_by_handler(route)
    if not description:
        raise DeclarationError(
            subject, "description: is missing.", "Write a docstring, or state it with site.declare()."
        )
    return make_action(subject, action_id, title_of(action_id), description, inclusion.options, behind, timeout)


def _described_by_handler(route: Route) -> str | None:
    return next((text for text in map(docstring_of, route.handlers) if text), None)


def _identifier(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")
