"""`Site`: what a site owner declares on. Decorators mark and collect; `freeze` makes the catalog of it.

site = Site(name="Bookshop", description="Find and order books.", url="https://books.example")

@app.get("/search")
@site.action("search_books")
async def search(q: str) -> SearchResults: ...
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol, TypeVar, Unpack, cast
from urllib.parse import quote, unquote, urlsplit

from awp_publish.discover import Route, find_openapi, find_routes
from awp_publish.discover.functions import describe_function
from awp_publish.discover.routes import docstring_of, is_bound_for_a_call, mark
from awp_publish.guarding import check_guarding, published_authentication, read_guarding
from awp_publish.health import Liveness
from awp_publish.model import (
    DEFAULT_OPERATION,
    Catalog,
    Door,
    JsonObject,
    Locator,
    Page,
    Paths,
    Prompt,
    PromptArgument,
    RateLimit,
    SiteFacts,
)
from awp_publish.policy.call import CallListener
from awp_publish.problems import DeclarationError
from awp_publish.resolve import (
    SUBJECT as INCLUDE,
    AgentDeclaration,
    Declaration,
    Inclusion,
    RouteIndex,
    check_names,
    check_skills,
    listing,
    resolve,
    title_of,
)
from awp_publish.schema import UnusableSchema, write_schema
from awp_publish.settings import (
    NAMES,
    ActionOptions,
    AgentOptions,
    CallLimits,
    Offering,
    PageOptions,
    SiteOptions,
    check,
    check_action,
    check_agent,
    check_identifier,
    check_page,
    check_site,
    read_limits,
    read_offering,
    read_site_facts,
    read_urls,
)

# --- What `site.agent(...)` returns ---

_ACTION_OPTIONS: Final = frozenset(ActionOptions.__annotations__)
_NAMING: Final = ("name", "description")
"""What an agent's decorator gives to its one operation, and to none of several."""

F = TypeVar("F", bound=Callable[..., Any] | type)


class Declaring(Protocol):
    """How a site declares an action: a decorator that returns what it is given."""

    def __call__(
        self, subject: str, action_id: str, options: ActionOptions, kind: Literal["route", "either"], /
    ) -> Callable[[F], F]: ...


class AgentHandle:
    """One declared agent, whose operations are still to be declared."""

    def __init__(self, declaring: Declaring, agent_id: str, options: AgentOptions) -> None:
        """`options` are as they were given: those of an action hold for each operation."""
        self._declaring = declaring
        self._id = agent_id
        given = cast(ActionOptions, {key: value for key, value in options.items() if key in _ACTION_OPTIONS})
        self._named: ActionOptions = cast(ActionOptions, {key: given[key] for key in _NAMING if key in given})
        self._shared: ActionOptions = cast(
            ActionOptions, {key: value for key, value in given.items() if key not in _NAMING}
        )
        self._declare: Callable[[Callable[..., Any] | type], object] | None = None

    def __call__(self, function: F) -> F:
        """Declare `function` as the agent's default operation, under its name and description. Returns it unchanged."""
        if self._declare is None:
            self._declare = self.operation(DEFAULT_OPERATION, **self._named)
        self._declare(function)
        return function

    def operation(self, name: str, /, **options: Unpack[ActionOptions]) -> Callable[[F], F]:
        """Declare a function (with or without a route) as the operation `name` of this agent.

        The action behind it is called `{agent}_{name}`, and just `{agent}` for "default".
        """
        subject = f'operation "{name}" of agent "{self._id}"'
        if not isinstance(name, str):
            raise DeclarationError(f'agent "{self._id}"', 'an operation has a name: @agent.operation("find").')
        suffix = "" if name == DEFAULT_OPERATION else "_" + name.lower().replace("-", "_")
        merged: ActionOptions = {**self._shared, **options, "agent": self._id, "operation": name}
        return self._declaring(subject, self._id + suffix, merged, "either")


# --- `site.page(...)` ---
# A page's route takes GET. With placeholders in its path it is a page of several addresses.

_PLAIN: Final = "/%:@!$&'()*+,;=~"
"""Characters of a path that stay as they are."""

