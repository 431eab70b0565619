"""What a handler is made of, from the outside in: by these layers a declaration recognises its route.

`@site.action` may stand below the route decorator (it marks something inside of the endpoint), above it (it marks
something around the endpoint), and decorators with functools.wraps, partials and methods may lie in between.
"""

import functools
import inspect
from collections.abc import Iterator
from typing import Final

MARK: Final = "__awp_action_"
"""What the attributes begin with that a declaration leaves on a function."""


def layers_of(handler: object) -> Iterator[object]:
    """The handler itself, then what it wraps, down to the plain function."""
    seen: set[int] = set()
    inner: object = handler
    while inner is not None and id(inner) not in seen:
        seen.add(id(inner))
        yield inner
        inner = _inside(inner)


def wrappings_of(handler: object) -> Iterator[object]:
    """The handler itself and what it wraps with functools.wraps: what may stand for it without meaning another thing.

    A partial, a method and an object add something to the function inside, so they stand for themselves only.
    """
    for layer in layers_of(handler):
        yield layer
        if not hasattr(layer, "__wrapped__") or inspect.ismethod(layer) or isinstance(layer, functools.partial):
            return


def _inside(handler: object) -> object:
    if isinstance(handler, functools.partial):
        return handler.func
    if inspect.ismethod(handler):
        return handler.__func__
    wrapped = getattr(handler, "__wrapped__", None)
    if wrapped is not None:
        return wrapped
    return _method_called(handler)


def _method_called(handler: object) -> object:
    """The `__call__` of an object whose class somebody wrote."""
    called = inspect.getattr_static(type(handler), "__call__", None)
    return called if inspect.isfunction(called) else None


def identity_of(handler: object) -> object:
    """What makes two mentions of a handler the same one; equality and hashing are the handler's own affair.

    A bound method is made anew each time it is looked up.
    """
    if inspect.ismethod(handler):
        return id(handler.__self__), id(handler.__func__)
    return id(handler)


def mark(function: object, action_id: str) -> None:
    """Leave a trace on a function, which decorators carry along that do not show what they really decorate.

    Django's `method_decorator` is one: it hands a decorator a function of its own, and copies that one's attributes.
    """
    if inspect.isfunction(function):
        setattr(function, MARK + action_id, function)


def marked_functions_of(handler: object) -> Iterator[object]:
    """The functions whose declarations mean this handler by the traces that they have left."""
    for layer in layers_of(handler):
        traces = getattr(layer, "__dict__", {})
        yield from (found for name, found in traces.items() if name.startswith(MARK))


def is_bound_for_a_call(handler: object) -> bool:
    """Whether a method is made into a function for one call only, as `method_decorator` does each time."""
    return any(isinstance(layer, functools.partial) and inspect.ismethod(layer.func) for layer in layers_of(handler))


def docstring_of(handler: object) -> str | None:
    """A handler's description: its docstring up to a form feed, where FastAPI ends it too.

    An object has the docstring of its class, which says little about a call, so it comes last. functools.wraps copies
    it from a partial, where it says nothing.
    """
    layers = list(layers_of(handler))
    of_types = {type(layer).__doc__ for layer in layers}
    own = [layer.__doc__ for layer in layers if layer.__doc__ not in of_types]
    of_classes = [type(layer).__doc__ for layer in layers if _method_called(layer)]
    return next((text for text in map(_cleaned, [*own, *of_classes]) if text), None)


def _cleaned(text: object) -> str | None:
    return inspect.cleandoc(text.split("\f")[0]).strip() if isinstance(text, str) else None
