"""Plug-ins that cannot serve one site: with parts of another type, or two that claim the same for themselves."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from awp_publish.declare.settings.actions import ActionSettings
from awp_publish.declare.settings.pages import PageSettings
from awp_publish.model import Catalog
from awp_publish.plugin import OWN_COMMANDS, DeclaredSite, Door, Plugin, Setup
from awp_publish.problems import DeclarationError, noting

_REMEDY: Final = "Leave one of the plug-ins out{}."

_hints_of: Final[Callable[[Any], dict[str, Any]]] = cache(get_type_hints)

_WORDS: Final[Mapping[Any, str]] = {Mapping: "a dictionary", Collection: "a list", Callable: "a function"}


def refuse_wrong_parts(plugin: Plugin) -> None:
    """Raise DeclarationError for a plug-in with a part of another type than its hint says: a list, a function."""
    _refuse_wrong(plugin, plugin, Plugin, "")
    if plugin.options is not None and not is_dataclass(plugin.options):
        raise DeclarationError("site", f'plugins: "{plugin.name}": options must be a dataclass.')


def called(plugin: Plugin, hook: str, hint: Any, *arguments: Any, function: Any = None) -> Any:
    """Return what a hook of a plug-in returns, where `hint` is a collection as a list. Its errors name it in a note.

    Raises DeclarationError for what is not as `hint` says. `function` is the hook if it is no field of plug-ins.
    """
    with noting(f'{hook} of the plug-in "{plugin.name}"'):
        value = (function or getattr(plugin, hook))(*arguments)
        value = list(value) if get_origin(hint) is Collection and isinstance(value, Iterable) else value
    _refuse_wrong(plugin, value, hint, f"what {hook} returns")
    return value


def _refuse_wrong(plugin: Plugin, value: Any, hint: Any, name: str) -> None:
    """Raise DeclarationError for a value that does not match a type hint, nor do its items and fields."""
    inner = get_args(hint)
    kinds = [get_origin(each) or each for each in (inner if isinstance(hint, UnionType) else (hint,))]
    if kinds[0] in (Any, Literal):
        return
    if kinds[0] is not str and kinds[0] not in _WORDS and issubclass(kinds[0], Collection):
        kinds = [Collection]  # a list is as good as a tuple
    fits = isinstance(value, tuple(kinds)) and (str in kinds or not isinstance(value, str))
    if not fits:
        what = _WORDS.get(kinds[0]) or f"of type {kinds[0].__name__}"
        raise DeclarationError("site", f'plugins: "{plugin.name}": {name} must be {what}.')
    if is_dataclass(kinds[0]) and kinds[0] is not Catalog and value is not None:
        for part, each in _hints_of(kinds[0]).items():
            _refuse_wrong(plugin, getattr(value, part), each, f"{part} of {name}" if name else part)
    elif kinds[0] in (Mapping, Collection):
        for at, item in value.items() if kinds[0] is Mapping else enumerate(value):
            _refuse_wrong(plugin, item, inner[kinds[0] is Mapping], f"item {at!r} of {name}")


def refuse_shared_names(setups: Mapping[str, Setup], site: DeclaredSite) -> None:
    """Raise DeclarationError for a method, an option, a command or a sole hook that two have, of core and plug-ins."""
    core = {f'option "{option.name}" of actions' for option in fields(ActionSettings)}
    core |= {f'option "{name}" of pages' for name in PageSettings.__annotations__}
    core |= {f'command "{name}"' for name in OWN_COMMANDS}
    owners = dict.fromkeys(core | {f'method "{name}"' for name in dir(type(site))}, "the core")
    for setup in setups.values():
        for claim, what in _claims(setup.plugin):
            if other := owners.get(claim):
                wrong = f'plugins: "{setup.plugin.name}" has the {claim}, and so has {other}.'
                raise DeclarationError("site", wrong, _REMEDY.format(f", or rename its {what}" if what else ""))
            owners[claim] = f'"{setup.plugin.name}"'


def _claims(plugin: Plugin) -> Iterator[tuple[str, str]]:
    yield from ((f'method "{name}"', "method") for name in plugin.declares)
    yield from ((f'option "{name}" of actions', "option") for name in plugin.action_options)
    yield from ((f'option "{name}" of pages', "option") for name in plugin.page_options)
    yield from ((f'command "{name}"', "command") for name in plugin.commands)
    own = (name for name in ("counter", "watcher") if getattr(plugin, name) is not getattr(Plugin, name))
    yield from ((f'hook "{name}"', "") for name in own)  # of which a site has one


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
                raise DeclarationError("site", wrong, _REMEDY.format(", or rename its door"))
            owners[door.name] = plugin
