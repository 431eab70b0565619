"""`Site`: the object on which an owner declares a site. Decorators mark and collect; `freeze` makes the catalog.

site = Site(name="Bookshop", description="Find and order books.", url="https://books.example")

@app.get("/search")
@site.action("search_books")
async def search(q: str) -> SearchResults: ...
"""

import inspect
import logging
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import Enum
from functools import partial
from importlib.util import find_spec
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeVar, Unpack, cast
from urllib.parse import quote, unquote

from awp_publish.calls.authentication import (
    PROOF_ALGORITHMS,
    ApiKey,
    Authenticator,
    SessionUser,
    published_facts,
    read_authenticators,
)
from awp_publish.calls.call import CallListener, Principal
from awp_publish.calls.health import Liveness, count_workers
from awp_publish.calls.threads import run_in_thread
from awp_publish.declare.discover import Route, find_injector, find_openapi, find_routes
from awp_publish.declare.discover.functions import describe_function
from awp_publish.declare.discover.routes import docstring_of, is_bound_for_a_call, mark
from awp_publish.declare.resolve import (
    SUBJECT as INCLUDE,
    Declaration,
    Inclusion,
    RouteIndex,
    listing,
    name_of,
    read_skill,
    resolve,
)
from awp_publish.declare.settings import (
    ACTION,
    AGENT,
    PAGE,
    SITE,
    ActionSettings,
    AgentSettings,
    Given,
    PageSettings,
    SiteSettings,
    read_rate,
    takes,
    takes_id,
)
from awp_publish.model import (
    DEFAULT_OPERATION,
    KNOWN,
    PUBLIC,
    SAFE_IN_PATH,
    Action,
    Authentication,
    Catalog,
    Complete,
    Contact,
    Door,
    JsonObject,
    LeftOut,
    Locator,
    Page,
    Prompt,
    PromptArgument,
    SiteFacts,
    seconds_of,
    title_of,
)
from awp_publish.plugins.actions_json import document as actions_json
from awp_publish.plugins.approval.file import (
    Approval,
    compare,
    digests_of,
    path_of,
    read_approved,
    withhold,
    write_approved,
)
from awp_publish.plugins.events.log import JOB_ENDED, JOB_PAYLOAD, Events
from awp_publish.plugins.identity.botauth import WebBotAuth
from awp_publish.plugins.identity.jwt import JwtBearer
from awp_publish.plugins.traffic.record import TrafficRecord
from awp_publish.problems import DeclarationError, InvalidOutput
from awp_publish.schema import UnusableSchema, compile_schema, inline_definitions, write_schema
from awp_publish.schema.options import DURATION, ID, PATH, TEXTS, TOKEN, check
from awp_publish.schema.reading import resolved
from awp_publish.stores import ForeignStore, Store, open_store

logger: Final = logging.getLogger("awp_publish")

MODEL_KINDS: Final[
    list[Callable[["Site", type, Sequence[str], Sequence[str], list[Callable[[], Any]], bool], bool]]
] = []
"""Functions that declare the actions of a framework's model and return True, or return False for other classes.

See `Site.model`.
"""

# --- What `site.agent(...)` returns ---

_ACTION_OPTIONS: Final = frozenset(one.name for one in fields(ActionSettings))
_NAMING: Final = ("name", "description")
"""Options of an agent's decorator that also hold for its default operation, but not for named operations."""

F = TypeVar("F", bound=Callable[..., Any] | type)


class Declaring(Protocol):
    """The method of a site that declares an action; it returns a decorator that returns its function unchanged."""

    def __call__(
        self,
        subject: str,
        action_id: str,
        given: Given,
        kind: Literal["route", "either"],
        operation: str | None = None,
        agent: str | None = None,
        /,
    ) -> Callable[[F], F]: ...


class AgentHandle:
    """A declared agent, on which operations are declared."""

    def __init__(self, declaring: Declaring, agent_id: str, given: Given) -> None:
        """Take the agent's options as given; those that are options of an action hold for each operation."""
        self._declaring = declaring
        self._id = agent_id
        self._named = {name: value for name, value in given.items() if name in _NAMING}
        self._shared = {name: value for name, value in given.items() if name in _ACTION_OPTIONS.difference(_NAMING)}
        self._declare: Callable[[Callable[..., Any] | type], object] | None = None

    def __call__(self, function: F) -> F:
        """Declare `function` as the agent's default operation, with its name and description. Returns it unchanged."""
        if self._declare is None:
            self._declare = self.operation(DEFAULT_OPERATION, **self._named)
        self._declare(function)
        return function

    @takes_id(ActionSettings)
    def operation(self, operation_name: str, given: Given) -> Callable[[F], F]:
        """Declare a function (with or without a route) as the operation `operation_name` of this agent.

        The id of its action is `{agent}_{operation_name}`, or `{agent}` for the operation "default".
        """
        subject = f'operation "{operation_name}" of agent "{self._id}"'
        if not isinstance(operation_name, str):
            raise DeclarationError(f'agent "{self._id}"', 'an operation has a name: @agent.operation("find").')
        suffix = "" if operation_name == DEFAULT_OPERATION else "_" + operation_name.lower().replace("-", "_")
        check(subject, TOKEN, operation_name, "operation")
        return self._declaring(
            subject, self._id + suffix, {**self._shared, **given}, "either", operation_name, self._id
        )


# --- `site.page(...)` ---
# A page's route takes GET. A path with placeholders stands for several addresses.

_MAPPED: Final = PageSettings.__annotations__.keys() - {"title", "description", "complete"}
"""Options of a page that are published in the site's actions.json."""


@dataclass(frozen=True, slots=True)
class _DeclaredPage:
    subject: str
    path: str | None
    options: PageSettings
    function: Callable[..., object] | None = None


