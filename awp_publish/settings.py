"""What a site owner may say, and the words in which a mistake is refused.

The `TypedDict`s below are at once the signatures of `Site(...)`, `@site.action(...)` and their siblings (editors
complete them, type checkers check them) and the pydantic schemas that check them at run time. This is the edge:
behind it stand the frozen values of `values.py`.
"""

import dataclasses
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from importlib.util import find_spec
from ipaddress import ip_network
from string import Formatter
from typing import Annotated, Final, Literal, TypeAlias, TypeVar, cast, get_type_hints
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
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict

from awp_publish.model import (
    EXTENDED_DOCUMENTS,
    RATE_SCOPES,
    ActionType,
    Attachment,
    Browsing,
    Contact,
    Effect,
    Execution,
    Idempotency,
    Import,
    Jobs,
    JsonObject,
    Locator,
    OAuth,
    PageCheck,
    Pages,
    Paths,
    Place,
    Projection,
    RateLimit,
    Result,
    Signal,
    SiteFacts,
    State,
    Summary,
    Transition,
    Workflow,
)
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema, write_schema
from awp_publish.selectors import selector_fault

# --- Addresses that a site owner writes ---

_VISIBLE: Final = re.compile(r"[!-~]+")
"""ASCII without spaces and control characters: what an address in a header or a document may hold."""

_PATH: Final = re.compile(r"/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@{}/-]*")


