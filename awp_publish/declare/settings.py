"""The options of a site owner, and the messages with which mistakes are refused.

Each option is defined once: its name, type, default, check and meaning are in the settings classes below. They are at
once the signatures of `Site(...)`, `@site.action(...)` and the like (for editors and type checkers), what pydantic
validates at run time, what the rest of the package reads, and the tables in docs/.
"""

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from functools import wraps
from ipaddress import ip_network
from string import Formatter
from typing import Annotated, Any, Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    TypeAdapter,
)
from typing_extensions import TypedDict

from awp_publish.maps import expressions
from awp_publish.maps.engine import ExpressionError, has_engine
from awp_publish.model import (
    EXTENDED_DOCUMENTS,
    PUBLIC,
    ActionType,
    Attachment,
    Effect,
    Execution,
    Idempotency,
    Import,
    JsonObject,
    Locator,
    PageCheck,
    Paths,
    Place,
    Projection,
    RateLimit,
    Security,
    Signal,
    State,
    Summary,
    Transition,
    Workflow,
)
from awp_publish.pages.selectors import selector_fault
from awp_publish.schema import check_dialect
from awp_publish.schema.options import (
    Audience,
    Count,
    Duration,
    Flag,
    Id,
    Link,
    Option,
    Path,
    Seconds,
    T,
    Text,
    _shortened,
    check_duration,
    check_id,
    check_json,
    check_link,
    check_origin,
    check_text,
    check_texts,
    check_url,
    matching,
    plain_json,
    strict,
    unpack,
)

URL_VARIABLE: Final = "AWP_PUBLISH_URL"
URL_SOURCES: Final[list[Callable[[], object]]] = []
"""Functions that return a framework's setting for the address of a site that does not give one, or None."""
# --- Addresses that a site owner writes ---


_PATH: Final = re.compile(r"/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@{}/-]*")


def check_paths(paths: Paths) -> Paths:
    """Check that paths have no placeholders, except {agent_id} in `invoke`, at most once, in its path or its query."""
    path, _, query = paths.invoke.partition("?")
    if not _PATH.fullmatch(path) or path == "/" or not re.fullmatch(r"[!-~]*", query) or "#" in query:
        raise ValueError(f'invoke {paths.invoke!r} must be a path such as "/agents/{{agent_id}}/invoke"')
    if paths.invoke.count("{agent_id}") > 1 or re.search(r"[{}]", paths.invoke.replace("{agent_id}", "")):
        raise ValueError(f"invoke {paths.invoke!r} may hold {{agent_id}} once and no other placeholder")
    for name in ("root", "mcp", "a2a", "awp", "bridge"):
        plain = getattr(paths, name)
        if not _PATH.fullmatch(plain) or re.search(r"[{}]|/$", plain):
            raise ValueError(f'{name} {plain!r} must be a path such as "{getattr(Paths(), name)}"')
    return paths


def check_proxy(value: str) -> str:
    """Check the address or network of a proxy, or "unix" for a proxy that connects through a Unix socket."""
    if value != "unix":
        try:
            ip_network(value, strict=False)
        except ValueError as error:
            raise ValueError(f"{value!r} is not an address, a network such as '10.0.0.0/8', or 'unix'") from error
    return value


_FORWARDING: Final = (
    "x-forwarded-for",
    "forwarded",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "x-real-ip",
    "true-client-ip",
    "x-client-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "do-connecting-ip",
    "x-envoy-external-address",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-appengine-user-ip",
    "x-nf-client-connection-ip",
    "x-vercel-forwarded-for",
)
"""Headers in which proxies send a client's address: two with lists, and others with single addresses."""


def check_proxies(value: "Proxies") -> "Proxies":
    if value.header is not None and not value.trusted:
        raise ValueError('header is believed of trusted proxies only; give Proxies(trusted=["10.0.0.0/8"]) too')
    return value


def check_forwarded(value: str) -> str:
    """Check the name of the header in which a proxy sends the client's address, and return it in lower case."""
    name = value.lower()
    close = get_close_matches(name.replace("_", "-"), _FORWARDING, 1, 0.8)
    if not re.fullmatch(r"[a-z0-9!#$%&'*+.^_`|~-]+", name):
        raise ValueError(f"{value!r} is not the name of a header, such as 'x-forwarded-for' or 'cf-connecting-ip'")
    if name not in _FORWARDING and close:
        raise ValueError(f"{value!r} is not a header that proxies are known to send; did you mean '{close[0]}'?")
    return name


# --- Options that need more than a type: readers of their notations, and checks ---

ENVELOPE: Final = frozenset({"agent", "operation", "input", "confirmation", "receipts"})
"""Members of a call's envelope that cannot hold the idempotency key."""

