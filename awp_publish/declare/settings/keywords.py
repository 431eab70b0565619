"""Methods whose keywords are the options of a settings class."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from awp_publish.schema.options import T

Options: TypeAlias = dict[str, Any]
"""Options by name, not yet checked."""

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")


def takes(
    settings: Callable[P, object],
) -> Callable[[Callable[[Owner, Options], R]], Callable[Concatenate[Owner, P], R]]:
    """Give a method the signature of a settings class. The method receives the options by name, unchecked."""
    signature = inspect.signature(settings)

    def sign(method: Callable[[Owner, Options], R]) -> Callable[Concatenate[Owner, P], R]:
        @wraps(method)
        def call(owner: Owner, /, *args: P.args, **options: P.kwargs) -> R:
            return method(owner, _by_name(signature, args, options))

        return _signed(call, method, 1, signature)

    return sign


def takes_id(
    settings: Callable[P, object],
) -> Callable[[Callable[[Owner, str, Options], R]], Callable[Concatenate[Owner, str, P], R]]:
    """Give a method that takes an id the signature of a settings class, like `takes`."""
    signature = inspect.signature(settings)

    def sign(method: Callable[[Owner, str, Options], R]) -> Callable[Concatenate[Owner, str, P], R]:
        @wraps(method)
        def call(owner: Owner, identifier: str, /, *args: P.args, **options: P.kwargs) -> R:
            return method(owner, identifier, _by_name(signature, args, options))

        return _signed(call, method, 2, signature)

    return sign


def _by_name(signature: inspect.Signature, args: tuple[object, ...], options: Mapping[str, object]) -> Options:
    """Return the options of a call by name. Raises TypeError as a function with this signature would."""
    plain = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    if len(args) > len(plain):
        raise TypeError(f"takes at most {len(plain)} options without their names, not {len(args)}")
    if twice := sorted(set(plain[: len(args)]) & set(options)):
        raise TypeError(f"got several values for {', '.join(twice)}")
    return {**dict(zip(plain, args, strict=False)), **options}


def _signed(call: T, method: Callable[..., object], own: int, options: inspect.Signature) -> T:
    """Set the signature that `help()` and editors show: the method's own parameters, then the options."""
    parameters = list(inspect.signature(method).parameters.values())[:own]
    own_parameters = [parameter.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for parameter in parameters]
    call.__signature__ = inspect.Signature([*own_parameters, *options.parameters.values()])  # type: ignore[attr-defined]
    return call