def check_url(value: str) -> str:
    """An absolute http or https address without query and fragment; a trailing slash is dropped."""
    parts = _split(value)
    wrong = parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in ("http", "https") or not parts.hostname or wrong or not _VISIBLE.fullmatch(value):
        raise ValueError(
            f"{value!r} is not the public address of a site; "
            'write it in ASCII, without query and fragment: "https://shop.example"'
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def check_origin(value: str) -> str:
    """An origin as browsers send it, or "*" for all."""
    parts = _split(value)
    if value != "*" and (parts.scheme not in ("http", "https") or value != f"{parts.scheme}://{parts.netloc}"):
        raise ValueError(f'{value!r} is not an origin; write "https://shop.example" without a path, or "*" for all')
    return value


def check_link(value: str) -> str:
    """A path below the site's origin, or an absolute URL."""
    parts = _split(value)
    is_path = value.startswith("/") and not value.startswith("//")
    is_absolute = parts.scheme in ("http", "https") and bool(parts.hostname)
    if not _VISIBLE.fullmatch(value) or not (is_path or is_absolute):
        raise ValueError(f'{value!r} is neither a path beginning with "/" nor an absolute URL')
    return value


def check_path(value: str) -> str:
    """A path template of the application."""
    if not value.startswith("/"):
        raise ValueError(f'{value!r} must begin with "/"')
    if re.search(r"[?#\s]", value):
        raise ValueError(f'{value!r} must hold no "?", "#" or space; declare inputs for the query')
    return value


def check_paths(paths: Paths) -> Paths:
    """Where things of ours live: plain paths; `invoke` may hold {agent_id} once, in its path or in a query."""
    path, _, query = paths.invoke.partition("?")
    if not _PATH.fullmatch(path) or path == "/" or not re.fullmatch(r"[!-~]*", query) or "#" in query:
        raise ValueError(f'invoke {paths.invoke!r} must be a path such as "/agents/{{agent_id}}/invoke"')
    if paths.invoke.count("{agent_id}") > 1 or re.search(r"[{}]", paths.invoke.replace("{agent_id}", "")):
        raise ValueError(f"invoke {paths.invoke!r} may hold {{agent_id}} once and no other placeholder")
    for name in ("actions", "problems", "jobs", "status", "mcp", "a2a", "awp", "som"):
        plain = getattr(paths, name)
        if not _PATH.fullmatch(plain) or re.search(r"[{}]|/$", plain):
            raise ValueError(f'{name} {plain!r} must be a path such as "/agents/{name}"')
    return paths


def check_jobs(value: Jobs) -> Jobs:
    """A refusal does not repeat the address of the queue, which may hold a password."""
    if value.queue is not None and not re.match(r"(rediss?|unix)://.", value.queue):
        raise ValueError('queue must be the address of a Redis, such as "redis://queue.example:6379/0"')
    if value.concurrency < 1:
        raise ValueError(f"concurrency must be 1 or more, not {value.concurrency}")
    check_duration(value.results)
    return value


def check_proxy(value: str) -> str:
    """An address or network of a proxy, or "unix" for one that connects through a socket file."""
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
"""Headers in which proxies tell a client's address: two lists, and single addresses."""


def check_forwarded(value: str) -> str:
    """The name of the header in which a proxy tells who called it, in lower case; refuse what is misspelt."""
    name = value.lower()
    close = get_close_matches(name.replace("_", "-"), _FORWARDING, 1, 0.8)
    if not re.fullmatch(r"[a-z0-9!#$%&'*+.^_`|~-]+", name):
        raise ValueError(f"{value!r} is not the name of a header, such as 'x-forwarded-for' or 'cf-connecting-ip'")
    if name not in _FORWARDING and close:
        raise ValueError(f"{value!r} is no header that proxies are known to send; did you mean '{close[0]}'?")
    return name


def _split(value: str) -> SplitResult:
    """The parts of an address. Raises ValueError in words of its own for a port or an IPv6 address that is none."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{value!r} is not an address ({error})") from error
    return parts


# --- Options that need more than a type: the ways in which they may be written, and what is refused ---

ENVELOPE: Final = frozenset({"agent", "operation", "input", "confirmation", "receipts"})
"""Members of a call's envelope that are no idempotency keys."""

_RATE: Final = re.compile(r"\s*([0-9]{1,9})\s*(?:/|per)\s*(?:([0-9]{1,9})\s*)?([a-z]+?)s?\s*", re.IGNORECASE)
_UNITS: Final[Mapping[str, Literal["s", "m", "h", "d"]]] = {"second": "s", "minute": "m", "hour": "h", "day": "d"}
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
    matched = _RATE.fullmatch(text)
    if matched is None and re.search(r"[;,|]", text):
        raise ValueError(f"{text!r} holds several limits; an action has one")
    if matched is None:
        raise ValueError(f'{text!r} is not a rate limit; write it as "30/minute"')
    requests, count, unit = int(matched[1]), int(matched[2] or 1), _UNITS.get(matched[3].lower())
    if unit is None or requests < 1 or count < 1:
        raise ValueError(f"{text!r} must be at least one request in seconds, minutes, hours or days")
    return RateLimit(requests, count, unit)


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
    for member in dataclasses.fields(value):
        given = getattr(value, member.name)
        try:
            if isinstance(given, str):
                check_duration(given)
            elif not isinstance(given, bool) and given < 1:
                raise ValueError(f"must be 1 or more, not {given}")
        except ValueError as error:
            raise ValueError(f"{member.name} {error}") from None
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


def read_pages(value: object) -> bool | Pages | None:
    """Whether pages have other formats, and how those may be asked for; None leaves it to what is installed."""
    if value is None or isinstance(value, bool):
        return value
    given = unpack(value)
    is_known = isinstance(given, Mapping) and set(given) <= {"in_query", "shared_cache"}
    if is_known and all(isinstance(flag, bool) for flag in cast(Mapping[str, object], given).values()):
        return Pages(**cast(Mapping[str, bool], given))
    raise ValueError("must be True, False or Pages(in_query=True, shared_cache=True)")


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


def read_confirm(value: object) -> bool | Summary:
    """Read whether a person confirms each call; a text with inputs in braces, or a function, is what is asked."""
    if isinstance(value, bool):
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


def check_oauth(value: OAuth) -> OAuth:
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


@dataclass(frozen=True, slots=True)
class Option:
    """One option's row in the tables of docs/: what it says, and where that is published or what holds without it."""

    meaning: str
    other: str


def option_rows(options: type, names: Iterable[str] = ()) -> list[tuple[str, Option]]:
    """Return the options of a settings class with their rows, in order; all of them if no `names` are given."""
    kinds = get_type_hints(options, include_extras=True)
    documented = {
        name: next(part for part in kinds[name].__metadata__ if isinstance(part, Option)) for name in names or kinds
    }
    return list(documented.items())


# --- Checking a value, and saying in the words of a site owner what is wrong with it ---

T = TypeVar("T")

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
    "is_instance_of": "must be a list",  # of our annotations only Sequence is checked by pydantic in this way
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "string_pattern_mismatch": 'must look like "1.0" or "1.0.3"',  # only a site's version has a pattern of pydantic's
}
"""pydantic's kinds of error in our words; its own words for every other."""