_RATE: Final = re.compile(
    r"\s*([0-9]{1,9})\s*(?:/|per)\s*(?:([0-9]{1,9})\s*)?([a-z]+?)s?"
    r"(?: (by ip|by user|in total)(?:, ([0-9]{1,6}) at a time)?)?"
    r"(?: for (\S+|unsigned impostor))?\s*",
    re.IGNORECASE,
)
_UNITS: Final[Mapping[str, Literal["s", "m", "h", "d"]]] = {"second": "s", "minute": "m", "hour": "h", "day": "d"}
_COUNTED: Final = {"by ip": "ip", "by user": "user", "in total": "global"}
"""Phrases in a limit that say how it is counted, and the corresponding scope."""
_RESULT_TYPES: Final = ("single", "list", "table", "form")
_RESULT_MEMBERS: Final = ("type", "selector", "itemSelector", "properties", "pagination")
_TYPE_MODULES: Final = ("typing", "types", "typing_extensions")
PAGES_PACKAGE: Final = "selectolax"
"""The package that parses HTML, from the extra [pages]."""
SHORTEST_KEY: Final = 16
"""Characters of a secret key at least: shorter keys could be guessed."""


# --- Texts and names ---


check_error_code: Final = matching(
    r"[A-Z][A-Z0-9_]*", '{!r} is not an error code; write it in capitals, such as "SOLD_OUT"'
)
check_email: Final = matching(r"[^@\s]+@[^@\s]+", "{!r} is not an e-mail address")


# --- Limits and durations ---


def read_rate(text: object) -> RateLimit:
    """Read a limit: "30/minute", "9 per 5 minutes", "100/hour by ip", "10/hour for unknown". Raises ValueError."""
    if not isinstance(text, str):
        raise ValueError('write a rate limit as "30/minute"')
    matched = _RATE.fullmatch(text)
    if matched is None and re.search(r"[;,|]", text):
        raise ValueError(f"{text!r} holds several limits; an action has one")
    if matched is None:
        raise ValueError(f'{text!r} is not a rate limit; write it as "30/minute"')
    requests, count, unit = int(matched[1]), int(matched[2] or 1), _UNITS.get(matched[3].lower())
    if unit is None or requests < 1 or count < 1:
        raise ValueError(f"{text!r} must be at least one request in seconds, minutes, hours or days")
    scope, lease = _COUNTED.get((matched[4] or "").lower()), int(matched[5] or 0)
    if matched[5] and (scope != "global" or not 0 < lease < requests):
        raise ValueError(f"{text!r}: only calls in total are taken several at a time, and fewer than the limit")
    whom = (matched[6] or "").lower().rstrip("/")
    if whom:
        check_agent(whom)
    return RateLimit(requests, count, unit, scope, whom, lease)


def check_rate(value: object) -> str:
    """Check that a text is a rate limit, and return it."""
    read_rate(value)
    return cast(str, value)


def check_agent(value: str) -> str:
    """Check a label of callers (Web Bot Auth), or an agent's directory given by its address or host."""
    is_label = value in ("verified", "unknown", "unsigned impostor")
    if is_label or re.fullmatch(r"(https?://)?[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?(/\S*)?", value):
        return value.rstrip("/")
    raise ValueError(f'{value!r} is neither "verified", "unknown" nor an agent such as "https://signer.example"')


def read_idempotency(value: object) -> Idempotency | None:
    """Read an idempotency window: "24h", True for 24 hours, {"window": "24h", "key_field": "..."} or an Idempotency."""
    if value is None or isinstance(value, bool):
        return Idempotency() if value else None
    if isinstance(value, str):
        value = {"window": value}
    if isinstance(value, Mapping) and set(value) <= {"window", "key_field"}:
        value = Idempotency(**value)
    if not isinstance(value, Idempotency) or not isinstance(value.window, str) or not isinstance(value.key_field, str):
        raise ValueError('write idempotency as True, "24h" or {"window": "24h", "key_field": "idempotency_key"}')
    if value.key_field in ENVELOPE or not re.fullmatch(r"[!-~]+", value.key_field):
        raise ValueError(f"key_field {value.key_field!r} means something else in a call; choose a name of its own")
    check_duration(value.window)
    return value


def read_updated(value: object) -> datetime | None:
    """Read when actions last changed: a datetime, a date or ISO 8601 text; without a time zone it is UTC."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f'{value!r} is not a date; write it as "2026-03-31"') from error
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if not isinstance(moment, datetime):
        raise ValueError(f"must be a date or a datetime, not {value!r}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


# --- Secrets and summaries ---


def read_secret_keys(value: object) -> tuple[str, ...]:
    """Read one key or several, the newest first: the newest signs, all of them verify."""
    keys = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else ()
    if not keys or not all(isinstance(key, str) and len(key) >= SHORTEST_KEY for key in keys):
        raise ValueError(
            f"must be one or several texts of at least {SHORTEST_KEY} characters, the newest first; "
            'make one with: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    return keys


def read_confirm(value: object) -> bool | Summary | None:
    """Read whether a person confirms each call; a template or a function makes the question."""
    if value is None or isinstance(value, bool):
        return value
    if callable(value) and not isinstance(value, type):
        return cast(Summary, value)
    if not isinstance(value, str):
        raise ValueError(
            'must be True, False, a text such as "Order {copies} of {title}", or a function of the input '
            "or of the input and the call"
        )
    check_text(value)
    try:
        parts = [(name, spec or "") for _, name, spec, _ in Formatter().parse(value) if name is not None]
    except ValueError as error:
        raise ValueError(f"{value!r} has a brace that does not close; write {{{{ for a brace itself") from error
    for name, spec in parts:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"{{{name}}} is not the name of an input")
        fits = not spec
        for sample in () if "{" in spec else (1, 1.5, "text"):  # a format with input names depends on their values
            with suppress(ValueError):
                fits = fits or bool(format(sample, spec))
        if not fits:
            raise ValueError(f"{{{name}:{spec}}} has a format that neither a number nor a text takes")
    return value


# --- Selectors ---


def check_selector(value: str) -> str:
    """Refuse a text that no CSS parser accepts (AWAS, validation rule 3)."""
    if not value.strip():
        raise ValueError("a CSS selector must not be empty")
    if fault := selector_fault(value):
        raise ValueError(f"{value!r} is not a CSS selector ({fault})")
    return value


def read_selectors(value: object) -> str | Mapping[str, str]:
    """Read a mapping from inputs to selectors, or the attribute style by which the page's markup names its inputs."""
    if isinstance(value, str) and value in ("data-awas", "data-ai"):
        return value
    if isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair):
        return {name: check_selector(selector) for name, selector in value.items()}
    raise ValueError('must be "data-awas", "data-ai", or a dictionary of input names and CSS selectors')


