"""Plug-ins at work: what each serves while the application runs, and at each public address of the site."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from awp_publish.calls.gates.gate import Guards
from awp_publish.calls.invoke import Accept, CarryWithSession, Invoker
from awp_publish.calls.observe import Observer
from awp_publish.calls.wire import Wire
from awp_publish.declare.discover import Route
from awp_publish.doors.wires import wires_of
from awp_publish.http.admission import Admission
from awp_publish.http.dispatch import CalledApplication
from awp_publish.http.documents import Prepared
from awp_publish.http.exchange import AsgiApp, Scope
from awp_publish.http.reentry import Outside
from awp_publish.model import Catalog
from awp_publish.plugin import DeclaredSite, Door, Endpoints, Setup

if TYPE_CHECKING:
    from awp_publish.calls.call import Call, Deliver
    from awp_publish.calls.observe import Carry

_NOT_YET: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSite:
    """The site that all of its plug-ins share while its application runs."""

    site: DeclaredSite
    observer: Observer
    app: AsgiApp
    called: CalledApplication
    outside: Outside | None
    has_sessions: bool
    guards_of: Callable[[Catalog], Guards]
    lifespan_state: Callable[[], Mapping[str, object]]
    extensions: Callable[[], MutableMapping[str, Any]]
    owns: Callable[[Scope], bool]
    routes: Callable[[], Sequence[Route]]
    plugins: dict[str, ServedPlugin] = field(default_factory=dict)

    @property
    def settings(self) -> Any:
        """The settings of the site."""
        return self.site.settings


class ServedPlugin:
    """One plug-in of a site while its application runs (`awp_publish.plugin.Serving`)."""

    def __init__(self, setup: Setup, shared: ServedSite) -> None:
        self.setup = setup
        self.shared = shared
        self._service: Any = _NOT_YET

    def __getattr__(self, name: str) -> Any:
        """Return what all plug-ins of the site share."""
        return getattr(self.shared, name)

    @property
    def options(self) -> Any:
        """The plug-in's settings."""
        return self.setup.options

    @property
    def state(self) -> Any:
        """The value that the plug-in's `start` returned."""
        return self.setup.state

    @property
    def service(self) -> Any:
        """The value of the plug-in's `serve`, made when it is first asked for."""
        if self._service is _NOT_YET:
            serve = self.setup.plugin.serve
            self._service = self.setup.state if serve is None else serve(self)
        return self._service

    def ask(self, plugin: str) -> Any:
        """Return what another plug-in serves, None without that plug-in."""
        other = self.shared.plugins.get(plugin)
        return other.service if other is not None else None


@dataclass(slots=True, kw_only=True)
class Address:
    """One public address of a site, which all of its plug-ins share."""

    catalog: Catalog
    guards: Guards
    admission: Admission
    keys: tuple[str, ...]
    links: bytes | None
    links_json: bool
    published: Callable[[], Catalog]
    documents: Callable[[], tuple[Mapping[str, Prepared], Mapping[str, Prepared]]]
    entrance: Callable[[Scope], AsgiApp]
    invoker: Invoker = field(init=False)
    offered: dict[str, Any] = field(default_factory=dict)
    """The values that plug-ins offer each other at this address, by their names."""


class AddressContext:
    """One plug-in at one public address of a site (`awp_publish.plugin.Context`)."""

    def __init__(self, served: ServedPlugin, address: Address, door: str | None = None) -> None:
        self._served = served
        self._address = address
        self.catalog = address.catalog if door is None else address.catalog.exposed_at(door)

    def __getattr__(self, name: str) -> Any:
        """Return what plug-ins share at this address, or on this site."""
        address = self._address
        return getattr(address if hasattr(type(address), name) else self._served, name)

    @property
    def wires(self) -> Mapping[str, Wire]:
        """The client's sides of the site's doors, by name."""
        return wires_of(other.setup.plugin for other in self._served.shared.plugins.values())

    def ask(self, plugin: str) -> Any:
        """Return what another plug-in offers at this address, None without that plug-in."""
        other, offered = self._served.shared.plugins.get(plugin), self._address.offered
        if other is None:
            return None
        if plugin not in offered:
            at = other.setup.plugin.at
            offered[plugin] = other.service if at is None else at(AddressContext(other, self._address))
        return offered[plugin]


def open_hooks(served: Mapping[str, ServedPlugin], address: Address) -> tuple[Accept | None, CarryWithSession | None]:
    """Return how plug-ins take part in the calls of an address: what accepts background calls, what runs calls."""
    opened = [
        setup.setup.plugin.calls(AddressContext(setup, address))
        for setup in served.values()
        if setup.setup.plugin.calls is not None
    ]
    accept = next((hooks.accept for hooks in opened if hooks.accept is not None), None)
    carries = [hooks.carry for hooks in opened if hooks.carry is not None]
    return accept, _within_each(carries) if carries else None


def _within_each(carries: Sequence[CarryWithSession]) -> CarryWithSession:
    if len(carries) == 1:
        return carries[0]
    first, rest = carries[0], _within_each(carries[1:])

    async def carry(run: Carry, call: Call, deliver: Deliver) -> None:
        async def run_rest(call: Call, deliver: Deliver) -> None:
            await rest(run, call, deliver)

        await first(run_rest, call, deliver)

    return carry


def open_doors(
    served: Mapping[str, ServedPlugin], doors: Mapping[str, Sequence[Door]], address: Address
) -> list[Endpoints]:
    """Open the doors of all plug-ins at an address."""
    return [
        door.open(AddressContext(served[name], address, door.name if door.calls else None))
        for name, listed in doors.items()
        for door in listed
    ]