def check(subject: str, adapter: TypeAdapter[T], value: object, field: str = "", known: Collection[str] = ()) -> T:
    """Check a value against an adapter. Raises DeclarationError that names the subject and the field.

    `known` are the options there are, among which a misspelt one may be found.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise DeclarationError(subject, _in_words(error, field, known)) from error


def _in_words(error: ValidationError, field: str, known: Collection[str]) -> str:
    wrong = error.errors(include_url=False)
    first = wrong[0]
    where = ".".join(str(part) for part in (field, *first["loc"]) if part not in ("", "[key]"))
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    said = _said(first) + _meant(first, known)
    end = "" if said.endswith("?") and not more else "."
    return f"{where}: {said}{more}{end}" if where else f"{said}{more}{end}"


def _said(error: ErrorDetails) -> str:
    if error["type"] == "dataclass_type":
        return f"must be {error['ctx']['class_name']}(...) or a dictionary of its fields"
    if error["type"] == "literal_error":
        return f"must be {error['ctx']['expected']}, not {error['input']!r}"
    return _WORDS.get(error["type"], error["msg"].removeprefix("Value error, ").replace("Input should", "must"))


_SPELT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("intent", "side_effect", "sensitivity", "reversible"), "effect"),
    **dict.fromkeys(("requires_human_confirmation", "confirmation_summary"), "confirm"),
    **dict.fromkeys(("type", "selector", "selectors", "result", "preview_url", "dry_run"), "awas"),
    "enforce_prerequisites": "requires",
    "authentication": "oauth",
    **dict.fromkeys(("job_queue", "job_concurrency", "job_results"), "jobs"),
    **dict.fromkeys(("page_formats_in_query", "page_formats_in_shared_cache"), "pages"),
}
"""Words of the protocols that people may take for options, and the options that say it."""


def _meant(error: ErrorDetails, known: Collection[str]) -> str:
    if error["type"] != "extra_forbidden":
        return ""
    wrong = str(error["loc"][-1])
    spelt = _SPELT.get(wrong)
    close = (
        [spelt]
        if spelt is not None and spelt in known and len(error["loc"]) == 1
        else get_close_matches(wrong, known, n=1)
    )
    return f'; did you mean "{close[0]}"?' if close else ""


__all__ = [
    "NAMES",
    "URL",
    "ActionOptions",
    "AgentOptions",
    "PageOptions",
    "SiteOptions",
    "check",
    "check_action",
    "check_agent",
    "check_identifier",
    "check_page",
    "check_site",
]

Flag: TypeAlias = Annotated[bool, Strict()]
Seconds: TypeAlias = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Text: TypeAlias = Annotated[str, AfterValidator(check_text)]
Id: TypeAlias = Annotated[str, AfterValidator(check_id)]
Link: TypeAlias = Annotated[str, AfterValidator(check_link)]
Selector: TypeAlias = Annotated[str, AfterValidator(check_selector)]
Extensions: TypeAlias = Annotated[Mapping[str, object], AfterValidator(check_extensions)]
RateLimitOption: TypeAlias = Annotated[RateLimit | str | Mapping[str, object], PlainValidator(read_rate_limit)]
IdempotencyOption: TypeAlias = Annotated[
    bool | str | Mapping[str, object] | Idempotency, PlainValidator(read_idempotency)
]
SelectorsOption: TypeAlias = Annotated[
    Literal["data-awas", "data-ai"] | Mapping[str, str], PlainValidator(read_selectors)
]
EntityOption: TypeAlias = Annotated[type | Mapping[str, str], PlainValidator(read_entity)]
ContentType: TypeAlias = Literal["application/json", "application/x-www-form-urlencoded", "multipart/form-data"]
Duration: TypeAlias = Annotated[str, AfterValidator(check_duration)]
SecretKeysOption: TypeAlias = Annotated[str | Sequence[str], PlainValidator(read_secret_keys)]
ConfirmOption: TypeAlias = Annotated[bool | Summary, PlainValidator(read_confirm)]
PagesOption: TypeAlias = Annotated[bool | Pages | None, PlainValidator(read_pages)]
WorkflowOption: TypeAlias = Annotated[Workflow, BeforeValidator(unpack), AfterValidator(check_workflow)]

_STRICT: Final = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


@pydantic_config(_STRICT)
class SiteOptions(TypedDict, total=False):
    """Everything a `Site` may say besides name, description and url. See docs/site.md for one line on each."""

    version: Annotated[
        str,
        Field(pattern=r"^\d+\.\d+(\.\d+)?$"),
        Option('version of what you publish, `"1.0"` or `"2.1.3"`', "cards, bridge manifests, AWAS `x-version`"),
    ]
    contact: Annotated[
        Contact,
        BeforeValidator(unpack),
        AfterValidator(check_contact),
        Option("`Contact(email=, url=)`", "AWAS `contact`"),
    ]
    oauth: Annotated[
        OAuth,
        BeforeValidator(unpack),
        AfterValidator(check_oauth),
        Option(
            "`OAuth(authorization_servers, endpoints, token_expiry, refresh_endpoint)`: where callers"
            " get the tokens that you take; how callers are known follows from `authenticate`",
            "agent.json `auth`, AWAS `authentication`, RFC 9728 metadata, the agent card",
        ),
    ]
    rate_limit: Annotated[
        RateLimitOption,
        Option(
            'a limit for all actions together, for each caller: `"100/hour"`, `"9 per 5 minutes"`, '
            '`{"requests": 100, "window": "1h", "scope": "ip"}` or `RateLimit(...)`',
            "AWAS `rateLimit`",
        ),
    ]
    entities: Annotated[
        Mapping[Id, EntityOption],
        Option(
            'what actions speak about: models, or tables such as `{"book": {"title": "string"}}`',
            "agent.json `entities`",
        ),
    ]
    errors: Annotated[
        Mapping[Annotated[str, AfterValidator(check_error_code)], Text],
        Option(
            "recoveries by error code, in capitals; a handler's refusal may carry these codes",
            "agent.json `errors`, problems of calls",
        ),
    ]
    hints: Annotated[Mapping[Text, Text], Option("advice for planning, free text by name", "agent.json `agent_hints`")]
    workflows: Annotated[
        Sequence[WorkflowOption],
        AfterValidator(check_workflows),
        Option(
            "`Workflow(id, name, steps, description)`: an order of action ids that reaches a goal",
            "AWAS 1.1 `workflows`",
        ),
    ]
    documentation: Annotated[Link, Option("a page about the site, a path or URL", "MCP and A2A manifests of AWAS")]
    license: Annotated[
        Text, Option("the licence of what the site gives, by its SPDX name or URL", "MCP and A2A manifests of AWAS")
    ]
    updated: Annotated[
        datetime,
        PlainValidator(read_updated),
        Option(
            "when the actions last changed: a date, a datetime or ISO 8601 text; without a time zone it is UTC",
            "AWAS 1.1 `lastUpdated`, `Last-Modified`",
        ),
    ]
    imports: Annotated[
        Mapping[Id, Annotated[Import, BeforeValidator(unpack)]],
        Option("further maps by namespace: `Import(uri, kind=, trust=, enabled=)`", "actions.json `imports`"),
    ]
    extensions: Annotated[
        Extensions,
        Option(
            'members of your own: `x-...` for all documents, and under `"agent_json"`, `"awas"` or `"woa"` members '
            "of any name for that [document](documents.md#members-of-your-own)",
            "all documents",
        ),
    ]
    paths: Annotated[
        Paths,
        BeforeValidator(unpack),
        AfterValidator(check_paths),
        Option(
            '`Paths(invoke="/agents/{agent_id}/invoke", actions="/agents/actions", problems="/agents/problems", '
            'jobs="/agents/jobs", status="/agents/status", mcp="/mcp", a2a="/a2a", awp="/awp", '
            'som="/agents/som")`: where our own addresses are',
            "WoA `invoke_path`, AWAS `path`, agent.json `endpoint`, problem types, `poll_endpoint`, `status_endpoint`",
        ),
    ]
    doors: Annotated[
        Sequence[Literal["mcp", "a2a", "awp"]],
        Option(
            'further protocols to speak: `["mcp", "a2a", "awp"]`, each with its extra, see '
            "[MCP](mcp.md), [A2A](a2a.md), [AWP](awp.md)",
            "WoA `transports`, agent.json `protocols`, the agent card",
        ),
    ]
    browsing: Annotated[
        Browsing,
        BeforeValidator(unpack),
        AfterValidator(check_browsing),
        Option(
            "`Browsing(auth_required, sessions, sessions_per_connection, sessions_per_address, "
            "pages_per_session, page_bytes, messages_per_second, idle, lifetime, resume, "
            "export_lifetime)`: what agents that browse are held to, see [AWP](awp.md)",
            "not published",
        ),
    ]
    timeout: Annotated[
        Seconds, Option("seconds that a handler may take, 30 by default; an action may have its own", "not published")
    ]
    max_body_bytes: Annotated[
        int, Strict(), Field(gt=0), Option("the largest envelope, one MiB by default", "not published")
    ]
    allow_origins: Annotated[
        Sequence[Annotated[str, AfterValidator(check_origin)]],
        Option('origins whose pages may call from a browser, `["*"]` for all', "AWAS `security`"),
    ]
    list_only_allowed: Annotated[
        Flag, Option("`True`: MCP's `tools/list` shows each caller only what they may call", "not published")
    ]
    trust_outer_middleware: Annotated[
        Flag,
        Option(
            "`True`: no middleware outside of `AgentPublisher` decides by the path, so calls of "
            "routes do not [go through it](guards.md) a second time",
            "not published",
        ),
    ]
    guard_routes: Annotated[
        Flag,
        Option(
            "`True`: direct requests of the actions' routes meet the same [gates](guards.md) as calls; an action may "
            "say otherwise",
            "not published",
        ),
    ]
    store: Annotated[
        object,
        Option(
            'where calls are remembered: `"memory:"`, `"sqlite:///agents.db"`, `"redis://..."`, see '
            "[stores](stores.md)",
            "not published",
        ),
    ]
    secret_keys: Annotated[
        SecretKeysOption,
        Option(
            "what confirmations and receipts are signed with, the newest first; at least 16 characters each",
            "not published",
        ),
    ]
    authenticate: Annotated[
        object,
        Option(
            "how callers are known: `BearerToken`, `ApiKey`, `JwtBearer`, `SessionUser`, "
            "`ApplicationUser`, a function, or a list, see [guards](guards.md)",
            "agent.json `auth`, AWAS `authentication`, the agent card",
        ),
    ]
    trusted_proxies: Annotated[
        Sequence[Annotated[str, AfterValidator(check_proxy)]],
        Option('whose word on a caller\'s address is taken: addresses, networks, `"unix"`', "not published"),
    ]
    forwarded: Annotated[
        str,
        AfterValidator(check_forwarded),
        Option(
            'the header in which they tell it: `"x-forwarded-for"`, `"forwarded"`, or any with a '
            'single address, `"cf-connecting-ip"` say; without it, the first two as long as only one '
            "of them is there",
            "not published",
        ),
    ]
    confirm_within: Annotated[Duration, Option('how long a confirmation is good, `"10m"`', "`expires_at` of each")]
    receipts_within: Annotated[Duration, Option('how long a receipt is good, `"1h"`', "not published")]
    jobs: Annotated[
        Jobs,
        BeforeValidator(unpack),
        AfterValidator(check_jobs),
        Option(
            '`Jobs(queue, concurrency=4, results="24h")`: the Redis through which taskiq carries '
            "background jobs to worker processes, how many of them a process runs at a time, how long"
            " a result can be polled, see [jobs](jobs.md)",
            "not published",
        ),
    ]
    status_interval: Annotated[Duration, Option('how often probes are asked, `"30s"`', "not published")]
    pages: Annotated[
        PagesOption,
        Option(
            "whether HTML pages are given as SOM and Markdown too; `Pages(in_query, shared_cache)` "
            "says that `?format=` asks for them as well, and that shared caches heed `Vary`, see "
            "[pages](pages.md); left out: where `awp-publish[pages]` is installed",
            "`/.well-known/som.json`, agent.json `protocols`",
        ),
    ]
    log_inputs: Annotated[Flag, Option("whether the record of calls has their inputs; False", "not published")]


@pydantic_config(_STRICT)
class AwasOptions(TypedDict, total=False):
    """What only AWAS says of an action."""

    type: Annotated[
        ActionType,
        Option(
            "`form_submission`, `navigation`, `search`, `filter`, `data_retrieval`, `state_change`, `custom`",
            "from method and body",
        ),
    ]
    selector: Annotated[Selector, Option("CSS selector of the element that performs it", "none")]
    selectors: Annotated[
        SelectorsOption,
        Option(
            'CSS selector for each input, or `"data-awas"` or `"data-ai"` for the attributes of your '
            "[templates](templates.md)",
            "none",
        ),
    ]
    result: Annotated[
        Result,
        BeforeValidator(unpack),
        AfterValidator(check_result),
        Option(
            "`Result(type, selector, item_selector, properties, pagination)`: where the result stands in the page",
            "none",
        ),
    ]
    preview_url: Annotated[Link, Option("a page that shows what would happen", "none")]
    dry_run: Annotated[Flag, Option("whether it can be tried without effect", "`False`")]


@pydantic_config(_STRICT)
class ActionOptions(TypedDict, total=False):
    """Everything an action may say. See docs/actions.md for one line on each."""

    name: Annotated[Text, Option("a readable name", "the id in words")]
    description: Annotated[
        Text, Option("what it does, for an agent's planning", "the docstring, or the route's description")
    ]
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE"],
        Option("which method of the route is meant", "the only one there is"),
    ]
    path: Annotated[
        str, AfterValidator(check_path), Option("which route of the handler is meant", "the only one there is")
    ]
    inputs: Annotated[
        object,
        AfterValidator(check_kind),
        Option(
            "what it takes: a model, a dataclass, a `TypedDict` or a JSON Schema of type object",
            "what the route or signature says",
        ),
    ]
    outputs: Annotated[
        object,
        AfterValidator(check_kind),
        Option("what it gives: any type, or a JSON Schema", "what the route or annotation says"),
    ]
    content_type: Annotated[
        ContentType,
        Option(
            "how a declared body is sent: `application/json`, `application/x-www-form-urlencoded`, "
            "`multipart/form-data`",
            "what the route says, else JSON",
        ),
    ]
    agent: Annotated[str, Option("the agent whose operation it is", "an agent of its own")]
    operation: Annotated[
        str, AfterValidator(check_token), Option("its name as an operation of `agent`", "the action's id")
    ]
    tags: Annotated[Sequence[Text], Option("words to find it by", "none")]
    examples: Annotated[
        Sequence[Annotated[JsonObject, AfterValidator(check_json)]],
        Option("whole inputs; they must match the inputs", "none"),
    ]
    auth_required: Annotated[
        Flag,
        Option(
            "whether callers must identify themselves",
            "whether there are scopes or the route has a security scheme that insists",
        ),
    ]
    scopes: Annotated[Sequence[Text], Option("OAuth scopes that it needs", "those of the route's security schemes")]
    rate_limit: Annotated[RateLimitOption, Option('as for the site, `"30/minute"`', "none")]
    idempotency: Annotated[
        IdempotencyOption,
        Option(
            "whether calls may carry a key, and for how long it holds: `True`, a window such as "
            '`"24h"`, or `Idempotency(window, key_field)`',
            "none",
        ),
    ]
    effect: Annotated[
        Effect,
        Option(
            "what a call changes: `read` (nothing), `idempotent` (the same however often), `write` "
            "(something each time), `delete`, `irreversible`",
            "GET reads, PUT is idempotent, DELETE deletes, other methods and functions write",
        ),
    ]
    confirm: Annotated[
        ConfirmOption,
        Option(
            "whether a person has to confirm each call, see [guards](guards.md): `True`, or what they"
            " are asked, a text with inputs in braces or a function of the input or of the input and the call",
            "`False`; irreversible actions are always confirmed",
        ),
    ]
    preconditions: Annotated[Sequence[Text], Option("what must hold before, in sentences", "none")]
    depends_on: Annotated[Sequence[str], Option("ids of actions that come before it", "none")]
    requires: Annotated[
        Sequence[str],
        Option("ids of actions that have to succeed before it, see [guards](guards.md#prerequisites)", "none"),
    ]
    awas: Annotated[AwasOptions, Option("what only AWAS says, see below", "none")]
    guard_routes: Annotated[
        Flag, Option("whether direct requests of its route meet the same [gates](guards.md) as calls", "as the site")
    ]
    execution: Annotated[Execution, Option("`sync`, or `async` for a [background job](jobs.md)", "`sync`")]
    timeout: Annotated[Seconds, Option("seconds that it may take", "the site's; an hour in the background")]
    max_body_bytes: Annotated[int, Strict(), Field(gt=0), Option("the largest body of a call, in bytes", "the site's")]
    extensions: Annotated[
        Extensions,
        Option(
            'members of your own: `x-...`, and under `"agent_json"` or `"awas"` members of any name for that '
            "[document](documents.md#members-of-your-own)",
            "none",
        ),
    ]


@pydantic_config(_STRICT)
class AgentOptions(ActionOptions, total=False):
    """What an agent says about itself (WoA section 4.1); an action's options hold for each of its operations."""

    version: Annotated[Text, Option("version of its implementation", "none")]
    capabilities: Annotated[Sequence[Text], Option("identifiers of what it can do, as URIs", "none")]
    metadata: Annotated[
        Mapping[str, object],
        AfterValidator(check_json),
        Option("further members of its WoA object, such as `authz`", "none"),
    ]


