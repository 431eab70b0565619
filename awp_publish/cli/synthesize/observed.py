"""What was seen of a site: its pages, and the actions that they show."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from awp_publish.checks.urls import split
from awp_publish.model import Action, snake_case
from awp_publish.schema.origins import Origin

MAX_ACTIONS: Final = 100

MAX_TEXT: Final = 200
"""Characters of a text that is kept."""

AGENT: Final = "awp-publish"
"""The name under which robots.txt is read and the documents are marked."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An action, where it was seen, and its confidence. `bound` are hidden fields that only the page can fill in."""

    action: Action
    at: str
    confidence: float
    origin: str
    bound: tuple[str, ...] = ()


@dataclass
class InspectedSite:
    """The observations about a site."""

    url: str
    title: str = ""
    description: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    """The titles of pages, by address."""
    seen: list[Seen] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    beyond: Counter[str] = field(default_factory=Counter)
    """How many actions there were at each address beyond `MAX_ACTIONS`."""
    openapi_addresses: list[str] = field(default_factory=list)

    def add(self, seen: Seen) -> None:
        """Add an action under a unique id. The same request is only added once: as OpenAPI describes it, if it does."""
        target = seen.action.target
        for request in self.seen.copy():
            other = request.action.target
            if target is not None and other is not None and (target.method, target.path) == (other.method, other.path):
                names = seen.action.inputs.get("properties")
                if seen.origin == "openapi" and request.origin != "openapi":
                    self.seen.remove(request)
                elif (
                    seen.origin != "form"
                    or request.origin != "form"
                    or names == request.action.inputs.get("properties")
                ):
                    return
        if len(self.seen) >= MAX_ACTIONS:
            self.beyond[seen.at] += 1
            return
        ids = {seen.action.id for seen in self.seen}
        number, unique = 2, seen.action.id
        while unique in ids:
            unique, number = f"{seen.action.id}_{number}", number + 1
        self.seen.append(replace(seen, action=replace(seen.action, id=unique, agent_id=unique)))

    def reasons(self) -> list[tuple[str, str]]:
        """Return what was left out, by its address, and why."""
        beyond = [(at, f"{number} more, beyond the first {MAX_ACTIONS} actions") for at, number in self.beyond.items()]
        return [*self.left_out, *beyond]


def is_here(address: str, home: str) -> bool:
    """Return True if an address is of the same origin as another."""
    there, here = split(address), split(home)
    return there is not None and here is not None and Origin.of(there) == Origin.of(here)


def short(text: str) -> str:
    """Return a text on one line, truncated."""
    words = " ".join(text.split())
    return words if len(words) <= MAX_TEXT else f"{words[: MAX_TEXT - 3].rstrip()}..."


def id_of(words: str, otherwise: str) -> str:
    """Return an id made of words, or of the others where they have no letters."""
    name = next(filter(None, (snake_case(text)[:48].strip("_") for text in (words, otherwise))), "page")
    return name if name[0].isalpha() else f"do_{name}"


def escaped(path: str) -> str:
    """A path that holds no placeholder: braces are those of the address itself."""
    return path.replace("{", "%7B").replace("}", "%7D")
