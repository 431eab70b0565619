"""The plug-ins of a site: `Site(plugins=[...])` becomes a `Setup` for each, with its options and its state."""

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias, cast

from awp_publish.declare.composition import (
    called,
    refuse_shared_doors,
    refuse_shared_names,
    refuse_wrong_parts,
)
from awp_publish.declare.settings.site import SiteSettings
from awp_publish.model import Catalog, Paths
from awp_publish.plugin import DeclaredSite, Door, Finding, Gate, Plugin, Setup, installed
from awp_publish.problems import ALL, DeclarationError, Problem, did_you_mean
from awp_publish.schema.options import LazyAdapter, T, check, listing, unpack

LEAVE_OUT: Final = "no:"
"""The prefix of the name of a plug-in that a site does not want: `Site(plugins=["no:traffic"])`."""

_SLUG: Final = re.compile(r"(?!problem$)[a-z0-9]+(-[a-z0-9]+)*")
"""A part of an address and, in capitals, a code. `problem` is the slug of a class without one of its own."""

_REMEDY: Final = 'Write plugins=["mcp", Traffic(days=30)]: names, options, or plug-ins of your own.'


def read_plugins(values: object, site: DeclaredSite) -> dict[str, Setup]:
    """Return the plug-ins of a site by name: defaults first, then those that it names. Raises DeclarationError."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise DeclarationError("site", "plugins: must be a list.", _REMEDY)
    chosen: dict[str, tuple[Plugin, object]] = {}
    unwanted: set[str] = set()
    for value in values:
        if isinstance(value, str) and value.startswith(LEAVE_OUT):
            unwanted.add(_named(value.removeprefix(LEAVE_OUT)).name)
            continue
        plugin, options = _read(value)
        if plugin.name in chosen:
            raise DeclarationError("site", f'plugins: "{plugin.name}" is named twice.', "Leave one out.")
        _check_packages(plugin)
        chosen[plugin.name] = plugin, options
    if both := sorted(unwanted & chosen.keys()):
        raise DeclarationError("site", f'plugins: "{both[0]}" is both named and left out.', "Leave one out.")
    defaults = {
        plugin.name: (plugin, _options_of(plugin))
        for plugin in installed().values()
        if plugin.name not in chosen and plugin.name not in unwanted and _is_default(plugin)
    }
    setups = {
        name: Setup(plugin, options, site, is_named=name in chosen)
        for name, (plugin, options) in (defaults | chosen).items()
    }
    refuse_shared_names(setups, site)
    return setups


def start(setups: Mapping[str, Setup]) -> None:
    """Make the state of each plug-in."""
    for setup in setups.values():
        setup.state = called(setup.plugin, "start", Any, setup)


def problems_of(setups: Mapping[str, Setup]) -> list[type[Problem]]:
    """Return the problems that plug-ins add: those that they list, and those with which their gates refuse."""
    kinds = dict[type[Problem], None]()
    for setup in setups.values():
        kinds |= dict.fromkeys(setup.plugin.problems)
    for gate in gates_of(setups):
        kinds |= dict.fromkeys(gate.refuses)
    own = [kind for kind in kinds if kind not in ALL]
    if unnamed := [kind for kind in own if not _SLUG.fullmatch(getattr(kind, "slug", ""))]:
        wrong = f"plugins: the slug of the problem {unnamed[0].__name__} is {getattr(unnamed[0], 'slug', '')!r}."
        raise DeclarationError(
            "site", wrong, 'Give it one of lower-case letters, digits and hyphens: "quota-exceeded".'
        )
    return own


def gates_of(setups: Mapping[str, Setup]) -> tuple[Gate, ...]:
    """Return the gates that plug-ins add."""
    return tuple(gate for setup in setups.values() for gate in called(setup.plugin, "gates", Collection[Gate], setup))


def findings_of(setups: Mapping[str, Setup], catalog: Catalog) -> list[Finding]:
    """Return what plug-ins find in the whole catalog. Raises DeclarationError for what cannot be published."""
    return [
        finding
        for setup in setups.values()
        for finding in called(setup.plugin, "check", Collection[Finding], setup, catalog)
    ]


def doors_of(setups: Mapping[str, Setup], paths: Paths) -> dict[str, list[Door]]:
    """Return the doors of each plug-in at these paths, by the plug-in's name. Raises DeclarationError."""
    doors = {name: called(setup.plugin, "doors", Collection[Door], setup, paths) for name, setup in setups.items()}
    refuse_shared_doors(doors)
    return doors


Owner: TypeAlias = Literal["action", "page"]


def options_of(setups: Mapping[str, Setup], owner: Owner = "action") -> dict[str, Any]:
    """Return the options of actions or pages that plug-ins read, each with its type."""
    plugins = [setup.plugin for setup in setups.values()]
    read = [plugin.action_options if owner == "action" else plugin.page_options for plugin in plugins]
    return {name: kind for options in read for name, kind in options.items()}


