"""Plug-ins that cannot serve one site: with parts of another type, or two that claim the same for themselves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

from awp_publish.calls.wire import Wire
from awp_publish.declare.settings.actions import ActionSettings
from awp_publish.declare.settings.pages import PageSettings
from awp_publish.documents.protocol import Document, Protocol
from awp_publish.plugin import OWN_COMMANDS, Command, DeclaredSite, Door, Plugin, Setup
from awp_publish.problems import DeclarationError

T = TypeVar("T")

_REMEDY: Final = "Leave one of the plug-ins out, or rename its {}."


def refuse_wrong_parts(plugin: Plugin) -> None:
    """Raise DeclarationError for a plug-in with a part of another type: a list, a dictionary, a function."""
    for part in fields(plugin):
        value, kind = getattr(plugin, part.name), ""
        if callable(part.default) and not callable(value):
            kind = "a function"
        elif part.default_factory is dict and not isinstance(value, Mapping):
            kind = "a dictionary"
        elif part.name == "options" and not (value is None or is_dataclass(value)):
            kind = "a dataclass"
        if kind:
            raise DeclarationError("site", f'plugins: "{plugin.name}": {part.name} must be {kind}.')
    listed(plugin, "documents", plugin.documents, Protocol)
    listed(plugin, "wires", plugin.wires, Wire)
    listed(plugin, "the values of commands", plugin.commands.values(), Command)
    for protocol in plugin.documents:
        listed(plugin, f'documents of "{protocol.name}"', protocol.documents, Document)


def listed(plugin: Plugin, name: str, values: Iterable[T], kind: Any) -> list[T]:
    """Return these values of a plug-in. Raises DeclarationError if they are no list, or one is of another type."""
    values = list(values) if isinstance(values, Iterable) else None
    if values is None or not all(isinstance(value, kind) for value in values):
        raise DeclarationError("site", f'plugins: "{plugin.name}": {name} must be a list of {kind.__name__}.')
    return values


def returned(plugin: Plugin, hook: str, value: T, kind: Any) -> T:
    """Return what a hook of a plug-in has returned. Raises DeclarationError if it is of another type."""
    if not isinstance(value, kind):
        raise DeclarationError(
            "site", f'plugins: "{plugin.name}": what {hook} returns must be of type {kind.__name__}.'
        )
    return value


def refuse_shared_names(setups: Mapping[str, Setup], site: DeclaredSite) -> None:
    """Refuse a method of the site, an option of actions or pages, or a command that two have, of core and plug-ins.

    Raises DeclarationError.
    """
    core = {f'option "{option.name}" of actions' for option in fields(ActionSettings)}
    core |= {f'option "{name}" of pages' for name in PageSettings.__annotations__}
    core |= {f'command "{name}"' for name in OWN_COMMANDS}
    owners = dict.fromkeys(core | {f'method "{name}"' for name in dir(type(site))}, "the core")
    for setup in setups.values():
        for claim, what in _claims(setup.plugin):
            if other := owners.get(claim):
                wrong = f'plugins: "{setup.plugin.name}" has the {claim}, and so has {other}.'
                raise DeclarationError("site", wrong, _REMEDY.format(what))
            owners[claim] = f'"{setup.plugin.name}"'


def _claims(plugin: Plugin) -> Iterator[tuple[str, str]]:
    yield from ((f'method "{name}"', "method") for name in plugin.declares)
    yield from ((f'option "{name}" of actions', "option") for name in plugin.action_options)
    yield from ((f'option "{name}" of pages', "option") for name in plugin.page_options)
    yield from ((f'command "{name}"', "command") for name in plugin.commands)


def refuse_shared_doors(doors: Mapping[str, Sequence[Door]]) -> None:
    """Refuse doors without a path of their own, and two of one name, which neither `expose` nor a client could tell.

    `doors` are those of each plug-in by its name. Raises DeclarationError.
    """
    owners: dict[str, str] = {}
    for plugin, listed in doors.items():
        for door in listed:
            if not door.path.startswith("/"):
                wrong = f'plugins: "{plugin}": the path of the door "{door.name}" is {door.path!r}.'
                raise DeclarationError("site", wrong, "Begin it with a slash.")
            if other := owners.get(door.name):
                wrong = f'plugins: "{plugin}" has the door "{door.name}", and so has "{other}".'
                raise DeclarationError("site", wrong, _REMEDY.format("door"))
            owners[door.name] = plugin
