"""Reads by the code of a function whether it refuses callers who show no credentials."""

import ast
from collections.abc import Callable, Collection, Iterable
from typing import Final

from awp_publish.schema.handlers import syntax_of

CALLER_MEMBERS: Final = ("headers", "cookies", "session", "user")
"""Members of a request that say who calls."""


def asks_who_calls(function: Callable[..., object] | None, request: str) -> bool:
    """Return True if a function answers 401 where its argument, a request, does not say who calls."""
    return refuses_missing(function, *(f"{request}.{member}" for member in CALLER_MEMBERS), status="401")


def refuses_missing(function: Callable[..., object] | None, *missing: str | None, status: str = "") -> bool:
    """Return True if a function raises where these are missing: if that is the first thing it decides on them.

    They are arguments that are None, or members of one ("request.cookies") that lack something. With a `status`, it
    raises or returns what has that.
    """
    definition, names = syntax_of(function), set(missing)

    def raises(body: Iterable[ast.stmt]) -> bool:
        kinds = (ast.Raise, ast.Return) if status else ast.Raise
        return any(isinstance(inner, kinds) and status in ast.unparse(inner) for inner in body)

    for statement in definition.body if definition is not None else ():
        match statement:
            case ast.If(test=test, body=body) if _is_missing(test, names):
                return raises(body)
            case ast.If(test=test, orelse=[_, *_] as body) if _is_there(test, names):
                return raises(body)
            case ast.If(test=test) if _is_there(test, names):
                pass
            case ast.If() if any(isinstance(inner, ast.Return) for inner in ast.walk(statement)):
                return False
            case ast.Assign(targets=[ast.Name(id=made)], value=value) if _reads(value, names):
                names.add(made)
            case ast.Return() | ast.Raise():
                return raises([statement])
    return False


def _reads(expression: ast.expr, names: Collection[str | None]) -> bool:
    return any(
        isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in names for node in ast.walk(expression)
    )


def _is_missing(test: ast.expr, names: Collection[str | None]) -> bool:
    """Return True if a test holds for None: `not user`, `user is None`, `"user" not in request.session`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _is_there(inner, names)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(_is_missing(part, names) for part in parts)
        case ast.Compare(ops=[ast.NotIn()], comparators=[other]) if _names(other, names):
            return True
        case ast.Compare(left=left, ops=[operator], comparators=[other]) if _names(left, names):
            is_none = isinstance(other, ast.Constant) and other.value is None
            return isinstance(operator, (ast.Is, ast.Eq) if is_none else (ast.NotEq, ast.NotIn))
    return False


def _is_there(test: ast.expr, names: Collection[str | None]) -> bool:
    """Return True if a test does not hold for None: `user`, `user is not None`, `user and user.is_active`."""
    match test:
        case ast.BoolOp(op=ast.And(), values=parts):
            return any(_is_there(part, names) for part in parts)
        case ast.Compare(ops=[ast.In()], comparators=[other]) if _names(other, names):
            return True
        case ast.Compare(left=left, ops=[operator], comparators=[ast.Constant(value=value)]) if _names(left, names):
            return isinstance(operator, (ast.IsNot, ast.NotEq) if value is None else (ast.Is, ast.Eq))
    return _names(test, names)


def _names(expression: ast.expr, names: Collection[str | None]) -> bool:
    """Return True if an expression is one of these names, or looks something up in one with a dot."""
    if isinstance(expression, ast.NamedExpr):
        return _reads(expression.value, names)
    if isinstance(expression, ast.Name):
        return expression.id in names
    return _reads(expression, {name for name in names if name is not None and "." in name})
