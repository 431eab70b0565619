"""Methods whose keywords are the options of a settings class."""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

Options: TypeAlias = dict[str, Any]
"""Options by name, not yet checked."""

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")


def takes(
    settings: Callable[P, object],
) -> Callable[[Callable[[Owner, Options], R]], Callable[Concatenate[Owner, P], R]]:
    """Give a method the signature of a settings class. The method receives the options by name, unchecked."""
    return partial(_sign, inspect.signature(settings), 1)


def takes_id(
    settings: Callable[P, object],
) -> Callable[[Callable[[Owner, str, Options], R]], Callable[Concatenate[Owner, str, P], R]]:
    """Give a method that takes an id the signature of a settings class, like `takes`."""
    return partial(_sign, inspect.signature(settings), 2)


def _sign(settings: inspect.Signature, count: int, method: Callable[..., R]) -> Callable[..., R]:
    """Return a method whose first `count` parameters are its own, and whose others are those of the settings."""

    @wraps(method)
    def call(*args: Any, **options: Any) -> R:
        if len(args) < count:
            names = ", ".join(parameter.name for parameter in own[1:])
            raise TypeError(f"{method.__name__}() takes {names} before its options")
        unnamed = settings.bind_partial(*args[count:]).arguments
        if twice := sorted(unnamed.keys() & options.keys()):
            raise TypeError(f"got several values for {', '.join(twice)}")
        return method(*args[:count], {**unnamed, **options})

    # What `help()` and editors show.
    own = list(inspect.signature(method).parameters.values())[:count]
    positional = [parameter.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for parameter in own]
    call.__signature__ = inspect.Signature([*positional, *settings.parameters.values()])  # type: ignore[attr-defined]
    return call
