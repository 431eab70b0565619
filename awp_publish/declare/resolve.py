"""Resolves declarations against the application's routes to frozen actions, agents and skills.

Every mistake is a DeclarationError that names the action and says what to do.
"""

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from string import Formatter
from typing import Any, Final, Literal, cast

from awp_publish.checks.engine import WARNING, Finding
from awp_publish.declare.discover.functions import Injector, UnusableFunction, describe_function
from awp_publish.declare.discover.openapi import describe_by_path, take_inputs, without_credentials
from awp_publish.declare.discover.routes import (
    FORM_TYPES,
    Mode,
    Operation,
    Route,
    answers_html,
    answers_json,
    identity_of,
    signs_in,
    wrappings_of,
)
from awp_publish.declare.settings import UNSET, ActionSettings, AgentSettings, read_rate
from awp_publish.model import (
    DEFAULT_OPERATION,
    KNOWN,
    PUBLIC,
    Action,
    ActionType,
    Agent,
    Effect,
    Function,
    Idempotency,
    LeftOut,
    Target,
    snake_case,
    title_of,
)
from awp_publish.problems import DeclarationError, end_sentence
from awp_publish.schema import UnusableSchema, compile_schema, member_names, object_schema_of, schema_of
from awp_publish.schema.handlers import docstring_of, first_paragraph, layers_of, name_of
from awp_publish.schema.options import listing
from awp_publish.schema.patterns import portable
from awp_publish.schema.redaction import answer_redactor
from awp_publish.schema.secrets import mark_secrets

# --- Finding the route of a declaration, by its handler or by method and path ---


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
            found = self._by_layer.get(identity_of(layer))
            if found:
                return found
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


def choose(subject: str, found: Sequence[Route], options: ActionSettings) -> tuple[Route, str]:
    """Return the one route and method of a declaration. Raises DeclarationError if several match, or none."""
    choices = [(route, method) for route in found for method in route.methods]
    if not choices:
        raise DeclarationError(subject, "its route has none of the methods GET, POST, PUT, PATCH and DELETE.")
    matching = [
        (route, method)
        for route, method in choices
        if options.path in (None, route.template, route.path) and options.method in (None, method)
    ]
    if len(matching) == 1:
        return matching[0]
    known = listing(_ways([route for route, _ in choices]))
    if not matching:
        raise DeclarationError(subject, f"method, path: match none of its routes ({known}).")
    raise DeclarationError(
        subject, f"is reachable in several ways ({known}).", "Choose one with path=... or method=..."
    )


# --- Defaults that are derived from a route ---

BACKGROUND_TIMEOUT: Final = 3600.0
"""Seconds that a background action may take unless its declaration says otherwise."""

EFFECTS: Final[Mapping[str, Effect]] = {
    "GET": "read",
    "PUT": "idempotent",
    "POST": "write",
    "PATCH": "write",
    "DELETE": "delete",
}
"""The semantics of the methods (RFC 9110 section 9.2)."""

_STYLES: Final = {"data-awas": ("data-awas-action", "data-awas-param"), "data-ai": ("data-ai-action", "data-ai-param")}
_REMEDY: Final = "Declare inputs=... and outputs=... (a model or a JSON Schema)."


# --- The route or function of an action ---


@dataclass(frozen=True, slots=True)
class Implementation:
    """The route, hidden route or function that an action calls, and its inputs and outputs."""

    operation: Operation
    target: Target | None = None
    function: Function | None = None
    entry: Target | None = None
    rehearse: Callable[[], object] | None = None
    checked_by_site: bool = False
    """True if the site itself checks all the credentials that the route reads."""
    is_deprecated: bool = False


