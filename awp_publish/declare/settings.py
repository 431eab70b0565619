"""The options of a site owner, and the messages with which mistakes are refused.

Each option is defined once: its name, type, default, check and meaning are in the settings classes below. They are at
once the signatures of `Site(...)`, `@site.action(...)` and the like (for editors and type checkers), what pydantic
validates at run time, what the rest of the package reads, and the tables in docs/.
"""

import dataclasses
import inspect
import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from functools import wraps
from importlib.util import find_spec
from ipaddress import ip_network
from string import Formatter
from typing import Annotated, Any, Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar, cast, get_type_hints
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    TypeAdapter,
    ValidationError,
    with_config as pydantic_config,
)
from typing_extensions import TypedDict

from awp_publish.maps import expressions
from awp_publish.model import (
    EXTENDED_DOCUMENTS,
    KNOWN,
    OPERATOR,
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
    Robots,
    Security,
    Signal,
    State,
    Summary,
    Transition,
    Workflow,
)
from awp_publish.problems import DeclarationError
from awp_publish.schema import check_dialect
from awp_publish.schema.selectors import selector_fault

URL_VARIABLE: Final = "AWP_PUBLISH_URL"
URL_SOURCES: Final[list[Callable[[], object]]] = []
"""Functions that return a framework's setting for the address of a site that does not give one, or None."""
OVERVIEW_VARIABLE: Final = "AWP_PUBLISH_OVERVIEW"

# --- Addresses that a site owner writes ---

_VISIBLE: Final = re.compile(r"[!-~]+")
"""ASCII without spaces and control characters, as addresses in headers and documents have to be."""

_PATH: Final = re.compile(r"/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@{}/-]*")


