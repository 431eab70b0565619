"""Doors that a site has to ask for: each in its own file with its extra, opened only then."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Protocol, TypeAlias, cast

from awp_publish.invoke import Invoker
from awp_publish.model import Catalog, Door
from awp_publish.policy.guard import Enforcement
from awp_publish.problems import DeclarationError
from awp_publish.serve.admission import Admission
from awp_publish.serve.background import Background
from awp_publish.serve.page_reading import PageReader
from awp_publish.serve.reply import AsgiApp, Receive, Scope, Send
from awp_publish.site import Site

Answer: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

AnswerRest: TypeAlias = Callable[[Scope, Receive, Send, str], Awaitable[None]]
"""A door that is given the rest of its path."""

MODULES: Final = {"mcp": "awp_publish.serve.mcp", "a2a": "awp_publish.serve.a2a", "awp": "awp_publish.serve.awp"}
PACKAGES: Final = {"mcp": ("mcp",), "a2a": ("a2a",), "awp": ("selectolax", "msgpack")}
"""Doors of `Site(doors=...)`: where each is, and the packages it needs; its extra has the door's name."""

ENTRANCE: Final = "awp_publish.entrance"
"""The member of a scope in which a framework of its own way says where requests come in from outside."""

Entrance: TypeAlias = Callable[[Scope], AsgiApp]
"""The application with all that stands around us, as a connection that has come in to us tells it."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a live door is made of, for one public address of a site. `pages` is None where pages are HTML only."""

    site: Site
    catalog: Catalog
    invoker: Invoker
    enforcement: Enforcement
    admission: Admission
    background: Background | None
    entrance: Entrance
    pages: PageReader | None


@dataclass(frozen=True, slots=True)
class LiveDoor:
    """What a live door answers, at which paths, and what has to run for it while the application runs.

    `exact` are paths known beforehand, `below` beginnings of paths, `sockets` paths of WebSockets. Without a lifespan
    `running` is never entered, and the door has to work all the same.
    """

    exact: Mapping[str, Answer]
    below: Mapping[str, AnswerRest] = field(default_factory=dict)
    running: Callable[[], AbstractAsyncContextManager[None]] | None = None
    sockets: Mapping[str, Answer] = field(default_factory=dict)


class DoorModule(Protocol):
    """The file of a live door."""

    def describe_door(self, site: Site) -> Door:
        """What the documents may say about this door."""

    def open_door(self, surroundings: Surroundings) -> LiveDoor:
        """Make the door."""


def describe_live_doors(site: Site) -> tuple[Door, ...]:
    """The doors that a site asks for. Raises DeclarationError for one whose extra is not installed."""
    return tuple(_module(name).describe_door(site) for name in site.doors)


def open_live_doors(surroundings: Surroundings) -> tuple[LiveDoor, ...]:
    """Make the doors that a site asks for."""
    return tuple(_module(name).open_door(surroundings) for name in surroundings.site.doors)


def _module(name: str) -> DoorModule:
    if any(find_spec(package) is None for package in PACKAGES[name]):
        raise DeclarationError(
            "site",
            f'doors: "{name}" needs a package that is missing.',
            f'Install it: pip install "awp-publish[{name}]".',
        )
    return cast(DoorModule, import_module(MODULES[name]))