def describe_route_action(
    subject: str, chosen: tuple[Route, str], options: ActionSettings, credential_headers: Collection[str] = ()
) -> Implementation:
    """Describe the route of an action; declared `inputs` and `outputs` take precedence. Raises DeclarationError.

    `credential_headers` are those from which the site's own authenticators read credentials.
    """
    route, method = chosen
    declared, handler = options.content_type, route.handlers[0] if route.handlers else None
    try:
        if route.describe is None:
            operation = describe_by_path(route.path, docstring_of(handler) if handler is not None else None)
            operation = replace(operation, answers_json=handler is not None and answers_json(handler) is True)
        else:
            try:
                operation = route.describe(method)
            except UnusableSchema:
                if options.inputs is UNSET or options.outputs is UNSET:
                    raise
                operation = describe_by_path(route.path)
        operation = without_credentials(operation, credential_headers)
        if options.inputs is not UNSET:
            if (own := _understand(options.inputs, chosen, "validation")) is not None:
                known = tuple(one for one in operation.parameters if one.location == "path")
                operation = replace(operation, parameters=(*known, *own.parameters), content_type=own.content_type)
            inputs = object_schema_of(options.inputs) if own is None else own.inputs
            operation = take_inputs(operation, inputs, method, route.path, declared)
        elif declared not in (None, operation.content_type):
            if operation.content_type is not None:
                wrong = f"content_type: its route takes {operation.content_type}."
                raise DeclarationError(subject, wrong, "Leave it out, or declare inputs too.")
            operation = replace(operation, content_type=declared)
        if options.outputs is not UNSET:
            own = _understand(options.outputs, chosen, "serialization")
            outputs = schema_of(options.outputs, "serialization") if own is None else own.outputs
            operation = replace(operation, outputs=outputs)
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    target = Target(method, route.template, operation.parameters, operation.content_type, route.arrival)
    rehearse = partial(route.rehearse, method) if route.rehearse is not None else None
    return Implementation(
        operation,
        target,
        rehearse=rehearse,
        checked_by_site=_site_checks_credentials(operation, credential_headers),
        is_deprecated=route.is_deprecated,
    )


def _site_checks_credentials(operation: Operation, credential_headers: Collection[str]) -> bool:
    places = operation.credentials
    return bool(places) and all(one.place == "header" and one.name in credential_headers for one in places)


def _understand(declared: object, chosen: tuple[Route, str], mode: Mode) -> Operation | None:
    """Describe a declared type that only the route's framework understands."""
    route, method = chosen
    return route.understand(declared, method, mode) if route.understand is not None and declared is not None else None


def describe_function_action(
    subject: str,
    function: Callable[..., object],
    options: ActionSettings,
    injector: Injector | None,
    path: str,
    credential_headers: Collection[str] = (),
) -> Implementation:
    """Describe a function without a route, with a hidden route at `path` if the framework has to resolve dependencies.

    Raises DeclarationError.
    """
    for name in ("method", "path", "content_type"):
        if getattr(options, name) is not None:
            raise DeclarationError(
                subject, f"{name}: no route leads to this function.", "Register one, or leave it out."
            )
    inputs = None if options.inputs is UNSET else options.inputs
    try:
        described = describe_function(function, inputs, Any if options.outputs is UNSET else options.outputs)
        if not described.injected and (injector is None or not injector.is_general):
            return Implementation(Operation(described.inputs, described.outputs), None, described.call)
        if injector is None:
            name, kind = next(iter(described.injected.items()))
            raise DeclarationError(
                subject,
                f"its parameter {name} ({kind}) is not an input that a caller can send, and nothing provides it: "
                "only a FastAPI application does that for functions without a route.",
                "Register a route for it, and declare that with @site.action; or ask current_caller() who calls.",
            )
        operation, arrival = injector.register(function, described, path)
        operation = without_credentials(operation, credential_headers)
    except UnusableFunction as error:
        raise DeclarationError(subject, f"{error}.") from error
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    entry = Target("POST", path, operation.parameters, operation.content_type, arrival)
    rehearse = partial(injector.rehearse, function, described, path)
    return Implementation(
        operation, None, None, entry, rehearse, _site_checks_credentials(operation, credential_headers)
    )


# --- The action ---

_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+")
_NOT_OF_THE_ANSWER: Final = re.compile(
    r"content-.*|access-control-.*|awp-.*|sec-.*|set-cookie|transfer-encoding|keep-alive|proxy-.*|www-authenticate"
    r"|cache-control|x-request-id|strict-transport-security|idempotent-replayed"
)
"""Headers about the transport, or of ours."""


def _answer_headers(description: str, operation: Operation) -> frozenset[bytes]:
    """Return the headers, in lower case, that the description or the framework's own document names."""
    named = {name.lower() for name in (*_HEADER.findall(description), *operation.answer_headers)}
    return frozenset(name.encode("latin-1", "replace") for name in named if not _NOT_OF_THE_ANSWER.fullmatch(name))


