"""What a view reads of its request, by its source: names in its query and in its body, as far as they are certain."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from awp_publish.checks.engine import WARNING, Finding
from awp_publish.declare.discover.routes import NO_BODY_METHODS, Route
from awp_publish.model import Action
from awp_publish.schema.handlers import is_of_framework, layers_of, syntax_of

QUERY: Final = frozenset({"GET", "query_params"})
BODY: Final = frozenset({"POST", "FILES", "data"})
_RAW: Final = frozenset({"body", "read", "readline", "readlines"})
_LOOKUPS: Final = frozenset({"get", "getlist", "pop"})
_HARMLESS: Final = frozenset({"render", "redirect", "get_messages", "login", "logout", "get_token", "get_user"})
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
def reads_of(handler: object) -> Reads | None:
    """Return what a function reads of `request` or `self`, None if its source is not there or is a framework's."""
    functions = [layer for layer in layers_of(handler) if inspect.isfunction(layer)]
    if not functions or is_of_framework(functions[-1]):
        return None
    function = syntax_of(functions[-1])
    if function is None:
        return None
    if {"request", "self"}.isdisjoint(argument.arg for argument in (*function.args.posonlyargs, *function.args.args)):
        return None
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    names: dict[frozenset[str], set[str]] = {QUERY: set(), BODY: set()}
    more = {QUERY: False, BODY: False}
    calls_itself = False
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == "super":  # what it extends may read anything
            return None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            more = dict.fromkeys(more, True) if node.attr == "request" else more
            calls_itself |= isinstance(parents.get(node), ast.Call)
        if not isinstance(node, ast.Name) or node.id != "request":
            continue
        parent = parents.get(node)
        if not isinstance(parent, ast.Attribute):
            if not _is_harmless(parent):
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


def _is_harmless(parent: ast.AST | None) -> bool:
    if not isinstance(parent, ast.Call):
        return False
    called = parent.func
    if isinstance(called, ast.Attribute):
        return called.attr in _MESSAGES or called.attr in _HARMLESS
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


def find_dead(action: Action, route: Route) -> Iterator[Finding]:
    """Yield findings about inputs that a view reads and that are not declared, or the other way around."""
    reads = reads_of(route.handlers[0]) if route.handlers and action.target is not None else None
    if reads is None or action.target is None:
        return
    places = {parameter.name: parameter.location for parameter in action.target.parameters}
    declared = {
        parameter.wire_name
        for parameter in action.target.parameters
        if parameter.location not in ("path", "header", "cookie")
    }
    has_body = action.target.method not in NO_BODY_METHODS
    read, more, place = (
        (reads.body, reads.more_of_body, "body") if has_body else (reads.query, reads.more_of_query, "query")
    )
    is_open = action.inputs.get("additionalProperties") is not False
    if not declared and has_body and (read or more):
        words = f", of which it reads {', '.join(sorted(read))}" if read else ""
        yield _finding(action, f"has no inputs=, and its view reads a body{words}: callers can send it nothing.")
    elif not declared and not has_body and (read or more):
        words = f"reads {', '.join(sorted(read))} from its query" if read else "may read any part of its query"
        yield _finding(action, f"has no inputs=, and its view {words}, which no document mentions.")
    elif read - declared and not is_open:
        yield _finding(action, f"does not declare {', '.join(sorted(read - declared))}, which its view reads.")
    everything = reads.query | reads.body
    unread = sorted(name for name in declared if name not in everything and places.get(name) != "rows")
    if declared and unread and not (reads.more_of_body or reads.more_of_query or reads.calls_itself):
        yield _finding(action, f"declares {', '.join(unread)}, which its view never reads from its {place}.")


def _finding(action: Action, words: str) -> Finding:
    target = action.target
    where = f" ({target.method} {target.path})" if target is not None else ""
    message = f'Action "{action.id}"{where} {words}'
    return Finding(
        WARNING, "start-inputs", "", message, "Declare in inputs= what the view reads, and no more.", "Django"
    )
