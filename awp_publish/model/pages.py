"""Pages, and what can be done on them (actions.json V1)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from awp_publish.model.offers import Complete


@dataclass(frozen=True, slots=True)
class Locator:
    """A place in a page: a CSS selector, narrowed by role, accessible name or text (V1, target).

    An element has to match everything that is given. `fallbacks` are selectors that are tried if the first finds
    nothing.
    """

    css: str
    role: str | None = None
    name: str | None = None
    text_equals: str | None = None
    text_contains: str | None = None
    fallbacks: Sequence[str] = ()


Place: TypeAlias = Locator | str
"""A locator, the name of one of the page's `locators`, or a CSS selector."""


@dataclass(frozen=True, slots=True)
class State:
    """A condition of a page: it holds while every place in `where` exists. `shows` names projections to read in it."""

    description: str
    where: Place | Sequence[Place]
    shows: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition between two states of a page, caused by an `action` or observed as a `signal`.

    `every_ms` is the minimal interval between two such transitions. `do_not_use` lists known mistakes, in sentences.
    """

    start: str
    end: str
    action: str | None = None
    signal: str | None = None
    every_ms: int | None = None
    preconditions: Sequence[str] = ()
    do_not_use: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """One field of a record: the text, an attribute or a property of the element that `css` finds in it.

    Without `css` it is read from the record's own element. Properties are those of V1: innerText, textContent, value,
    checked, ariaLabel, boundingClientRect.
    """

    css: str | None = None
    attribute: str | None = None
    property: str | None = None
    required: bool = False
    many: bool = False


@dataclass(frozen=True, slots=True)
class Records:
    """Elements that a projection reads: all that `css` finds (only the first if not `many`), and their fields."""

    css: str
    fields: Mapping[str, Value] = field(default_factory=dict)
    many: bool = True


@dataclass(frozen=True, slots=True)
class Projection:
    """The state of a page as a few facts (V1, state_projections). Expressions are JSONata, without enclosing braces.

    `state` is computed from `records`, `url` and `title`; `schema` is its JSON Schema or its type; `summaries` are
    computed from `state`. `after` maps action ids to a condition on `state` that has to hold once the action has
    succeeded.
    """

    description: str
    records: Mapping[str, Records]
    state: str
    schema: object = None
    summaries: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signal:
    """An event of the page that agents can observe. `payload` is the JSON Schema or type of its detail."""

    event: str
    payload: object = None
    at: Place | None = None
    description: str | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Attachment:
    """An element that a runtime adds to the page at a place, with a `label` for people."""

    kind: str
    at: Place
    label: str
    description: str | None = None
    placement: Literal["beforebegin", "afterbegin", "beforeend", "afterend"] = "afterend"
    opens: str | None = None


@dataclass(frozen=True, slots=True)
class PageCheck:
    """Places that have to be visible in a page for its declarations to be valid."""

    description: str
    visible: Sequence[Place]
    severity: Literal["info", "minor", "major", "critical"] = "major"


@dataclass(frozen=True, slots=True)
class Import:
    """Another map whose names are imported under a namespace (V1, imports)."""

    uri: str
    kind: Literal["website", "local", "storage", "shared", "public", "package"] = "public"
    trust: Literal["website", "private", "shared", "public", "local", "unknown"] = "unknown"
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site.

    `path` is percent-encoded, below the site's url; if it has placeholders (`/books/{slug}`), the page stands for
    several addresses. `id` is the prefix of the names of everything declared on the page. `actions` are the ids of the
    actions whose forms are on the page. `choices` are the allowed values of its placeholders, if they are listed.
    """

    path: str
    title: str
    description: str | None = None
    id: str = ""
    guide: str | None = None
    actions: tuple[str, ...] = ()
    locators: Mapping[str, Locator] = field(default_factory=dict)
    states: Mapping[str, State] = field(default_factory=dict)
    transitions: Mapping[str, Transition] = field(default_factory=dict)
    projections: Mapping[str, Projection] = field(default_factory=dict)
    signals: Mapping[str, Signal] = field(default_factory=dict)
    attachments: Mapping[str, Attachment] = field(default_factory=dict)
    checks: Mapping[str, PageCheck] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    complete: Complete | None = field(default=None, compare=False, repr=False)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names of the placeholders in the path, in order."""
        return tuple(re.findall(r"\{([A-Za-z_]\w*)\}", self.path))

    @property
    def is_template(self) -> bool:
        """Return True if the page stands for several addresses. Such pages are not listed in sitemaps and the like."""
        return "{" in self.path