def make_action(
    subject: str,
    action_id: str,
    description: str,
    options: ActionSettings,
    implementation: Implementation,
    timeout: float,
    operation_name: str = DEFAULT_OPERATION,
    agent_id: str | None = None,
) -> Action:
    """Return the frozen action. What is not declared is derived from the route; `timeout` is the site's, in seconds.

    `operation_name` is the action's name as an operation of its agent; without `agent_id` the action is its own agent.

    Raises DeclarationError.
    """
    operation, target, awas = implementation.operation, implementation.target, options.awas
    inputs, secret_names = mark_secrets(operation.inputs)
    operation = replace(operation, inputs=inputs)
    answer_headers = _answer_headers(description, operation)
    description = first_paragraph(description) if options.description is None else description
    if implementation.is_deprecated and "deprecated" not in description.lower():
        description = f"Deprecated. {description}"
    effect: Effect = options.effect or (EFFECTS[target.method] if target is not None else "write")
    confirm = effect == "irreversible" if options.confirm is None else options.confirm
    auth_required = options.auth_required
    if auth_required is None:
        auth_required = bool(options.scopes) or operation.auth_required
    scopes = options.scopes
    if scopes is None:
        scopes = operation.scopes if auth_required else ()
    if effect == "irreversible" and confirm is False:
        raise DeclarationError(subject, "confirm: an irreversible action always needs confirmation.", "Leave it out.")
    if options.scopes and not auth_required:
        raise DeclarationError(subject, "scopes: need auth_required=True.", "Change one of the two.")
    if isinstance(confirm, str):
        _refuse_unknown_names(subject, "confirm", (name for _, name, _, _ in Formatter().parse(confirm)), operation)
    kind: ActionType = "state_change"
    if target is None:
        kind = "custom"
    elif effect == "read":
        kind = "data_retrieval"
    elif target.content_type in FORM_TYPES:
        kind = "form_submission"
    selectors = awas.get("selectors", {})
    if isinstance(selectors, str):
        of_action, of_input = _STYLES[selectors]
        names = member_names(operation.inputs)
        escaped = [name.replace("\\", "\\\\").replace("'", "\\'") for name in names]  # escaped as in a CSS string
        found = (f"[{of_action}='{action_id}'] [{of_input}='{name}']" for name in escaped)
        selectors = dict(zip(names, found, strict=True))
    elif selectors:
        _refuse_unknown_names(subject, "awas.selectors", selectors, operation)
    examples = tuple(options.examples)
    try:
        validate = compile_schema(operation.inputs, asserts_formats=True) if examples else None
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{error}.", _REMEDY) from error
    for index, example in enumerate(examples):
        for violation in validate(example) if validate else ():
            wrong = f"examples.{index}: {violation.pointer or 'it'} {violation.detail}"
            raise DeclarationError(subject, end_sentence(wrong))
    is_background = options.execution == "async"
    if is_background and answer_redactor(operation.outputs) is not None:
        refusal = "outputs: have a member with readOnce, which a background job would have to keep until it is fetched."
        raise DeclarationError(subject, refusal, 'Hand it out in an action with execution="sync".')
    return Action(
        id=action_id,
        name=options.name or title_of(action_id),
        description=description,
        inputs=operation.inputs,
        outputs=operation.outputs,
        agent_id=agent_id or action_id,
        operation=operation_name,
        target=target,
        answer_headers=answer_headers,
        secret_names=secret_names,
        function=implementation.function,
        entry=implementation.entry,
        rehearsal=implementation.rehearse()
        if implementation.rehearse is not None and (confirm is not False or is_background)
        else None,
        type=awas.get("type") or kind,
        effect=effect,
        tags=tuple(options.tags),
        examples=examples,
        selector=awas.get("selector"),
        selectors=selectors,
        result=awas.get("result"),
        auth_required=auth_required,
        route_authenticates=operation.auth_required and not implementation.checked_by_site,
        route_credentials=operation.credentials,
        security=operation.security,
        security_schemes=operation.schemes,
        scopes=tuple(scopes),
        rate_limit=read_rate(options.rate_limit) if options.rate_limit is not None else None,
        allow_agents=tuple(dict.fromkeys(options.allow_agents)),
        idempotency=cast(Idempotency | None, options.idempotency),
        needs_confirmation=confirm is not False,
        confirmation_summary=None if isinstance(confirm, bool) else confirm,
        preconditions=tuple(awas.get("preconditions", ())),
        depends_on=tuple(dict.fromkeys((*options.requires, *options.depends_on))),
        requires=tuple(dict.fromkeys(options.requires)),
        answers_json=operation.answers_json and "contentMediaType" not in operation.outputs,
        guards_route=options.guard_routes,
        preview_url=awas.get("preview_url"),
        dry_run=awas.get("dry_run", False),
        execution=options.execution,
        success_status=202 if is_background else operation.success_status,
        timeout=options.timeout or (BACKGROUND_TIMEOUT if is_background else timeout),
        max_body_bytes=options.max_body_bytes,
        operation_id=operation.operation_id,
        audience=options.audience,
        expose=None if options.expose is None else frozenset(options.expose),
        extensions=dict(options.extensions),
    )


