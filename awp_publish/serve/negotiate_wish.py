"""Which format of a page a request asks for: by its Accept header, or by `?format=` where a site has allowed that.

Only a format that is named is given: `*/*` and `text/*` are what tools send without thinking, and mean HTML.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote_plus

FormatName: TypeAlias = Literal["som", "md"]
BudgetName: TypeAlias = Literal["full", "default", "tight"]

FULL: Final[BudgetName] = "full"
BUDGETS: Final[tuple[BudgetName, ...]] = ("full", "default", "tight")
FORMATS: Final[dict[str, FormatName]] = {"som": "som", "md": "md"}
MEDIA_TYPES: Final[dict[str, FormatName]] = {"application/som+json": "som", "text/markdown": "md"}
HTML: Final = "text/html"
_HTML_RANGES: Final = (HTML, "text/*", "*/*")
"""The most specific first: the one that names most decides (RFC 9110 section 12.5.1)."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A format, for SOM how much of the page it holds, and whether the address asked for it."""

    format: FormatName
    budget: BudgetName = FULL
    by_query: bool = False


class Reading(NamedTuple):
    """What an Accept header says: the wish, None for HTML, and whether HTML is named, as pages' readers do."""

    wish: Wish | None
    names_html: bool


@lru_cache(maxsize=256)
def read_accept(accept: bytes) -> Reading:
    """Read an Accept header (RFC 9110 section 12.5.1).

    A named format is given if its weight is above 0 and at least that of HTML; of two, the weightier or the first.
    """
    ranges = tuple(_read_ranges(accept.decode("latin-1")))
    html = next((one.weight for name in _HTML_RANGES for one in ranges if one.name == name), 0.0)
    named = [(one.weight, wish) for one in ranges if (wish := _wish_of(one)) is not None and one.weight > 0]
    best = max(named, key=lambda pair: pair[0], default=None)
    names_html = any(one.name == HTML for one in ranges)
    return Reading(best[1] if best is not None and best[0] >= html else None, names_html)


def read_query(query: bytes) -> tuple[Wish | None, bytes]:
    """The wish in a query string, and the query without it. A `format` that is none of ours is the application's."""
    if b"format=" not in query:
        return None, query
    pairs = [(part, *_pair(part)) for part in query.split(b"&")]
    asked = next((FORMATS[value] for _, name, value in pairs if name == "format" and value in FORMATS), None)
    if asked is None:
        return None, query
    budgets = (one for _, name, value in pairs if name == "budget" for one in BUDGETS if one == value)
    budget = next(budgets, FULL)
    left = [part for part, name, value in pairs if not _is_ours(name, value)]
    return Wish(asked, budget if asked == "som" else FULL, by_query=True), b"&".join(left)


def _is_ours(name: str, value: str) -> bool:
    return (name == "format" and value in FORMATS) or (name == "budget" and value in BUDGETS)


def _pair(part: bytes) -> tuple[str, str]:
    name, _, value = part.decode("latin-1").partition("=")
    return unquote_plus(name), unquote_plus(value)


# --- The grammar of Accept ---


class _Range(NamedTuple):
    name: str
    parameters: dict[str, str]
    weight: float


ELEMENT: Final = re.compile(r'(?:[^,"]++|"(?:[^"\\]++|\\.?)*+(?:"|$))++', re.DOTALL)
"""What stands between the commas of a list; a comma within quotes is none. Nothing is read twice."""

_WEIGHT: Final = re.compile(r"0(?:\.\d{0,3})?|1(?:\.0{0,3})?")


def _read_ranges(accept: str) -> Iterable[_Range]:
    for element in ELEMENT.findall(accept):
        name, *rest = (part.strip() for part in element.split(";"))
        parameters = {}
        for part in rest:
            key, _, value = part.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"').lower()
        if "/" in name:
            yield _Range(name.lower(), parameters, _weight(parameters.pop("q", "1")))


def _weight(text: str) -> float:
    """A weight that is none counts for nothing, so that a broken header asks for nothing unusual."""
    return float(text) if _WEIGHT.fullmatch(text) else 0.0


def _wish_of(one: _Range) -> Wish | None:
    """A range whose parameters no answer of ours has matches none (section 12.5.1)."""
    format_name = MEDIA_TYPES.get(one.name)
    if format_name is None or one.parameters.get("charset", "utf-8") not in ("utf-8", "utf8"):
        return None
    if format_name == "md":
        return Wish(format_name)
    given = one.parameters.get("budget", FULL)
    budget = next((name for name in BUDGETS if name == given), None)
    return None if budget is None else Wish(format_name, budget)
