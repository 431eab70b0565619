"""`site.include(...)`: publish existing routes without touching their handlers."""

import ast
import fnmatch
import logging
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from awp_publish.checks.engine import WARNING, Finding
from awp_publish.declare.actions import make_action
from awp_publish.declare.discover.handlers import answers_html
from awp_publish.declare.discover.routes import Route, signs_in
from awp_publish.declare.implementations import Implementation, TargetApplication, describe_route_action
from awp_publish.declare.settings.actions import ActionSettings
from awp_publish.declare.shadows import find_shadows
from awp_publish.model import Action, LeftOut, snake_case, title_of
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema
from awp_publish.schema.handlers import docstring_of, layers_of, syntax_of
from awp_publish.schema.options import listing

logger: Final = logging.getLogger("awp_publish")

READING: Final = "GET"
SUBJECT: Final = "site.include()"


@dataclass(frozen=True, slots=True)
class Inclusion:
    """The arguments of one `site.include(...)`."""

    tags: Sequence[str]
    paths: Sequence[str]
    operations: Sequence[str]
    exclude: Sequence[str]
    mounts: Sequence[str]
    options: ActionSettings

    @property
    def is_open(self) -> bool:
        """True for all routes that only read, which may be none."""
        return not (self.tags or self.paths or self.operations)