def _read_locator(value: object) -> Locator:
    given = {"css": value} if isinstance(value, str) else unpack(value)
    locator = _LOCATOR.validate_python(given)
    for css in (locator.css, *locator.fallbacks):
        check_selector(css)
    return locator


def _read_place(value: object) -> Place:
    """A text stays one until the names of the page's locators are known."""
    return check_text(value) if isinstance(value, str) else _read_locator(value)


def _read_places(value: object) -> tuple[Place, ...]:
    several = value if isinstance(value, (list, tuple)) else [value]
    if not several:
        raise ValueError("must name at least one place")
    return tuple(map(_read_place, several))


def _read_value(value: object) -> object:
    return {"css": value} if isinstance(value, str) else unpack(value)


def check_expression(value: str) -> str:
    """Refuse a JSONata expression in braces, which are put around it when it is published."""
    if "{%" in value or "%}" in value:
        raise ValueError("write the expression without {% and %}, which are put around it when it is published")
    return check_text(value)


def _of_state(value: object) -> object:
    given = unpack(value)
    return {**given, "where": _read_places(given.get("where"))} if isinstance(given, Mapping) else given


def _of_records(value: object) -> object:
    given = unpack(value)
    if not isinstance(given, Mapping) or not isinstance(given.get("fields", {}), Mapping):
        return given
    return {**given, "fields": {name: _read_value(one) for name, one in given.get("fields", {}).items()}}


