"""Publish existing routes without touching their handlers: the routes that one `site.include()` means."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

from awp_publish.checks.engine import WARNING
from awp_publish.model import Action, LeftOut, snake_case, title_of
from awp_publish.plugin import Finding, FoundRoutes
from awp_publish.plugins.include.reasons import Inclusion, is_in_mounts, is_on_path, is_selected, why_left_out
from awp_publish.plugins.include.routes import READING, ListedRoute, answers_html, names_of
from awp_publish.plugins.include.shadows import find_shadows
from awp_publish.problems import DeclarationError, did_you_mean
from awp_publish.schema.handlers import docstring_of
from awp_publish.schema.options import listing

SUBJECT: Final = "site.include()"

Described: TypeAlias = tuple[ListedRoute, str, Any]
"""A route, its method, and what the core says of its inputs and outputs (`declare.implementations.Implementation`)."""


def include_routes(inclusion: Inclusion, found: FoundRoutes) -> None:
    """Add the actions and pages of one inclusion, without routes that are declared already. Raises DeclarationError."""
    declared, hosts = [*found.declared, *found.actions], found.hosts
    routes: Sequence[ListedRoute] = found.routes
    if len(hosts) == 1:  # a route of this host stands beside those of all hosts
        routes = [replace(cast(Any, route), host="") if route.host in hosts else route for route in routes]
    visible = [route for route in routes if not route.is_opaque]
    if not visible:
        raise DeclarationError(SUBJECT, "this application shows no routes.", "Declare its actions with site.declare().")
    _refuse_unmatched(inclusion, visible)
    taken = {(action.target.method, action.target.path) for action in declared if action.target}
    selected = _select(inclusion, routes, hosts, taken, found)
    if not selected and not (inclusion.is_open or taken or found.pages):
        mounts = listing({route.mount for route in visible if route.mount})
        remedy = "Name routes that write in operations=..., or use site.declare()."
        if mounts != "none":
            remedy += f" Mounted applications are included only if mounts=[...] names them: {mounts}."
        raise DeclarationError(SUBJECT, "found no route that only reads (GET).", remedy)
    described: list[Described] = []
    for route, method in selected:
        is_named = not names_of(route).isdisjoint(inclusion.operations)
        may_be_page = method == READING and not is_named and route.is_page is not False
        if may_be_page and route.is_page:
            found.pages[route.template] = route
            continue
        subject = f"{method} {route.template} (included)"
        try:
            implementation = found.describe(subject, (route, method), inclusion.options)
        except DeclarationError as error:
            if is_named:
                raise
            _leave_out_unreadable(route, method, error.detail, found)
            continue
        outputs = implementation.operation.outputs
        is_html = "html" in str(outputs.get("contentMediaType", ""))
        if may_be_page and (is_html or (not outputs and answers_html(route.handlers[0]))):
            found.pages[route.template] = route
        else:
            described.append((route, method, implementation))
    found.actions += _assign_ids(described, inclusion, declared, found)


def _select(
    inclusion: Inclusion,
    routes: Sequence[ListedRoute],
    hosts: Collection[str],
    taken: Collection[tuple[str, str]],
    found: FoundRoutes,
) -> list[tuple[ListedRoute, str]]:
    """Return the routes of an inclusion with their methods. Why others are left out is noted in `found`."""
    paths = {route.template for route in routes if not route.is_opaque}
    shadows = find_shadows(routes)
    selected: list[tuple[ListedRoute, str]] = []
    # An application that hides its routes counts once.
    ways = ((route, method) for route in routes for method in ((READING,) if route.is_opaque else route.methods))
    for route, method in ways:
        way = method, route.template
        if way in taken:
            continue
        why = why_left_out(route, method, inclusion, paths)
        if not why and route.host and "{" not in route.host and route.host not in hosts:
            why = f"it is of another host, {route.host}"
        if not why and (before := shadows.get((id(route), method))) is not None:
            why = f"{method} {before.template} ({before.name}), which stands before it, takes its requests"
        if not why:
            selected.append((route, method))
        # Of several inclusions, the one that is about this route says why.
        elif way not in found.left_out or (is_in_mounts(route, inclusion) and is_selected(route, inclusion)):
            path = route.template
            if route.is_opaque:
                path = path.removesuffix("{anything}").rstrip("/") + "/*"
            found.left_out[way] = LeftOut(method, path, route.name or path, why)
    return selected


def _leave_out_unreadable(route: ListedRoute, method: str, detail: str, found: FoundRoutes) -> None:
    why = f"its inputs cannot be read: {detail.rstrip('.')}"
    found.left_out[method, route.template] = LeftOut(method, route.template, route.name or route.template, why)
    message = f"{method} {route.template} is left out, because {why}."
    remedy = 'Leave it out with exclude=..., or declare it with inputs={"type": "object", ...}.'
    found.findings.append(Finding(WARNING, "start-unreadable", "", message, remedy, SUBJECT))


def _assign_ids(
    selected: Sequence[Described], inclusion: Inclusion, declared: Sequence[Action], found: FoundRoutes
) -> list[Action]:
    """Give actions distinct ids: the name of the route, else its operation id, else its name and path."""
    taken = {action.id for action in declared}
    methods = Counter(id(route) for route, _, _ in selected)
    spellings = [
        [
            _id_of(route.name if methods[id(route)] == 1 else f"{route.name}_{method}", route, method),
            *(_id_of(alias, route, method) for alias in route.aliases[-1:] if methods[id(route)] == 1),
            _id_of(f"{route.name}{route.template}_{method}", route, method),
        ]
        for route, method, _ in selected
    ]
    ids = [names[0] for names in spellings]
    for round_ in (1, 2):
        count = Counter(ids)
        ids = [
            action_id if count[action_id] == 1 and action_id not in taken else names[min(round_, len(names) - 1)]
            for action_id, names in zip(ids, spellings, strict=True)
        ]
    included: dict[str, Action] = {}
    for (route, method, implementation), action_id in zip(selected, ids, strict=True):
        subject = f'action "{action_id}" (included from {method} {route.template})'
        docstring = next((text for text in map(docstring_of, route.handlers) if text), None)
        summary = implementation.operation.summary
        names = (route.name, *route.aliases)
        if summary in [name.replace("_", " ").title() for name in names]:  # as FastAPI makes it: "Auth:Jwt.Login"
            summary = None
        described = implementation.operation.description or docstring or summary
        text = described or title_of(action_id)
        if not described:
            message = f'Action "{action_id}" ({method} {route.template}) has no description of its own, only "{text}".'
            found.findings.append(Finding(WARNING, "start-description", "", message, _WORDS, SUBJECT))
        action = found.make_action(subject, action_id, text, inclusion.options, implementation)
        if (other := included.setdefault(action_id, action)) is not action or action_id in taken:
            twice = " and ".join(f"{target.method} {target.path}" for target in (other.target, action.target) if target)
            raise DeclarationError(
                f'action "{action_id}"',
                f"would be the id of {twice}.",
                "Declare one of them with site.declare() and another id.",
            )
    return list(included.values())


def _id_of(name: str, route: ListedRoute, method: str) -> str:
    """Return an id for a name; one that no id may be, such as "2fa", gets the method before it."""
    made = snake_case(name)
    return made if re.match("[a-z]", made) else snake_case(f"{method}_{made or route.template}")


_WORDS: Final = "Write a docstring for its handler, or declare it with a description."


def _refuse_unmatched(inclusion: Inclusion, routes: Sequence[ListedRoute]) -> None:
    tags = {tag for route in routes for tag in route.tags}
    names = {name for route in routes for name in names_of(route)}
    listed = [route for route in routes if route.listed]
    route_names, paths = {route.name for route in listed}, {route.template for route in listed}
    mounts = {route.mount.rstrip("/") for route in routes if route.mount}

    def is_on_some(pattern: str) -> bool:
        return any(is_on_path(route, [pattern]) for route in routes)

    unmatched = [
        *(("tags", wanted, tags) for wanted in inclusion.tags if wanted not in tags),
        *(("operations", wanted, route_names) for wanted in inclusion.operations if wanted not in names),
        *(("paths", wanted, paths) for wanted in inclusion.paths if not is_on_some(wanted)),
        *(
            ("exclude", pattern, route_names)
            for pattern in inclusion.exclude
            if pattern not in names and not is_on_some(pattern)
        ),
        *(
            ("mounts", mount, mounts)
            for mount in inclusion.mounts
            # The path of Mount("/api", routes=[...]) is not an application, and its routes are considered anyway.
            if mount.rstrip("/") not in mounts
            and not any(route.template.startswith(f"{mount.rstrip('/')}/") for route in listed if not route.mount)
        ),
    ]
    wrong, remedies = dict[str, list[str]](), dict[str, str]()
    for option, wanted, there in unmatched:
        near = did_you_mean(wanted, there).replace("Did", "did", 1)
        wrong.setdefault(option, []).append(f'"{wanted}" ({near})' if near else f'"{wanted}"')
        remedies.setdefault(option, f"There are: {listing(there, wanted)}.")
    details = list[str]()
    for option, words in wrong.items():
        what = "mounted application that shows its routes" if option == "mounts" else "route"
        details.append(f"{option}: {', '.join(words)} {'match' if len(words) > 1 else 'matches'} no {what}.")
    if details:
        raise DeclarationError(SUBJECT, " ".join(details), " ".join(dict.fromkeys(remedies.values())))