@dataclass(slots=True)
class Included:
    """The actions and pages that the inclusions of a site publish, and the routes that they left out.

    `findings` are about all actions of the site.
    """

    actions: list[Action] = field(default_factory=list)
    pages: dict[str, Route] = field(default_factory=dict)
    left_out: dict[tuple[str, str], LeftOut] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of the actions and the paths of the pages."""
        return (*(action.id for action in self.actions), *self.pages)

    def log(self) -> None:
        """Log what was published, and how many routes were left out."""
        logger.info(
            "site.include() took %d actions (%s) and %d pages (%s), and left %d routes out; "
            "awp-publish show --included module:app says which and why.",
            len(self.actions),
            listing(action.id for action in self.actions),
            len(self.pages),
            listing(self.pages),
            len(self.left_out),
        )


def include_routes(
    inclusion: Inclusion, application: TargetApplication, declared: Sequence[Action], included: Included
) -> list[Action]:
    """Return the actions of one inclusion, without routes that are `declared` already; pages are added to `included`.

    Raises DeclarationError.
    """
    routes, hosts = application.routes, application.hosts
    if len(hosts) == 1:  # a route of this host stands beside those of all hosts
        routes = [replace(route, host="") if route.host in hosts else route for route in routes]
    visible = [route for route in routes if not route.is_opaque]
    if not visible:
        raise DeclarationError(SUBJECT, "this application shows no routes.", "Declare its actions with site.declare().")
    _refuse_unmatched(inclusion, visible)
    taken = {(action.target.method, action.target.path) for action in declared if action.target}
    selected = _select(inclusion, routes, hosts, taken, included)
    if not selected and not (inclusion.is_open or taken or included.pages):
        mounts = listing({route.mount for route in visible if route.mount})
        remedy = "Name routes that write in operations=..., or use site.declare()."
        if mounts != "none":
            remedy += f" Mounted applications are included only if mounts=[...] names them: {mounts}."
        raise DeclarationError(SUBJECT, "found no route that only reads (GET).", remedy)
    described: list[tuple[Route, str, Implementation]] = []
    for route, method in selected:
        is_named = not _names_of(route).isdisjoint(inclusion.operations)
        may_be_page = method == READING and not is_named and route.is_page is not False
        if may_be_page and route.is_page:
            included.pages[route.template] = route
            continue
        subject = f"{method} {route.template} (included)"
        try:
            implementation = describe_route_action(subject, (route, method), inclusion.options, application)
        except DeclarationError as error:
            if is_named:
                raise
            _leave_out_unreadable(route, method, error.detail, included)
            continue
        outputs = implementation.operation.outputs
        is_html = "html" in str(outputs.get("contentMediaType", ""))
        if may_be_page and (is_html or (not outputs and answers_html(route.handlers[0]))):
            included.pages[route.template] = route
        else:
            described.append((route, method, implementation))
    return _assign_ids(described, inclusion, declared, application, included.findings)


def _select(
    inclusion: Inclusion,
    routes: Sequence[Route],
    hosts: Collection[str],
    taken: Collection[tuple[str, str]],
    included: Included,
) -> list[tuple[Route, str]]:
    """Return the routes of an inclusion with their methods. Why others are left out is noted in `included`."""
    paths = {route.template for route in routes if not route.is_opaque}
    shadows = find_shadows(routes)
    selected: list[tuple[Route, str]] = []
    # An application that hides its routes counts once.
    ways = ((route, method) for route in routes for method in ((READING,) if route.is_opaque else route.methods))
    for route, method in ways:
        way = method, route.template
        if way in taken:
            continue
        why = _why_left_out(route, method, inclusion, paths)
        if not why and route.host and "{" not in route.host and route.host not in hosts:
            why = f"it is of another host, {route.host}"
        if not why and (before := shadows.get((id(route), method))) is not None:
            why = f"{method} {before.template} ({before.name}), which stands before it, takes its requests"
        if not why:
            selected.append((route, method))
        # Of several inclusions, the one that is about this route says why.
        elif way not in included.left_out or (_is_in_mounts(route, inclusion) and _is_selected(route, inclusion)):
            path = route.template
            if route.is_opaque:
                path = path.removesuffix("{anything}").rstrip("/") + "/*"
            included.left_out[way] = LeftOut(method, path, route.name or path, why)
    return selected


def _leave_out_unreadable(route: Route, method: str, detail: str, included: Included) -> None:
    why = f"its inputs cannot be read: {detail.rstrip('.')}"
    included.left_out[method, route.template] = LeftOut(method, route.template, route.name or route.template, why)
    message = f"{method} {route.template} is left out, because {why}."
    remedy = 'Leave it out with exclude=..., or declare it with inputs={"type": "object", ...}.'
    included.findings.append(Finding(WARNING, "start-unreadable", "", message, remedy, SUBJECT))


_NOTHING_NAMED: Final = Inclusion((), (), (), (), (), ActionSettings())


def find_pages(routes: Sequence[Route]) -> Iterator[Route]:
    """Yield the routes that answer with an HTML page for everybody, at one address each, as far as that is known.

    Routes that the framework hides, that need credentials, or that `site.include()` would leave out are none.
    """
    paths = {route.template for route in routes if not route.is_opaque}
    for route in routes:
        if route.is_opaque or READING not in route.methods or "{" in route.path or route.is_page is False:
            continue
        if _why_left_out(route, READING, _NOTHING_NAMED, paths):
            continue
        if route.is_page or answers_html(route.handlers[0]):
            with suppress(UnusableSchema, DeclarationError):
                if route.describe is None or not route.describe(READING).auth_required:
                    yield route


def _assign_ids(
    selected: Sequence[tuple[Route, str, Implementation]],
    inclusion: Inclusion,
    declared: Sequence[Action],
    application: TargetApplication,
    findings: list[Finding],
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
            findings.append(Finding(WARNING, "start-description", "", message, _WORDS, "site.include()"))
        action = make_action(subject, action_id, text, inclusion.options, implementation, application)
        if (other := included.setdefault(action_id, action)) is not action or action_id in taken:
            twice = " and ".join(f"{target.method} {target.path}" for target in (other.target, action.target) if target)
            raise DeclarationError(
                f'action "{action_id}"',
                f"would be the id of {twice}.",
                "Declare one of them with site.declare() and another id.",
            )
    return list(included.values())


def _id_of(name: str, route: Route, method: str) -> str:
    """Return an id for a name; one that no id may be, such as "2fa", gets the method before it."""
    made = snake_case(name)
    return made if re.match("[a-z]", made) else snake_case(f"{method}_{made or route.template}")


_WORDS: Final = "Write a docstring for its handler, or declare it with a description."

_FILE: Final = re.compile(
    r"\.(?:ico|txt|xml|css|js|mjs|map|png|jpe?g|gif|svg|webp|avif|woff2?|ttf|webmanifest)$", re.IGNORECASE
)

IN_ANOTHER_FORMAT: Final = "in another format"
_FORMAT: Final = re.compile(r"(?:\.(?:\w+|\{\w+\})|\{format\})/?$")
_TEST: Final = re.compile(r"(?:^|[/_-])(?:tests?|testing|debug)(?:[/_-]|$)", re.IGNORECASE)


def _redirects(handler: object) -> bool:
    """Return True if a handler does nothing but redirect, by its annotation or by all that it returns."""
    layers = list(layers_of(handler))
    notes = (getattr(layer, "__annotations__", {}).get("return") for layer in layers)
    if any(getattr(note, "__name__", str(note)).endswith("RedirectResponse") for note in notes if note is not None):
        return True
    code = getattr(layers[-1], "__code__", None)
    if code is None or "RedirectResponse" not in code.co_names or (definition := syntax_of(handler)) is None:
        return False
    returned = [node.value for node in ast.walk(definition) if isinstance(node, ast.Return)]
    return bool(returned) and all(
        isinstance(value, ast.Call) and ast.unparse(value.func).endswith("RedirectResponse") for value in returned
    )


def _is_in_mounts(route: Route, inclusion: Inclusion) -> bool:
    mounts = {mount.rstrip("/") for mount in inclusion.mounts}
    return not route.mount or route.template in inclusion.paths or route.mount.rstrip("/") in mounts


def _is_selected(route: Route, inclusion: Inclusion) -> bool:
    return inclusion.is_open or not set(inclusion.tags).isdisjoint(route.tags) or _is_on_path(route, inclusion.paths)


def _why_left_out(route: Route, method: str, inclusion: Inclusion, paths: Collection[str]) -> str:
    """Return why a route is left out, or "" if it is published. A route that is named is always published."""
    names = _names_of(route)
    if not names.isdisjoint(inclusion.exclude) or _is_on_path(route, inclusion.exclude):
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
    if not _is_in_mounts(route, inclusion):
        return f'it is in a mounted application; name that: mounts=["{route.mount}"]'
    if not _is_selected(route, inclusion):
        return "not selected by tags, paths or operations"
    if signs_in(route):
        return "it signs people in or out"
    if method != READING:
        return f'it writes; name it: operations=["{route.name}"]'
    if not (route.methods == (READING,) if route.reads is None else route.reads):
        return f'its GET may change something, since it takes other methods too; name it: operations=["{route.name}"]'
    if _FILE.search(route.template):
        return "it is a file"
    if inclusion.is_open and (route.redirects or any(map(_redirects, route.handlers))):
        return f'it redirects; name it: operations=["{route.name}"]'
    if inclusion.is_open and _TEST.search(f"{route.template}/{route.name}"):
        return f'its name looks like a test route; name it: operations=["{route.name}"]'
    plain = _FORMAT.sub("", route.template)
    if plain != route.template and not {plain, plain + "/"}.isdisjoint(paths):
        return f"it is {plain} {IN_ANOTHER_FORMAT}"
    return ""


def _is_on_path(route: Route, patterns: Sequence[str]) -> bool:
    return any(
        pattern in (route.template, route.path) or fnmatch.fnmatchcase(route.template, pattern) for pattern in patterns
    )


def _names_of(route: Route) -> frozenset[str]:
    return frozenset((route.name, *route.aliases))


def _refuse_unmatched(inclusion: Inclusion, routes: Sequence[Route]) -> None:
    tags = {tag for route in routes for tag in route.tags}
    names = {name for route in routes for name in _names_of(route)}
    listed = [route for route in routes if route.listed]
    route_names, paths = {route.name for route in listed}, {route.template for route in listed}
    mounts = {route.mount.rstrip("/") for route in routes if route.mount}

    def is_on_some(pattern: str) -> bool:
        return any(_is_on_path(route, [pattern]) for route in routes)

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
    for option, wanted, there in unmatched:
        listed_names = listing(there, wanted)
        what = "mounted application that shows its routes" if option == "mounts" else "route"
        raise DeclarationError(SUBJECT, f'{option}: "{wanted}" matches no {what}.', f"There are: {listed_names}.")