def _refuse_unknown_names(subject: str, option: str, names: Iterable[str | None], operation: Operation) -> None:
    known = member_names(operation.inputs)
    for name in names:
        if name is not None and name not in known:
            listed = ", ".join(known) or "none"
            raise DeclarationError(subject, f'{option}: "{name}" is not an input.', f"There are: {listed}.")


# --- `site.include(...)`: publish existing routes without touching their handlers ---

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


@dataclass(slots=True)
class Included:
    """The actions and pages that the inclusions of a site publish, and the routes that they left out.

    `findings` are about all actions of the site.
    """

    actions: list[Action] = field(default_factory=list)
    pages: dict[str, Route] = field(default_factory=dict)
    left_out: dict[tuple[str, str], LeftOut] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def include_routes(
    inclusion: Inclusion,
    routes: Sequence[Route],
    declared: Sequence[Action],
    timeout: float,
    included: Included,
    credential_headers: Collection[str],
) -> list[Action]:
    """Return the actions of one inclusion, without routes that are `declared` already; pages are added to `included`.

    Raises DeclarationError.
    """
    shown = [route for route in routes if not route.is_opaque]
    if not shown:
        raise DeclarationError(SUBJECT, "this application shows no routes.", "State its actions with site.declare().")
    _refuse_unmatched(inclusion, shown)
    paths = {route.template for route in shown}
    taken = {(action.target.method, action.target.path) for action in declared if action.target}
    selected: list[tuple[Route, str]] = []
    for route in routes:
        for method in route.methods if not route.is_opaque else ("GET",):
            way = method, route.template
            why = "it is declared already" if way in taken else _why_left_out(route, method, inclusion, paths)
            if not why:
                selected.append((route, method))
            elif way not in taken:
                path = (
                    route.template.removesuffix("{anything}").rstrip("/") + "/*" if route.is_opaque else route.template
                )
                included.left_out.setdefault(way, LeftOut(method, path, route.name or path, why))
    is_open = not (inclusion.tags or inclusion.paths or inclusion.operations)  # may match nothing
    if not selected and not (is_open or taken or included.pages):
        mounts = listing({route.mount for route in shown if route.mount})
        further = (
            "" if mounts == "none" else f" Mounted applications are only taken where mounts=[...] names them: {mounts}."
        )
        raise DeclarationError(
            SUBJECT,
            "finds no reading route (GET).",
            "Name writing ones in operations=..., or use site.declare()." + ("" if mounts == "none" else further),
        )
    found: list[tuple[Route, str, Implementation]] = []
    for route, method in selected:
        subject = f"{method} {route.template} (included)"
        is_named = not _names_of(route).isdisjoint(inclusion.operations)
        may_be_page = method == READING and not is_named and route.is_page is not False
        if may_be_page and route.is_page:
            included.pages[route.template] = route
            continue
        implementation = describe_route_action(subject, (route, method), inclusion.options, credential_headers)
        outputs = implementation.operation.outputs
        kind = str(outputs.get("contentMediaType", ""))
        if may_be_page and ("html" in kind or (not outputs and answers_html(route.handlers[0]))):
            included.pages[route.template] = route
        else:
            found.append((route, method, implementation))
    return _assign_ids(found, inclusion, declared, timeout, included.findings)


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
    found: Sequence[tuple[Route, str, Implementation]],
    inclusion: Inclusion,
    declared: Sequence[Action],
    timeout: float,
    findings: list[Finding],
) -> list[Action]:
    """Give actions distinct ids: the name of the route, else its operation id, else its name and path."""
    taken = {action.id for action in declared}
    methods = Counter(id(route) for route, _, _ in found)
    spellings = [
        [
            snake_case(route.name if methods[id(route)] == 1 else f"{route.name}_{method}"),
            *(snake_case(alias) for alias in route.aliases[-1:] if methods[id(route)] == 1),
            snake_case(f"{route.name}{route.template}_{method}"),
        ]
        for route, method, _ in found
    ]
    ids = [names[0] for names in spellings]
    for round_ in (1, 2):
        count = Counter(ids)
        ids = [
            one if count[one] == 1 and one not in taken else names[min(round_, len(names) - 1)]
            for one, names in zip(ids, spellings, strict=True)
        ]
    included: dict[str, Action] = {}
    for (route, method, implementation), action_id in zip(found, ids, strict=True):
        subject = f'action "{action_id}" (included from {method} {route.template})'
        if not re.match("[a-z]", action_id):
            raise DeclarationError(subject, f'"{route.name}" yields no usable id.', "State it with site.declare().")
        docstring = next((text for text in map(docstring_of, route.handlers) if text), None)
        summary = implementation.operation.summary
        if summary == route.name.replace("_", " ").title():  # FastAPI makes it of the name: "Auth:Jwt.Login"
            summary = None
        described = implementation.operation.description or docstring or summary
        text = described or title_of(action_id)
        if not described:
            message = f'Action "{action_id}" ({method} {route.template}) has no description of its own, only "{text}".'
            findings.append(Finding(WARNING, "start-description", "", message, _WORDS, "site.include()"))
        action = make_action(subject, action_id, text, inclusion.options, implementation, timeout)
        if (other := included.setdefault(action_id, action)) is not action or action_id in taken:
            twice = " and ".join(f"{one.target.method} {one.target.path}" for one in (other, action) if one.target)
            raise DeclarationError(
                f'action "{action_id}"', f"stands for {twice}.", "State one with site.declare() and an id of its own."
            )
    return list(included.values())


