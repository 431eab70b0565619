"""Options that need more than a type: the ways in which they may be written, and what is refused."""

import dataclasses
import inspect
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from string import Formatter
from typing import Final, Literal, cast

import limits

from awp_publish.model import (
    RATE_SCOPES,
    Authentication,
    Browsing,
    Contact,
    Idempotency,
    RateLimit,
    Result,
    Summary,
    Workflow,
)
from awp_publish.options.addresses import check_link, check_url
from awp_publish.selectors import selector_fault

ENVELOPE: Final = frozenset({"agent", "operation", "input", "confirmation", "receipts"})
"""Members of a call's envelope that are no idempotency keys."""

_UNITS: Final = {"second": "s", "minute": "m", "hour": "h", "day": "d"}
_RATE_LIMIT_HELP: Final = 'write a rate limit as "30/minute" or {"requests": 30, "window": "1m"}'
_TYPE_MODULES: Final = ("typing", "types", "typing_extensions")
SHORTEST_KEY: Final = 16
"""Characters of a secret key: what is shorter could be guessed."""
_INTEGERS: Final = range(-(2**63), 2**64)
"""The whole numbers that JSON readers with 64 bits agree on."""


def unpack(value: object) -> object:
    """Look inside a ready-made dataclass too: constructing one checks nothing."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: unpack(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


# --- Texts and names ---


def check_text(value: str) -> str:
    if not value.strip() or not _is_writable(value):
        raise ValueError("must not be empty" if _is_writable(value) else "holds characters that UTF-8 has not")
    return value


def check_id(value: str) -> str:
    """The one spelling of ids that every protocol accepts."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", value):
        raise ValueError(f"{value!r} must be lower-case letters, digits and _, beginning with a letter")
    return value


def check_token(value: str) -> str:
    """WoA section 4.1: agent-id = 1*( ALPHA / DIGIT / "-" / "_" ); operation names are held to the same."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", value):
        raise ValueError(f"{value!r} must be letters, digits, - and _")
    return value


def check_error_code(value: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", value):
        raise ValueError(f'{value!r} is not an error code; write it in capitals, such as "SOLD_OUT"')
    return value


# --- Limits and durations ---


def read_rate_limit(value: object) -> RateLimit:
    """Read a limit: "30/minute", "9 per 5 minutes", {"requests": 30, "window": "1m", "scope": "ip"} or a RateLimit."""
    if isinstance(value, RateLimit):
        value = {"requests": value.requests, "window": value.window, "scope": value.scope}
    if isinstance(value, str):
        return _rate_limit_of_text(value)
    if isinstance(value, Mapping):
        return _rate_limit_of_window(value)
    raise ValueError(_RATE_LIMIT_HELP)


def _rate_limit_of_text(text: str) -> RateLimit:
    try:
        items = limits.parse_many(text)
    except ValueError as error:
        raise ValueError(f'{text!r} is not a rate limit; write it as "30/minute"') from error
    if len(items) > 1:
        raise ValueError(f"{text!r} holds several limits; an action has one")
    item = items[0]
    unit = _UNITS.get(item.GRANULARITY.name)
    if unit is None or item.amount < 1 or item.multiples < 1:
        raise ValueError(f"{text!r} must be at least one request in seconds, minutes, hours or days")
    return RateLimit(item.amount, item.multiples, cast(Literal["s", "m", "h", "d"], unit))


def _rate_limit_of_window(value: Mapping[object, object]) -> RateLimit:
    unknown = sorted(str(name) for name in set(value) - {"requests", "window", "scope"})
    requests, window, scope = value.get("requests"), value.get("window"), value.get("scope")
    matched = re.fullmatch(r"([1-9]\d*)([smhd])", window) if isinstance(window, str) else None
    if unknown:
        raise ValueError(f"a rate limit has requests, window and scope, not {', '.join(map(repr, unknown))}")
    if not isinstance(requests, int) or isinstance(requests, bool) or requests < 1:
        raise ValueError(f"requests must be a positive whole number, not {requests!r}")
    if matched is None:
        raise ValueError(f'window must be a number and one of s, m, h, d, such as "1m", not {window!r}')
    if scope is not None and scope not in RATE_SCOPES:
        raise ValueError(f"scope must be one of {', '.join(map(repr, RATE_SCOPES))}, not {scope!r}")
    return RateLimit(requests, int(matched[1]), cast(Literal["s", "m", "h", "d"], matched[2]), scope)


def read_idempotency(value: object) -> Idempotency | None:
    """Read an idempotency window: "24h", True for 24 hours, {"window": "24h", "key_field": "..."} or an Idempotency."""
    if isinstance(value, bool):
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


def check_duration(value: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[smhd]", value):
        raise ValueError(f'{value!r} is not a duration; write a number and one of s, m, h, d, such as "24h"')
    return value


def check_browsing(value: Browsing) -> Browsing:
    for field in dataclasses.fields(value):
        given = getattr(value, field.name)
        try:
            if isinstance(given, str):
                check_duration(given)
            elif not isinstance(given, bool) and given < 1:
                raise ValueError(f"must be 1 or more, not {given}")
        except ValueError as error:
            raise ValueError(f"{field.name} {error}") from None
    return value


def read_updated(value: object) -> datetime:
    """When the site's actions last changed: a datetime, a date or either as ISO 8601 text; without a zone it is UTC."""
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
    """One key or several, the newest first: it signs, all of them verify."""
    keys = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else ()
    if not keys or not all(isinstance(key, str) and len(key) >= SHORTEST_KEY for key in keys):
        raise ValueError(
            f"must be one or several texts of at least {SHORTEST_KEY} characters, the newest first; "
            'make one with: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    return keys


def read_summary(value: object) -> Summary:
    """A text with inputs in braces, or a function of the input."""
    if callable(value) and not inspect.iscoroutinefunction(value):
        return cast(Summary, value)
    if not isinstance(value, str):
        raise ValueError('must be a text such as "Order {copies} copies of {title}", or a function of the input')
    try:
        parts = [(name, spec or "") for _, name, spec, _ in Formatter().parse(check_text(value)) if name is not None]
    except ValueError as error:
        raise ValueError(f"{value!r} has a brace that does not close; write {{{{ for a brace itself") from error
    for name, spec in parts:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"{{{name}}} is not the name of an input")
        if spec and not _is_format(spec):
            raise ValueError(f"{{{name}:{spec}}} has a format that neither a number nor a text takes")
    return value