class DeclaredPages:
    """The pages that a site declares."""

    def __init__(self, refuse_when_frozen: Callable[[str], None]) -> None:
        self._declared: list[_DeclaredPage] = []
        self._refuse_when_frozen = refuse_when_frozen

    def declare(self, path: str | None, given: PageSettings) -> Callable[[F], F]:
        """Declare a page by its path, or by decorating its handler with the returned decorator.

        With a path there is one page; without, each decorated function is another. Raises DeclarationError.
        """
        if callable(path):
            raise DeclarationError("site.page", 'is called: write @site.page() or site.page("/path").')
        subject = f'page "{path}"' if path is not None else "site.page()"
        self._refuse_when_frozen(subject)
        options = check(subject, PAGE, given, known=PageSettings.__annotations__)
        declared = _DeclaredPage(subject, path, options)
        if path is not None:
            check(subject, PATH, path, "path")
            self._declared.append(declared)
        place = len(self._declared) - 1
        noted: list[object] = []

        def note(function: F) -> F:
            if noted and is_bound_for_a_call(function):
                return function
            self._refuse_when_frozen(subject)
            if not callable(getattr(function, "__func__", function)):
                raise DeclarationError(subject, f"decorates {function!r}, which is not a function.")
            noted.append(function)
            if path is not None:
                self._declared[place] = replace(declared, function=function)
            else:
                self._declared.append(replace(declared, subject=f"page {name_of(function)}", function=function))
            mark(function, f"page {len(self._declared)}")
            return function

        return note

    def resolve(
        self, routes: Sequence[Route], site_name: str, actions: Collection[str], included: Iterable[Route] = ()
    ) -> tuple[Page, ...]:
        """Return all pages in the order of their declaration, then those of `included` that are not declared.

        `actions` are the ids of the site's actions. Raises DeclarationError.
        """
        index, found = RouteIndex(routes if self._declared else ()), dict[str, Page]()
        for declared in self._declared:
            route, function, options = _route_of(declared, index), declared.function, declared.options
            # A class's docstring describes all of its methods, so the method's own comes first.
            behind = route.handlers[:1]
            handlers = (*behind, function) if isinstance(function, type) else (function, *behind)
            plain = _page_of(declared.path or route.template, handlers, site_name)
            page = replace(
                plain,
                title=options.get("title") or plain.title,
                description=options.get("description") or plain.description,
            )
            path = page.path
            if (complete := options.get("complete")) is not None:
                page = replace(page, complete=read_complete(declared.subject, complete, page.placeholders))
            if path in found:
                raise DeclarationError(declared.subject, f'the page "{path}" is declared twice.', "Leave one out.")
            if not _MAPPED.isdisjoint(options):
                page = _with_map(declared.subject, page, options, actions)
                if page.id in {other.id for other in found.values()}:
                    remedy = 'Give one of them an id of its own: site.page(..., id="...").'
                    raise DeclarationError(declared.subject, f'id: another page is called "{page.id}" too.', remedy)
            found[path] = page
        for route in included:
            page = _page_of(route.template, route.handlers, site_name)
            found.setdefault(page.path, page)
        return tuple(found.values())


def _page_of(template: str, handlers: Iterable[object], site_name: str) -> Page:
    """Make a page from its path and the docstrings and parameters of its handlers."""
    path = quote(template, safe=SAFE_IN_PATH + "{}")
    end = next((part for part in reversed(unquote(path).split("/")) if part and "{" not in part), "")
    described = next((text for text in map(docstring_of, filter(None, handlers)) if text), None)
    page = Page(path, title_of(end.replace("-", "_")) if end else site_name, described)
    if not page.placeholders:
        return page
    choices = dict[str, tuple[str, ...]]()
    for handler in handlers:
        if not inspect.isroutine(handler):
            continue
        with suppress(UnusableSchema):
            inputs = cast(Mapping[str, Any], describe_function(handler).inputs)
            known = {name: choices_of(inputs.get("properties", {}).get(name), inputs) for name in page.placeholders}
            choices |= {name: found for name, found in known.items() if found}
    return replace(page, choices=choices)


def _with_map(subject: str, page: Page, options: PageSettings, known_actions: Collection[str]) -> Page:
    """Return the page with its declarations for actions.json. Raises DeclarationError for names that are not
    declared.
    """
    # The default id is the last part of the path that is not a placeholder, or "home" for the root.
    parts = [re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in page.path.split("/") if "{" not in part]
    named = next((part for part in reversed(parts) if part), "home")
    page = replace(
        page,
        id=options.get("id") or (named if named[0].isalpha() else f"page_{named}"),
        guide=options.get("guide"),
        actions=tuple(options.get("actions", ())),
        locators=cast("dict[str, Locator]", dict(options.get("locators", {}))),
        states=dict(options.get("states", {})),
        transitions=dict(options.get("transitions", {})),
        projections={
            name: replace(one, schema=_schema_of(subject, f"projections.{name}.schema", one.schema))
            for name, one in options.get("projections", {}).items()
        },
        signals={
            name: replace(one, payload=_schema_of(subject, f"signals.{name}.payload", one.payload, closed=True))
            for name, one in options.get("signals", {}).items()
        },
        attachments=dict(options.get("attachments", {})),
        checks=dict(options.get("checks", {})),
    )
    moved = [(f"transitions.{name}.action", one.action) for name, one in page.transitions.items()]
    after = [(f"projections.{name}.after", action) for name, one in page.projections.items() for action in one.after]
    opened = [(f"attachments.{name}.opens", one.opens) for name, one in page.attachments.items()]
    for field, action in (*(("actions", action) for action in page.actions), *moved, *after, *opened):
        if action is not None and action not in known_actions:
            raise DeclarationError(
                subject, f'{field}: there is no action "{action}".', f"There are {listing(known_actions)}."
            )
    ends = [(f"transitions.{name}", end) for name, one in page.transitions.items() for end in (one.start, one.end)]
    shown = [(f"states.{name}.shows", one) for name, state in page.states.items() for one in state.shows]
    signals = [(f"transitions.{name}.signal", one.signal) for name, one in page.transitions.items() if one.signal]
    for kind, known, used in (
        ("state", page.states, ends),
        ("projection", page.projections, shown),
        ("signal", page.signals, signals),
    ):
        for field, name in used:
            if name not in known:
                raise DeclarationError(subject, f'{field}: the page has no {kind} "{name}".', f"Declare it in {kind}s.")
    return page


