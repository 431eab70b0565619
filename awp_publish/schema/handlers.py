"""The layers, the docstring, the name and the arguments of a handler."""

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Final


def layers_of(handler: object) -> Iterator[object]:
    """Yield the handler, then what it wraps, down to the plain function."""
    seen: set[int] = set()
    inner: object = handler
    while inner is not None and id(inner) not in seen:
        seen.add(id(inner))
        yield inner
        if isinstance(inner, functools.partial):
            inner = inner.func
        elif inspect.ismethod(inner):
            inner = inner.__func__
        else:
            wrapped = getattr(inner, "__wrapped__", None)
            inner = _method_called(inner) if wrapped is None else wrapped


def _method_called(handler: object) -> object:
    if inspect.isfunction(handler):
        return None
    called = inspect.getattr_static(type(handler), "__call__", None)
    return called if inspect.isfunction(called) else None


def syntax_of(handler: object) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the definition of a handler's innermost function, or of a class's `__init__`; None without its source."""
    *_, written = layers_of(handler)
    function = vars(written).get("__init__") if inspect.isclass(written) else written
    try:
        module = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    definitions = (node for node in module.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return next(definitions, None)


def accepts(function: Callable[..., object], count: int) -> bool:
    """Return False if a function cannot be called with so many positional arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # it is not written in Python
        return True
    return True


FRAMEWORKS: Final = (
    *("django.", "rest_framework.", "ninja.", "fastapi.", "starlette."),
    *("django_filters.", "django_tables2.", "extra_views.", "formtools.", "wagtail."),
)
"""Packages whose docstrings tell programmers what a class is for, and agents nothing about the site."""


def is_of_framework(layer: object) -> bool:
    """Return True if a function, or a class or an object's class, is a web framework's own."""
    named = layer if inspect.isfunction(layer) or isinstance(layer, type) else type(layer)
    return f"{named.__module__}.".startswith(FRAMEWORKS)


def docstring_of(handler: object) -> str | None:
    """Return a handler's description: its docstring up to a form feed, as in FastAPI. Frameworks' own say nothing.

    The docstring of a callable object's class says little about a call, so it comes last. That of `partial` itself,
    which functools.wraps copies, says nothing.
    """
    layers = [layer for layer in layers_of(handler) if not is_of_framework(layer)]
    of_types = {type(layer).__doc__ for layer in layers}
    own = [layer.__doc__ for layer in layers if layer.__doc__ not in of_types]
    of_classes = [type(layer).__doc__ for layer in layers if _method_called(layer)]
    texts = (inspect.cleandoc(text.split("\f")[0]).strip() for text in (*own, *of_classes) if isinstance(text, str))
    return next((text for text in texts if text), None)


def first_paragraph(text: str) -> str:
    """Return the first paragraph of a docstring, on one line. What follows is for readers of the code."""
    return " ".join(text.strip().partition("\n\n")[0].split())


def name_of(function: object) -> str:
    """Return the qualified name of a function, a class or an object's class, for messages."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', '?')}.{getattr(named, '__qualname__', '?')}"