_WORDS: Final = "Write a docstring for its view, or declare it with a description."

# --- Selecting routes ---

_FILE: Final = re.compile(
    r"\.(?:ico|txt|xml|css|js|mjs|map|png|jpe?g|gif|svg|webp|avif|woff2?|ttf|webmanifest)$", re.IGNORECASE
)
IN_ANOTHER_FORMAT: Final = "in another format"
_FORMAT: Final = re.compile(r"(?:\.(?:\w+|\{\w+\})|\{format\})/?$")


_TEST: Final = re.compile(r"(?:^|[/_-])(?:tests?|testing|debug)(?:[/_-]|$)", re.IGNORECASE)


def _redirects(handler: object) -> bool:
    """Return True if a handler is annotated to answer with a redirect."""
    notes = (getattr(layer, "__annotations__", {}).get("return") for layer in layers_of(handler))
    return any(getattr(note, "__name__", str(note)).endswith("RedirectResponse") for note in notes if note is not None)


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
        return "this application keeps its routes to itself; use site.declare()"
    if route.is_deprecated:
        return f'it is deprecated; name it: operations=["{route.name}"]'
    if not route.listed:
        return "it is hidden (include_in_schema=False)"
    mounts = {one.rstrip("/") for one in inclusion.mounts}
    if route.mount and route.template not in inclusion.paths and route.mount.rstrip("/") not in mounts:
        return f'it is in a mounted application; name that: mounts=["{route.mount}"]'
    is_open = not (inclusion.tags or inclusion.paths or inclusion.operations)
    if not (is_open or not set(inclusion.tags).isdisjoint(route.tags) or _is_on_path(route, inclusion.paths)):
        return "not selected by tags, paths or operations"
    if signs_in(route):
        return "it signs in or out"
    if method != READING:
        return f'it writes; name it: operations=["{route.name}"]'
    if not (route.methods == (READING,) if route.reads is None else route.reads):
        return f'its GET may change something, since it takes other methods too; name it: operations=["{route.name}"]'
    if _FILE.search(route.template):
        return "it is a file"
    if is_open and any(map(_redirects, route.handlers)):
        return f'it redirects; name it: operations=["{route.name}"]'
    if is_open and _TEST.search(f"{route.template}/{route.name}"):
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
    known, paths = {route.name for route in listed}, {route.template for route in listed}
    mounts = {route.mount.rstrip("/") for route in routes if route.mount}

    def is_on_some(pattern: str) -> bool:
        return any(_is_on_path(route, [pattern]) for route in routes)

    unmatched = [
        *(("tags", wanted, tags) for wanted in inclusion.tags if wanted not in tags),
        *(("operations", wanted, known) for wanted in inclusion.operations if wanted not in names),
        *(("paths", wanted, paths) for wanted in inclusion.paths if not is_on_some(wanted)),
        *(("exclude", one, known) for one in inclusion.exclude if one not in names and not is_on_some(one)),
        *(
            ("mounts", one, mounts)
            for one in inclusion.mounts
            # The path of Mount("/api", routes=[...]) is not an application, and its routes are considered anyway.
            if one.rstrip("/") not in mounts
            and not any(route.template.startswith(f"{one.rstrip('/')}/") for route in listed if not route.mount)
        ),
    ]
    for option, wanted, there in unmatched:
        known_names = listing(there, wanted)
        what = "mounted application that shows its routes" if option == "mounts" else "route"
        raise DeclarationError(SUBJECT, f'{option}: "{wanted}" matches no {what}.', f"There are: {known_names}.")