def _of_projection(value: object) -> object:
    given = unpack(value)
    if not isinstance(given, Mapping) or not isinstance(given.get("records"), Mapping):
        return given
    return {**given, "records": {name: _of_records(one) for name, one in given["records"].items()}}


def _of_place(member: str) -> Callable[[object], object]:
    def read(value: object) -> object:
        given = unpack(value)
        if not isinstance(given, Mapping) or given.get(member) is None:
            return given
        several = member == "visible"
        return {**given, member: (_read_places if several else _read_place)(given[member])}

    return read


def check_projection(value: Projection) -> Projection:
    """Refuse what no runtime could read: selectors that are none, and expressions in braces."""
    for records in value.records.values():
        for css in (records.css, *(one.css for one in records.fields.values())):
            if css is not None:
                check_selector(css)
    for expression in (value.state, *value.summaries.values(), *value.after.values()):
        check_expression(expression)
    return value


LocatorOption: TypeAlias = Annotated[Locator | str, PlainValidator(_read_locator)]


@pydantic_config(_STRICT)
class PageOptions(TypedDict, total=False):
    """What a page may say about itself. See docs/pages.md and docs/actions-json.md."""

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
        Mapping[Id, Annotated[Transition, BeforeValidator(unpack)]],
        Option("ways between states: `Transition(start, end, action=, signal=, every_ms=, do_not_use=)`", "none"),
    ]
    projections: Annotated[
        Mapping[Id, Annotated[Projection, BeforeValidator(_of_projection), AfterValidator(check_projection)]],
        Option("the page's state in a few facts: `Projection(description, records, state, schema=, ...)`", "none"),
    ]
    signals: Annotated[
        Mapping[Id, Annotated[Signal, BeforeValidator(_of_place("at"))]],
        Option("events that agents may be told of: `Signal(event, payload=, at=, description=)`", "none"),
    ]
    attachments: Annotated[
        Mapping[Id, Annotated[Attachment, BeforeValidator(_of_place("at"))]],
        Option("what a runtime adds to the page: `Attachment(kind, at=, label=, description=)`", "none"),
    ]
    checks: Annotated[
        Mapping[Id, Annotated[PageCheck, BeforeValidator(_of_place("visible"))]],
        Option("what must be visible: `PageCheck(description, visible=, severity=)`", "none"),
    ]


