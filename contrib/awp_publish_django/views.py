"""What stands behind a URL pattern: a function with the methods it is restricted to, or the methods of a class."""

import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from awp_publish.discover.routes import METHODS, docstring_of, layers_of, marked_functions_of, methods_of

RESTRICTION: Final = "request_method_list"
"""How Django's require_http_methods calls what it was given, which it shows nowhere else."""

FRAMEWORKS: Final = ("django.", "rest_framework.", "ninja.")
"""Whose docstrings say nothing of what a site does."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One way to call what is behind a URL.

    `handlers` are what a declaration may stand on; `cls` is a view class, and
    `operation` one of django-ninja's.
    """

    methods: tuple[str, ...]
    handlers: tuple[object, ...]
    name: str
    description: str | None
    callback: object
    cls: type | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    operation: object = None


def read_views(callback: object) -> Iterator[View]:
    """The views of a URL pattern: one, or one for each method of a class or operation of django-ninja."""
    if "ninja.operation" in sys.modules:
        operations = list(_ninja_views(callback))
        if operations:
            yield from operations
            return
    cls = next((found for found in map(_class_of, layers_of(callback)) if found is not None), None)
    if cls is None:
        name = getattr(callback, "__name__", type(callback).__name__)
        yield View(_restricted(callback), (callback,), name, _description(callback), callback)
    else:
        yield from _class_views(callback, cls)


def _class_views(callback: object, cls: type) -> Iterator[View]:
    allowed = _restricted(callback)
    for method, function_name in _class_methods(callback, cls):
        function = getattr(cls, function_name, None)
        if function is None or method not in allowed:
            continue
        inner = _function_of_api_view(function)
        behind = tuple(one for one in (function, inner, cls) if one is not None)
        described = next((text for text in map(_description, behind) if text), None)
        marked = (*marked_functions_of(function), *marked_functions_of(getattr(cls, "dispatch", None)))
        handlers = (*behind, callback, *marked)
        yield View((method,), handlers, cls.__name__, described, callback, cls, _options(callback))


def _function_of_api_view(function: object) -> object:
    if "rest_framework.views" not in sys.modules:
        return None
    from awp_publish_django.rest_framework import wrapped_function

    return wrapped_function(function)


def _ninja_views(callback: object) -> Iterator[View]:
    from awp_publish_django.ninja import operations_of

    for listed, operation in operations_of(callback):
        function = operation.view_func
        name = getattr(function, "__name__", "")
        yield View(methods_of(listed), (function,), name, _description(function), callback, operation=operation)


def _class_of(layer: object) -> type | None:
    """The class of `as_view()`: Django's own attribute, or Django REST framework's."""
    found = getattr(layer, "view_class", None) or getattr(layer, "cls", None)
    return found if isinstance(found, type) else None


def _class_methods(callback: object, cls: type) -> Iterator[tuple[str, str]]:
    """HTTP methods and the names of the functions behind them; viewsets name theirs (`{"get": "list"}`)."""
    actions = next((found for layer in layers_of(callback) if (found := getattr(layer, "actions", None))), None)
    names = actions if isinstance(actions, Mapping) else {method.lower(): method.lower() for method in METHODS}
    allowed = getattr(cls, "http_method_names", list(names))
    for method in METHODS:
        if method.lower() in names and method.lower() in allowed:
            yield method, names[method.lower()]


def _options(callback: object) -> Mapping[str, object]:
    """What was given to `as_view(...)`."""
    for layer in layers_of(callback):
        for name in ("view_initkwargs", "initkwargs"):
            found = getattr(layer, name, None)
            if isinstance(found, Mapping):
                return found
    return {}


def _restricted(callback: object) -> tuple[str, ...]:
    """The methods that decorators leave; all of them without any."""
    allowed: tuple[str, ...] = METHODS
    for layer in layers_of(callback):
        if inspect.isfunction(layer) and RESTRICTION in layer.__code__.co_freevars:
            listed = inspect.getclosurevars(layer).nonlocals[RESTRICTION]
            allowed = tuple(method for method in allowed if method in methods_of(listed))
    return allowed


def _description(handler: object) -> str | None:
    *_, inner = layers_of(handler)
    written = inner if isinstance(inner, type) or inspect.isfunction(inner) else type(inner)
    if f"{written.__module__}.".startswith(FRAMEWORKS):
        return None
    return docstring_of(handler)
