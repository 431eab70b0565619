"""The layers of a handler, by which a declaration finds its route, and what its annotations say of its answers.

`@site.action` may stand below the route decorator (it then marks something inside the endpoint) or above it (something
around the endpoint), with decorators that use functools.wraps, partials and methods in between.
"""

import functools
import inspect
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Final, Union, get_args, get_origin, get_type_hints

from starlette.responses import Response

from awp_publish.schema.handlers import layers_of
from awp_publish.schema.media import is_json

MARK: Final = "__awp_action_"
"""The prefix of the attributes that a declaration leaves on a function."""


def wrappings_of(handler: object) -> Iterator[object]:
    """Yield the handler and what it wraps with functools.wraps: layers that mean the same handler.

    A partial, a method or a callable object adds something to the function inside, so it is not the same handler.
    """
    for layer in layers_of(handler):
        yield layer
        if not hasattr(layer, "__wrapped__") or inspect.ismethod(layer) or isinstance(layer, functools.partial):
            return


def identity_of(handler: object) -> object:
    """Return a key that is equal for the same handler, without using its own equality or hash.

    A bound method is a new object each time it is looked up.
    """
    if inspect.ismethod(handler):
        return id(handler.__self__), id(handler.__func__)
    return id(handler)


def mark(function: object, action_id: str) -> None:
    """Mark a function, for decorators that hide what they decorate but copy its attributes.

    Django's `method_decorator` is one: it hands a decorator a function of its own and copies that one's attributes.
    """
    if inspect.isfunction(function):
        setattr(function, MARK + action_id, function)


def is_bound_for_a_call(handler: object) -> bool:
    """Return True for a bound method in a partial, which `method_decorator` makes anew for each call."""
    return any(isinstance(layer, functools.partial) and inspect.ismethod(layer.func) for layer in layers_of(handler))


def answers_json(handler: object) -> bool | None:
    """Return True if a handler is annotated to always answer JSON (`-> JSONResponse`); None if nothing is known.

    Starlette's responses are recognised by their `media_type`, Django's by their name.
    """
    function = next((layer for layer in layers_of(handler) if inspect.isfunction(layer)), None)
    try:
        annotation = getattr(function, "__annotations__", {}).get("return")
        if isinstance(annotation, str):
            annotation = get_type_hints(function)["return"]
    except Exception:  # a name that is imported for type checkers only
        return None
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    is_union = get_origin(annotation) in (Union, UnionType)
    kinds = get_args(annotation) if is_union else (annotation,)
    ancestors = [kind.__mro__ for kind in kinds if isinstance(kind, type)]
    responses = [
        ancestry
        for ancestry in ancestors
        if any(kind is Response or kind.__name__ == "HttpResponseBase" for kind in ancestry)
    ]
    if not responses:
        return None
    return len(responses) == len(kinds) and all(
        is_json(str(getattr(own, "media_type", None))) or any(kind.__name__ == "JsonResponse" for kind in (own, *rest))
        for own, *rest in responses
    )


def requires_user(handler: object) -> bool:
    """Return True if Starlette's decorator `@requires(...)` is around a handler."""
    return any(
        getattr(layer, "__globals__", {}).get("__name__") == "starlette.authentication" for layer in layers_of(handler)
    )