_MAPPED: Final = PageOptions.__annotations__.keys() - {"title", "description"}
"""Options of a page that make it a part of the site's actions.json."""


@dataclass(frozen=True, slots=True)
class _Declared:
    subject: str
    path: str | None
    options: PageOptions
    function: Callable[..., object] | None = None


class DeclaredPages:
    """The pages of one site, as they are declared."""

    def __init__(self, refuse_when_frozen: Callable[[str], None]) -> None:
        self._declared: list[_Declared] = []
        self._refuse_when_frozen = refuse_when_frozen

    def declare(self, path: str | None, options: PageOptions) -> Callable[[F], F]:
        """Note a page by its path, or by the handlers that are decorated with what this returns.

        Raises DeclarationError.
        """
        if callable(path):
            raise DeclarationError("site.page", 'is called: write @site.page() or site.page("/path").')
        subject = f'page "{path}"' if path is not None else "site.page()"
        self._refuse_when_frozen(subject)
        declared = _Declared(subject, path, check_page(subject, path, options))
        if path is not None:
            self._declared.append(declared)
        return self._noting(declared)

    def _noting(self, declared: _Declared) -> Callable[[F], F]:
        place = len(self._declared) - 1 if declared.path is not None else None
        noted: list[object] = []

        def note(function: F) -> F:
            if noted and is_bound_for_a_call(function):
                return function
            self._refuse_when_frozen(declared.subject)
            noted.append(function)
            self._note(declared, function, place)
            return function

        return note

    def _note(self, declared: _Declared, function: Callable[..., object], place: int | None) -> None:
        """A page with a path is one page; without, each function that is decorated is another."""
        if not callable(getattr(function, "__func__", function)):
            raise DeclarationError(declared.subject, f"decorates {function!r}, which is not a function.")
        subject = declared.subject if place is not None else f"page {_name_of(function)}"
        found = replace(declared, subject=subject, function=function)
        if place is None:
            self._declared.append(found)
        else:
            self._declared[place] = found
        mark(function, f"page {len(self._declared)}")

    def resolve(self, routes: Sequence[Route], site_name: str, actions: Collection[str]) -> tuple[Page, ...]:
        """All pages, in the order of their declaration; `actions` are the ids there are. Raises DeclarationError."""
        if not self._declared:
            return ()
        index, found = RouteIndex(routes), dict[str, Page]()
        for declared in self._declared:
            page = _resolve(declared, index, site_name)
            if page.path in found:
                raise DeclarationError(declared.subject, f'the page "{page.path}" is declared twice.', "Leave one out.")
            if page.id and page.id in {other.id for other in found.values()}:
                remedy = 'Give one of them an id of its own: site.page(..., id="...").'
                raise DeclarationError(declared.subject, f'id: another page is called "{page.id}" too.', remedy)
            _check_names(declared.subject, page, actions)
            found[page.path] = page
        return tuple(found.values())


def _resolve(declared: _Declared, index: RouteIndex, site_name: str) -> Page:
    options, route = declared.options, _route_of(declared, index)
    path = quote(declared.path or route.template, safe=_PLAIN + "{}")
    title = options.get("title") or _title_of(unquote(path), site_name)
    page = Page(path, title, options.get("description") or _described(declared, route))
    if not any(name in options for name in _MAPPED):
        return page
    return replace(
        page,
        id=options.get("id") or _id_of(path),
        guide=options.get("guide"),
        actions=tuple(options.get("actions", ())),
        locators=cast("dict[str, Locator]", dict(options.get("locators", {}))),
        states=dict(options.get("states", {})),
        transitions=dict(options.get("transitions", {})),
        projections={
            name: replace(one, schema=_schema_of(declared.subject, f"projections.{name}.schema", one.schema))
            for name, one in options.get("projections", {}).items()
        },
        signals={
            name: replace(
                one, payload=_schema_of(declared.subject, f"signals.{name}.payload", one.payload, closed=True)
            )
            for name, one in options.get("signals", {}).items()
        },
        attachments=dict(options.get("attachments", {})),
        checks=dict(options.get("checks", {})),
    )