def _schema_of(subject: str, field: str, given: object, *, closed: bool = False) -> object:
    """Return the JSON Schema of a declared type or schema; a `closed` one describes an object without other members."""
    if given is None:
        return None
    try:
        if isinstance(given, Mapping):
            compile_schema(given)
            schema: Mapping[str, object] = given
        else:
            schema = inline_definitions(write_schema(given, "serialization"))
            # members that the type does not declare are not passed on to agents
            schema = {**schema, "additionalProperties": False} if closed and schema.get("type") == "object" else schema
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{field}: {error}.") from error
    if closed and schema.get("type", "object") != "object":
        raise DeclarationError(subject, f"{field}: the detail of an event is an object here.", "Give a model.")
    return schema


def _route_of(declared: _DeclaredPage, index: RouteIndex) -> Route:
    subject, path = declared.subject, declared.path
    if declared.function is None:
        assert path is not None
        return index.of_path(subject, "GET", path)
    found = index.of_handler(declared.function)
    readable = {route.template: route for route in reversed(found) if "GET" in route.methods}
    if path is not None:
        fitting = {template: route for template, route in readable.items() if route.takes("GET", path)}
    else:
        fitting = {template: route for template, route in readable.items() if "{" not in template} or readable
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    known = listing(route.template for route in found)
    if not found:
        wrong = "no route of this application leads to what it decorates."
        raise DeclarationError(subject, wrong, 'Register it with a route, or name its path: site.page("/path").')
    if fitting:
        raise DeclarationError(subject, f"is reachable in several ways ({known}).", 'Choose one: @site.page("/path").')
    if path is not None:
        wrong = f"path: none of the routes of what it decorates takes GET {path} ({known})."
        raise DeclarationError(subject, wrong, "Name one of them.")
    wrong = f"its route ({known}) does not take GET; a page is read."
    raise DeclarationError(subject, wrong, "Declare what it does as an action.")


# --- `complete=` ---
# A function that suggests values takes the text typed so far; or the argument's name, that text and, if it has a third
# parameter, the arguments that are already filled in. A function of a mapping does not take the name.


def read_complete(subject: str, given: object, names: Sequence[str]) -> Complete:
    """Read `complete=`: a function, or a mapping from arguments to functions. Raises DeclarationError."""
    remedy = "Give a function of what is typed so far, or a mapping of argument names to such functions."
    if not names:
        raise DeclarationError(subject, "complete: there are no arguments to be filled in.", "Leave it out.")
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
    arities = dict[str, int]()
    for name, function in by_name.items():
        if name not in names:
            raise DeclarationError(subject, f'complete: there is no argument "{name}".', f"There are {listing(names)}.")
        if not callable(function):
            raise DeclarationError(subject, f"complete: {function!r} is not a function.", remedy)
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise DeclarationError(subject, f"complete: {name_of(function)} cannot be read.", remedy) from error
        most = 2 if isinstance(given, Mapping) else 3
        kinds = [one.kind for one in parameters]
        positional = sum(
            kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds
        )
        arities[name] = most if inspect.Parameter.VAR_POSITIONAL in kinds else positional
        if not 1 <= arities[name] <= most:
            raise DeclarationError(subject, f"complete: {name_of(function)} takes {positional} arguments.", remedy)

    async def complete(argument: str, value: str, others: Mapping[str, str]) -> Sequence[str] | None:
        suggest: Any = by_name.get(argument)
        if suggest is None:
            return None
        values = (value, others) if isinstance(given, Mapping) or arities[argument] == 1 else (argument, value, others)
        taken: tuple[object, ...] = values[: arities[argument]]
        if inspect.iscoroutinefunction(suggest):
            answer = await suggest(*taken)
        else:
            answer = await run_in_thread(partial(suggest, *taken))
            if inspect.isawaitable(answer):
                answer = await answer
        if isinstance(answer, (str, bytes, Mapping)) or not isinstance(answer, Iterable):
            raise InvalidOutput("complete= returns a list of texts.")
        return [str(one.value if isinstance(one, Enum) else one) for one in islice(answer, MAX_SUGGESTIONS)]

    return complete


MAX_SUGGESTIONS: Final = 10_000
"""Suggestions that are counted at most."""


def choices_of(schema: object, root: Mapping[str, Any]) -> tuple[str, ...]:
    """Return all values that a schema allows, as texts, or nothing unless it lists them."""
    if not isinstance(schema, Mapping):
        return ()
    facts: Mapping[str, Any] = resolved(schema, root)
    if facts.get("type") == "boolean":
        return ("true", "false")
    values = facts.get("enum", [facts["const"]] if "const" in facts else None)
    if isinstance(values, list):
        return tuple(str(one) for one in values if one is not None and not isinstance(one, (dict, list)))
    parts = [one for one in facts.get("anyOf", ()) if isinstance(one, Mapping) and one.get("type") != "null"]
    found = [choices_of(one, root) for one in parts]
    return tuple(choice for one in found for choice in one) if found and all(found) else ()


# --- `@site.prompt(...)` ---
# A prompt is a plain function. A person fills in its parameters, each a word or a number. It returns a text, or a list
# of (role, text) pairs that begin a conversation, with the roles "user" and "assistant".

P = TypeVar("P", bound=Callable[..., Any])

_FILLABLE: Final = frozenset({"string", "integer", "number", "boolean", "null"})
_REMEDY: Final = "Annotate each parameter with str, int, float, bool, an Enum or a Literal."


@dataclass(frozen=True, slots=True)
class _DeclaredPrompt:
    subject: str
    id: str
    title: str | None
    description: str | None
    complete: object
    function: Callable[..., object]