# --- The declarations of a site ---


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared action. `kind`: it must have a route, it may have one, or it names its path itself.

    `operation` is its name as an operation of `agent`; without them it is an agent of its own.
    """

    subject: str
    id: str
    kind: Literal["route", "either", "path"]
    function: Callable[..., object] | None
    options: ActionSettings
    operation: str | None = None
    agent: str | None = None
    of_plugins: Mapping[str, Any] = field(default_factory=dict)
    """Options that plug-ins read."""


def resolve(
    declarations: Sequence[Declaration],
    agents: Mapping[str, AgentSettings],
    inclusions: Sequence[Inclusion],
    routes: Sequence[Route],
    timeout: float,
    injector: Injector | None = None,
    entries: str = "",
    credential_headers: Collection[str] = (),
) -> tuple[tuple[Action, ...], tuple[Agent, ...], Included]:
    """Return all actions and agents of a site in the order of their declaration, and what was included.

    `injector` resolves dependencies of functions that their framework provides, through hidden routes below the path
    `entries`. `credential_headers` (in lower case) are those from which the site's own authenticators read credentials.
    Raises DeclarationError.
    """
    index, included = RouteIndex(routes), Included()
    actions = []
    for declaration in declarations:
        subject, options = declaration.subject, declaration.options
        implementation = _find_implementation(
            declaration, agents, index, injector, f"{entries}/{declaration.id}", credential_headers
        )
        # A class endpoint's docstring describes all of its methods, so the method's own comes first.
        descriptions = (docstring_of(declaration.function), implementation.operation.description)
        first, second = reversed(descriptions) if isinstance(declaration.function, type) else descriptions
        of_agent = agents[declaration.agent].description if declaration.agent is not None else None
        description = options.description or first or second or of_agent
        if not description:
            raise DeclarationError(subject, "description: is missing.", "Write a docstring or give description=...")
        named = (declaration.operation or DEFAULT_OPERATION, declaration.agent)
        action = make_action(subject, declaration.id, description, options, implementation, timeout, *named)
        actions.append(replace(action, options=declaration.of_plugins) if declaration.of_plugins else action)
    for inclusion in inclusions:
        found = include_routes(inclusion, routes, actions, timeout, included, credential_headers)
        actions += found
        included.actions += found
    for action in actions:
        if action.target is not None:
            included.left_out.pop((action.target.method, action.target.path), None)
    for path in included.pages:
        included.left_out.pop((READING, path), None)
    by_id = {action.id: action for action in actions}
    for action in actions:
        for needed in action.depends_on:
            if needed not in by_id:
                option = "requires" if needed in action.requires else "depends_on"
                raise DeclarationError(f'action "{action.id}"', f'{option}: there is no action "{needed}".')
        for needed in action.requires:
            other = by_id[needed]
            if other.audience not in (PUBLIC, action.audience) and (other.audience, action.audience != PUBLIC) != (
                KNOWN,
                True,
            ):
                wrong = f'requires: "{needed}" is for the audience "{other.audience}", which those for whom this is'
                raise DeclarationError(
                    f'action "{action.id}"',
                    f"{wrong} are not all of.",
                    f'Give it audience="{other.audience}" too, or leave the requirement out.',
                )
    try:
        TopologicalSorter({action.id: action.depends_on for action in actions}).prepare()
    except CycleError as error:
        cycle = " -> ".join(reversed(cast(Sequence[str], error.args[1])))
        raise DeclarationError("site", f"depends_on: actions wait for each other: {cycle}.") from error
    required = {needed for action in actions for needed in action.requires}
    pages = {route.template for route in routes if "GET" in route.methods and not route.is_opaque}
    known = []
    for action in map(partial(_with_portable_patterns, included.findings), actions):
        page = action.target.path if action.target is not None and action.target.path in pages else None
        is_required = action.id in required
        has_changed = page is not None or is_required
        known.append(replace(action, is_required=is_required, page=page) if has_changed else action)
    return tuple(known), tuple(_group(known, agents)), included


def _with_portable_patterns(findings: list[Finding], action: Action) -> Action:
    """Return an action whose patterns compile everywhere, and add a finding for each that had to be left out."""
    inputs, of_inputs = portable(action.inputs)
    outputs, of_outputs = portable(action.outputs)
    for kind, lost in (("input", of_inputs), ("output", of_outputs)):
        for words in lost:
            message = f'Action "{action.id}" is published without a pattern of its {kind}, {words}.'
            findings.append(Finding(WARNING, "start-pattern", "", message, _OTHER_PATTERN, "ECMA-262"))
    if inputs is action.inputs and outputs is action.outputs:
        return action
    return replace(action, inputs=inputs, outputs=outputs)


_OTHER_PATTERN: Final = "Write it in words of ECMA-262 too, or say it in the description; the site still refuses."

# --- One declaration ---


def _find_implementation(
    declaration: Declaration,
    agents: Mapping[str, AgentSettings],
    index: RouteIndex,
    injector: Injector | None,
    entry: str,
    credential_headers: Collection[str],
) -> Implementation:
    subject, options = declaration.subject, declaration.options
    if declaration.agent is None and declaration.id in agents:
        wrong = f'has the id of agent "{declaration.id}".'
        raise DeclarationError(subject, wrong, "Make it an operation, @agent.operation(...), or rename it.")
    if declaration.kind == "path":
        method, path = cast(str, options.method), cast(str, options.path)
        route = index.of_path(subject, method, path)
        return describe_route_action(subject, (route, method), options, credential_headers)
    found = index.of_handler(declaration.function)
    if found:
        return describe_route_action(subject, choose(subject, found, options), options, credential_headers)
    if declaration.kind == "route" or declaration.function is None:
        raise DeclarationError(
            subject,
            f"no route of this application leads to {name_of(declaration.function)}.",
            "Register it with a route, keep functools.wraps in decorators around it, or use @site.agent.",
        )
    return describe_function_action(subject, declaration.function, options, injector, entry, credential_headers)


# --- Agents ---


def _group(actions: Sequence[Action], agents: Mapping[str, AgentSettings]) -> Iterable[Agent]:
    grouped: dict[str, dict[str, Action]] = {}
    for action in actions:
        grouped.setdefault(action.agent_id, {})[action.operation] = action
    for unused in sorted(set(agents) - set(grouped)):
        raise DeclarationError(f'agent "{unused}"', "has no operation.", "Decorate a function with it.")
    for agent_id, operations in grouped.items():
        declared, first = agents.get(agent_id), operations.get(DEFAULT_OPERATION) or next(iter(operations.values()))
        if declared is not None and declared.description is None and len(operations) > 1:
            raise DeclarationError(f'agent "{agent_id}"', "description: is missing.", "It has several operations.")
        words = declared.metadata.get("operations", {}) if declared else {}
        if not isinstance(words, Mapping) or not all(isinstance(text, str) and text for text in words.values()):
            wrong = 'metadata: "operations" are texts by the name of an operation.'
            raise DeclarationError(f'agent "{agent_id}"', wrong, 'Write {"operations": {"default": "..."}}.')
        if unknown := sorted(words.keys() - operations.keys()):
            wrong = f'metadata: "operations" names "{unknown[0]}", which is none of its operations.'
            raise DeclarationError(f'agent "{agent_id}"', wrong, f"It has {', '.join(sorted(operations))}.")
        yield Agent(
            id=agent_id,
            name=first.name if declared is None else declared.name or title_of(agent_id),
            description=(declared and declared.description) or first.description,
            operations={name: action.id for name, action in operations.items()},
            version=declared.version if declared else None,
            capabilities=tuple(declared.capabilities) if declared else (),
            extensions=dict(declared.metadata) if declared else {},
        )


# --- Skills, read from a folder or a text (Agent Skills specification, agentskills.io) ---
#
# A skill is a SKILL.md, which begins with front matter, and the files beside it. No YAML library is needed: the front
# matter may have texts, numbers, lists and mappings, as such files do in practice, but no anchors and no tags.