_LOCATOR: Final = TypeAdapter(Locator)


NAMES: Final[TypeAdapter[Sequence[str]]] = TypeAdapter(Sequence[Text])
URL: Final = TypeAdapter(Annotated[str, AfterValidator(check_url)])
_TEXT: Final = TypeAdapter(Text)
_ID: Final = TypeAdapter(Id)
_SITE: Final = TypeAdapter(SiteOptions)
_ACTION: Final = TypeAdapter(ActionOptions)
_AGENT: Final = TypeAdapter(AgentOptions)
_PAGE: Final = TypeAdapter(PageOptions)
_PATH_ADAPTER: Final = TypeAdapter(Annotated[str, AfterValidator(check_path)])


def check_site(name: object, description: object, options: SiteOptions) -> tuple[str, str, SiteOptions]:
    """What was given to `Site(...)`, read. Raises DeclarationError that names the field."""
    return (
        check("site", _TEXT, name, "name"),
        check("site", _TEXT, description, "description"),
        check("site", _SITE, options, known=SiteOptions.__annotations__),
    )


def check_action(subject: str, options: ActionOptions) -> ActionOptions:
    """An action's options, read. Raises DeclarationError that names the subject and the field."""
    return check(subject, _ACTION, options, known=ActionOptions.__annotations__)


