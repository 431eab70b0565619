"""What a site owner may say, and the words in which a mistake is refused.

The `TypedDict`s below are at once the signatures of `Site(...)`, `@site.action(...)` and their siblings (editors
complete them, type checkers check them) and the pydantic schemas that check them at run time. This is the edge:
behind it stand the frozen values of `model.py`.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

import cssselect
import limits
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError
from pydantic import with_config as pydantic_config
from typing_extensions import TypedDict

from awp_publish.model import (
    ActionType,
    Authentication,
    Capabilities,
    Contact,
    Execution,
    Idempotency,
    Intent,
    JsonObject,
    Paths,
    RateLimit,
    Result,
    Security,
    Sensitivity,
    SideEffect,
    Workflow,
)
from awp_publish.problems import DeclarationError

ID_PATTERN: Final = r"^[a-z][a-z0-9_]*$"
TOKEN_PATTERN: Final = r"^[A-Za-z0-9_-]+$"
"""WoA section 4.1: agent-id = 1*( ALPHA / DIGIT / "-" / "_" ); operation names are held to the same."""

_AWAS_UNITS: Final = {
    "s": "s",
    "m": "m",
    "h": "h",
    "d": "d",
    "sec": "s",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "d",
}
_EXTENSION_TAKEN: Final = "extension names begin with x- (AWAS, section Extensions)"


# --- Values that are written in more than one way ---


def parse_rate_limit(value: object) -> RateLimit:
    """Read a limit: "30/minute", "9 per 5 minutes", {"requests": 30, "window": "1m", "scope": "ip"} or a RateLimit."""
    if isinstance(value, RateLimit):
        value = {"requests": value.requests, "window": value.window, "scope": value.scope}
    if isinstance(value, str):
        return _rate_limit_of_text(value)
    if isinstance(value, Mapping):
        return _rate_limit_of_window(value)
    raise ValueError('write a rate limit as "30/minute" or {"requests": 30, "window": "1m"}')


def _rate_limit_of_text(text: str) -> RateLimit:
    try:
        item = limits.parse(text)
    except ValueError as error:
        raise ValueError(f'"{text}" is not a rate limit; write it as "30/minute"') from error
    unit = _AWAS_UNITS.get(item.GRANULARITY.name)
    if unit is None or item.amount < 1:
        raise ValueError(f'"{text}" must be at least one request in seconds, minutes, hours or days')
    return RateLimit(item.amount, item.multiples, cast(Literal["s", "m", "h", "d"], unit))


def _rate_limit_of_window(value: Mapping[object, object]) -> RateLimit:
    unknown = set(value) - {"requests", "window", "scope"}
    requests, window, scope = value.get("requests"), value.get("window"), value.get("scope")
    matched = re.fullmatch(r"([1-9]\d*)([smhd])", window) if isinstance(window, str) else None
    if unknown:
        raise ValueError(
            f"a rate limit has requests, window and scope, not {', '.join(map(repr, sorted(map(str, unknown))))}"
        )
    if not isinstance(requests, int) or isinstance(requests, bool) or requests < 1:
        raise ValueError(f"requests must be a positive whole number, not {requests!r}")
    if matched is None:
        raise ValueError(f'window must be a number and one of s, m, h, d, such as "1m", not {window!r}')
    if scope is not None and not isinstance(scope, str):
        raise ValueError(f"scope must be text, not {scope!r}")
    return RateLimit(requests, int(matched[1]), cast(Literal["s", "m", "h", "d"], matched[2]), scope)


def parse_idempotency(value: object) -> Idempotency | None:
    """Read an idempotency window: "24h", True for 24 hours, {"window": "24h", "key_field": "..."} or an Idempotency."""
    if isinstance(value, bool):
        return Idempotency() if value else None
    if isinstance(value, str):
        value = {"window": value}
    read = _IDEMPOTENCY.validate_python(_unpack(value))
    _check_duration(read.window)
    return read


def _unpack(value: object) -> object:
    """Look inside a ready-made dataclass too: constructing one checks nothing."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value


