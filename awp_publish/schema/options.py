"""Options that a site owner writes: their types, their checks, and the messages with which mistakes are refused."""

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from functools import cached_property
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar, cast
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    with_config as pydantic_config,
)

from awp_publish.model import KNOWN, OPERATOR, PUBLIC
from awp_publish.problems import DeclarationError
from awp_publish.schema.origins import Origin
from awp_publish.schema.wording import MAX_LISTED, MAX_NEAREST

_VISIBLE: Final = re.compile(r"[!-~]+")
"""ASCII without spaces and control characters, as addresses in headers and documents have to be."""


def check_url(value: str) -> str:
    """Check an absolute http(s) address without query and fragment; drop a trailing slash and the default port."""
    parts = _split(value)
    wrong = parts.query or parts.fragment or parts.username or parts.password or "*" in parts.netloc
    if parts.scheme not in ("http", "https") or not parts.hostname or wrong or not _VISIBLE.fullmatch(value):
        raise ValueError(
            f"{value!r} is not the public address of a site; "
            'write it in ASCII, without query and fragment: "https://shop.example"'
        )
    return f"{Origin.of(parts)}{parts.path.rstrip('/')}"


def check_origin(value: str) -> str:
    """Check an origin, or "*" for all, and return it as browsers send it: in lower case, without the default port."""
    if value == "*":
        return value
    parts = _split(value)
    is_origin = value == f"{parts.scheme}://{parts.netloc}" and parts.hostname and "@" not in parts.netloc
    if parts.scheme not in ("http", "https") or not is_origin:
        raise ValueError(f'{value!r} is not an origin; write "https://shop.example" without a path, or "*" for all')
    return str(Origin.of(parts))


def read_moment(value: object) -> datetime | None:
    """Read a moment: a datetime, a date or ISO 8601 text; without a time zone it is UTC."""
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


def _split(value: str) -> SplitResult:
    """Split an address. Raises ValueError with a message of its own for an invalid port or IPv6 address."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{value!r} is not an address ({error})") from error
    return parts


_INTEGERS: Final = range(-(2**63), 2**64)
"""Integers that are the same in all JSON readers with 64-bit integers."""


def unpack(value: object) -> object:
    """Convert a dataclass to a dictionary, recursively, so that it is validated: its constructor checks nothing.

    One that can be called, such as an authenticator, is used as it is.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and not callable(value):
        return {field.name: unpack(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
    return value


def matching(pattern: str, wrong: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(wrong.format(value))
        return value

    return check


check_id: Final = matching(r"[a-z][a-z0-9_]*", "{!r} must be lower-case letters, digits and _, beginning with a letter")
"""The syntax of ids that every protocol accepts."""

check_token: Final = matching(r"[A-Za-z0-9_-]+", "{!r} must be letters, digits, - and _")
"""WoA section 4.1: agent-id = 1*( ALPHA / DIGIT / "-" / "_" ). Operation names have the same syntax."""

check_duration: Final = matching(
    r"[1-9]\d*[smhd]", '{!r} is not a duration; write a number and one of s, m, h, d, such as "24h"'
)

SCOPE: Final = r"[!#-\[\]-~]+"
"""A scope (RFC 6749 section 3.3)."""


def check_text(value: str) -> str:
    if not value.strip() or not _is_writable(value):
        raise ValueError("must not be empty" if _is_writable(value) else "contains characters that UTF-8 cannot encode")
    return value


def check_audience(value: str) -> str:
    """Refuse what is not a scope, and misspellings of the named audiences."""
    if not re.fullmatch(SCOPE, value):
        raise ValueError(f'{value!r} is not an audience; write "public", "known", "operator", or one scope')
    close = get_close_matches(value.lower(), (PUBLIC, KNOWN, OPERATOR), 1, 0.8)
    if close and close[0] != value:
        raise ValueError(f'{value!r} would be a scope of that name; did you mean "{close[0]}"?')
    return value


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
    raise ValueError(f"{shortened(value)} is not JSON")


def _is_writable(value: str | int | float) -> bool:
    if isinstance(value, str):
        return re.search("[\ud800-\udfff]", value) is None
    return value in _INTEGERS if isinstance(value, int) else math.isfinite(value)


def shortened(value: object) -> str:
    """Return how a value is shown in a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


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
    "sequence_str": "must be a list, not one string",
    "mapping_type": "must be a dictionary",
    "dict_type": "must be a dictionary",
    "is_instance_of": "must be a list",  # Sequence is the only annotation of ours with this error
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "string_pattern_mismatch": 'must look like "1.0" or "1.0.3"',  # only a site's version has a pydantic pattern
}
"""Our messages for pydantic's kinds of error; for other kinds pydantic's own message is used."""


class LazyAdapter(Generic[T]):
    """Validates values of a type. The validator is built at its first use, as a site gives few of all options."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._kind)

    def validate_python(self, value: object) -> T:
        """Return the value as the type has it. Raises pydantic's ValidationError."""
        return self._adapter.validate_python(value)


def check(subject: str, adapter: LazyAdapter[T], value: object, field: str = "", names: Collection[str] = ()) -> T:
    """Validate a value with an adapter. Raises DeclarationError that names the subject and the field.

    `names` are the existing options, from which the nearest to a misspelt one is suggested.
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
        if message == _NO_SUCH_OPTION and len(first["loc"]) == 1:
            near = get_close_matches(str(first["loc"][-1]), names, n=1)
            message += f'; did you mean "{near[0]}"?' if near else ""
        message += f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        end = "" if message.endswith("?") else "."
        raise DeclarationError(subject, f"{where}: {message}{end}" if where else f"{message}{end}") from error


Flag: TypeAlias = Annotated[bool, Strict()]
Count: TypeAlias = Annotated[int, Strict(), Field(gt=0)]
Seconds: TypeAlias = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Text: TypeAlias = Annotated[str, AfterValidator(check_text)]
Id: TypeAlias = Annotated[str, AfterValidator(check_id)]
Link: TypeAlias = Annotated[str, AfterValidator(check_link)]
Path: TypeAlias = Annotated[str, AfterValidator(check_path)]
Audience: TypeAlias = Annotated[str, AfterValidator(check_audience)]
Duration: TypeAlias = Annotated[str, AfterValidator(check_duration)]


@dataclass(frozen=True, slots=True)
class Option:
    """One option's row in the tables of docs/: its meaning, and where it is published or what its default is."""

    meaning: str
    other: str


strict = pydantic_config(ConfigDict(extra="forbid", arbitrary_types_allowed=True))

ID: Final[LazyAdapter[str]] = LazyAdapter(Id)
AUDIENCE: Final[LazyAdapter[str]] = LazyAdapter(Audience)
PATH: Final[LazyAdapter[str]] = LazyAdapter(Path)
TOKEN: Final[LazyAdapter[str]] = LazyAdapter(Annotated[str, AfterValidator(check_token)])
TEXTS: Final[LazyAdapter[Sequence[str]]] = LazyAdapter(Sequence[Text])


def listing(known: Iterable[str], wanted: str = "") -> str:
    """List names for a message, those nearest to the wanted one first: at most MAX_LISTED, or MAX_NEAREST of more."""
    names = sorted(set(known))
    near = get_close_matches(wanted, names, n=MAX_NEAREST) if wanted else []
    ordered = [*near, *(name for name in names if name not in near)]
    most = MAX_NEAREST if near and len(names) > MAX_LISTED else MAX_LISTED
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(ordered[:most]) or "none") + more