def check_result(result: JsonObject) -> JsonObject:
    """Check and copy the AWAS 1.0 result object, which locates a result in the page."""
    if result.get("type") not in _RESULT_TYPES:
        raise ValueError(f"type must be one of {', '.join(map(repr, _RESULT_TYPES))}, not {result.get('type')!r}")
    if "selector" not in result:
        raise ValueError("selector is missing")
    properties, pagination = result.get("properties", {}), result.get("pagination", {})
    if not isinstance(properties, Mapping) or not isinstance(pagination, Mapping):
        raise ValueError("properties and pagination must be dictionaries of CSS selectors")
    for name in (*result, *pagination):
        known = _RESULT_MEMBERS if name in result else ("selector", "nextButton", "currentPage")
        if name not in known:
            near = get_close_matches(name.replace("_", ""), known, n=1)
            raise ValueError(f"{name!r} is not one of its members" + (f"; did you mean {near[0]!r}?" if near else ""))
    for selector in (result["selector"], result.get("itemSelector", "*"), *properties.values(), *pagination.values()):
        if not isinstance(selector, str):
            raise ValueError(f"{_shortened(selector)} is not a CSS selector")
        check_selector(selector)
    return check_json({name: result[name] for name in _RESULT_MEMBERS if result.get(name)})


# --- Types and JSON ---


def check_kind(value: object) -> object:
    """Return a type, or a copy of a JSON Schema; inputs and outputs are one of these."""
    if isinstance(value, Mapping):
        check_dialect(value)
        return plain_json(value)
    if value is None or isinstance(value, type) or type(value).__module__ in _TYPE_MODULES:
        return value
    raise ValueError(f"{_shortened(value)} is neither a type nor a JSON Schema")


def check_inputs(value: object) -> object:
    """Return inputs, which may also be a list of forms and formsets that one Django view reads together."""
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, type) for one in value):
        return tuple(value)
    return check_kind(value)


def read_entity(value: object) -> object:
    if isinstance(value, type):
        return value
    if isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair):
        return dict(value)
    raise ValueError('must be a model or a table of its fields and their types, such as {"title": "string"}')