def _id_of(path: str) -> str:
    """The last part of a path that is no placeholder, as an id; "home" for the top of the site."""
    parts = [re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in path.split("/") if "{" not in part]
    named = next((part for part in reversed(parts) if part), "home")
    return named if named[0].isalpha() else f"page_{named}"


def _schema_of(subject: str, field: str, given: object, *, closed: bool = False) -> object:
    """Return the JSON Schema of what a page gives; a schema stays as it is."""
    if given is None or isinstance(given, Mapping):
        return given
    try:
        schema = write_schema(given, "serialization")
        # what stands outside of a declared type is not passed on to agents
        return {**schema, "additionalProperties": False} if closed and schema.get("type") == "object" else schema
    except UnusableSchema as error:
        raise DeclarationError(subject, f"{field}: {error}.") from error


def _check_names(subject: str, page: Page, actions: Collection[str]) -> None:
    """Refuse names on a page that stand for nothing."""
    moved = [(f"transitions.{name}.action", one.action) for name, one in page.transitions.items()]
    after = [(f"projections.{name}.after", action) for name, one in page.projections.items() for action in one.after]
    opened = [(f"attachments.{name}.opens", one.opens) for name, one in page.attachments.items()]
    for field, action in (*(("actions", action) for action in page.actions), *moved, *after, *opened):
        if action is not None and action not in actions:
            raise DeclarationError(
                subject, f'{field}: there is no action "{action}".', f"There are {listing(actions)}."
            )
    ends = [(f"transitions.{name}", end) for name, one in page.transitions.items() for end in (one.start, one.end)]
    shown = [(f"states.{name}.shows", one) for name, state in page.states.items() for one in state.shows]
    signals = [(f"transitions.{name}.signal", one.signal) for name, one in page.transitions.items() if one.signal]
    for kind, known, named in (
        ("state", page.states, ends),
        ("projection", page.projections, shown),
        ("signal", page.signals, signals),
    ):
        for field, name in named:
            if name not in known:
                raise DeclarationError(subject, f'{field}: the page has no {kind} "{name}".', f"Declare it in {kind}s.")


def _described(declared: _Declared, route: Route) -> str | None:
    """What the handler says of itself. A class's docstring is about all of its methods, so the method's comes first."""
    function, behind = declared.function, route.handlers[:1]
    handlers = (*behind, function) if isinstance(function, type) else (function, *behind)
    return next((text for text in map(docstring_of, filter(None, handlers)) if text), None)


def _route_of(declared: _Declared, index: RouteIndex) -> Route:
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
    if len(fitting) != 1:
        raise DeclarationError(subject, *_wrong(found, list(fitting), path))
    return next(iter(fitting.values()))


def _wrong(found: Sequence[Route], fitting: Sequence[str], path: str | None) -> tuple[str, str]:
    """Why a handler stands for no page, or for several; and what to do."""
    if not found:
        remedy = 'Register it with a route, or name its path: site.page("/path").'
        return "no route of this application leads to what it decorates.", remedy
    known = listing(route.template for route in found)
    if fitting:
        return f"is reachable in several ways ({known}).", 'Choose one: @site.page("/path").'
    if path is not None:
        return f"path: none of the routes of what it decorates takes GET {path} ({known}).", "Name one of them."
    return f"its route ({known}) does not take GET; a page is read.", "Declare what it does as an action."


def _title_of(path: str, site_name: str) -> str:
    """The end of the path in words, placeholders left out; the site's own name for what stands at its top."""
    end = next((part for part in reversed(path.split("/")) if part and "{" not in part), "")
    return title_of(end.replace("-", "_")) if end else site_name


def _name_of(function: object) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', '?')}.{getattr(named, '__qualname__', '?')}"


# --- `@site.prompt(...)` ---
# A prompt is a plain function. Its parameters are what a person fills in, each a word or a number. It returns a text,
# or a list of (role, text) pairs for a conversation that has begun, in which a role is "user" or "assistant".

P = TypeVar("P", bound=Callable[..., Any])

