"""Finds routes that refuse callers without credentials though their security scheme does not (`auto_error=False`)."""

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

from fastapi.dependencies.models import Dependant
from fastapi.security.base import SecurityBase

from awp_publish.declare.discover.refusing import CALLER_MEMBERS, asks_who_calls, refuses_missing
from awp_publish.schema.handlers import layers_of

_SECRET_HEADER: Final = re.compile(
    r"(?!.*(csrf|xsrf|idempotency|page|cursor|continuation))"
    r".*(authorization|token|secret|credential|password|api-?key|(^|-)(key|auth)(-|$))"
)


def is_secret_header(name: str) -> bool:
    """Return True if a header, in lower case, is named like those that hold credentials: `x-token`, `api-key`."""
    return _SECRET_HEADER.fullmatch(name) is not None


def needs_caller(dependant: Dependant) -> bool:
    """Return True if a dependency refuses callers without credentials although its security scheme does not.

    It takes what the scheme found, None for nobody, and gives a value that is never None, such as a user: `user: User =
    Depends(current_user)`; or its code raises if there is none. What follows from a value that may be None, or from an
    instance of a class that is the dependency, is not known to refuse anybody.
    """
    return _finds_caller(dependant) is True


def _finds_caller(dependant: Dependant) -> bool | None:
    """Return True if a dependency below never finds nobody, False if it may, None if no security is below."""
    results = [True for name in credential_headers(dependant) if refuses_missing(dependant.call, name)]
    request = dependant.request_param_name or dependant.http_connection_param_name
    results += [True] if request is not None and asks_who_calls(dependant.call, request) else []
    for dependency in dependant.dependencies:
        is_refused = partial(refuses_missing, dependant.call, dependency.name)
        if _is_scheme(dependency.call):
            results += [True] if is_refused() else []
            continue
        below = _finds_caller(dependency)
        reads_scheme = any(_is_scheme(inner.call) for inner in dependency.dependencies)
        if reads_scheme:
            # There is always an instance of a class: what it holds may be None.
            below = below or not (isinstance(dependency.call, type) or _may_be_none(dependant, dependency))
        elif below is False:  # it takes somebody or nobody, and refuses nobody if it gives the same kind of value
            kinds = {_kind_given(dependency, inner) for inner in dependency.dependencies} - {None}
            below = not _may_be_none(dependant, dependency) and _kind_given(dependant, dependency) in kinds
        if below is not None:
            results.append(below or is_refused())
    return any(results) if results else None


def credential_headers(dependant: Dependant) -> Iterator[str]:
    """Yield the parameters of a dependency itself that are headers with credentials."""
    for field in dependant.header_params:
        if is_secret_header(field.alias.lower()):
            yield field.name


def reads_caller(dependency: Dependant) -> bool:
    """Return True if a dependency's code reads who calls from the request itself, and refuses some."""
    if dependency.request_param_name is None and dependency.http_connection_param_name is None:
        return False
    codes = [code for layer in layers_of(dependency.call) if (code := getattr(layer, "__code__", None)) is not None]
    names = {name for code in codes for name in code.co_names}
    texts = {text.lower() for code in codes for text in code.co_consts if isinstance(text, str)}
    reads = not names.isdisjoint(CALLER_MEMBERS[1:]) or any(map(is_secret_header, texts))
    return reads and any(name.endswith("HTTPException") for name in names)


def _is_scheme(dependency: object) -> bool:
    return isinstance(dependency, SecurityBase)


def _annotation(consumer: Dependant, dependency: Dependant) -> object:
    """Return the type of the value that a dependency gives, as its consumer or itself declares it; Any if neither."""
    declared: list[object] = []
    sources: list[tuple[Callable[..., Any] | None, str]] = [(dependency.call, "return")]
    if dependency.name:
        sources.insert(0, (consumer.call, dependency.name))
    for function, name in sources:
        if function is None:
            continue
        *_, written = layers_of(function)
        try:
            hints: dict[str, object] = get_type_hints(written)
        except Exception:  # names that are only imported for type checkers
            hints = {}
        if name not in hints and name != "return":
            try:
                hints = {key: parameter.annotation for key, parameter in inspect.signature(function).parameters.items()}
            except (TypeError, ValueError):
                continue
        if hints.get(name, inspect.Parameter.empty) is not inspect.Parameter.empty:
            declared.append(hints[name])
    return declared[0] if declared else Any


def _may_be_none(consumer: Dependant, dependency: Dependant) -> bool:
    kind = _annotation(consumer, dependency)
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return kind in (None, type(None)) or type(None) in get_args(kind) or (kind is Any and dependency.name is not None)


def _kind_given(consumer: Dependant, dependency: Dependant) -> object:
    kind = _annotation(consumer, dependency)
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    kinds = [alternative for alternative in get_args(kind) if alternative is not type(None)]
    return kinds[0] if len(kinds) == 1 and type(None) in get_args(kind) else None if kind is Any else kind
