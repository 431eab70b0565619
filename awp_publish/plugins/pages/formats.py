"""The format of a page that a request asks for, by its headers or its query string.

A format is only sent if the request names it: `*/*` and `text/*` are defaults of many tools, and mean HTML.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote_plus

from awp_publish.http.accept import MAX_NEGOTIATION

FormatName: TypeAlias = Literal["som", "md"]
BudgetName: TypeAlias = Literal["full", "default", "tight"]
ContentName: TypeAlias = Literal["main", "all"]

USUAL_BUDGET: Final[BudgetName] = "default"
BUDGETS: Final[dict[str, BudgetName]] = {"full": "full", "default": "default", "tight": "tight"}
CONTENTS: Final[dict[str, ContentName]] = {"main": "main", "all": "all"}
FORMATS: Final[dict[str, FormatName]] = {"som": "som", "md": "md"}
CONTENT_TYPES: Final[dict[FormatName, bytes]] = {"som": b"application/som+json", "md": b"text/markdown; charset=utf-8"}
READ_METHODS: Final = frozenset({"GET", "HEAD"})
FILE_METHODS: Final = "GET, HEAD, OPTIONS"
PAGE_METHODS: Final = READ_METHODS | {"POST"}


HTML_TYPES: Final = frozenset({b"text/html", b"application/xhtml+xml"})

_FORMATS_BY_TYPE: Final[dict[str, FormatName]] = {"application/som+json": "som", "text/markdown": "md"}
_HTML_RANGES: Final = ("text/html", "text/*", "*/*")
"""Media ranges that include HTML. The most specific one, which is first here, decides (RFC 9110 section 12.5.1)."""

ELEMENT: Final = re.compile(r'(?:[^,"]++|"(?:[^"\\]++|\\.?)*+(?:"|$))++', re.DOTALL)
"""An element of a comma-separated list, which may contain quoted commas. The pattern never backtracks."""

_WEIGHT: Final = re.compile(r"0(?:\.\d{0,3})?|1(?:\.0{0,3})?")


@dataclass(frozen=True, slots=True)
class RequestedFormat:
    """A format, and for SOM the budget (how much of the page it contains).

    `content` is how much of the page Markdown has: its main content, or all of it. `by_query` is True if the query
    string has requested the format, not the Accept header. `is_file` requests self-contained Markdown, with front
    matter and links to llms.txt and the sitemap.
    """

    format: FormatName
    budget: BudgetName = USUAL_BUDGET
    by_query: bool = False
    is_file: bool = False
    content: ContentName = "main"

    @property
    def obeys_prefer(self) -> bool:
        """True for Markdown, unless the query string names the format: then it names the content too."""
        return self.format == "md" and (self.is_file or not self.by_query)


class Accept(NamedTuple):
    """An Accept header: the format that it requests (None for HTML), and whether it names HTML, as in browsers."""

    requested: RequestedFormat | None
    names_html: bool


def read_accept(accept: bytes) -> Accept:
    """Read an Accept header (RFC 9110 section 12.5.1).

    A named format is chosen if its weight is above 0 and at least that of HTML. Of two, the one with the higher weight
    is chosen, or the first. An invalid weight counts as 0, so that a broken header means HTML, as does a very long one.
    """
    return ANYTHING if len(accept) > MAX_NEGOTIATION else _read_accept(accept)


@lru_cache(maxsize=256)
def _read_accept(accept: bytes) -> Accept:
    html: dict[str, float] = {}
    requested, best = None, 0.0
    for element in ELEMENT.findall(accept.decode("latin-1")):
        name, *rest = (part.strip() for part in element.split(";"))
        name, parameters = name.lower(), dict[str, str]()
        for part in rest:
            key, _, value = part.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"').lower()
        written = parameters.get("q", "1")
        weight = float(written) if _WEIGHT.fullmatch(written) else 0.0
        if name in _HTML_RANGES:
            html.setdefault(name, weight)
        # A media range with parameters that our answers do not have does not match (section 12.5.1).
        format_name = _FORMATS_BY_TYPE.get(name)
        budget = BUDGETS.get(parameters.get("budget", USUAL_BUDGET)) if format_name == "som" else USUAL_BUDGET
        is_utf8 = parameters.get("charset", "utf-8") in ("utf-8", "utf8")
        if format_name is not None and budget is not None and is_utf8 and weight > best:
            requested, best = RequestedFormat(format_name, budget), weight
    needed = next((html[name] for name in _HTML_RANGES if name in html), 0.0)
    return Accept(requested if best >= needed else None, "text/html" in html)


WHOLE_PAGE: Final = "Prefer: return=representation; content=all"
"""The header that requests a whole page in Markdown (RFC 7240)."""

_PREFERENCE: Final = re.compile(
    r'return\s*=\s*"?representation"?\s*;(?:[^,]*;)?\s*content\s*=\s*"?all"?\s*(?:[;,]|$)', re.I
)


def read_content(prefer: bytes) -> ContentName:
    """Read how much of a page a Prefer header requests (RFC 7240, section 2): its main content unless it says `all`."""
    if len(prefer) > MAX_NEGOTIATION or not prefer:
        return "main"
    elements = ELEMENT.findall(prefer.decode("latin-1"))
    return "all" if any(_PREFERENCE.match(element.strip()) for element in elements) else "main"


def read_query(query: bytes) -> tuple[RequestedFormat | None, bytes]:
    """Return the format that a query string requests, and the rest of the query. Unknown formats stay in the query."""
    formats, budgets, rest = list[FormatName](), list[BudgetName](), list[bytes]()
    contents = list[ContentName]()
    for part in query.split(b"&") if b"format=" in query or b"%" in query else ():
        name, value = _member_in(part)
        if name == "format" and value in FORMATS:
            formats.append(FORMATS[value])
        elif name == "budget" and value in BUDGETS:
            budgets.append(BUDGETS[value])
        elif name == "content" and value in CONTENTS:
            contents.append(CONTENTS[value])
        else:
            rest.append(part)
    if not formats:
        return None, query
    budget = budgets[0] if budgets and formats[0] == "som" else USUAL_BUDGET
    content = contents[0] if contents and formats[0] == "md" else "main"
    return RequestedFormat(formats[0], budget, by_query=True, content=content), b"&".join(rest)


def take_content(query: bytes) -> tuple[ContentName, bytes]:
    """Return the content that a query string requests of a page, and the rest of the query."""
    contents, rest = list[ContentName](), list[bytes]()
    for part in query.split(b"&"):
        name, value = _member_in(part)
        if name == "content" and value in CONTENTS:
            contents.append(CONTENTS[value])
        else:
            rest.append(part)
    return "all" if "all" in contents else "main", b"&".join(rest)


def _member_in(part: bytes) -> tuple[str, str]:
    name, _, value = part.decode("latin-1").partition("=")
    return unquote_plus(name), unquote_plus(value)


ANYTHING: Final = Accept(None, names_html=False)
