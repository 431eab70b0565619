"""What robots may read: the rules of a robots.txt for all robots (RFC 9309), and what a page says of itself."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import unquote

MAX_CHARACTERS: Final = 512_000
"""Of a robots.txt that are read (RFC 9309 section 2.5)."""

ALL_ROBOTS: Final = "*"


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules of the groups for all robots, each with whether it allows, and the sitemaps that are named."""

    rules: tuple[tuple[bool, str], ...] = ()
    sitemaps: tuple[str, ...] = field(default=())

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a robots.txt. Lines that it does not have are left out."""
        rules, sitemaps, agents, is_open = list[tuple[bool, str]](), list[str](), set[str](), False
        for line in text[:MAX_CHARACTERS].splitlines():
            name, mark, value = (part.strip() for part in line.partition("#")[0].partition(":"))
            name = name.lower()
            if not mark:
                continue
            if name == "user-agent":
                if not is_open:
                    agents.clear()
                agents.add(value.lower())
                is_open = True
            elif name in ("allow", "disallow"):
                is_open = False
                if ALL_ROBOTS in agents and value:
                    rules.append((name == "allow", value))
            elif name == "sitemap":
                sitemaps.append(value)
        return cls(tuple(rules), tuple(sitemaps))

    def allow(self, path: str) -> bool:
        """Return True if robots may read a path, with its query: the longest rule decides, or the one that allows."""
        plain = unquote(path)
        matching = [(len(pattern), is_allowed) for is_allowed, pattern in self.rules if _matches(pattern, plain)]
        return max(matching)[1] if matching else True


def _matches(pattern: str, path: str) -> bool:
    """Return True if a pattern matches the beginning of a path; `*` is any characters, `$` at its end is the end."""
    is_whole = pattern.endswith("$")
    first, *rest = unquote(pattern.removesuffix("$")).split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for number, part in enumerate(rest):
        if is_whole and number == len(rest) - 1:
            return len(path) - len(part) >= at and path.endswith(part)
        position = path.find(part, at)
        if position < 0:
            return False
        at = position + len(part)
    return at == len(path) if is_whole else True


def keeps_out(directives: Iterable[str]) -> bool:
    """Return True if the values of `X-Robots-Tag` or of a robots `<meta>` keep a page out of indexes."""
    words = (word.strip().lower() for value in directives for part in value.split(",") for word in part.split(":"))
    return not {"noindex", "none"}.isdisjoint(words)