def check_agent(subject: str, options: AgentOptions) -> AgentOptions:
    """An agent's options, read. Raises DeclarationError that names the subject and the field."""
    return check(subject, _AGENT, options, known=AgentOptions.__annotations__)


def check_page(subject: str, path: object, options: PageOptions) -> PageOptions:
    """A page's options, read; `path` is None where it is not given. Raises DeclarationError that names the field."""
    if path is not None:
        check(subject, _PATH_ADAPTER, path, "path")
    return check(subject, _PAGE, options, known=PageOptions.__annotations__)


def check_identifier(subject: str, identifier: object) -> str:
    """An action's or an agent's id. Raises DeclarationError."""
    return check(subject, _ID, identifier, "id")


# --- What a site says about itself: its addresses, and from checked options its `SiteFacts` ---

URL_VARIABLE: Final = "AWP_PUBLISH_URL"


def read_urls(given: object) -> tuple[str, ...]:
    """The site's addresses; the environment variable may hold several, separated by commas."""
    if given is None:
        listed: list[object] = [url.strip() for url in os.environ.get(URL_VARIABLE, "").split(",") if url.strip()]
    else:
        listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not listed or listed == [""]:
        raise DeclarationError("site", f"url: is required; give Site(url=...) or set {URL_VARIABLE}.")
    urls = tuple(check("site", URL, url, "url") for url in listed)
    hosts = [urlsplit(url).netloc for url in urls]
    for host in hosts:
        if hosts.count(host) > 1:
            raise DeclarationError("site", f"url: two addresses are at {host}, and requests could not tell them apart.")
    return urls


