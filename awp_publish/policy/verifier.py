"""A site's own check of credentials: a function of the site's, plain or async, and what its answer means."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, TypeVar

from awp_publish.policy.principal import Principal
from awp_publish.problems import DeclarationError
from awp_publish.threads import run_in_thread

Shown = TypeVar("Shown")

Verdict: TypeAlias = Principal | str | bool | None
"""What a check may answer: the caller, the caller's id, or None or False for nobody."""

Verify: TypeAlias = Callable[[Shown], Verdict | Awaitable[Verdict]]
Ask: TypeAlias = Callable[[Shown], Awaitable[Principal | None]]


def read_verifier(verify: Verify[Shown], remedy: str) -> Ask[Shown]:
    """Make a check awaitable. One that is not async runs in a thread, since it may well ask a database.

    Raises DeclarationError with `remedy` for what cannot be called.
    """
    if not callable(verify) or isinstance(verify, type):
        raise DeclarationError("site", f"{_described(verify)} cannot check credentials.", remedy)
    waits = _is_async(verify)

    async def ask(shown: Shown) -> Principal | None:
        answer = verify(shown) if waits else await run_in_thread(partial(_call, verify, shown), asyncio.to_thread)
        return read_verdict(await answer if inspect.isawaitable(answer) else answer)

    return ask


def read_verdict(verdict: object) -> Principal | None:
    """The caller that a check's answer means. Nobody may be nameless. Raises TypeError for any other answer."""
    if verdict is None or verdict is False:
        return None
    principal = Principal(verdict) if isinstance(verdict, str) else verdict
    if not isinstance(principal, Principal):
        raise TypeError(f"A check of credentials answered {_described(verdict)}, not a Principal, an id or None.")
    return principal if principal.id else None


def _call(verify: Verify[Shown], shown: Shown) -> Verdict | Awaitable[Verdict]:
    """Call a check in a thread. No future can carry StopIteration: whoever waited for it would wait for ever."""
    try:
        return verify(shown)
    except StopIteration as error:
        raise RuntimeError("A check of credentials raised StopIteration.") from error


def _is_async(verify: object) -> bool:
    return inspect.iscoroutinefunction(verify) or inspect.iscoroutinefunction(getattr(verify, "__call__", None))  # noqa: B004


def _described(value: object) -> str:
    """A value by its kind alone: what is given in the wrong place may be a secret."""
    return f"The class {value.__name__}" if isinstance(value, type) else f"A value of type {type(value).__name__}"
