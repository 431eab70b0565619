"""Plug-ins that cannot serve one site: with parts of another type, or two that claim the same for themselves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Final

from awp_publish.calls.wire import Wire
from awp_publish.declare.settings.actions import ActionSettings
from awp_publish.declare.settings.pages import PageSettings
from awp_publish.documents.protocol import Document, Protocol
from awp_publish.plugin import DeclaredSite, Door, Plugin, Setup
from awp_publish.problems import DeclarationError

_REMEDY: Final = "Leave one of the plug-ins out, or rename its {}."


def refuse_wrong_parts(plugins: Iterable[Plugin]) -> None:
    """Raise DeclarationError for a plug-in of which a list is none, or has something else in it."""
    for plugin in plugins:
        _refuse_others(plugin, "documents", plugin.documents, Protocol)
        _refuse_others(plugin, "wires", plugin.wires, Wire)
        for protocol in plugin.documents:
            _refuse_others(plugin, f'documents of "{protocol.name}"', protocol.documents, Document)


def _refuse_others(plugin: Plugin, name: str, values: object, kind: type) -> None:
    if not isinstance(values, Sequence) or not all(isinstance(value, kind) for value in values):
        raise DeclarationError("site", f'plugins: "{plugin.name}": {name} must be a list of {kind.__name__}.')


def refuse_shared_names(setups: Mapping[str, Setup], site: DeclaredSite) -> None:
    """Refuse a method of the site, or an option of actions or pages, that two have, of the core and all plug-ins.

    Raises DeclarationError.
    """
    core = {f'option "{option.name}" of actions' for option in fields(ActionSettings)}
    core |= {f'option "{name}" of pages' for name in PageSettings.__annotations__}
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
