"""Which plug-ins are there: each folder of `plugins/` may be taken out, and the core's tests pass without it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import awp_publish
from awp_publish import DeclarationError

FOLDERS = {"bridge": "actions_json"}
"""Where a plug-in is that is not called as its folder."""
DOCUMENTS = {
    "agent_json": ("/agent.json",),
    "awas": (
        *(f"/.well-known/{name}.json" for name in ("ai-actions", "awas", "mcp-manifest", "a2a-manifest")),
        "/schema/awas-schema.json",
        "/agents/schemas.json",
    ),
    "woa": ("/.well-known/woa.json", "/invoke"),
}
"""Ends of the addresses of documents that tests of the core read, and of calls, by the plug-ins that have them."""
PLAIN = re.compile(r"/actions/\w+$")
"""Addresses of calls at the plain door."""
PROBLEMS = re.compile(r"/problems(/[a-z-]+)?$")
"""Addresses of problem types."""
OF_PROBLEMS = ("actions_json", "confirmation", "idempotency", "jobs", "prerequisites", "problem_pages", "woa")
"""Plug-ins without which the list of problem types is another one."""
OPTIONS = {"confirm": "confirmation", "idempotency": "idempotency", "requires": "prerequisites"}
"""Options of actions that tests of the core give, by the plug-ins that read them."""
ROOT = Path(__file__).parents[1]


@cache
def is_installed(plugin: str) -> bool:
    return find_spec(f"awp_publish.plugins.{FOLDERS.get(plugin, plugin)}") is not None


def installed(*plugins: str) -> list[str]:
    """Return those of these plug-ins that have not been taken out."""
    return [name for name in plugins if is_installed(name)]


@cache
def taken_out() -> frozenset[str]:
    """Return the names of the project's plug-ins whose folders are not there."""
    plugins = entry_points(group="awp_publish.plugins")
    return frozenset(plugin.name for plugin in plugins if not is_installed(plugin.module.split(".")[2]))


def missing_document(path: str) -> str | None:
    """Return the plug-in that has been taken out, and whose document has this path."""
    if PLAIN.search(path) and not is_installed("plain"):
        return "plain"
    if PROBLEMS.search(path):
        return next((name for name in OF_PROBLEMS if not is_installed(name)), None)
    return next((name for name, paths in DOCUMENTS.items() if not is_installed(name) and path.endswith(paths)), None)


def missing_plugin(error: BaseException | None) -> str | None:
    """Return the plug-in that has been taken out and that a test asked for, if its error comes of that."""
    for cause in _causes(error):
        if "nothing fulfils it" in str(cause) or str(cause).startswith("A Site has no"):
            named = list(taken_out())
        elif isinstance(cause, DeclarationError):
            named = re.findall(r'there is no plug-in "(\w+)"', str(cause))
            named += [
                OPTIONS[name] for name in re.findall(r"(\w+): there is no such option", str(cause)) if name in OPTIONS
            ]
        elif isinstance(cause, ValueError) and str(cause).startswith("There is no door"):
            named = re.findall(r"There is no door '(\w+)'", str(cause))
        elif isinstance(cause, ModuleNotFoundError):
            named = re.findall(r"^awp_publish\.plugins\.(\w+)", cause.name or "")
        else:
            continue
        if missing := taken_out().intersection(filter(None, named)):
            return min(missing)
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    if error is not None:
        yield error
        for inner in (
            error.exceptions if isinstance(error, BaseExceptionGroup) else (error.__cause__ or error.__context__,)
        ):
            yield from _causes(inner)


@cache
def can_be_imported(file: Path) -> bool:
    """Tell whether all plug-ins are there from which a file of tests, or one that it imports, imports."""
    if not taken_out():
        return True
    names = [
        f"{node.module}.{alias.name}"
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]
    modules = [vars(awp_publish)["_OF_PLUGINS"].get(name.removeprefix("awp_publish."), name) for name in names]
    plugins = [module.split(".")[2] for module in modules if module.startswith("awp_publish.plugins.")]
    files = [ROOT / f"{name.rpartition('.')[0].replace('.', '/')}.py" for name in names if name.startswith("tests.")]
    return all(map(is_installed, plugins)) and all(can_be_imported(file) for file in files if file.is_file())
