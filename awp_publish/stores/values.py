"""One value under a key of a store: read, and changed whatever others change at the same time."""

from collections.abc import Awaitable, Callable
from typing import Final

from awp_publish.stores.store import Add, Look, Store, Swap

MAX_TRIES: Final = 20
"""Concurrent changes of a value after which one more gives up."""


async def read_value(store: Store, key: str) -> bytes | None:
    """Return the value under a key, None if there is none. Raises StoreUnavailable."""
    value = (await store.run((Look(key),))).seen[0]
    return value if isinstance(value, bytes) else None


def replacement(key: str, old: bytes | None, new: bytes, seconds: float) -> Add | Swap:
    """Return the step that stores a value for `seconds`, and holds if the one before it is `old`, None for none."""
    return Add(key, new, seconds) if old is None else Swap(key, old, new, seconds)


async def change_value(
    store: Store,
    key: str,
    change: Callable[[bytes | None], Awaitable[bytes | None]],
    seconds: float,
    *,
    durable: bool = False,
) -> bool:
    """Store what `change` makes of the value under a key, again after each concurrent change.

    None stands for no value, before and after. Returns False if others were faster MAX_TRIES times. Raises
    StoreUnavailable, and what `change` raises.
    """
    for _ in range(MAX_TRIES):
        old = await read_value(store, key)
        new = await change(old)
        if new == old:
            return True
        step = Swap(key, old, None) if new is None and old is not None else replacement(key, old, new or b"", seconds)
        if (await store.run((step,), durable=durable)).failed is None:
            return True
    return False