_FILLABLE: Final = frozenset({"string", "integer", "number", "boolean", "null"})
_REMEDY: Final = "Annotate each parameter with str, int, float, bool, an Enum or a Literal."


@dataclass(frozen=True, slots=True)
class _DeclaredPrompt:
    subject: str
    id: str
    title: str | None
    description: str | None
    function: Callable[..., object]


class Prompts:
    """The prompts of one site, as they are declared."""

    def __init__(self) -> None:
        self._declared: dict[str, _DeclaredPrompt] = {}

    def declare(self, prompt_id: str, title: str | None, description: str | None) -> Callable[[P], P]:
        """A decorator that notes a function, and returns it unchanged. Raises DeclarationError."""
        if callable(prompt_id):
            raise DeclarationError("site.prompt", 'needs an id: write @site.prompt("its_id").')
        subject = f'prompt "{prompt_id}"'
        check_identifier(subject, prompt_id)
        for name, given in {"title": title, "description": description}.items():
            if given is not None and not (isinstance(given, str) and given.strip()):
                raise DeclarationError(subject, f"{name}: has to be a text that is not empty.")

        def mark(function: P) -> P:
            self._add(_DeclaredPrompt(subject, prompt_id, title, description, function))
            return function

        return mark

    def _add(self, declared: _DeclaredPrompt) -> None:
        if not callable(declared.function):
            raise DeclarationError(declared.subject, f"decorates {declared.function!r}, which is not a function.")
        if declared.id in self._declared:
            raise DeclarationError(declared.subject, "is declared twice.", "Give one of the two another id.")
        self._declared[declared.id] = declared

    def resolve(self) -> tuple[Prompt, ...]:
        """All prompts, in the order of their declaration. Raises DeclarationError."""
        return tuple(_resolve_prompt(declared) for declared in self._declared.values())


def _resolve_prompt(declared: _DeclaredPrompt) -> Prompt:
    try:
        described = describe_function(declared.function)
    except UnusableSchema as error:
        raise DeclarationError(declared.subject, f"{error}.", _REMEDY) from error
    return Prompt(
        id=declared.id,
        name=declared.title or title_of(declared.id),
        description=declared.description or docstring_of(declared.function),
        arguments=_arguments(declared.subject, described.inputs),
        write=described.call,
    )


def _arguments(subject: str, inputs: JsonObject) -> tuple[PromptArgument, ...]:
    properties, required = inputs.get("properties", {}), inputs.get("required", [])
    assert isinstance(properties, Mapping)
    assert isinstance(required, list)
    for name, schema in properties.items():
        if not _is_fillable(schema, inputs):
            raise DeclarationError(subject, f"its parameter {name} cannot be filled in as a text.", _REMEDY)
    return tuple(
        PromptArgument(name, schema.get("description"), name in required) for name, schema in properties.items()
    )


def _is_fillable(schema: Mapping[str, Any], inputs: JsonObject) -> bool:
    """Whether values of a schema can be read from a text, which is all that MCP sends."""
    if "$ref" in schema:
        definitions: Any = inputs.get("$defs", {})
        return _is_fillable(definitions[schema["$ref"].rpartition("/")[2]], inputs)
    if "anyOf" in schema:
        return all(_is_fillable(one, inputs) for one in schema["anyOf"])
    return "enum" in schema or "const" in schema or schema.get("type") in _FILLABLE


Listener = Callable[["Site"], None]


