"""Which plug-ins are there: each folder of `plugins/` may be taken out, and the core's tests pass without it."""

import ast
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import awp_publish

FOLDERS = {"bridge": "actions_json"}
"""Where a plug-in is that is not called as its folder."""
ROOT = Path(__file__).parents[1]


@cache
def is_installed(plugin: str) -> bool:
    return find_spec(f"awp_publish.plugins.{FOLDERS.get(plugin, plugin)}") is not None


def installed(*plugins: str) -> list[str]:
    """Return those of these plug-ins that have not been taken out."""
    return [name for name in plugins if is_installed(name)]


@cache
def is_complete() -> bool:
    """Tell whether no plug-in of the project has been taken out."""
    plugins = entry_points(group="awp_publish.plugins")
    return all(is_installed(plugin.module.split(".")[2]) for plugin in plugins)


@cache
def can_be_imported(file: Path) -> bool:
    """Tell whether all plug-ins are there from which a file of tests, or one that it imports, imports."""
    if is_complete():
        return True
    names = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]
    modules = [vars(awp_publish)["_OF_PLUGINS"].get(name.removeprefix("awp_publish."), name) for name in names]
    plugins = [module.split(".")[2] for module in modules if module.startswith("awp_publish.plugins.")]
    files = [ROOT / f"{name.rpartition('.')[0].replace('.', '/')}.py" for name in names if name.startswith("tests.")]
    return all(map(is_installed, plugins)) and all(can_be_imported(file) for file in files if file.is_file())
