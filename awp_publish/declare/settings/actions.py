"""The options of `@site.action(...)` and `@site.agent(...)`."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator

from awp_publish.declare.settings.about import Extensions
from awp_publish.declare.settings.rates import Rate, check_agent
from awp_publish.model import PUBLIC, Effect, Execution, Idempotency, JsonObject, Summary
from awp_publish.schema import check_dialect
from awp_publish.schema.options import (
    Audience,
    Count,
    Flag,
    LazyAdapter,
    Option,
    Path,
    Seconds,
    Text,
    check_json,
    plain_json,
    shortened,
    strict,
)

_TYPE_MODULES: Final = ("typing", "types", "typing_extensions")


def check_kind(value: object) -> object:
    """Return a type, or a copy of a JSON Schema; inputs and outputs are one of these."""
    if isinstance(value, Mapping):
        check_dialect(value)
        return plain_json(value)
    if value is None or isinstance(value, type) or type(value).__module__ in _TYPE_MODULES:
        return value
    raise ValueError(f"{shortened(value)} is neither a type nor a JSON Schema")


def check_inputs(value: object) -> object:
    """Return inputs, which may also be a list of forms and formsets that one Django view reads together."""
    if isinstance(value, (list, tuple)) and value and all(isinstance(form, type) for form in value):
        return tuple(value)
    return check_kind(value)


UNSET: Final = inspect.Parameter.empty
"""Marks an option that was not given, where None is a value."""


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSettings:
    """All options of an action. docs/actions.md has one line on each."""

    name: Annotated[Text | None, Option("a readable name", "the id in words")] = None
    description: Annotated[
        Text | None,
        Option("what the action does", "the first paragraph of the docstring, or of the route's description"),
    ] = None
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None,
        Option("the method, if the route has several", "the only one"),
    ] = None
    path: Annotated[Path | None, Option("the path, if the handler has several routes", "the only one")] = None
    inputs: Annotated[
        object,
        AfterValidator(check_inputs),
        Option(
            "the inputs: a model, a dataclass, a `TypedDict` or a JSON Schema of type object",
            "derived from the route or signature",
        ),
    ] = UNSET
    outputs: Annotated[
        object,
        AfterValidator(check_kind),
        Option("the output: any type, or a JSON Schema", "derived from the route or annotation"),
    ] = UNSET
    content_type: Annotated[
        Literal["application/json", "application/x-www-form-urlencoded", "multipart/form-data"] | None,
        Option(
            "how a declared body is sent: `application/json`, `application/x-www-form-urlencoded`, "
            "`multipart/form-data`",
            "derived from the route, otherwise JSON",
        ),
    ] = None
    tags: Annotated[Sequence[Text], Option("[categories](#categories)", "none")] = ()
    audience: Annotated[
        Audience,
        Option('[who may know of it](guards.md#who-sees-what): `"public"`, `"known"`, or a scope', '`"public"`'),
    ] = PUBLIC
    expose: Annotated[
        Sequence[Text] | None,
        Option('the doors that offer it: `"woa"`, `"plain"`, `"mcp"`, `"a2a"`, `"awp"`, `"bridge"`', "every door"),
    ] = None
    examples: Annotated[
        Sequence[Annotated[JsonObject, AfterValidator(check_json)]], Option("valid examples of complete inputs", "none")
    ] = ()
    auth_required: Annotated[
        Flag | None,
        Option(
            "whether callers have to authenticate", "`True` with scopes, or a required security scheme of the route"
        ),
    ] = None
    scopes: Annotated[
        Sequence[Text] | None, Option("the required OAuth scopes", "those of the route's security schemes")
    ] = None
    rate_limit: Annotated[Rate | None, Option("its own [limit](guards.md#limits)", "none")] = None
    allow_agents: Annotated[
        Sequence[Annotated[str, AfterValidator(check_agent)]],
        Option(
            'who may call it by their [signature](guards.md#signatures): `"verified"`, `"https://signer.example"`, '
            '`"unknown"`',
            "everybody",
        ),
    ] = ()
    effect: Annotated[
        Effect | None,
        Option(
            "what a call changes: `read` (nothing), `idempotent` (the same if repeated), `write` (something each "
            "time), `delete`, `irreversible`",
            "GET reads, PUT is idempotent, DELETE deletes, all else writes",
        ),
    ] = None
    depends_on: Annotated[Sequence[str], Option("ids of actions that usually come before it", "none")] = ()
    guard_routes: Annotated[Flag | None, Option("the site's option, for its route", "the site's")] = None
    execution: Annotated[Execution, Option("`sync`, or `async` for a [background job](jobs.md)", "`sync`")] = "sync"
    timeout: Annotated[Seconds | None, Option("in seconds", "the site's; an hour in the background")] = None
    max_body_bytes: Annotated[Count | None, Option("bytes of a call's body", "the site's")] = None
    extensions: Annotated[Extensions, Option("[members of your own](documents.md#members-of-your-own)", "none")] = (
        field(default_factory=dict)
    )


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings(ActionSettings):
    """All options of an agent (WoA section 4.1). Those of an action apply to each of its operations."""

    version: Annotated[Text | None, Option("the version of its implementation", "none")] = None
    capabilities: Annotated[Sequence[Text], Option("identifiers of its capabilities, as URIs", "none")] = ()
    metadata: Annotated[
        Mapping[str, object],
        AfterValidator(check_json),
        Option(
            'additional members of its WoA object, such as `authz`; `{"operations": {"default": "..."}}` '
            "describes its operations there",
            "none",
        ),
    ] = field(default_factory=dict)


ACTION: Final[LazyAdapter[ActionSettings]] = LazyAdapter(ActionSettings)
AGENT: Final[LazyAdapter[AgentSettings]] = LazyAdapter(AgentSettings)


Window: TypeAlias = Annotated[
    bool | str | Mapping[str, object] | Idempotency | None,
    Option(
        'whether calls may have an [idempotency key](guards.md#idempotency-keys): `True`, a window (`"24h"`), or '
        "`Idempotency(window, key_field)`",
        "none",
    ),
]
Confirm: TypeAlias = Annotated[
    bool | Summary | None,
    Option(
        "whether a person has to [confirm](guards.md#confirmation) each call: `True`, or the question as a text "
        "or a function",
        "`True` if irreversible",
    ),
]
Requires: TypeAlias = Annotated[
    Sequence[str], Option("ids of actions that have to [succeed before it](guards.md#prerequisites)", "none")
]


@dataclass(frozen=True, kw_only=True)
class _OfPlugins:
    idempotency: Window = None
    confirm: Confirm = None
    requires: Requires = ()
    awas: Annotated[Mapping[str, Any], Option("[what only AWAS says](#what-only-awas-says)", "none")] = field(
        default_factory=dict
    )


@dataclass(frozen=True, kw_only=True)
class ActionOptions(_OfPlugins, ActionSettings):
    """All options of an action, for editors, type checkers and docs: with those of this package's plug-ins."""


@dataclass(frozen=True, kw_only=True)
class AgentOptions(_OfPlugins, AgentSettings):
    """All options of an agent, likewise."""