def check_provenance(value: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse unknown members, and values with paths of a machine or credentials, because the map is public."""
    known = [f"{done}_{what}" for done in ("created", "updated", "reviewed") for what in ("by", "at")]
    for name, text in value.items():
        if name not in (*known, "source", "revision"):
            raise ValueError(f"{name!r} is not one of {', '.join(known)}, source, revision")
        if re.match(r"[/\\~]|[A-Za-z]:[/\\]|file:", text) or re.match(r"[A-Za-z][\w+.-]*://[^/]*@", text):
            raise ValueError(f"{name}: {text!r} is not for the public; name it without the path or the credentials")
    return value


OWN_EXTENSIONS: Final = frozenset(
    {"x-credentials", "x-encoding", "x-methods", "x-one-of", "x-security-schemes", "x-tags", "x-version"}
)
"""Members of ours in documents: an owner's of the same name would say something else under it."""


def check_extensions(value: Mapping[str, object]) -> Mapping[str, object]:
    documents = ", ".join(f'"{name}"' for name in sorted(EXTENDED_DOCUMENTS))
    for name, given in value.items():
        if name in EXTENDED_DOCUMENTS and not isinstance(given, Mapping):
            raise ValueError(f"{name!r}: must be a dictionary of the members that this document has besides")
        if name in OWN_EXTENSIONS:
            raise ValueError(f"{name!r}: is a member that documents have already; give yours another name")
        if name not in EXTENDED_DOCUMENTS and not re.fullmatch(r"x-\S+", name):
            raise ValueError(
                f"{name!r}: extension names begin with x- (AWAS, section Extensions); members of one document go "
                f"under its name, which is one of {documents}"
            )
    return check_json(value)


# --- Whole values ---


def check_authorization_server(value: str) -> str:
    """Check an issuer identifier (RFC 8414 section 2) and return it exactly as written."""
    check_url(value)
    return value


def check_workflow(value: Workflow) -> Workflow:
    check_id(value.id)
    check_text(value.name)
    if not value.steps:
        raise ValueError(f'workflow "{value.id}" has no steps; name the actions in their order')
    return value


def check_workflows(value: Sequence[Workflow]) -> Sequence[Workflow]:
    ids = [workflow.id for workflow in value]
    for identifier in ids:
        if ids.count(identifier) > 1:
            raise ValueError(f'two workflows have the id "{identifier}"')
    return value


# --- The options: name, type, check, meaning and default of each, once ---

Selector: TypeAlias = Annotated[str, AfterValidator(check_selector)]
Extensions: TypeAlias = Annotated[Mapping[str, object], AfterValidator(check_extensions)]
Rate: TypeAlias = Annotated[str, PlainValidator(check_rate)]
SelectorsOption: TypeAlias = Annotated[
    Literal["data-awas", "data-ai"] | Mapping[str, str], PlainValidator(read_selectors)
]


def read_urls(given: object) -> tuple[str, ...]:
    """Return the site's addresses; the environment variable may hold several, separated by commas."""
    given = (
        next((setting for source in URL_SOURCES if (setting := source()) is not None), None) if given is None else given
    )
    if given is None:
        listed: list[object] = [url.strip() for url in os.environ.get(URL_VARIABLE, "").split(",") if url.strip()]
    else:
        listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not listed or listed == [""]:
        raise ValueError(f"is required; give Site(url=...) or set {URL_VARIABLE}")
    urls: list[str] = []
    for url in listed:
        if not isinstance(url, str):
            raise ValueError("must be text")
        urls.append(check_url(url))
    hosts = [urlsplit(url).netloc for url in urls]
    for host in hosts:
        if hosts.count(host) > 1:
            raise ValueError(f"two addresses are at {host}, and requests could not tell them apart")
    return tuple(urls)


def read_security(value: object) -> object:
    """Parse the time at which it expires, as other dates are parsed."""
    given = unpack(value)
    if isinstance(given, Mapping) and "expires" in given:
        return {**given, "expires": read_updated(given["expires"])}
    return given


def check_security(value: Security) -> Security:
    """Check that there is a contact and an expiry time in the future (RFC 9116 sections 2.5.3 and 2.5.5)."""
    for contact in value.contact:
        if not re.fullmatch(r"(?:mailto:|tel:|https://)[!-~]+|/[!-~]*", contact):
            raise ValueError(f'contact: {contact!r} must be "mailto:...", "tel:...", "https://..." or a path')
    if not value.contact:
        raise ValueError('contact is required, such as ["mailto:security@shop.example"]')
    if not isinstance(value.expires, datetime):
        raise ValueError("expires must be a date or a datetime")
    for language in value.languages:
        if not re.fullmatch(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", language):
            raise ValueError(f'languages: {language!r} is not a language tag, such as "en"')
    if value.policy is not None:
        check_link(value.policy)
    return value


Entities: TypeAlias = Mapping[Id, Annotated[type | Mapping[str, str], PlainValidator(read_entity)]]


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Facts that a site publishes about itself besides its name. None of them changes what it does."""

    version: Annotated[
        str,
        Field(pattern=r"^\d+\.\d+(\.\d+)?$"),
        Option('version of what you publish, `"1.0"` or `"2.1.3"`', "cards, bridge manifests, AWAS `x-version`"),
    ] = "1.0"
    email: Annotated[
        Annotated[str, AfterValidator(check_email)] | None, Option("the contact's email address", "AWAS `contact`")
    ] = None
    contact: Annotated[Link | None, Option("a contact page, as a path or URL", "AWAS `contact`")] = None
    documentation: Annotated[
        Link | None, Option("a page about the site, as a path or URL", "MCP and A2A manifests of AWAS")
    ] = None
    license: Annotated[
        Text | None,
        Option("the licence of the site's content, as an SPDX identifier or URL", "MCP and A2A manifests of AWAS"),
    ] = None
    updated: Annotated[
        datetime | date | str | None,
        PlainValidator(read_updated),
        Option(
            "when the actions last changed: a date, a datetime or ISO 8601 text; without a time zone it is UTC",
            "AWAS 1.1 `lastUpdated`, `Last-Modified`",
        ),
    ] = None
    entities: Annotated[
        Entities,
        Option(
            'the kinds of objects that actions are about: models, or dictionaries such as `{"book": {"title": '
            '"string"}}`',
            "agent.json `entities`",
        ),
    ] = field(default_factory=dict)
    hints: Annotated[Mapping[Text, Text], Option("advice for planning: texts by name", "agent.json `agent_hints`")] = (
        field(default_factory=dict)
    )
    workflows: Annotated[
        Sequence[Annotated[Workflow, BeforeValidator(unpack), AfterValidator(check_workflow)]],
        AfterValidator(check_workflows),
        Option(
            "`Workflow(id, name, steps, description)`: a sequence of action ids that reaches a goal",
            "AWAS 1.1 `workflows`",
        ),
    ] = ()
    imports: Annotated[
        Mapping[Id, Annotated[Import, BeforeValidator(unpack), AfterValidator(check_texts("uri"))]],
        Option("further maps by namespace: `Import(uri, kind=, trust=, enabled=)`", "actions.json `imports`"),
    ] = field(default_factory=dict)
    provenance: Annotated[
        Mapping[str, Text],
        AfterValidator(check_provenance),
        Option(
            "the origin of the map of your pages: `created_by`, `updated_by` and `reviewed_by`, each with its "
            "`..._at`, `source`, `revision`; the texts are public",
            "actions.json `provenance`",
        ),
    ] = field(default_factory=dict)
    security: Annotated[
        Annotated[Security, BeforeValidator(read_security), AfterValidator(check_security)] | None,
        Option(
            '`Security(contact=["mailto:..."], expires="2027-06-30", policy, languages)`: the contact for '
            "security reports",
            "`/.well-known/security.txt`",
        ),
    ] = None
    leave_out: Annotated[
        Sequence[Text],
        Option('documents that are not published, by the names of their protocols: `["llms_txt", "ard"]`', "nothing"),
    ] = ()
    extensions: Annotated[
        Extensions,
        Option(
            'members of your own: `x-...` for all documents, and under `"agent_json"`, `"awas"` or `"woa"` members '
            "of any name for that [document](documents.md#members-of-your-own)",
            "all documents",
        ),
    ] = field(default_factory=dict)


@strict
@dataclass(frozen=True, slots=True)
class OAuth:
    """The issuers of the tokens that a site accepts.

    `authorization_servers` are their issuer identifiers (RFC 9728 section 2). `token_expiry` is a duration such as
    "24h"; `refresh_endpoint` and the values of `endpoints` are paths or URLs.
    """

    authorization_servers: tuple[Annotated[str, AfterValidator(check_authorization_server)], ...] = ()
    endpoints: Mapping[str, Link] = field(default_factory=dict)
    token_expiry: Duration | None = None
    refresh_endpoint: Link | None = None


@strict
@dataclass(frozen=True, slots=True)
class Proxies:
    """Proxies trusted to name a caller's address, and the header in which they do; None for the two usual ones."""

    trusted: Sequence[Annotated[str, AfterValidator(check_proxy)]] = ()
    header: Annotated[str, AfterValidator(check_forwarded)] | None = None


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that hold for each call. An action may have its own, of all but the time for a confirmation."""

    rate_limit: Annotated[
        Rate | None,
        Option(
            'a limit for calls of all actions together, per caller: `"100/hour"`, `"9 per 5 minutes"`; '
            '`"100/hour by ip"` counts per address, `"100/hour in total"` counts all callers together, '
            '`"90000/minute in total, 100 at a time"` with a trip to the store for every hundredth call',
            "AWAS `rateLimit`",
        ),
    ] = None
    timeout: Annotated[Seconds, Option("the timeout of handlers in seconds, 30 by default", "not published")] = 30.0
    max_body_bytes: Annotated[
        Count, Option("the maximum size of a call's body in bytes, 1 MiB by default", "not published")
    ] = 1_048_576
    confirm_within: Annotated[
        Duration, Option('how long a confirmation is valid, `"10m"` by default', "`expires_at` of each")
    ] = "10m"


@strict
@dataclass(frozen=True, slots=True)
class SiteSettings:
    """All options of a `Site`. docs/site.md has one line on each."""

    name: Annotated[Text, Option("the site's name; required", "everywhere")]
    description: Annotated[
        Text, Option("its purpose, in a sentence; required", "everywhere, as `intent` in agent.json")
    ]
    url: Annotated[
        str | Sequence[str] | None,
        PlainValidator(read_urls),
        Field(validate_default=True),
        Option("the public address, or several", "everywhere"),
    ] = None
    _: KW_ONLY
    about: Annotated[
        About,
        BeforeValidator(unpack),
        Option(
            "`About(version, email, contact, documentation, license, updated, entities, hints, workflows, "
            "imports, provenance, security, leave_out, extensions)`: facts about the site, see below",
            "see below",
        ),
    ] = About()
    oauth: Annotated[
        OAuth | None,
        BeforeValidator(unpack),
        Option(
            "`OAuth(authorization_servers, endpoints, token_expiry, refresh_endpoint)`: where callers obtain the "
            "tokens that you accept; `authenticate` verifies them",
            "agent.json `auth`, AWAS `authentication`, RFC 9728 metadata, the agent card",
        ),
    ] = None
    errors: Annotated[
        Mapping[Annotated[str, AfterValidator(check_error_code)], Text],
        Option(
            "recovery texts by error code, in capitals; a handler's refusal may use these codes",
            "agent.json `errors`, problems of calls",
        ),
    ] = field(default_factory=dict)
    paths: Annotated[
        Paths,
        BeforeValidator(unpack),
        AfterValidator(check_paths),
        Option(
            '`Paths(root="/agents", invoke="/agents/{agent_id}/invoke", mcp="/mcp", a2a="/a2a", awp="/awp", '
            'bridge="/actions-bridge")`: the paths of awp_publish; actions, jobs, problem types, the status, '
            "`som` and `actions.js` are below `root`, and by default `invoke` too",
            "WoA `invoke_path`, AWAS `path`, agent.json `endpoint`, problem types, `poll_endpoint`, `status_endpoint`",
        ),
    ] = field(default_factory=Paths)
    plugins: Annotated[
        object,
        Option(
            'the features of the site: `["mcp", "a2a", Traffic(days=30), "no:discovery"]`, names of installed '
            "plug-ins, their options, or [plug-ins of your own](plugins.md)",
            "see each",
        ),
    ] = ()
    limits: Annotated[
        Limits,
        BeforeValidator(unpack),
        Option(
            "`Limits(rate_limit, timeout, max_body_bytes, confirm_within)`: limits that hold for each call, see below",
            "see below",
        ),
    ] = Limits()
    allow_origins: Annotated[
        Sequence[Annotated[str, AfterValidator(check_origin)]],
        Option('origins whose pages may call from a browser, `["*"]` for all', "AWAS `security`"),
    ] = ()
    guard_routes: Annotated[
        Flag,
        Option(
            "`True`: the [gates](guards.md) of calls also apply to direct requests of the actions' routes; an "
            "action may override this",
            "not published",
        ),
    ] = False
    store: Annotated[
        object,
        Option(
            'where the state of calls is kept: `"memory:"`, `"sqlite:///agents.db"`, `"redis://..."`, '
            '`"postgresql://..."`, see [stores](stores.md)',
            "not published",
        ),
    ] = "memory:"
    secret_keys: Annotated[
        str | Sequence[str],
        PlainValidator(read_secret_keys),
        Option(
            "the keys that sign confirmations and receipts, the newest first; at least 16 characters each",
            "not published",
        ),
    ] = field(default=(), repr=False)
    authenticate: Annotated[
        object,
        Option(
            "how callers are authenticated: `BearerToken`, `ApiKey`, `JwtBearer`, `SessionUser`, "
            "`ApplicationUser`, a function, or a list, see [guards](guards.md)",
            "agent.json `auth`, AWAS `authentication`, the agent card",
        ),
    ] = field(default=None, repr=False)
    proxies: Annotated[
        Proxies,
        BeforeValidator(unpack),
        AfterValidator(check_proxies),
        Option(
            '`Proxies(trusted, header)`: the proxies (addresses, networks, `"unix"`) that are trusted to name '
            'the caller\'s address, and the header in which they do: `"x-forwarded-for"`, `"forwarded"`, or one '
            'with a single address such as `"cf-connecting-ip"`; without `header`, one of the first two is read '
            "unless both are present",
            "not published",
        ),
    ] = Proxies()
    log_inputs: Annotated[
        Flag, Option("whether the log of calls includes their inputs; `False` by default", "not published")
    ] = False

    @property
    def urls(self) -> tuple[str, ...]:
        """The public addresses, the canonical one first."""
        return cast(tuple[str, ...], self.url)

    @property
    def namespace(self) -> str:
        """The canonical address without its scheme, which prefixes the keys in the store and is part of signed tokens.

        Sites below different paths of one host may share a store and secret keys.
        """
        return self.urls[0].partition("://")[2]


@strict
class AwasSettings(TypedDict, total=False):
    """Options of an action that only AWAS has."""

    type: Annotated[
        ActionType,
        Option(
            "`form_submission`, `navigation`, `search`, `filter`, `data_retrieval`, `state_change`, `custom`",
            "from method and body",
        ),
    ]
    selector: Annotated[Selector, Option("CSS selector of the element that performs the action", "none")]
    selectors: Annotated[
        SelectorsOption,
        Option(
            'CSS selector for each input, or `"data-awas"` or `"data-ai"` for the attributes of your '
            "[templates](templates.md)",
            "none",
        ),
    ]
    result: Annotated[
        JsonObject,
        AfterValidator(check_result),
        Option(
            "AWAS's own object `{type, selector, itemSelector, properties, pagination}`: where the result is in "
            "the page",
            "none",
        ),
    ]
    preconditions: Annotated[Sequence[Text], Option("conditions that have to be true before, in sentences", "none")]
    preview_url: Annotated[Link, Option("a page that shows what would happen", "none")]
    dry_run: Annotated[Flag, Option("whether the action can be tried without effect", "`False`")]


UNSET: Final = inspect.Parameter.empty
"""Marks an option that was not given, where None is a value."""


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSettings:
    """All options of an action. docs/actions.md has one line on each."""

    name: Annotated[Text | None, Option("a readable name", "the id in words")] = None
    description: Annotated[
        Text | None,
        Option(
            "what the action does, for an agent's planning",
            "the first paragraph of the docstring, or of the route's description",
        ),
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
    tags: Annotated[Sequence[Text], Option("categories, by which actions are grouped and found", "none")] = ()
    audience: Annotated[
        Audience,
        Option(
            'who may know of the action: `"public"`, `"known"` (authenticated callers), `"operator"` or any '
            "other scope, see [guards](guards.md#who-sees-what)",
            '`"public"`',
        ),
    ] = PUBLIC
    expose: Annotated[
        Sequence[Text] | None,
        Option(
            'the doors at which the action is offered, out of `"woa"`, `"plain"`, `"mcp"`, `"a2a"`, `"awp"`, '
            '`"bridge"`',
            "every door",
        ),
    ] = None
    examples: Annotated[
        Sequence[Annotated[JsonObject, AfterValidator(check_json)]],
        Option("examples of complete inputs; they have to be valid", "none"),
    ] = ()
    auth_required: Annotated[
        Flag | None,
        Option(
            "whether callers have to authenticate",
            "true if there are scopes, or if the route has a required security scheme",
        ),
    ] = None
    scopes: Annotated[
        Sequence[Text] | None, Option("the required OAuth scopes", "those of the route's security schemes")
    ] = None
    rate_limit: Annotated[Rate | None, Option('as for the site, `"30/minute"`', "none")] = None
    allow_agents: Annotated[
        Sequence[Annotated[str, AfterValidator(check_agent)]],
        Option(
            'the agents that may call it, as identified by `WebBotAuth`: `"verified"` for all that sign their '
            'requests, `"https://signer.example"` for one, `"unknown"` for callers that claim no identity, see '
            "[guards](guards.md#signatures)",
            "everybody",
        ),
    ] = ()
    idempotency: Annotated[
        bool | str | Mapping[str, object] | Idempotency | None,
        PlainValidator(read_idempotency),
        Option(
            "whether calls may have an idempotency key, and how long it is valid: `True`, a window such as "
            '`"24h"`, or `Idempotency(window, key_field)`',
            "none",
        ),
    ] = None
    effect: Annotated[
        Effect | None,
        Option(
            "what a call changes: `read` (nothing), `idempotent` (the same result if repeated), `write` "
            "(something each time), `delete`, `irreversible`",
            "GET reads, PUT is idempotent, DELETE deletes, other methods and functions write",
        ),
    ] = None
    confirm: Annotated[
        bool | Summary | None,
        PlainValidator(read_confirm),
        Option(
            "whether a person has to confirm each call, see [guards](guards.md): `True`, or the question, as a "
            "text with inputs in braces or a function of the input, or of the input and the call",
            "`False`; irreversible actions are always confirmed",
        ),
    ] = None
    depends_on: Annotated[Sequence[str], Option("ids of actions that usually come before it", "none")] = ()
    requires: Annotated[
        Sequence[str],
        Option("ids of actions that have to succeed before it, see [guards](guards.md#prerequisites)", "none"),
    ] = ()
    awas: Annotated[AwasSettings, Option("options that only AWAS has, see below", "none")] = field(
        default_factory=lambda: AwasSettings()
    )
    guard_routes: Annotated[
        Flag | None,
        Option("whether the [gates](guards.md) of calls also apply to direct requests of its route", "the site's"),
    ] = None
    execution: Annotated[Execution, Option("`sync`, or `async` for a [background job](jobs.md)", "`sync`")] = "sync"
    timeout: Annotated[Seconds | None, Option("its timeout in seconds", "the site's; an hour in the background")] = None
    max_body_bytes: Annotated[Count | None, Option("the maximum size of a call's body in bytes", "the site's")] = None
    extensions: Annotated[
        Extensions,
        Option(
            'members of your own: `x-...`, and under `"agent_json"` or `"awas"` members of any name for that '
            "[document](documents.md#members-of-your-own)",
            "none",
        ),
    ] = field(default_factory=dict)


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


def _read_locator(value: object) -> Locator:
    given = {"css": value} if isinstance(value, str) else unpack(value)
    locator = _LOCATOR.validate_python(given)
    for css in (locator.css, *locator.fallbacks):
        check_selector(css)
    return locator


def _read_place(value: object) -> Place:
    """Read a place; a text is resolved later, when the names of the page's locators are known."""
    return check_text(value) if isinstance(value, str) else _read_locator(value)


def _read_places(value: object) -> tuple[Place, ...]:
    several = value if isinstance(value, (list, tuple)) else [value]
    if not several:
        raise ValueError("must name at least one place")
    return tuple(map(_read_place, several))


def check_expression(value: str) -> str:
    """Refuse a JSONata expression that is invalid, or in braces, which are added when it is published."""
    if "{%" in value or "%}" in value:
        raise ValueError("write the expression without {% and %}, which are put around it when it is published")
    if has_engine():
        try:
            expressions.check_expression(value)
        except ExpressionError as error:
            raise ValueError(f"{value[:60]!r} cannot be used: {error.message.rstrip('.')}") from error
    return check_text(value)


def _of_state(value: object) -> object:
    given = unpack(value)
    return {**given, "where": _read_places(given.get("where"))} if isinstance(given, Mapping) else given


def _of_projection(value: object) -> object:
    given = unpack(value)
    if not isinstance(given, Mapping) or not isinstance(given.get("records"), Mapping):
        return given
    records = {}
    for name, one in given["records"].items():
        record = unpack(one)
        if isinstance(record, Mapping) and isinstance(record.get("fields", {}), Mapping):
            fields = record.get("fields", {}).items()
            values = {
                field: {"css": given_value} if isinstance(given_value, str) else unpack(given_value)
                for field, given_value in fields
            }
            record = {**record, "fields": values}
        records[name] = record
    return {**given, "records": records}


def _of_place(member: str) -> Callable[[object], object]:
    def read(value: object) -> object:
        given = unpack(value)
        if not isinstance(given, Mapping) or given.get(member) is None:
            return given
        several = member == "visible"
        return {**given, member: (_read_places if several else _read_place)(given[member])}

    return read


def check_projection(value: Projection) -> Projection:
    """Refuse what no runtime could read: invalid selectors, and expressions in braces."""
    for records in value.records.values():
        for css in (records.css, *(one.css for one in records.fields.values())):
            if css is not None:
                check_selector(css)
    for expression in (value.state, *value.summaries.values(), *value.after.values()):
        check_expression(expression)
    return value


LocatorOption: TypeAlias = Annotated[Locator | str, PlainValidator(_read_locator)]


@strict
class PageSettings(TypedDict, total=False):
    """The options of a page. See docs/pages.md and docs/actions-json.md."""

    title: Annotated[Text, Option("what it is called", "the end of its path in words")]
    description: Annotated[Text, Option("what is on it", "the docstring of its handler")]
    id: Annotated[Id, Option("what goes before the names that are declared on it", "the end of its path")]
    guide: Annotated[Text, Option("how an agent gets on with the page", "the description")]
    actions: Annotated[Sequence[Id], Option("ids of the actions whose forms are on the page", "none")]
    locators: Annotated[
        Mapping[Id, LocatorOption],
        Option("places by name: `Locator(css, role=, name=, text_contains=, fallbacks=)`, or a CSS selector", "none"),
    ]
    states: Annotated[
        Mapping[Id, Annotated[State, BeforeValidator(_of_state)]],
        Option("conditions of the page by name: `State(description, where=, shows=)`", "none"),
    ]
    transitions: Annotated[
        Mapping[Id, Annotated[Transition, BeforeValidator(unpack), AfterValidator(check_texts("every_ms"))]],
        Option("ways between states: `Transition(start, end, action=, signal=, every_ms=, do_not_use=)`", "none"),
    ]
    projections: Annotated[
        Mapping[Id, Annotated[Projection, BeforeValidator(_of_projection), AfterValidator(check_projection)]],
        Option("the page's state in a few facts: `Projection(description, records, state, schema=, ...)`", "none"),
    ]
    signals: Annotated[
        Mapping[Id, Annotated[Signal, BeforeValidator(_of_place("at")), AfterValidator(check_texts("event"))]],
        Option("events of which agents may be notified: `Signal(event, payload=, at=, description=)`", "none"),
    ]
    attachments: Annotated[
        Mapping[
            Id, Annotated[Attachment, BeforeValidator(_of_place("at")), AfterValidator(check_texts("kind", "label"))]
        ],
        Option("what a runtime adds to the page: `Attachment(kind, at=, label=, description=)`", "none"),
    ]
    checks: Annotated[
        Mapping[Id, Annotated[PageCheck, BeforeValidator(_of_place("visible"))]],
        Option("what must be visible: `PageCheck(description, visible=, severity=)`", "none"),
    ]
    complete: Annotated[
        Any,
        Option(
            "suggests values of placeholders to [MCP clients](mcp.md#completion): a function, or one by name", "none"
        ),
    ]


_LOCATOR: Final = TypeAdapter(Locator)


# --- Methods whose keywords are the options of a settings class ---

Given: TypeAlias = dict[str, Any]
"""Options by name, as they were given."""

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")

SITE: Final = TypeAdapter(SiteSettings)
ACTION: Final = TypeAdapter(ActionSettings)
AGENT: Final = TypeAdapter(AgentSettings)
PAGE: Final = TypeAdapter(PageSettings)


def takes(settings: Callable[P, object]) -> Callable[[Callable[[Owner, Given], R]], Callable[Concatenate[Owner, P], R]]:
    """Give a method the signature of a settings class. The method receives the options by name, unchecked."""
    signature = inspect.signature(settings)

    def sign(method: Callable[[Owner, Given], R]) -> Callable[Concatenate[Owner, P], R]:
        @wraps(method)
        def call(owner: Owner, /, *args: P.args, **options: P.kwargs) -> R:
            return method(owner, _by_name(signature, args, options))

        return _signed(call, method, 1, signature)

    return sign


def takes_id(
    settings: Callable[P, object],
) -> Callable[[Callable[[Owner, str, Given], R]], Callable[Concatenate[Owner, str, P], R]]:
    """Give a method that takes an id the signature of a settings class, like `takes`."""
    signature = inspect.signature(settings)

    def sign(method: Callable[[Owner, str, Given], R]) -> Callable[Concatenate[Owner, str, P], R]:
        @wraps(method)
        def call(owner: Owner, identifier: str, /, *args: P.args, **options: P.kwargs) -> R:
            return method(owner, identifier, _by_name(signature, args, options))

        return _signed(call, method, 2, signature)

    return sign


def _by_name(signature: inspect.Signature, args: tuple[object, ...], options: Mapping[str, object]) -> Given:
    """Return all given options by name. Raises TypeError as a function with this signature would."""
    plain = [one.name for one in signature.parameters.values() if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    if len(args) > len(plain):
        raise TypeError(f"takes at most {len(plain)} options without their names, not {len(args)}")
    if twice := sorted(set(plain[: len(args)]) & set(options)):
        raise TypeError(f"got several values for {', '.join(twice)}")
    return {**dict(zip(plain, args, strict=False)), **options}


def _signed(call: T, method: Callable[..., object], own: int, options: inspect.Signature) -> T:
    """Set the signature that `help()` and editors show: the method's own parameters, then the options."""
    parameters = list(inspect.signature(method).parameters.values())[:own]
    kept = [one.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for one in parameters]
    call.__signature__ = inspect.Signature([*kept, *options.parameters.values()])  # type: ignore[attr-defined]
    return call
