"""Where calls are remembered: memory, SQLite, Redis behind one small protocol.

`open_store` makes a store of the URL that a site owner writes. Nothing is opened by that: threads, files and
connections come with the first use, since servers fork after they have imported the application.
"""

from typing import Final

from awp_publish.problems import DeclarationError
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import (
    Add as Add,
    Count as Count,
    Counted as Counted,
    Look as Look,
    Ran as Ran,
    Schedule as Schedule,
    Seen as Seen,
    Step as Step,
    Store as Store,
    Swap as Swap,
    Unschedule as Unschedule,
)

REMEDY: Final = (
    'Use store="memory:", store="sqlite:///agents.db" (a file beside the application), '
    'store="sqlite:////var/lib/agents.db" (an absolute path) or store="redis://host:6379/0".'
)


def open_store(url: str, namespace: str) -> Store:
    """The store that a URL means; `namespace` keeps sites apart that share it. Raises DeclarationError.

    The problem never repeats a URL of which a part may be a password.
    """
    scheme = url.partition(":")[0]
    if url in ("memory:", "memory://"):
        return MemoryStore()
    if scheme == "sqlite":
        return _open_sqlite(url, namespace)
    if scheme in ("redis", "rediss", "unix"):
        return _open_redis(url, namespace)
    raise DeclarationError("site", "store= is not the URL of a store that is known here.", REMEDY)


def _open_sqlite(url: str, namespace: str) -> Store:
    _, _, path = url.partition("sqlite:///")
    if not path or path.startswith("//") or path.endswith("/"):
        raise DeclarationError("site", "store= names no file for SQLite.", REMEDY)
    if path == ":memory:":
        raise DeclarationError("site", "store= names no file for SQLite.", 'Use store="memory:" for a store in memory.')
    if "?" in path or "\0" in path:
        raise DeclarationError("site", "store= has something after the name of the SQLite file.", REMEDY)
    from awp_publish.stores.sqlite import SqliteStore

    return SqliteStore(path, namespace)


def _open_redis(url: str, namespace: str) -> Store:
    try:
        from awp_publish.stores.redis import RedisStore
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        remedy = 'Install it: pip install "awp-publish[redis]".'
        raise DeclarationError("site", "store= is in Redis, for which the package redis is missing.", remedy) from None
    return RedisStore(url, namespace)