class Prompts:
    """The prompts that a site declares."""

    def __init__(self) -> None:
        self._declared: dict[str, _DeclaredPrompt] = {}

    def declare(
        self, prompt_id: str, title: str | None, description: str | None, complete: object = None
    ) -> Callable[[P], P]:
        """Return a decorator that declares a function as a prompt and returns it unchanged. Raises DeclarationError."""
        if callable(prompt_id):
            raise DeclarationError("site.prompt", 'needs an id: write @site.prompt("its_id").')
        subject = f'prompt "{prompt_id}"'
        check(subject, ID, prompt_id, "id")
        for name, given in {"title": title, "description": description}.items():
            if given is not None and not (isinstance(given, str) and given.strip()):
                raise DeclarationError(subject, f"{name}: has to be a text that is not empty.")

        def mark(function: P) -> P:
            if not callable(function):
                raise DeclarationError(subject, f"decorates {function!r}, which is not a function.")
            if prompt_id in self._declared:
                raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
            self._declared[prompt_id] = _DeclaredPrompt(subject, prompt_id, title, description, complete, function)
            return function

        return mark

    def resolve(self, actions: Sequence[Declaration]) -> tuple[Prompt, ...]:
        """Return all prompts in the order of their declaration; some are `actions` too. Raises DeclarationError."""
        prompts: list[Prompt] = []
        for declared in self._declared.values():
            try:
                described = describe_function(declared.function)
            except UnusableSchema as error:
                raise DeclarationError(declared.subject, f"{error}.", _REMEDY) from error
            for name, annotation in described.injected.items():
                wrong = f"its parameter {name} ({annotation}) is nothing that a person fills in."
                raise DeclarationError(declared.subject, wrong, "Leave it out; ask current_caller() who calls.")
            inputs: Mapping[str, Any] = described.inputs
            arguments = []
            for name, schema in inputs.get("properties", {}).items():
                if not _is_fillable(schema, inputs):
                    raise DeclarationError(
                        declared.subject, f"its parameter {name} cannot be filled in as a text.", _REMEDY
                    )
                required = name in inputs.get("required", [])
                choices = choices_of(schema, inputs)
                arguments.append(PromptArgument(name, schema.get("description"), required, choices))
            complete = None
            if declared.complete is not None:
                complete = read_complete(declared.subject, declared.complete, [one.name for one in arguments])
            prompts.append(
                Prompt(
                    id=declared.id,
                    name=declared.title or title_of(declared.id),
                    description=declared.description or docstring_of(declared.function),
                    arguments=tuple(arguments),
                    write=described.call,
                    complete=complete,
                    action=next((one.id for one in actions if one.function is declared.function), None),
                )
            )
        return tuple(prompts)


def _is_fillable(schema: Mapping[str, Any], inputs: JsonObject) -> bool:
    """Return True if values of a schema can be parsed from text, because MCP sends prompt arguments as text only."""
    if "$ref" in schema:
        definitions: Any = inputs.get("$defs", {})
        return _is_fillable(definitions[schema["$ref"].rpartition("/")[2]], inputs)
    if "anyOf" in schema:
        return all(_is_fillable(one, inputs) for one in schema["anyOf"])
    return "enum" in schema or "const" in schema or schema.get("type") in _FILLABLE


SITE_OPTIONS: Final = frozenset(one.name for one in fields(SiteSettings))
AGENT_OPTIONS: Final = frozenset(one.name for one in fields(AgentSettings))

Listener = Callable[["Site"], None]

_OURS: Final = frozenset({actions_json.SITE_ACTION})
"""Actions that we declare ourselves, which need no approval."""


def _open_store(settings: SiteSettings) -> Store:
    given = settings.store
    if isinstance(given, str):
        return open_store(given, settings.namespace)
    if all(callable(getattr(given, verb, None)) for verb in ("run", "take", "close")):
        return ForeignStore(cast(Store, given))
    raise DeclarationError("site", f"store: {given!r} is not a store.", 'Write "sqlite:///agents.db" or "redis://...".')


def _facts_of(settings: SiteSettings, known: Sequence[Authenticator]) -> SiteFacts:
    """Return the facts that documents publish about a site. Raises DeclarationError for an entity without fields."""
    about, oauth = settings.about, settings.oauth
    schemas: dict[str, JsonObject] = {}
    for name, model in about.entities.items():
        if isinstance(model, type):
            try:
                schemas[name] = write_schema(model, "serialization")
            except UnusableSchema as error:
                raise DeclarationError("site", f"about.entities.{name}: {error}.") from error
            if "properties" not in schemas[name]:
                wrong = f"about.entities.{name}: {model.__name__} has no fields."
                raise DeclarationError("site", wrong, "Give a model.")
    authentication = None
    if known or oauth is not None:
        scheme, methods = published_facts(known)
        session = next((one for one in known if isinstance(one, SessionUser)), None)
        tokens = [one for one in known if isinstance(one, JwtBearer)]
        endpoints = {**(oauth.endpoints if oauth is not None else {}), **(session.endpoints if session else {})}
        authentication = Authentication(
            type="oauth2" if oauth is not None else scheme,
            methods=methods,
            token_expiry=oauth.token_expiry if oauth is not None else None,
            refresh_endpoint=oauth.refresh_endpoint if oauth is not None else None,
            endpoints=endpoints,
            authorization_servers=oauth.authorization_servers if oauth is not None else (),
            api_key_header=next((one.header for one in known if isinstance(one, ApiKey)), None),
            session_cookie=session.cookie if session is not None else None,
            audiences=tuple(audience for one in tokens for audience in one.audience),
            proof_algorithms=PROOF_ALGORITHMS if tokens else (),
            proof_required=bool(tokens) and all(one.dpop_required for one in tokens),
        )
    return SiteFacts(
        name=settings.name,
        description=settings.description,
        imports=dict(about.imports),
        provenance=dict(about.provenance),
        robots=settings.robots,
        security=about.security,
        version=about.version,
        contact=Contact(about.email, about.contact) if about.email or about.contact else None,
        authentication=authentication,
        rate_limit=read_rate(settings.rate_limit) if settings.rate_limit is not None else None,
        entities={name: given for name, given in about.entities.items() if isinstance(given, Mapping)},
        entity_schemas=schemas,
        errors=dict(settings.errors),
        hints=dict(about.hints),
        allowed_origins=tuple(settings.allow_origins),
        workflows=tuple(about.workflows),
        documentation=about.documentation,
        license=about.license,
        updated=cast(datetime | None, about.updated),
        extensions=dict(about.extensions),
    )