def read_options(
    subject: str,
    adapter: LazyAdapter[T],
    own: Collection[str],
    given: Mapping[str, object],
    setups: Mapping[str, Setup],
    owner: Owner = "action",
) -> tuple[T, dict[str, object]]:
    """Return the options of an action or a page, and beside them those that plug-ins read, as values of their types.

    `own` are the names of the former. Raises DeclarationError.
    """
    kinds = options_of(setups, owner)
    plain = {name: value for name, value in given.items() if name not in kinds}
    unknown = plain.keys() - set(own)
    for plugin in installed().values() if unknown else ():
        of_plugin = plugin.action_options if owner == "action" else plugin.page_options
        if lacking := sorted(of_plugin.keys() & unknown):
            wrong = f'{lacking[0]}: is an option of the plug-in "{plugin.name}", which the site does not have.'
            raise DeclarationError(subject, wrong, f'Name it in plugins=["{plugin.name}"], or leave the option out.')
    options = check(subject, adapter, plain, names={*own, *kinds})
    of_plugins = {name: value for name, value in given.items() if name in kinds}
    return options, {
        name: check(subject, _adapter(kinds[name]), unpack(value), name) for name, value in of_plugins.items()
    }


def _read(value: object) -> tuple[Plugin, object]:
    """Return the plug-in that a value names, and its options."""
    if isinstance(value, Plugin):
        refuse_wrong_parts(value)
        return value, _options_of(value)
    if isinstance(value, str):
        plugin = _named(value)
        return plugin, _options_of(plugin)
    module = sys.modules.get(type(value).__module__)
    beside = [other for other in vars(module).values() if isinstance(other, Plugin)] if module is not None else []
    for plugin in (*installed().values(), *beside):
        if plugin.options is not None and type(value) is plugin.options:
            refuse_wrong_parts(plugin)
            adapter: LazyAdapter[object] = _adapter(cast(Any, plugin.options))
            return plugin, check("site", adapter, unpack(value), f"plugins.{plugin.name}")
    kind = value.__name__ if isinstance(value, type) else type(value).__name__
    what = f"{kind} is a class" if isinstance(value, type) else f"a value of type {kind} is not a plug-in"
    raise DeclarationError("site", f"plugins: {what}.", _REMEDY)


def _named(name: str) -> Plugin:
    plugin = installed().get(name)
    if plugin is None:
        remedy = f"{did_you_mean(name, installed())} There are: {', '.join(installed())}.".lstrip()
        raise DeclarationError("site", f'plugins: there is no plug-in "{name}".', remedy)
    return plugin


def _is_default(plugin: Plugin) -> bool:
    wanted = plugin.is_default() if callable(plugin.is_default) else plugin.is_default
    return wanted and not any(_is_missing(package) for package in plugin.needs)


def _check_packages(plugin: Plugin) -> None:
    for package, extra in plugin.needs.items():
        if _is_missing(package):
            wrong = f'plugins: "{plugin.name}" needs the package {package}, which is missing.'
            raise DeclarationError("site", wrong, f'Install it: pip install "awp-publish[{extra}]".')


def _is_missing(package: str) -> bool:
    try:
        return find_spec(package) is None
    except ValueError:  # sys.modules has None in its place
        return True


def _options_of(plugin: Plugin) -> Any:
    if plugin.options is None:
        return None
    try:
        return plugin.options()
    except TypeError as error:  # it has settings without a default
        example = f"{plugin.options.__name__}(...)"
        wrong = f'plugins: "{plugin.name}" is not complete without its settings: {error}.'
        raise DeclarationError("site", wrong, f"Write plugins=[{example}].") from error


@cache
def _adapter(options: Any) -> LazyAdapter[Any]:
    return LazyAdapter(options)


def refuse_unfulfilled(catalog: Catalog, settings: SiteSettings, plugins: Mapping[str, Setup]) -> None:
    """Raise DeclarationError for an option of actions that only a plug-in fulfils, which the site does not have.

    What an adapter of a framework overrides may have left out a plug-in whose options have been read.
    """
    actions, guards_routes = catalog.actions, settings.guard_routes
    asking = {
        "guard_routes": [
            action.id for action in actions if (guards_routes if action.guards_route is None else action.guards_route)
        ],
        "execution": [action.id for action in actions if action.is_background],
        "confirm": [action.id for action in actions if action.needs_confirmation],
        "log_inputs": [action.id for action in actions if settings.log_inputs],
        "rate_limit": [action.id for action in actions if action.rate_limit or catalog.site.rate_limit],
    }
    for action in actions:
        for option in action.options:
            asking.setdefault(option, []).append(action.id)
    fulfilled = {option for setup in plugins.values() for option in _options_fulfilled_by(setup.plugin)}
    for option, action_ids in asking.items():
        if action_ids and option not in fulfilled:
            able = (plugin.name for plugin in installed().values() if option in _options_fulfilled_by(plugin))
            named = next(able, None)
            remedy = f'Do not leave it out: take "no:{named}" away.' if named else "Install the plug-in that does."
            raise DeclarationError(
                "site", f"{option}: nothing fulfils it, and {listing(action_ids)} would need it.", remedy
            )


def _options_fulfilled_by(plugin: Plugin) -> tuple[str, ...]:
    return (*plugin.fulfils, *plugin.action_options)
