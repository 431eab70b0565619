"""What a view reads of its request, by its source: names in its query and in its body, as far as they are certain."""

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from types import FunctionType
from typing import Final

from awp_publish.checks.engine import WARNING, Finding
from awp_publish.declare.discover.routes import NO_BODY_METHODS
from awp_publish.model import Action, Target
from awp_publish.schema.handlers import is_of_framework, layers_of, syntax_of

QUERY: Final = frozenset({"GET", "query_params"})
BODY: Final = frozenset({"POST", "FILES", "data"})
_RAW: Final = frozenset({"body", "read", "readline", "readlines"})
_LOOKUPS: Final = frozenset({"get", "getlist", "pop"})
_HARMLESS: Final = frozenset(
    {"render", "redirect", "get_messages", "login", "logout", "get_token", "get_user", "reverse"}
)
"""Functions that are given the request and read no inputs of it."""
_MESSAGES: Final = frozenset({"debug", "info", "success", "warning", "error", "add_message"})


@dataclass(frozen=True, slots=True)
class Reads:
    """The names that a view reads by themselves, and whether it may read others, of the query and of the body.

    A view that `calls_itself` may read more in its other methods, such as `get_object` of the REST framework.
    """

    query: frozenset[str]
    body: frozenset[str]
    more_of_query: bool
    more_of_body: bool
    calls_itself: bool


@lru_cache(maxsize=1024)
def reads_of(handlers: tuple[object, ...]) -> Reads | None:
    """Return what the project's own function among the handlers of a view reads of its request.

    The `get_queryset` of its class may read the query, too. None without source, and for what a framework does.
    """
    kind = next((handler for handler in handlers if isinstance(handler, type)), None)
    own = next(filter(None, map(_own, takewhile(lambda handler: handler is not kind, handlers))), None)
    found = _reads_in(own) if own is not None else None
    of_rows = _own(getattr(kind, "get_queryset", None))
    rows = _reads_in(of_rows, may_hand_on=False) if of_rows is not None else None
    if rows is None:
        return found
    query, more = rows.query, rows.more_of_query
    if found is None:
        return Reads(query, frozenset(), more, more_of_body=False, calls_itself=True)
    return replace(found, query=found.query | query, more_of_query=found.more_of_query or more, calls_itself=True)


def _own(handler: object) -> FunctionType | None:
    """Return the innermost function of a handler, if it is the project's own."""
    functions = [layer for layer in layers_of(handler) if inspect.isfunction(layer)]
    return functions[-1] if functions and not is_of_framework(functions[-1]) else None


def _reads_in(own: FunctionType, *, may_hand_on: bool = True) -> Reads | None:
    """Return what a function reads; also what it may have others read to whom it hands its request on."""
    function = syntax_of(own)
    if function is None:
        return None
    if {"request", "self"}.isdisjoint(argument.arg for argument in (*function.args.posonlyargs, *function.args.args)):
        return None
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    names: dict[frozenset[str], set[str]] = {QUERY: set(), BODY: set()}
    more = {QUERY: False, BODY: False}
    calls_itself = False
    for node in ast.walk(function):
        parent = parents.get(node)
        if isinstance(parent, ast.Attribute) and _is_itself(node):
            calls_itself |= isinstance(parents.get(parent), ast.Call)
        if not _is_request(node):
            continue
        if not isinstance(parent, ast.Attribute):
            if may_hand_on and not _is_harmless(node, parents):
                more = dict.fromkeys(more, True)
            continue
        for place in (QUERY, BODY):
            if parent.attr in place:
                name = _key_of(parent, parents)
                if name is None:
                    more[place] = True
                else:
                    names[place].add(name)
        if parent.attr in _RAW:
            more[BODY] = True
    return Reads(frozenset(names[QUERY]), frozenset(names[BODY]), more[QUERY], more[BODY], calls_itself)


def _is_itself(node: ast.AST) -> bool:
    """Return True for `self` and `super()`."""
    named = node.func if isinstance(node, ast.Call) else node
    return isinstance(named, ast.Name) and named.id == ("self" if named is node else "super")


def _is_request(node: ast.AST) -> bool:
    """Return True for `request` and `self.request`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "request" and isinstance(node.value, ast.Name) and node.value.id == "self"
    return isinstance(node, ast.Name) and node.id == "request" and isinstance(node.ctx, ast.Load)


def _is_harmless(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Return True if a request is handed to somebody who reads no inputs of it, or only named."""
    parent = parents[node]
    match parent, parents.get(parent):
        case ast.Assign(targets=[ast.Name(id="request")]), _:  # of `self.request`
            return True
        case ast.Dict(), ast.keyword(arg="context"):  # of a serializer
            return True
        case ast.keyword(), ast.Call() as call:
            called = call.func
        case ast.Call(func=called), _:
            pass
        case _:
            return False
    if isinstance(called, ast.Attribute):
        is_inherited = isinstance(called.value, ast.Call) and _is_itself(called.value)
        return is_inherited or called.attr in _MESSAGES or called.attr in _HARMLESS
    return isinstance(called, ast.Name) and called.id in _HARMLESS


def _key_of(place: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> str | None:
    """Return the name in `request.GET["name"]`, `.get("name")` and `"name" in request.GET`, None for other uses."""
    parent = parents.get(place)
    node: ast.AST | None = None
    if isinstance(parent, ast.Subscript) and parent.value is place:
        node = parent.slice
    elif isinstance(parent, ast.Compare) and place in parent.comparators:
        node = parent.left
    elif isinstance(parent, ast.Attribute) and parent.attr in _LOOKUPS:
        call = parents.get(parent)
        node = call.args[0] if isinstance(call, ast.Call) and call.func is parent and call.args else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def find_dead(action: Action, target: Target, handlers: Sequence[object]) -> Iterator[Finding]:
    """Yield findings about inputs that a view reads and that are not declared, or the other way around."""
    reads = reads_of(tuple(handlers))
    if reads is None:
        return
    declared = {
        parameter.wire_name: parameter.location
        for parameter in target.parameters
        if parameter.location not in ("path", "header", "cookie")
    }
    has_body = target.method not in NO_BODY_METHODS
    read, more, place = (
        (reads.body, reads.more_of_body, "body") if has_body else (reads.query, reads.more_of_query, "query")
    )
    subject = f'Action "{action.id}" ({target.method} {target.path})'
    is_open = action.inputs.get("additionalProperties") is not False
    if not declared and has_body and (read or more):
        words = f", of which it reads {', '.join(sorted(read))}" if read else ""
        yield _finding(subject, f"has no inputs=, and its view reads a body{words}: callers can send it nothing.")
    elif not declared and not has_body and (read or (more and not reads.calls_itself)):
        words = f"reads {', '.join(sorted(read))} from its query" if read else "may read any part of its query"
        yield _finding(subject, f"has no inputs=, and its view {words}, which no document mentions.")
    elif (missing := sorted(read - declared.keys())) and not is_open:
        yield _finding(subject, f"does not declare {', '.join(missing)}, which its view reads.")
    everything = reads.query | reads.body
    unread = sorted(name for name, location in declared.items() if name not in everything and location != "rows")
    if unread and not (reads.more_of_body or reads.more_of_query or reads.calls_itself):
        yield _finding(subject, f"declares {', '.join(unread)}, which its view never reads from its {place}.")


def _finding(subject: str, words: str) -> Finding:
    message, remedy = f"{subject} {words}", "Declare in inputs= what the view reads, and no more."
    return Finding(WARNING, "start-inputs", "", message, remedy, "Django")
