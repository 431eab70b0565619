"""A store in an SQLite file, for one machine."""

from awp_publish.plugin import STORE_REMEDY, Plugin, Store
from awp_publish.problems import DeclarationError


def _open(url: str, namespace: str) -> Store:
    from awp_publish.plugins.sqlite.store import SqliteStore

    _, _, path = url.partition("sqlite:///")
    if not path or path.startswith("//") or path.endswith("/"):
        raise DeclarationError("site", "store= names no file for SQLite.", STORE_REMEDY)
    if path == ":memory:":
        remedy = 'Use store="memory:" for a store in memory.'
        raise DeclarationError("site", "store= names no file for SQLite.", remedy)
    if "?" in path or "\0" in path:
        raise DeclarationError("site", "store= has something after the name of the SQLite file.", STORE_REMEDY)
    return SqliteStore(path, namespace)


PLUGIN = Plugin(name="sqlite", stores={"sqlite": _open})