class Site:
    """A site that agents can use: facts about it, and the decorators that declare its actions, agents and pages.

    `url` is the public address and is never taken from a request. Of several addresses the first is the canonical one.
    Without `url` the environment variable AWP_PUBLISH_URL is read. Raises DeclarationError that names the option.
    """

    @takes(SiteSettings)
    def __init__(self, given: Given) -> None:
        self._given = given
        self.settings: SiteSettings = check("site", SITE, given, known=SITE_OPTIONS)
        self.store: Store = _open_store(self.settings)
        signed_here = (secrets.token_urlsafe(32),)  # enough while no other process has to verify the tokens
        self.keys: tuple[str, ...] = tuple(self.settings.secret_keys) or signed_here
        given_authenticators = self.settings.authenticate
        self.authenticators: tuple[Authenticator, ...] = (
            read_authenticators(given_authenticators) if given_authenticators is not None else ()
        )
        self.facts: SiteFacts = _facts_of(self.settings, self.authenticators)
        kept = self.settings.traffic
        self.traffic = TrafficRecord(lambda: self.store, kept.days) if kept is not None else None
        """The record of which callers make which calls, and their outcomes. None for a site that does not keep one."""
        self.liveness = Liveness(self.settings.paths.status)
        self._declarations: dict[str, Declaration] = {}
        self._agents: dict[str, AgentSettings] = {}
        self._inclusions: list[Inclusion] = []
        self._prompts = Prompts()
        self._skills: dict[str, tuple[str, object, str | None, Callable[..., object] | None]] = {}
        self.events = Events(lambda: self.store)
        """The site's declared events, and the log of those that have happened."""
        self._pages = DeclaredPages(self._refuse_when_frozen)
        self._catalogs: tuple[Catalog, ...] = ()
        self.included: tuple[str, ...] = ()
        """Ids of the actions and paths of the pages that `include` published. Known once the site is frozen."""
        self.left_out: tuple[LeftOut, ...] = ()
        """Routes that `include` did not publish, and the reasons. Known once the site is frozen."""
        self.announces_jobs = False
        """True if callers are notified when their background jobs end. Known once the site is frozen."""
        self._listeners: list[Listener] = []
        self.call_listeners: list[CallListener] = []
        self.change_listeners: list[Callable[[], None]] = []
        """Functions that notify agents that documents or lists which they have read may have changed."""

    def override(self, given: Given) -> None:
        """Replace options of the site with those from a framework's settings, before it is frozen.

        Meant for options of the deployment: url, store, doors, secret_keys. Raises DeclarationError.
        """
        self._refuse_when_frozen("site")
        self._given = {**self._given, **given}
        self.settings = check("site", SITE, self._given, known=SITE_OPTIONS)
        self.keys = tuple(self.settings.secret_keys) or self.keys
        if "store" in given:
            self.store = _open_store(self.settings)

    # --- Declaring ---

    @takes_id(ActionSettings)
    def action(self, action_id: str, given: Given) -> Callable[[F], F]:
        """Declare a route handler as an action, above or below the route decorator. Returns the function unchanged."""
        return self._declaring(f'action "{action_id}"', action_id, given, "route")

    @takes_id(AgentSettings)
    def agent(self, agent_id: str, given: Given) -> AgentHandle:
        """Declare an agent. Decorate a function with the result, or each of several with its `operation(name)`."""
        subject = f'agent "{agent_id}"'
        self._refuse_when_frozen(subject)
        _check_id("agent", subject, agent_id)
        if agent_id in self._agents:
            raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
        self._agents[agent_id] = check(subject, AGENT, given, known=AGENT_OPTIONS)
        return AgentHandle(self._declaring, agent_id, given)

    def model(
        self, model: type, /, *, fields: Sequence[str], search: Sequence[str] = (), read_only: bool = True
    ) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        """Declare actions that read a database model: one lists and searches rows, one gets a row by its id.

        `fields` are returned, `search` are searched. Decorate a function that returns the rows that agents may see;
        without a function they are those of the model's default manager. Models are Django's. With `read_only=False`
        there are also actions that create, update and delete a row.
        """
        subject = f"site.model({getattr(model, '__name__', model)})"
        self._refuse_when_frozen(subject)
        shown, searched = check(subject, TEXTS, fields, "fields"), check(subject, TEXTS, search, "search")
        if not isinstance(read_only, bool):
            raise DeclarationError(subject, f"read_only: is {read_only!r}.", "Write True or False.")
        rows: list[Callable[[], Any]] = []
        if not isinstance(model, type) or not any(
            declare(self, model, shown, searched, rows, not read_only) for declare in MODEL_KINDS
        ):
            remedy = 'Give a model of Django, with "awp_publish_django" in INSTALLED_APPS.'
            raise DeclarationError(subject, "is no model that is known here.", remedy)

        def decorate(function: Callable[[], Any]) -> Callable[[], Any]:
            rows[:] = [function]
            return function

        return decorate

    def prompt(
        self,
        prompt_id: str,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        complete: Callable[..., object] | Mapping[str, Callable[..., object]] | None = None,
    ) -> Callable[[F], F]:
        """Declare a prompt: a function that makes, from arguments a person fills in, a text for that person's own
        model.

        `complete` suggests values of its arguments: a function of the text typed so far, or a mapping of such
        functions.
        """
        self._refuse_when_frozen(f'prompt "{prompt_id}"')
        return self._prompts.declare(prompt_id, title, description, complete)

    def skill(
        self, skill_id: str, content: str | PathLike[str] | None = None, /, *, description: str | None = None
    ) -> Callable[[F], F]:
        """Declare a skill: instructions for a task on this site that agents read first. See docs/skills.md.

        `content` is a folder with a SKILL.md, or a text. The decorated function is returned unchanged; its docstring is
        the description of a text without one, or the text itself if there is no `content`.
        """
        if callable(skill_id):
            raise DeclarationError("site.skill", 'needs an id: write @site.skill("its_id", folder_or_text).')
        subject = f'skill "{skill_id}"'
        self._refuse_when_frozen(subject)
        check(subject, ID, skill_id, "id")
        if skill_id in self._skills:
            raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
        if not (content is None or isinstance(content, (str, PathLike))):
            raise DeclarationError(subject, f"{content!r} is neither a folder nor a text.", "Give one of them.")
        self._skills[skill_id] = (skill_id, content, description, None)

        def note(function: F) -> F:
            self._skills[skill_id] = (skill_id, content, description, function)
            return function

        return note

    def event(
        self, event_id: str, /, *, payload: object = None, description: str | None = None, audience: str = PUBLIC
    ) -> Callable[[F], F]:
        """Declare an event that agents can subscribe to. See docs/events.md.

        `payload` is the type of its data: a model, any other type, or a JSON Schema of an object. `audience` are those
        who may see the event, as for an action. The decorated class or function is returned unchanged: a class is the
        payload unless one is given, and a function's docstring is the description.
        """
        self._refuse_when_frozen(f'event "{event_id}"')
        note = self.events.declare(event_id, payload, description, audience)

        def decorate(decorated: F) -> F:
            note(decorated)
            return decorated

        return decorate

    async def emit(
        self, event_id: str, payload: object, /, *, audience: str | Principal | None = None, unique: str | None = None
    ) -> str:
        """Publish an event to agents. Returns its id as soon as it is recorded in the site's store.

        `audience` are those who see it: `"public"`, `"known"`, `"principal:ID"` or a Principal, `"scope:NAME"`; the
        default is the audience of the declaration. `unique` is the event's id at its source, such as a webhook's: of
        several events with the same id only the first is recorded. Raises DeclarationError, InvalidOutput if the
        payload does not match the declaration, and StoreUnavailable.
        """
        return await self.events.emit(event_id, payload, audience, unique=unique)

    def page(self, path: str | None = None, /, **options: Unpack[PageSettings]) -> Callable[[F], F]:
        """Declare a page: decorate its route handler, or pass its `path` if its handler cannot be decorated.

        The default title is made from the end of the path, the default description is the handler's docstring.
        """
        return self._pages.declare(path, options)

    @takes_id(ActionSettings)
    def declare(self, action_id: str, given: Given) -> None:
        """Declare an action by `method` and `path`, for handlers that cannot be decorated or are somebody else's
        code.
        """
        subject = f'action "{action_id}"'
        for needed in ("method", "path"):
            if needed not in given:
                raise DeclarationError(subject, f"{needed}: is required by site.declare().")
        self._add(self._read(subject, action_id, given, "path"), None)

    def include(
        self,
        *,
        tags: Sequence[str] = (),
        paths: Sequence[str] = (),
        operations: Sequence[str] = (),
        exclude: Sequence[str] = (),
        mounts: Sequence[str] = (),
        auth_required: bool | None = None,
        rate_limit: str | None = None,
    ) -> None:
        """Publish existing routes without touching their handlers.

        A route is published if it has one of `tags`, its path matches one of `paths` (`/books/*`), or its name or
        operation id is one of `operations`; if none of the three is given, every listed route is. Routes that may not
        only read (anything but GET) are published only if `operations` names them. Routes that return HTML become
        pages. Routes of mounted applications are considered if `mounts` has the application's path. Sign-in and
        sign-out, known admin panels, static files and other formats of a route have to be named to be published.
        `exclude` lists names and paths to leave out. `auth_required` and `rate_limit` hold for each action. Afterwards
        `left_out` lists the routes that were not published, with reasons.
        """
        self._refuse_when_frozen(INCLUDE)
        options = {"auth_required": auth_required, "rate_limit": rate_limit}
        inclusion = Inclusion(
            tags=check(INCLUDE, TEXTS, tags, "tags"),
            paths=check(INCLUDE, TEXTS, paths, "paths"),
            operations=check(INCLUDE, TEXTS, operations, "operations"),
            exclude=check(INCLUDE, TEXTS, exclude, "exclude"),
            mounts=check(INCLUDE, TEXTS, mounts, "mounts"),
            options=check(INCLUDE, ACTION, options),
        )
        self._inclusions.append(inclusion)

    def _declaring(
        self,
        subject: str,
        action_id: str,
        given: Given,
        kind: Literal["route", "either"],
        operation: str | None = None,
        agent: str | None = None,
        /,
    ) -> Callable[[F], F]:
        declaration = replace(self._read(subject, action_id, given, kind), operation=operation, agent=agent)

        def declare(function: F) -> F:
            if action_id not in self._declarations or not is_bound_for_a_call(function):
                self._add(declaration, function)
                mark(function, action_id)
            return function

        return declare

    def _read(
        self, subject: str, action_id: str, given: Given, kind: Literal["route", "either", "path"]
    ) -> Declaration:
        """Check a declaration's options as soon as it is written, before it has a function."""
        self._refuse_when_frozen(subject)
        _check_id("action", subject, action_id)
        return Declaration(subject, action_id, kind, None, check(subject, ACTION, given, known=_ACTION_OPTIONS))

    def _add(self, declaration: Declaration, function: Callable[..., object] | None) -> None:
        self._refuse_when_frozen(declaration.subject)
        if function is not None and not callable(getattr(function, "__func__", function)):
            raise DeclarationError(declaration.subject, f"decorates {function!r}, which is not a function.")
        if declaration.id in self._declarations:
            raise DeclarationError(
                declaration.subject,
                f'the id "{declaration.id}" is declared twice.',
                "Give one of the two another id.",
            )
        self._declarations[declaration.id] = replace(declaration, function=function)

    def _refuse_when_frozen(self, subject: str) -> None:
        if self._catalogs:
            raise DeclarationError(
                subject, "is declared after the site was published.", "Declare before the application starts."
            )

    def _check_whole(self, actions: Sequence[Action], doors: Iterable[Door]) -> None:
        """Check declarations against each other and the installation. Raises DeclarationError that names the action."""
        known = {action.id for action in actions}
        for workflow in self.facts.workflows:
            for step in workflow.steps:
                if step not in known:
                    wrong = f'about.workflows: "{workflow.id}" names the unknown action "{step}".'
                    raise DeclarationError("site", wrong)
        if not actions and any(door.protocol == "a2a" for door in doors):
            wrong = 'doors: "a2a" has nothing to call; an agent card names a skill.'  # A2A 1.0, AgentCard
            raise DeclarationError("site", wrong, "Declare an action, or leave it out.")
        by_routes = [action.id for action in actions if action.route_authenticates]
        if self.settings.list_only_allowed and by_routes and not self.authenticators:
            raise DeclarationError(
                "site",
                f"list_only_allowed: only the routes know who calls ({listing(by_routes)}), and they are not asked for "
                "a list.",
                "Give Site(authenticate=...), or leave it out.",
            )
        narrowed = [action.id for action in actions if action.audience != PUBLIC]
        if narrowed and not self.authenticators:
            logger.warning(
                "Nobody will find %s: they are not for everybody, and nothing here tells who calls. "
                "Give Site(authenticate=...).",
                listing(narrowed),
            )
        is_shared, has_a2a = self.store.is_shared, "a2a" in self.settings.doors
        # Each process would have a memory store of its own: one idempotency key would run a payment once in each of
        # them.
        kept = [action.id for action in actions if action.remembers or action.rate_limit or action.requires]
        has_events = bool(self.events.all())
        keeps = kept or self.facts.rate_limit or has_a2a or has_events
        if not is_shared and keeps and (workers := count_workers()) > 1:
            things = "idempotency keys, confirmations, receipts, jobs and counts of calls"
            what = [f"{things} of {', '.join(kept)}"] if kept else []
            what += ["counts of calls of all actions"] if self.facts.rate_limit and not kept else []
            what += ["the tasks of the A2A door"] if has_a2a else []
            what += ["what has happened"] if has_events else []
            raise DeclarationError(
                "site",
                f"{workers} workers serve it, and each would keep {' and '.join(what)} in a memory of its own.",
                'Give Site(store="sqlite:///agents.db"), or "redis://..." for several machines; or run one worker.',
            )
        traffic = self.settings.traffic
        if traffic is not None and isinstance(traffic.metrics, str) and not self.authenticators:
            wrong = f'traffic: nothing here tells who has the scope "{traffic.metrics}".'
            raise DeclarationError("site", wrong, "Give Site(authenticate=...), or metrics=True.")
        if traffic is not None and traffic.metrics and find_spec("prometheus_client") is None:
            wrong = "traffic: metrics need prometheus-client, which is not installed."
            raise DeclarationError("site", wrong, 'Run pip install "awp-publish[metrics]".')
        for action in actions:
            subject = f'action "{action.id}"'
            if action.auth_required and not (self.authenticators or action.route_authenticates):
                raise DeclarationError(
                    subject,
                    "auth_required: nothing here tells who calls.",
                    "Give Site(authenticate=...), or the route a security scheme.",
                )
            limits = [one for one in (self.facts.rate_limit, action.rate_limit) if one is not None and one.whom]
            if limits and not any(isinstance(one, WebBotAuth) for one in self.authenticators):
                wrong = f"rate_limit: nothing here knows {limits[0].whom}."
                raise DeclarationError(subject, wrong, "Give Site(authenticate=WebBotAuth(...)).")
            if action.allow_agents and not any(isinstance(one, WebBotAuth) for one in self.authenticators):
                raise DeclarationError(
                    subject, "allow_agents: nothing here knows agents.", "Give Site(authenticate=WebBotAuth(...))."
                )
            # Processes that share a store have to sign with the same keys; a store in memory works with any key.
            if (action.requires or action.needs_confirmation) and is_shared and not self.settings.secret_keys:
                raise DeclarationError(
                    subject,
                    "needs signed tokens, and the site has no secret_keys.",
                    'Give Site(secret_keys=["..."]) one that all processes share, from the environment say.',
                )
            if not action.is_background or self.settings.jobs.queue is None:
                continue
            if not is_shared:
                raise DeclarationError(
                    subject,
                    "runs in another process, which cannot see a store in memory.",
                    'Give Site(store="redis://...").',
                )
            if find_spec("taskiq") is None or find_spec("taskiq_redis") is None:
                raise DeclarationError(
                    subject, "needs taskiq, which is not installed.", 'Install it: pip install "awp-publish[jobs]".'
                )

    # --- Freezing ---

    def freeze(
        self,
        app: object = None,
        doors: Sequence[Door] = (),
        documents: Iterable[str] = (),
        left_out: Iterable[str] = (),
    ) -> Catalog:
        """Resolve every declaration against the routes of `app` and make the catalog, once. Raises DeclarationError.

        `doors` are the live endpoints and `documents` the paths that the publisher serves; `left_out` are the protocols
        that it does not serve. `AgentPublisher` calls it at start-up.
        """
        if not self._catalogs:
            if "bridge" in self.settings.doors:
                # `actions.site` is declared as an action so that the same gates and doors apply to it.
                words = "List, call and read what the map of this site (actions.json) has for the page at hand."
                tool = self.agent(actions_json.SITE_ACTION, name="Pages of this site", description=words)

                @tool.operation("default", inputs=actions_json.SITE_INPUTS, outputs={"type": "object"}, effect="write")
                def at_the_bridge(
                    mode: str,
                    action: str = "",
                    arguments: object = None,
                    projection_name: str = "",
                    summary_name: str = "",
                    max_bytes: int = 0,
                    target_runtime_id: str = "",
                ) -> dict[str, object]:
                    raise AssertionError("The bridge carries it out.")

            declared = list(self._declarations.values())
            routes = find_routes(app)
            actions, agents, included = resolve(
                declared,
                self._agents,
                self._inclusions,
                routes,
                self.settings.timeout,
                find_injector(app),
                self.settings.paths.actions,
                {one.header.lower() for one in self.authenticators if isinstance(one, ApiKey)},
            )
            if self.settings.approval:
                path = path_of(self.settings.approval)
                actions = withhold(actions, path, _OURS)
                if waiting := [action.id for action in actions if not action.is_approved]:
                    logger.warning(
                        "%d actions are hidden, because %s does not approve them as they are (%s); "
                        "awp-publish approve module:app says what is new or has changed.",
                        len(waiting),
                        path,
                        listing(waiting),
                    )
            self._check_whole(actions, doors)
            # Known callers are notified when their background jobs end.
            has_jobs = self.authenticators and any(action.is_background for action in actions)
            if has_jobs and JOB_ENDED not in (one.id for one in self.events.all()):
                words = "A background job of yours has ended. Its result is at poll_endpoint."
                self.events.declare(JOB_ENDED, JOB_PAYLOAD, words, KNOWN)
                self.announces_jobs = True
            catalog = Catalog(
                url=self.settings.urls[0],
                site=self.facts,
                actions=actions,
                agents=agents,
                prompts=self._prompts.resolve(declared),
                skills=tuple(read_skill(*declared) for declared in self._skills.values()),
                events=self.events.all(),
                pages=self._pages.resolve(
                    routes, self.facts.name, {action.id for action in actions}, included.pages.values()
                ),
                paths=self.settings.paths,
                doors=tuple(doors),
                documents=frozenset(documents),
                left_out=frozenset(left_out),
                openapi=find_openapi(app),
            )
            pages = tuple(included.pages)
            self.left_out = tuple(included.left_out.values())
            self.included = (*(action.id for action in included.actions), *pages)
            if self._inclusions:
                taken = f"{len(included.actions)} actions ({listing(action.id for action in included.actions)})"
                logger.info(
                    "site.include() took %s and %d pages (%s), and left %d routes out; "
                    "awp-publish show --included module:app says which and why.",
                    taken,
                    len(pages),
                    listing(pages),
                    len(self.left_out),
                )
            self._catalogs = self._with_status(catalog)
        return self._catalogs[0]

    def approvals(self) -> tuple[Approval, ...]:
        """Compare each action with the approvals in the file: approved, new, changed or gone.

        Raises DeclarationError for a site without `approval`, before the site is frozen, and for a damaged file.
        """
        own = [action for action in self.catalog.actions if action.id not in _OURS]
        return compare(own, read_approved(self._approval_file()))

    def approve(self, *actions: str) -> Path:
        """Approve actions as they are now and drop approvals of actions that are gone. Returns the file's path.

        Takes effect when the site starts again. Raises DeclarationError as `approvals` does, and for an unknown action.
        """
        path, own = self._approval_file(), {one.id: one for one in self.catalog.actions if one.id not in _OURS}
        for name in actions:
            if name not in own:
                raise DeclarationError(f'action "{name}"', "is not declared.", f"There are: {listing(own, name)}.")
        kept = {name: one for name, one in read_approved(path).items() if name in own}
        write_approved(path, {**kept, **{name: digests_of(own[name]) for name in actions}})
        return path

    def _approval_file(self) -> Path:
        if not self.settings.approval:
            remedy = "Write Site(approval=True)."
            raise DeclarationError("site", "publishes every action without approval.", remedy)
        return path_of(self.settings.approval)

    @property
    def is_frozen(self) -> bool:
        """Return True if the site has been published, so that nothing more can be declared."""
        return bool(self._catalogs)

    @property
    def catalog(self) -> Catalog:
        """The catalog for the canonical address. Raises DeclarationError before the site is frozen."""
        return self.catalogs[0]

    @property
    def catalogs(self) -> tuple[Catalog, ...]:
        """One catalog for each address of the site."""
        if not self._catalogs:
            raise DeclarationError("site", "is not frozen yet.", "It is when the application has started.")
        return self._catalogs

    # --- Status ---

    def set_status(self, *, operational: bool | None = None, degraded_actions: Sequence[str] | None = None) -> None:
        """Set the site's status (agent.json section 13); what is not given stays as it is. `refresh()` publishes it."""
        self.liveness.set_status(operational, degraded_actions)
        for tell in self.change_listeners:
            tell()

    def status(self, *actions: str, every: str = "30s") -> Callable[[F], F]:
        """Declare a probe: a function that checks whether `actions` work, or the whole site if none is given.

        It returns False or raises if they do not. All probes run together, at the shortest of their intervals; their
        results are published, and calls of an action that does not work are refused. Returns the function unchanged.
        """
        if actions and not isinstance(actions[0], str):
            raise DeclarationError("site.status", 'is called: write @site.status("action_id") or @site.status().')
        self._refuse_when_frozen("site.status()")
        interval = float(seconds_of(check("site.status()", DURATION, every, "every")))

        def mark(function: F) -> F:
            self.liveness.add(function, actions, interval)
            return function

        return mark

    async def probe(self) -> None:
        """Run all probes now, and publish the results if they have changed."""
        if await self.liveness.run_probes():
            self.refresh()

    def refresh(self) -> None:
        """Publish the documents again with the present status. Each request sees either all old documents or all new
        ones.

        Affects this process only: each worker publishes its own. Raises DeclarationError for unknown degraded actions.
        """
        self._catalogs = self._with_status(self.catalog)
        for listener in self._listeners:
            listener(self)
        for tell in self.change_listeners:
            tell()

    def on_refresh(self, listener: Listener) -> None:
        """Call `listener(site)` after each refresh. Publishers use it to prepare their documents again."""
        self._listeners.append(listener)

    def on_call(self, listener: CallListener) -> None:
        """Call `listener(facts)` after each call, with the facts that are also recorded about it. It must not block."""
        self.call_listeners.append(listener)

    def _with_status(self, catalog: Catalog) -> tuple[Catalog, ...]:
        self.liveness.check(catalog.actions)
        return tuple(replace(catalog, url=url, status=self.liveness.status) for url in self.settings.urls)


def _check_id(kind: str, subject: str, given: object) -> None:
    if callable(given):
        raise DeclarationError(f"site.{kind}", f'needs an id: write @site.{kind}("its_id").')
    check(subject, ID, given, "id")