def read_site_facts(name: str, description: str, options: SiteOptions) -> SiteFacts:
    """The frozen facts of a site. Raises DeclarationError for an entity that is neither a model nor a field table."""
    entities = options.get("entities", {})
    return SiteFacts(
        name=name,
        description=description,
        version=options.get("version", "1.0"),
        contact=options.get("contact"),
        rate_limit=cast(RateLimit | None, options.get("rate_limit")),
        entities={key: given for key, given in entities.items() if isinstance(given, Mapping)},
        entity_schemas={key: _entity_schema(key, given) for key, given in entities.items() if isinstance(given, type)},
        errors=dict(options.get("errors", {})),
        hints=dict(options.get("hints", {})),
        allowed_origins=tuple(options.get("allow_origins", ())),
        workflows=tuple(options.get("workflows", ())),
        documentation=options.get("documentation"),
        license=options.get("license"),
        updated=options.get("updated"),
        imports=dict(options.get("imports", {})),
        extensions=dict(options.get("extensions", {})),
    )


def _entity_schema(name: str, model: type) -> JsonObject:
    try:
        schema = write_schema(model, "serialization")
    except UnusableSchema as error:
        raise DeclarationError("site", f"entities.{name}: {error}.") from error
    if "properties" not in schema:
        raise DeclarationError("site", f"entities.{name}: {model.__name__} has no fields.", "Give a model.")
    return schema


# --- What the doors of a site hold every call to, whatever it calls ---


@dataclass(frozen=True)
class CallLimits:
    """What the doors hold every call to. `timeout` in seconds, `max_body_bytes` in bytes.

    `list_only_allowed` says that doors which tell their callers what there is tell each what they may call,
    `trust_outer_middleware` that no middleware outside of us decides by the path of a request, `guard_routes` that
    direct requests of routes meet the same gates as calls.
    """

    timeout: float = 30.0
    max_body_bytes: int = 1_048_576
    allow_origins: tuple[str, ...] = ()
    list_only_allowed: bool = False
    trust_outer_middleware: bool = False
    guard_routes: bool = False
    browsing: Browsing = field(default_factory=Browsing)


def read_limits(checked: SiteOptions) -> CallLimits:
    """The limits of a site, from options that have been checked."""
    return CallLimits(
        checked.get("timeout", CallLimits.timeout),
        checked.get("max_body_bytes", CallLimits.max_body_bytes),
        tuple(checked.get("allow_origins", ())),
        checked.get("list_only_allowed", False),
        checked.get("trust_outer_middleware", False),
        checked.get("guard_routes", False),
        checked.get("browsing", Browsing()),
    )


# --- Whether a site gives its pages in the formats that agents read, and how they may be asked for ---

PACKAGE: Final = "selectolax"
"""What reads HTML; it comes with the extra [pages]."""


@dataclass(frozen=True, slots=True)
class Offering:
    """`pages` are given as SOM and Markdown to requests that accept these, with `in_query` to `?format=` as well.

    With `in_shared_cache` the caches in front of the site heed Vary, and may keep what Accept has chosen.
    """

    pages: bool = False
    in_query: bool = False
    in_shared_cache: bool = False


def read_offering(options: SiteOptions) -> Offering:
    """Return what the options say. Without a word, pages are given where the extra is installed.

    Raises DeclarationError for what cannot be had.
    """
    given = options.get("pages")
    formats = given if isinstance(given, Pages) else Pages()
    is_installed = find_spec(PACKAGE) is not None
    if given and not is_installed:
        raise DeclarationError(
            "site", "pages: needs a package that is missing.", 'Install it: pip install "awp-publish[pages]".'
        )
    return Offering(is_installed and given is not False, formats.in_query, formats.shared_cache)