class Site:
    """A site that agents can use: facts about it, and the decorators that declare what can be done there.

    `url` is the public address, never taken from a request; several addresses may be listed, the first is the canonical
    one. Without `url` the environment variable AWP_PUBLISH_URL is read. Raises DeclarationError that names the field.
    """

    def __init__(
        self, name: str, description: str, url: str | Sequence[str] | None = None, **options: Unpack[SiteOptions]
    ) -> None:
        name, description, checked = check_site(name, description, options)
        self.urls = read_urls(url)
        self.guarding = read_guarding(checked, urlsplit(self.urls[0]).netloc)
        known = published_authentication(self.guarding, checked.get("oauth"))
        self.facts: SiteFacts = replace(read_site_facts(name, description, checked), authentication=known)
        self.paths = checked.get("paths", Paths())
        self.limits: CallLimits = read_limits(checked)
        self.offering: Offering = read_offering(checked)
        self.doors: tuple[str, ...] = tuple(dict.fromkeys(checked.get("doors", ())))
        self.liveness = Liveness(self.paths.status)
        self._declarations: dict[str, Declaration] = {}
        self._agents: dict[str, AgentDeclaration] = {}
        self._inclusions: list[Inclusion] = []
        self._prompts = Prompts()
        self._pages = DeclaredPages(self._refuse_when_frozen)
        self._catalogs: tuple[Catalog, ...] = ()
        self._listeners: list[Listener] = []
        self.call_listeners: list[CallListener] = []

    # --- Declaring ---

    def action(self, action_id: str, /, **options: Unpack[ActionOptions]) -> Callable[[F], F]:
        """Declare a route handler as an action. Stands above or below the route decorator; returns the function."""
        return self._declaring(f'action "{action_id}"', action_id, options, "route")

    def agent(self, agent_id: str, /, **options: Unpack[AgentOptions]) -> AgentHandle:
        """Declare an agent: decorate one function with it, or each of several with its `operation(name)`."""
        subject = f'agent "{agent_id}"'
        self._refuse_when_frozen(subject)
        _check_id("agent", subject, agent_id)
        if agent_id in self._agents:
            raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
        for name in ("agent", "operation"):
            if name in options:
                raise DeclarationError(subject, f"{name}: is an option of actions, not of agents.")
        self._agents[agent_id] = AgentDeclaration.read(agent_id, check_agent(subject, options))
        return AgentHandle(self._declaring, agent_id, options)

    def prompt(
        self, prompt_id: str, /, *, title: str | None = None, description: str | None = None
    ) -> Callable[[F], F]:
        """Declare a prompt: a function that makes a text for a person's own model of what the person fills in."""
        self._refuse_when_frozen(f'prompt "{prompt_id}"')
        return self._prompts.declare(prompt_id, title, description)

    def page(self, path: str | None = None, /, **options: Unpack[PageOptions]) -> Callable[[F], F]:
        """Declare a page: decorate its route handler, or call it with the `path` of a page that was not written here.

        Without a title it is called by the end of its path; without a description by the handler's docstring.
        """
        return self._pages.declare(path, options)

    def declare(self, action_id: str, /, **options: Unpack[ActionOptions]) -> None:
        """Declare an action by `method` and `path`, for handlers that cannot be decorated or were not written here."""
        subject = f'action "{action_id}"'
        for needed in ("method", "path"):
            if needed not in options:
                raise DeclarationError(subject, f"{needed}: is required by site.declare().")
        self._add(self._read(subject, action_id, options, "path"), None)

    def include(
        self,
        *,
        tags: Sequence[str] = (),
        paths: Sequence[str] = (),
        operations: Sequence[str] = (),
        exclude: Sequence[str] = (),
        auth_required: bool | None = None,
        rate_limit: str | RateLimit | None = None,
    ) -> None:
        """Publish routes that are already there, without touching their handlers.

        A route is taken if it has one of `tags`, its path matches one of `paths` (`/books/*`), or its name or
        operation id is among `operations`; with none of the three, every listed route is. Only reading routes (GET)
        are taken, unless `operations` names them. `exclude` lists names and paths to leave out. `auth_required` and
        `rate_limit` hold for each action.
        """
        self._refuse_when_frozen(INCLUDE)
        options: ActionOptions = {}
        if auth_required is not None:
            options["auth_required"] = auth_required
        if rate_limit is not None:
            options["rate_limit"] = rate_limit
        inclusion = Inclusion(
            tags=_read_names(tags, "tags"),
            paths=_read_names(paths, "paths"),
            operations=_read_names(operations, "operations"),
            exclude=_read_names(exclude, "exclude"),
            options=check_action(INCLUDE, options),
        )
        self._inclusions.append(inclusion)

    def _declaring(
        self, subject: str, action_id: str, options: ActionOptions, kind: Literal["route", "either"]
    ) -> Callable[[F], F]:
        declaration = self._read(subject, action_id, options, kind)

        def declare(function: F) -> F:
            if action_id not in self._declarations or not is_bound_for_a_call(function):
                self._add(declaration, function)
                mark(function, action_id)
            return function

        return declare

    def _read(
        self, subject: str, action_id: str, options: ActionOptions, kind: Literal["route", "either", "path"]
    ) -> Declaration:
        """Check a declaration where it is written, before it has a function."""
        self._refuse_when_frozen(subject)
        _check_id("action", subject, action_id)
        return Declaration(subject, action_id, kind, None, check_action(subject, options))

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

    # --- Freezing ---

    def freeze(self, app: object = None, doors: Sequence[Door] = (), documents: Iterable[str] = ()) -> Catalog:
        """Resolve every declaration against the routes of `app` and make the catalog, once. Raises DeclarationError.

        `doors` are the live endpoints and `documents` the paths that the publisher serves. Called by `AgentPublisher`
        at start-up.
        """
        if not self._catalogs:
            declared = list(self._declarations.values())
            routes = find_routes(app)
            actions, agents = resolve(declared, self._agents, self._inclusions, routes, self.limits.timeout)
            check_names(self.facts, actions)
            check_skills(actions, doors)
            check_guarding(self.guarding, actions, self.facts.rate_limit, "a2a" in self.doors)
            catalog = Catalog(
                url=self.urls[0],
                site=self.facts,
                actions=actions,
                agents=agents,
                prompts=self._prompts.resolve(),
                pages=self._pages.resolve(routes, self.facts.name, {action.id for action in actions}),
                paths=self.paths,
                doors=tuple(doors),
                documents=frozenset(documents),
                openapi=find_openapi(app),
            )
            self._catalogs = self._with_status(catalog)
        return self._catalogs[0]

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
        """Say what works (agent.json section 13); what is not given stays as it is. `refresh()` publishes it."""
        self.liveness.say(operational, degraded_actions)

    def status(self, *actions: str) -> Callable[[F], F]:
        """Declare a probe: a function that finds out whether `actions` work; without any, whether the site does.

        It answers False or raises where something does not work. Probes are asked every `status_interval`; what they
        find is published, and calls of an action that does not work are refused. Returns the function unchanged.
        """
        if actions and not isinstance(actions[0], str):
            raise DeclarationError("site.status", 'is called: write @site.status("action_id") or @site.status().')
        self._refuse_when_frozen("site.status()")

        def mark(function: F) -> F:
            self.liveness.add(function, actions)
            return function

        return mark

    async def probe(self) -> None:
        """Ask the probes now, and publish what they find if it is news."""
        if await self.liveness.ask():
            self.refresh()

    def refresh(self) -> None:
        """Publish the documents again with the present status. Every request sees the old whole or the new whole.

        Holds for this process: each worker publishes its own. Raises DeclarationError for unknown degraded actions.
        """
        self._catalogs = self._with_status(self.catalog)
        for listener in self._listeners:
            listener(self)

    def on_refresh(self, listener: Listener) -> None:
        """Call `listener(site)` after each refresh; publishers prepare their documents there."""
        self._listeners.append(listener)

    def on_call(self, listener: CallListener) -> None:
        """Call `listener(facts)` after each call, with what the record of calls says of it. It must not block."""
        self.call_listeners.append(listener)

    def _with_status(self, catalog: Catalog) -> tuple[Catalog, ...]:
        self.liveness.check(catalog.actions)
        return tuple(replace(catalog, url=url, status=self.liveness.status) for url in self.urls)


def _read_names(given: object, field: str) -> tuple[str, ...]:
    names: Sequence[str] = check(INCLUDE, NAMES, given, field)
    return tuple(names)


def _check_id(kind: str, subject: str, given: object) -> None:
    if callable(given):
        raise DeclarationError(f"site.{kind}", f'needs an id: write @site.{kind}("its_id").')
    check_identifier(subject, given)