def _is_format(spec: str) -> bool:
    """Whether a format holds no names of inputs, of whose values it would be made, and fits any value of JSON."""
    for sample in (1, 1.5, "text"):
        try:
            return "{" not in spec and bool(format(sample, spec))
        except ValueError:
            continue
    return False


# --- Selectors ---


def check_selector(value: str) -> str:
    """Refuse what no CSS parser would take (AWAS, validation rule 3)."""
    if not value.strip():
        raise ValueError("a CSS selector must not be empty")
    if fault := selector_fault(value):
        raise ValueError(f"{value!r} is not a CSS selector ({fault})")
    return value


def read_selectors(value: object) -> str | Mapping[str, str]:
    """A selector for each input by name, or the style of attributes by which the page's own markup tells them."""
    if isinstance(value, str) and value in ("data-awas", "data-ai"):
        return value
    if isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair):
        return {name: check_selector(selector) for name, selector in value.items()}
    raise ValueError('must be "data-awas", "data-ai", or a dictionary of input names and CSS selectors')


def check_result(result: Result) -> Result:
    pagination = dataclasses.asdict(result.pagination) if result.pagination else {}
    for selector in (result.selector, result.item_selector, *result.properties.values(), *pagination.values()):
        if selector is not None:
            check_selector(selector)
    return result


# --- Types and JSON ---


def check_kind(value: object) -> object:
    """What inputs and outputs may be: a type, or a JSON Schema, which is copied."""
    if isinstance(value, Mapping):
        return plain_json(value)
    if value is None or isinstance(value, type) or type(value).__module__ in _TYPE_MODULES:
        return value
    raise ValueError(f"{_shortened(value)} is neither a type nor a JSON Schema")


def read_entity(value: object) -> object:
    if isinstance(value, type):
        return value
    if isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair):
        return dict(value)
    raise ValueError('must be a model or a table of its fields and their types, such as {"title": "string"}')


def check_extensions(value: Mapping[str, object]) -> Mapping[str, object]:
    for name in value:
        if not re.fullmatch(r"x-\S+", name):
            raise ValueError(f"{name!r}: extension names begin with x- (AWAS, section Extensions)")
    return check_json(value)


def check_json(value: Mapping[str, object]) -> Mapping[str, object]:
    """A JSON object, copied, so that nobody changes it after it was published."""
    return cast(Mapping[str, object], plain_json(value))


def plain_json(value: object) -> object:
    """A copy of plain dictionaries, lists, texts and numbers. Raises ValueError for what has no JSON."""
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: plain_json(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(item) for item in value]
    if value is None or isinstance(value, bool) or (isinstance(value, (str, int, float)) and _is_writable(value)):
        return value
    raise ValueError(f"{_shortened(value)} is not JSON")


def _is_writable(value: str | int | float) -> bool:
    """Whether UTF-8 has a text's characters, and JSON a number."""
    if isinstance(value, str):
        return re.search("[\ud800-\udfff]", value) is None
    return value in _INTEGERS if isinstance(value, int) else math.isfinite(value)


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


# --- Whole values ---


def check_contact(value: Contact) -> Contact:
    if value.email is not None and not re.fullmatch(r"[^@\s]+@[^@\s]+", value.email):
        raise ValueError(f"email {value.email!r} is not an e-mail address")
    if value.url is not None:
        check_link(value.url)
    return value


def check_authentication(value: Authentication) -> Authentication:
    if value.token_expiry is not None:
        check_duration(value.token_expiry)
    for link in (value.refresh_endpoint, *value.endpoints.values()):
        if link is not None:
            check_link(link)
    for server in value.authorization_servers:
        check_url(server)
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