def check_url(value: str) -> str:
    """Check an absolute http or https address without query and fragment, and drop a trailing slash."""
    parts = _split(value)
    wrong = parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in ("http", "https") or not parts.hostname or wrong or not _VISIBLE.fullmatch(value):
        raise ValueError(
            f"{value!r} is not the public address of a site; "
            'write it in ASCII, without query and fragment: "https://shop.example"'
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def check_origin(value: str) -> str:
    """Check an origin as browsers send it, or "*" for all."""
    parts = _split(value)
    if value != "*" and (parts.scheme not in ("http", "https") or value != f"{parts.scheme}://{parts.netloc}"):
        raise ValueError(f'{value!r} is not an origin; write "https://shop.example" without a path, or "*" for all')
    return value


def check_link(value: str) -> str:
    """Check a path below the site's origin, or an absolute URL."""
    parts = _split(value)
    is_path = value.startswith("/") and not value.startswith("//")
    is_absolute = parts.scheme in ("http", "https") and bool(parts.hostname)
    if not _VISIBLE.fullmatch(value) or not (is_path or is_absolute):
        raise ValueError(f'{value!r} is neither a path beginning with "/" nor an absolute URL')
    return value


def check_path(value: str) -> str:
    """Check a path template of the application."""
    if not value.startswith("/"):
        raise ValueError(f'{value!r} must begin with "/"')
    if re.search(r"[?#\s]", value):
        raise ValueError(f'{value!r} must hold no "?", "#" or space; declare inputs for the query')
    if re.search(r"<\w+(:\w+)?>", value):
        braced = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", value)
        raise ValueError(f'{value!r} must have its placeholders in braces: "{braced}"')
    return value


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
        raise ValueError(f"{value!r} is no header that proxies are known to send; did you mean '{close[0]}'?")
    return name


def _split(value: str) -> SplitResult:
    """Split an address. Raises ValueError with a message of its own for an invalid port or IPv6 address."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{value!r} is not an address ({error})") from error
    return parts


# --- Options that need more than a type: readers of their notations, and checks ---

ENVELOPE: Final = frozenset({"agent", "operation", "input", "confirmation", "receipts"})
"""Members of a call's envelope that cannot hold the idempotency key."""

_RATE: Final = re.compile(
    r"\s*([0-9]{1,9})\s*(?:/|per)\s*(?:([0-9]{1,9})\s*)?([a-z]+?)s?(?: (by ip|by user|in total))?"
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
_INTEGERS: Final = range(-(2**63), 2**64)
"""Integers that are the same in all JSON readers with 64-bit integers."""


def unpack(value: object) -> object:
    """Convert a dataclass to a dictionary, recursively, so that it is validated: its constructor checks nothing."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: unpack(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


# --- Texts and names ---


def _matching(pattern: str, wrong: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(wrong.format(value))
        return value

    return check


check_id: Final = _matching(
    r"[a-z][a-z0-9_]*", "{!r} must be lower-case letters, digits and _, beginning with a letter"
)
"""The syntax of ids that every protocol accepts."""
check_token: Final = _matching(r"[A-Za-z0-9_-]+", "{!r} must be letters, digits, - and _")
"""WoA section 4.1: agent-id = 1*( ALPHA / DIGIT / "-" / "_" ). Operation names have the same syntax."""
check_error_code: Final = _matching(
    r"[A-Z][A-Z0-9_]*", '{!r} is not an error code; write it in capitals, such as "SOLD_OUT"'
)
check_duration: Final = _matching(
    r"[1-9]\d*[smhd]", '{!r} is not a duration; write a number and one of s, m, h, d, such as "24h"'
)
check_email: Final = _matching(r"[^@\s]+@[^@\s]+", "{!r} is not an e-mail address")
check_queue: Final = _matching(
    r"(?s:(rediss?|unix)://.+)", 'must be the address of a Redis, such as "redis://queue.example:6379/0"'
)
"""The message does not repeat the queue's address, which may contain a password."""
_SCOPE: Final = r"[!#-\[\]-~]+"
"""A scope (RFC 6749 section 3.3)."""


def check_text(value: str) -> str:
    if not value.strip() or not _is_writable(value):
        raise ValueError("must not be empty" if _is_writable(value) else "holds characters that UTF-8 has not")
    return value


def check_audience(value: str) -> str:
    """Refuse what is not a scope, and misspellings of the named audiences."""
    if not re.fullmatch(_SCOPE, value):
        raise ValueError(f'{value!r} is not an audience; write "public", "known", "operator", or one scope')
    close = get_close_matches(value.lower(), (PUBLIC, KNOWN, OPERATOR), 1, 0.8)
    if close and close[0] != value:
        raise ValueError(f'{value!r} would be a scope of that name; did you mean "{close[0]}"?')
    return value


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
    whom = (matched[5] or "").lower().rstrip("/")
    if whom:
        check_agent(whom)
    return RateLimit(requests, count, unit, _COUNTED.get((matched[4] or "").lower()), whom)


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


def read_traffic(value: object) -> object:
    """Return the settings of traffic, or None for False, which records nothing."""
    if isinstance(value, bool):
        return Traffic() if value else None
    if value is not None and not isinstance(value, Traffic):
        raise ValueError("write Traffic(days=90), or False to keep nothing")
    return unpack(value)


def check_metrics(value: bool | str) -> bool | str:
    if isinstance(value, str) and not re.fullmatch(_SCOPE, value):
        raise ValueError(f"{value!r} is no scope: write metrics=True, or the name of a scope")
    return value


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


def read_approval(value: object) -> bool | str:
    """Read whether actions need approval before they are published; a text is the path of the approval file."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bool) or (isinstance(value, str) and value.strip() and "\0" not in value):
        return value
    raise ValueError('must be True, False or the path of a file, such as "agents-approved.json"')


def read_pages(value: object) -> object:
    """Return the settings of page formats, or False if there are none.

    By default pages are offered if the extra is installed. Raises ValueError for an invalid value or a missing extra.
    """
    given = unpack(value)
    is_said = isinstance(given, Mapping) and set(given) <= {"in_query", "shared_cache"}
    is_said = is_said and all(isinstance(flag, bool) for flag in cast(Mapping[str, object], given).values())
    if value is not None and not isinstance(value, bool) and not is_said:
        raise ValueError("must be True, False or Pages(in_query=True, shared_cache=True)")
    is_installed = find_spec(PAGES_PACKAGE) is not None
    if value and not is_installed:
        raise ValueError('needs a package that is missing. Install it: pip install "awp-publish[pages]"')
    if value is False or not is_installed:
        return False
    return Pages(**cast(Mapping[str, bool], given)) if is_said else Pages()


_SWITCH: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("", "0", "false", "no", "off"), False),
}


def read_overview(value: object) -> bool | str | None:
    """Return whether there is an overview, or the scope that it requires; None leaves it to the environment variable.

    Raises ValueError if the environment variable is neither a yes nor a no.
    """
    if value is None and os.environ.get(OVERVIEW_VARIABLE, "").strip().lower() not in _SWITCH:
        raise ValueError(f"the environment variable {OVERVIEW_VARIABLE} must be 1 or 0")
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, str) or not re.fullmatch(_SCOPE, value):
        raise ValueError('must be True, False, or the name of a scope that a caller needs, such as "operator"')
    return value


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
            raise ValueError(f"{name!r} is no member of it" + (f"; did you mean {near[0]!r}?" if near else ""))
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


def check_extensions(value: Mapping[str, object]) -> Mapping[str, object]:
    documents = ", ".join(f'"{name}"' for name in sorted(EXTENDED_DOCUMENTS))
    for name, given in value.items():
        if name in EXTENDED_DOCUMENTS and not isinstance(given, Mapping):
            raise ValueError(f"{name!r}: must be a dictionary of the members that this document has besides")
        if name not in EXTENDED_DOCUMENTS and not re.fullmatch(r"x-\S+", name):
            raise ValueError(
                f"{name!r}: extension names begin with x- (AWAS, section Extensions); members of one document go "
                f"under its name, which is one of {documents}"
            )
    return check_json(value)


def check_json(value: Mapping[str, object]) -> Mapping[str, object]:
    """Return a copy of a JSON object, so that nobody changes it after it was published."""
    return cast(Mapping[str, object], plain_json(value))


def plain_json(value: object) -> object:
    """Copy plain dictionaries, lists, texts and numbers. Raises ValueError for values that JSON does not have."""
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: plain_json(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(item) for item in value]
    if value is None or isinstance(value, bool) or (isinstance(value, (str, int, float)) and _is_writable(value)):
        return value
    raise ValueError(f"{_shortened(value)} is not JSON")


def _is_writable(value: str | int | float) -> bool:
    """Return True if a text can be encoded as UTF-8, or a number as JSON."""
    if isinstance(value, str):
        return re.search("[\ud800-\udfff]", value) is None
    return value in _INTEGERS if isinstance(value, int) else math.isfinite(value)


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


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


# --- Checking a value, with messages in the terms of a site owner ---

T = TypeVar("T")


def check_texts(*names: str) -> Callable[[T], T]:
    """Return a check that these fields of a value are not empty texts, and that its numbers are not negative."""

    def check(value: T) -> T:
        for name in names:
            given = getattr(value, name)
            if isinstance(given, str) and not given.strip():
                raise ValueError(f"{name} must not be empty")
            if isinstance(given, int) and given < 0:
                raise ValueError(f"{name} must not be negative")
        return value

    return check


_NO_SUCH_OPTION: Final = "there is no such option"
_WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": _NO_SUCH_OPTION,
    "unexpected_keyword_argument": _NO_SUCH_OPTION,
    "string_type": "must be text",
    "bool_type": "must be True or False",
    "bool_parsing": "must be True or False",
    "tuple_type": "must be a list",
    "sequence_str": "must be a list, not one text",
    "mapping_type": "must be a dictionary",
    "dict_type": "must be a dictionary",
    "is_instance_of": "must be a list",  # Sequence is the only annotation of ours with this error
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "string_pattern_mismatch": 'must look like "1.0" or "1.0.3"',  # only a site's version has a pydantic pattern
}
"""Our messages for pydantic's kinds of error; for other kinds pydantic's own message is used."""

_SPELT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("intent", "side_effect", "sensitivity", "reversible"), "effect"),
    **dict.fromkeys(("requires_human_confirmation", "confirmation_summary"), "confirm"),
    **dict.fromkeys(("type", "selector", "selectors", "result", "preconditions", "preview_url", "dry_run"), "awas"),
    "enforce_prerequisites": "requires",
    "authentication": "oauth",
    **dict.fromkeys(("job_queue", "job_concurrency", "job_results"), "jobs"),
    **dict.fromkeys(("page_formats_in_query", "page_formats_in_shared_cache"), "pages"),
    **dict.fromkeys(("version", "contact", "documentation", "license", "updated"), "about"),
    **dict.fromkeys(("entities", "hints", "workflows", "extensions"), "about"),
    **dict.fromkeys(("trusted_proxies", "forwarded"), "proxies"),
}
"""Names that people may take for options, and the options that serve the purpose."""

_OF_DOCUMENTS: Final = ("agent_json", "awas", "woa")
"""Documents to which a site can add members of its own, in `about`."""

_DICTIONARIES: Final = ("awas", "about")
"""Options that are dictionaries and may have such a name as a member."""


def check(subject: str, adapter: TypeAdapter[T], value: object, field: str = "", known: Collection[str] = ()) -> T:
    """Validate a value with an adapter. Raises DeclarationError that names the subject and the field.

    `known` are the existing options, from which the nearest to a misspelt one is suggested.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        wrong = error.errors(include_url=False)
        first, kind = wrong[0], wrong[0]["type"]
        where = ".".join(str(part) for part in (field, *first["loc"]) if part not in ("", "[key]"))
        if kind == "dataclass_type":
            message = f"must be {first['ctx']['class_name']}(...) or a dictionary of its fields"
        elif kind == "literal_error":
            message = f"must be {first['ctx']['expected']}, not {first['input']!r}"
        else:
            message = _WORDS.get(kind, first["msg"].removeprefix("Value error, ").replace("Input should", "must"))
        if message == _NO_SUCH_OPTION:
            name = str(first["loc"][-1])
            words = [*known, *(word for word, option in _SPELT.items() if option in known)]
            near = get_close_matches(name, words, n=1) if len(first["loc"]) == 1 else []
            meant = [word if word in known else _SPELT.get(word, word) for word in near]
            moved = [
                str(one["loc"][-1])
                for one in wrong
                if _WORDS.get(one["type"]) == _NO_SUCH_OPTION and len(one["loc"]) == 1
                if _SPELT.get(str(one["loc"][-1])) in _DICTIONARIES and _SPELT[str(one["loc"][-1])] in known
            ]
            if name in _OF_DOCUMENTS and len(first["loc"]) == 1 and "about" in known:
                where, message = name, f'write about={{"extensions": {{"{name}": ...}}}}'
            elif name in moved:
                option = _SPELT[name]
                moved = [word for word in moved if _SPELT[word] == option]
                spelling = ", ".join(f'"{word}": ...' for word in moved)
                where, message = " and ".join(moved), f"write {option}={{{spelling}}}"
                wrong = [first, *(one for one in wrong if str(one["loc"][-1]) not in moved)]
            elif meant:
                message += f'; did you mean "{meant[0]}"?'
        message += f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        end = "" if message.endswith("?") else "."
        raise DeclarationError(subject, f"{where}: {message}{end}" if where else f"{message}{end}") from error


# --- The options: name, type, check, meaning and default of each, once ---

Flag: TypeAlias = Annotated[bool, Strict()]
Count: TypeAlias = Annotated[int, Strict(), Field(gt=0)]
Seconds: TypeAlias = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Text: TypeAlias = Annotated[str, AfterValidator(check_text)]
Id: TypeAlias = Annotated[str, AfterValidator(check_id)]
Link: TypeAlias = Annotated[str, AfterValidator(check_link)]
Selector: TypeAlias = Annotated[str, AfterValidator(check_selector)]
Extensions: TypeAlias = Annotated[Mapping[str, object], AfterValidator(check_extensions)]
Rate: TypeAlias = Annotated[str, PlainValidator(check_rate)]
SelectorsOption: TypeAlias = Annotated[
    Literal["data-awas", "data-ai"] | Mapping[str, str], PlainValidator(read_selectors)
]
Path: TypeAlias = Annotated[str, AfterValidator(check_path)]
Audience: TypeAlias = Annotated[str, AfterValidator(check_audience)]
DoorName: TypeAlias = Literal["woa", "plain", "mcp", "a2a", "awp", "bridge"]
Duration: TypeAlias = Annotated[str, AfterValidator(check_duration)]


@dataclass(frozen=True, slots=True)
class Option:
    """One option's row in the tables of docs/: its meaning, and where it is published or what its default is."""

    meaning: str
    other: str


def option_rows(options: type) -> list[tuple[str, Option]]:
    """Return the options of a settings class with their rows, in order."""
    kinds = get_type_hints(options, include_extras=True)
    described = [(name, part) for name, kind in kinds.items() for part in getattr(kind, "__metadata__", ())]
    return [(name, part) for name, part in described if isinstance(part, Option)]


_strict = pydantic_config(ConfigDict(extra="forbid", arbitrary_types_allowed=True))


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


_SIGNALS: Final = {
    "search": ("yes", "no"),
    "ai-input": ("yes", "no"),
    "ai-train": ("yes", "no"),
    "use": ("immediate", "reference", "full"),
}
"""The keys of Content-Signal and their values."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9_.-]+")


def check_robots(value: Robots) -> Robots:
    """Refuse values that would break a line of robots.txt, and unknown signals."""
    for path in value.disallow:
        if not re.fullmatch(r"/[!-~]*", path):
            raise ValueError(f'disallow: {path!r} must be a path such as "/account", without spaces')
    for name in value.bots:
        if not _TOKEN.fullmatch(name):
            raise ValueError(f'bots: {name!r} is not the name of a crawler, such as "GPTBot"')
    for name, signal in value.content_signal.items():
        if name not in _SIGNALS or signal not in _SIGNALS[name]:
            known = "; ".join(f"{key}: {', '.join(values)}" for key, values in _SIGNALS.items())
            raise ValueError(f"content_signal: {name}={signal} is not known. There are: {known}")
    if value.content_usage is not None and not re.fullmatch(r"[!-~]+(?: [!-~]+)*", value.content_usage):
        raise ValueError('content_usage must be one line of AIPREF, such as "train-ai=n"')
    if value.license is not None:
        check_link(value.license)
    return value


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


@_strict
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


@_strict
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


@_strict
@dataclass(frozen=True, slots=True)
class Proxies:
    """Proxies trusted to name a caller's address, and the header in which they do; None for the two usual ones."""

    trusted: Sequence[Annotated[str, AfterValidator(check_proxy)]] = ()
    header: Annotated[str, AfterValidator(check_forwarded)] | None = None


@_strict
@dataclass(frozen=True, slots=True)
class Jobs:
    """Background jobs. `concurrency` is the number that run at the same time in one process.

    `queue` is the address of the Redis through which taskiq sends them to worker processes; without it they run in the
    processes of the site itself.
    """

    queue: Annotated[str, AfterValidator(check_queue)] | None = field(default=None, repr=False)
    concurrency: Count = 4


@_strict
@dataclass(frozen=True, slots=True)
class Pages:
    """Ways to request the formats of HTML pages, besides Accept.

    `in_query` also accepts `?format=som` and `?format=md`. `shared_cache` means that the caches in front of the site
    respect Vary, so that they may store responses selected by Accept.
    """

    in_query: Flag = False
    shared_cache: Flag = False


@_strict
@dataclass(frozen=True, slots=True)
class Browsing:
    """Limits for agents that browse the site through the AWP door (`doors=["awp"]`).

    With `auth_required` every connection has to authenticate. One process keeps at most `sessions` at once, a fifth of
    them for one address; a connection sends at most `messages_per_second`.
    """

    auth_required: Flag = False
    sessions: Count = 500
    messages_per_second: Count = 50


IDLE_SECONDS: Final = 900.0
"""Seconds without a message after which a session or a connection is closed."""


@_strict
@dataclass(frozen=True, slots=True)
class Traffic:
    """The record of calls and callers: sums for so many `days`, and totals at `/agents/metrics`.

    `metrics` is True if everybody may read the totals, or the scope that a caller needs for them.
    """

    days: Annotated[int, Strict(), Field(ge=1, le=400)] = 90
    metrics: Annotated[bool | str, AfterValidator(check_metrics)] = False


@_strict
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
    robots: Annotated[
        Annotated[Robots, BeforeValidator(unpack), AfterValidator(check_robots)] | None,
        Option(
            "`Robots(disallow, bots, content_signal, content_usage, license)`: the contents of robots.txt if the "
            "application has none of its own, see [discovery](discovery.md)",
            "`/robots.txt`",
        ),
    ] = None
    oauth: Annotated[
        OAuth | None,
        BeforeValidator(unpack),
        Option(
            "`OAuth(authorization_servers, endpoints, token_expiry, refresh_endpoint)`: where callers obtain the "
            "tokens that you accept; `authenticate` verifies them",
            "agent.json `auth`, AWAS `authentication`, RFC 9728 metadata, the agent card",
        ),
    ] = None
    rate_limit: Annotated[
        Rate | None,
        Option(
            'a limit for calls of all actions together, per caller: `"100/hour"`, `"9 per 5 minutes"`; '
            '`"100/hour by ip"` counts per address, `"100/hour in total"` counts all callers together',
            "AWAS `rateLimit`",
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
    doors: Annotated[
        Sequence[Literal["mcp", "a2a", "awp", "bridge"]],
        AfterValidator(lambda names: tuple(dict.fromkeys(names))),
        Option(
            'additional protocols: `["mcp", "a2a", "awp", "bridge"]`, each with its extra (`actions` for the '
            "bridge), see [MCP](mcp.md), [A2A](a2a.md), [AWP](awp.md), [the bridge](actions-bridge.md)",
            "WoA `transports`, agent.json `protocols`, the agent card",
        ),
    ] = ()
    browsing: Annotated[
        Browsing,
        BeforeValidator(unpack),
        Option(
            "`Browsing(auth_required=False, sessions=500, messages_per_second=50)`: whether browsing agents have "
            "to authenticate, the maximum sessions of a process, and the maximum message rate of a connection, "
            "see [AWP](awp.md)",
            "not published",
        ),
    ] = Browsing()
    timeout: Annotated[
        Seconds,
        Option("the timeout of handlers in seconds, 30 by default; an action may have its own", "not published"),
    ] = 30.0
    max_body_bytes: Annotated[
        int,
        Strict(),
        Field(gt=0),
        Option(
            "the maximum size of a call's body in bytes, 1 MiB by default; an action may have its own", "not published"
        ),
    ] = 1_048_576
    allow_origins: Annotated[
        Sequence[Annotated[str, AfterValidator(check_origin)]],
        Option('origins whose pages may call from a browser, `["*"]` for all', "AWAS `security`"),
    ] = ()
    list_only_allowed: Annotated[
        Flag, Option("`True`: MCP's `tools/list` lists only the tools that the caller may call", "not published")
    ] = False
    trust_outer_middleware: Annotated[
        Flag,
        Option(
            "`True`: no middleware outside of `AgentPublisher` decides by the path, so calls of routes need not "
            "[pass it](guards.md) a second time",
            "not published",
        ),
    ] = False
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
    confirm_within: Annotated[
        Duration, Option('how long a confirmation is valid, `"10m"` by default', "`expires_at` of each")
    ] = "10m"
    jobs: Annotated[
        Jobs,
        BeforeValidator(unpack),
        Option(
            "`Jobs(queue, concurrency=4)`: the Redis by which taskiq distributes background jobs to worker "
            "processes, and how many jobs a process runs at a time, see [jobs](jobs.md)",
            "not published",
        ),
    ] = Jobs()
    overview: Annotated[
        bool | str | None,
        PlainValidator(read_overview),
        Field(validate_default=True),
        Option(
            '`True`: serve the [overview](overview.md) at `/agents`; the name of a scope, such as `"operator"`: '
            "only for callers with that scope; by default, it is served if the environment has "
            "`AWP_PUBLISH_OVERVIEW=1`, and in Django with `DEBUG`",
            "not published",
        ),
    ] = None
    pages: Annotated[
        bool | Pages | None,
        PlainValidator(read_pages),
        Field(validate_default=True),
        Option(
            "whether HTML pages are also served as SOM and Markdown; `Pages(in_query, shared_cache)`: whether "
            "`?format=` requests them too, and whether shared caches honour `Vary`, see [pages](pages.md); by "
            "default, if `awp-publish[pages]` is installed",
            "`/.well-known/som.json`, agent.json `protocols`",
        ),
    ] = None
    approval: Annotated[
        bool | str,
        PlainValidator(read_approval),
        Option(
            "`True`: publish only actions that you have approved with `awp-publish approve`; the path of the "
            "file with the approvals, instead of `agents-approved.json`; see [guards](guards.md#approval)",
            "not published",
        ),
    ] = False
    traffic: Annotated[
        Traffic | None,
        BeforeValidator(read_traffic),
        Option(
            "`Traffic(days=90, metrics=False)`: for how many days counts of calls are kept in the store, and "
            "whether `/agents/metrics` serves totals as OpenMetrics (`True`, or the required scope); `False` "
            "keeps nothing, see [traffic](traffic.md)",
            "not published",
        ),
    ] = Traffic()
    log_inputs: Annotated[
        Flag, Option("whether the log of calls includes their inputs; `False` by default", "not published")
    ] = False

    @property
    def urls(self) -> tuple[str, ...]:
        """The public addresses, the canonical one first."""
        return cast(tuple[str, ...], self.url)

    @property
    def namespace(self) -> str:
        """The host of the canonical address, which prefixes the keys in the store and is part of signed tokens."""
        return urlsplit(self.urls[0]).netloc

    @property
    def page_formats(self) -> Pages | None:
        """Return the settings for other formats of HTML pages, or None if pages are served as HTML only."""
        return self.pages if isinstance(self.pages, Pages) else None

    @property
    def has_overview(self) -> bool:
        """Return True if the overview is served: according to the option, or else to the environment variable."""
        if self.overview is None:
            return _SWITCH.get(os.environ.get(OVERVIEW_VARIABLE, "").strip().lower(), False)
        return self.overview is not False


@_strict
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


@_strict
@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSettings:
    """All options of an action. docs/actions.md has one line on each."""

    name: Annotated[Text | None, Option("a readable name", "the id in words")] = None
    description: Annotated[
        Text | None,
        Option("what the action does, for an agent's planning", "the docstring, or the route's description"),
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
        Sequence[DoorName] | None,
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


@_strict
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
    if expressions.has_engine():
        try:
            expressions.check_expression(value)
        except expressions.ExpressionError as error:
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


@_strict
class PageSettings(TypedDict, total=False):
    """The options of a page. See docs/pages.md and docs/actions-json.md."""

    title: Annotated[Text, Option("what it is called", "the end of its path in words")]
    description: Annotated[Text, Option("what stands on it", "the docstring of its handler")]
    id: Annotated[Id, Option("what goes before the names that are declared on it", "the end of its path")]
    guide: Annotated[Text, Option("how an agent gets on with the page", "the description")]
    actions: Annotated[Sequence[Id], Option("ids of the actions whose forms stand on the page", "none")]
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
        Option("events that agents may be told of: `Signal(event, payload=, at=, description=)`", "none"),
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
DURATION: Final[TypeAdapter[str]] = TypeAdapter(Duration)
ID: Final[TypeAdapter[str]] = TypeAdapter(Id)
AUDIENCE: Final[TypeAdapter[str]] = TypeAdapter(Audience)
PAGE: Final = TypeAdapter(PageSettings)
PATH: Final[TypeAdapter[str]] = TypeAdapter(Path)
TOKEN: Final[TypeAdapter[str]] = TypeAdapter(Annotated[str, AfterValidator(check_token)])
TEXTS: Final[TypeAdapter[Sequence[str]]] = TypeAdapter(Sequence[Text])


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
