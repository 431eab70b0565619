"""Checks of expressions: in workflows, and of projections."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from awp_publish.checks.engine import ERROR, WARNING, Finding, JsonObject, finding
from awp_publish.checks.places import objects, select, strings
from awp_publish.checks.text import everything
from awp_publish.maps.engine import ExpressionError, has_engine
from awp_publish.maps.expressions import check_expression, expression_of
from awp_publish.plugins.actions_json.checks.places import STEPS, WORKFLOWS
from awp_publish.plugins.actions_json.checks.specification import check


@check("actions-expression", ERROR, "workflow", hint="Write one JSONata expression: {% input.title %}.")
def bad_expressions(document: JsonObject) -> Iterator[Finding]:
    """Expressions fill their text, compile, and call nothing that is forbidden."""
    texts = _slots(document)
    for _, text, _ in expressions_of_projections(document):
        texts.add(text if "{%" in text or "%}" in text else f"{{% {text} %}}")
    if all(map(_is_sound, texts)):
        return
    for pointer, text, is_bare in expressions_of(document):
        try:
            expression = expression_of(text)
            if expression is None and is_bare:
                expression = text
            if expression is not None and has_engine():
                check_expression(expression)
        except ExpressionError as error:
            yield finding(pointer, f"{error.code}: {error.message}")


def _slots(document: JsonObject) -> set[str]:
    """Return the distinct texts of workflows that contain a slot, or a broken one."""
    texts: set[str] = set()
    for _, workflow in objects(document, WORKFLOWS):
        steps = workflow.get("steps")
        waiting: list[object] = [workflow.get("output")]
        for step in steps if isinstance(steps, list) else ():
            if isinstance(step, dict):
                waiting += [step[name] for name in _EVALUATED if name in step]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                if "{%" in value or "%}" in value:
                    texts.add(value)
            elif isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
    return texts


_EVALUATED: Final = ("args", "when", "for_each", "retry_until", "after_each")


@lru_cache(maxsize=2048)
def _is_sound(text: str) -> bool:
    try:
        expression = expression_of(text)
        if expression is not None and has_engine():
            check_expression(expression)
    except ExpressionError:
        return False
    return True


def expressions_of(document: JsonObject) -> Iterator[tuple[str, str, bool]]:
    """Yield pointer and text of possible slots, and whether the text may be a bare expression without braces."""
    for pattern in (f"{STEPS}/args|when|for_each|retry_until|after_each", f"{WORKFLOWS}/output"):
        for pointer, value in select(document, pattern):
            for inner, text in everything(value):
                if isinstance(text, str):
                    yield pointer + inner, text, False
    yield from expressions_of_projections(document)


def expressions_of_projections(document: JsonObject) -> Iterator[tuple[str, str, bool]]:
    for pattern in (
        "/state_projections/[]/snapshot/projection/expression",
        "/state_projections/[]/summaries/[]/expression",
        "/state_projections/[]/postconditions/{}/verify/expression",
    ):
        for pointer, text in strings(document, pattern):
            yield pointer, text, True
    for pointer, text in strings(document, "/state_projections/[]/markers"):
        yield pointer, text, True


@check("actions-no-engine", WARNING, "workflow", hint='Install one: pip install "awp-publish[actions]".')
def unread_expressions(document: JsonObject) -> Iterator[Finding]:
    """An engine for JSONata is installed, so that expressions can be checked."""
    if not has_engine() and next(expressions_of(document), None) is not None:
        yield finding("", "The expressions of the map were not compiled, because no engine for JSONata is installed.")