def _check_duration(value: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[smhd]", value):
        raise ValueError(f'"{value}" is not a duration; write a number and one of s, m, h, d, such as "24h"')
    return value


def check_selector(value: str) -> str:
    """Refuse what no CSS parser would take (AWAS, validation rule 3).

    cssselect knows CSS up to Selectors 3 and some of 4, so only text without any of level 4's marks is held to it.
    """
    if not value.strip():
        raise ValueError("a CSS selector must not be empty")
    try:
        cssselect.parse(value)
    except cssselect.SelectorError as error:
        if not re.search(r":[a-z-]+\(|\s[iIsS]\s*\]|\|\||\\|&", value):
            raise ValueError(f'"{value}" is not a CSS selector ({error})') from error
    return value


def _check_selectors(result: Result) -> Result:
    pagination = dataclasses.asdict(result.pagination) if result.pagination else {}
    for selector in (result.selector, result.item_selector, *result.properties.values(), *pagination.values()):
        if selector is not None:
            check_selector(selector)
    return result


def check_url(value: str) -> str:
    """An absolute http or https address without query and fragment; a trailing slash is dropped."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f'"{value}" is not the public address of a site; write it as "https://shop.example"')
    _ = parts.port  # raises ValueError for a port that is none
    return value.rstrip("/")


def _check_link(value: str) -> str:
    if value.startswith("/") or (urlsplit(value).scheme in ("http", "https") and urlsplit(value).netloc):
        return value
    raise ValueError(f'"{value}" is neither a path beginning with "/" nor an absolute URL')


def _check_extensions(value: Mapping[str, object]) -> Mapping[str, object]:
    for name in value:
        if not name.startswith("x-"):
            raise ValueError(f'"{name}": {_EXTENSION_TAKEN}')
    return value


def _check_path(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError(f'"{value}" must begin with "/"')
    return value


def _check_invoke(paths: Paths) -> Paths:
    _check_path(paths.invoke)
    _check_path(paths.problems)
    if paths.invoke.count("{agent_id}") > 1 or re.search(r"[{}]", paths.invoke.replace("{agent_id}", "")):
        raise ValueError(f'invoke "{paths.invoke}" may hold {{agent_id}} once and no other placeholder')
    return paths


def _check_authentication(value: Authentication) -> Authentication:
    if value.token_expiry is not None:
        _check_duration(value.token_expiry)
    for link in (value.refresh_endpoint, *value.endpoints.values()):
        if link is not None:
            _check_link(link)
    return value


T = TypeVar("T")

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Id: TypeAlias = Annotated[str, Field(pattern=ID_PATTERN)]
Link: TypeAlias = Annotated[str, AfterValidator(_check_link)]
Selector: TypeAlias = Annotated[str, AfterValidator(check_selector)]
Extensions: TypeAlias = Annotated[Mapping[str, object], AfterValidator(_check_extensions)]
RateLimitOption: TypeAlias = Annotated[RateLimit | str | Mapping[str, object], PlainValidator(parse_rate_limit)]
IdempotencyOption: TypeAlias = Annotated[
    bool | str | Mapping[str, object] | Idempotency, PlainValidator(parse_idempotency)
]
ResultOption: TypeAlias = Annotated[Result, BeforeValidator(_unpack), AfterValidator(_check_selectors)]
AuthenticationOption: TypeAlias = Annotated[
    Authentication, BeforeValidator(_unpack), AfterValidator(_check_authentication)
]
ContentType: TypeAlias = Literal["application/json", "application/x-www-form-urlencoded", "multipart/form-data"]
SelectorStyle: TypeAlias = Literal["data-awas", "data-ai"]

_IDEMPOTENCY: Final = TypeAdapter(Idempotency)
_STRICT: Final = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


# --- The options ---


@pydantic_config(_STRICT)
class SiteOptions(TypedDict, total=False):
    """Everything a `Site` may say besides name, description and url. See docs/site.md for one line on each."""

    version: Annotated[str, Field(pattern=r"^\d+\.\d+$")]
    contact: Annotated[Contact, BeforeValidator(_unpack)]
    authentication: AuthenticationOption
    rate_limit: RateLimitOption
    capabilities: Annotated[Capabilities, BeforeValidator(_unpack)]
    entities: Mapping[Id, type | Mapping[str, str]]
    errors: Mapping[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], Text]
    hints: Mapping[str, Text]
    security: Annotated[Security, BeforeValidator(_unpack)]
    workflows: Sequence[Annotated[Workflow, BeforeValidator(_unpack)]]
    documentation: Link
    license: Text
    updated: datetime
    extensions: Extensions
    paths: Annotated[Paths, BeforeValidator(_unpack), AfterValidator(_check_invoke)]
    status_endpoint: Link
    timeout: Annotated[float, Field(gt=0)]
    max_body_bytes: Annotated[int, Field(gt=0)]
    allow_origins: Sequence[str]


@pydantic_config(_STRICT)
class ActionOptions(TypedDict, total=False):
    """Everything an action may say. See docs/actions.md for one line on each."""

    name: Text
    description: Text
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: Annotated[str, AfterValidator(_check_path)]
    inputs: type | JsonObject
    outputs: type | JsonObject | object
    content_type: ContentType
    agent: str
    operation: Annotated[str, Field(pattern=TOKEN_PATTERN)]
    type: ActionType
    intent: Intent
    side_effect: SideEffect
    tags: Sequence[Text]
    examples: Sequence[JsonObject]
    selector: Selector
    selectors: SelectorStyle | Mapping[str, Selector]
    result: ResultOption
    auth_required: bool
    scopes: Sequence[Text]
    rate_limit: RateLimitOption
    idempotency: IdempotencyOption
    sensitivity: Sensitivity
    reversible: bool
    requires_human_confirmation: bool
    preconditions: Sequence[Text]
    depends_on: Sequence[str]
    preview_url: Link
    dry_run: bool
    execution: Execution
    timeout: Annotated[float, Field(gt=0)]
    extensions: Extensions


@pydantic_config(_STRICT)
class AgentOptions(ActionOptions, total=False):
    """What an agent says about itself (WoA section 4.1); an action's options hold for each of its operations."""

    version: Text
    capabilities: Sequence[Text]
    metadata: Mapping[str, object]


SITE_OPTIONS: Final = TypeAdapter(SiteOptions)
ACTION_OPTIONS: Final = TypeAdapter(ActionOptions)
AGENT_OPTIONS: Final = TypeAdapter(AgentOptions)
IDS: Final = TypeAdapter(Id)
TEXTS: Final = TypeAdapter(Text)
URLS: Final = TypeAdapter(Annotated[str, AfterValidator(check_url)])


def check(subject: str, adapter: TypeAdapter[T], value: object, field: str = "") -> T:
    """Check a value against an adapter. Raises DeclarationError that names the subject and the field."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise DeclarationError(subject, _in_words(error, field)) from error


def _in_words(error: ValidationError, field: str) -> str:
    wrong = error.errors(include_url=False)
    first = wrong[0]
    where = ".".join(str(part) for part in (field, *first["loc"]) if part != "")
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = "there is no such option"
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return f"{where}: {message}{more}" if where else f"{message}{more}"
