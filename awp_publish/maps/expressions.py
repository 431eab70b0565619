"""Expressions of an actions.json: JSONata in slots `{% ... %}`, checked, and evaluated on documents of bounded size."""

import re
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import orjson

from awp_publish.maps.engine import ExpressionError, parse, run

MAX_EXPRESSION_CHARACTERS: Final = 4_000
MAX_DOCUMENT_BYTES: Final = 2_000_000
"""The largest document that expressions are evaluated on, in bytes of JSON."""
MAX_FILL_SECONDS: Final = 0.5
"""Seconds that all slots of one value may take together; nothing else runs meanwhile."""
_FORBIDDEN_NAMES: Final = ("$eval", "$random", "$now", "$millis")
"""Functions that would run code from data, or return something else each time (V1, workflow)."""


class Undefined:
    """The value of an expression without a result. A member with an undefined slot is left out; null stays null."""

    def __repr__(self) -> str:
        return "UNDEFINED"


UNDEFINED: Final = Undefined()


def expression_of(text: str) -> str | None:
    """Return the expression of a text that is a slot, None for a text without one.

    Raises ExpressionError for a slot within other text, and for several slots in one text.
    """
    if "{%" not in text and "%}" not in text:
        return None
    inner = text.strip()
    if inner.startswith("{%") and inner.endswith("%}") and len(inner) >= 4:
        inner = inner[2:-2].strip()
        if "{%" not in inner and "%}" not in inner:
            return inner
    raise ExpressionError(
        "partial_expression_unsupported",
        "A slot must be the whole text: write {% 'for ' & input.q %} instead of for {% input.q %}.",
    )


def fill(value: object, document: Mapping[str, object], max_bytes: int) -> object:
    """Return a copy of `value` with every slot evaluated on `document`; undefined members are left out.

    `max_bytes` limits the result of one expression. Raises ExpressionError.
    """
    if not has_slots(value):
        return value
    encoded, deadline = encode(document), time.monotonic() + MAX_FILL_SECONDS

    def filled(inner: object) -> object:
        if isinstance(inner, str):
            expression = expression_of(inner)
            if expression is not None and time.monotonic() > deadline:
                message = f"The expressions of one value took more than {MAX_FILL_SECONDS} seconds."
                raise ExpressionError("expression_evaluation_failed", message)
            return inner if expression is None else _evaluate(expression, encoded, max_bytes)
        if isinstance(inner, Mapping):
            pairs = ((name, filled(member)) for name, member in inner.items())
            return {name: member for name, member in pairs if member is not UNDEFINED}
        if isinstance(inner, (list, tuple)):
            return [member for member in map(filled, inner) if member is not UNDEFINED]
        return inner

    return filled(value)


def has_slots(value: object) -> bool:
    """Return True if a value contains a slot, or a broken one."""
    if isinstance(value, str):
        return "{%" in value or "%}" in value
    if isinstance(value, Mapping):
        return any(map(has_slots, value.values()))
    return isinstance(value, (list, tuple)) and any(map(has_slots, value))


def encode(document: object) -> bytes:
    """Return a document as the JSON on which expressions are evaluated.

    Raises ExpressionError for a document that is too large, and for integers beyond 2**53, which the engines would
    silently change.
    """
    try:
        encoded = orjson.dumps(document, option=orjson.OPT_STRICT_INTEGER)
    except TypeError as error:
        raise ExpressionError("expression_evaluation_failed", f"The data cannot be used: {error}.") from error
    if len(encoded) > MAX_DOCUMENT_BYTES:
        raise ExpressionError("expression_evaluation_failed", f"The data has more than {MAX_DOCUMENT_BYTES} bytes.")
    return encoded


def evaluate(expression: str, document: object, max_bytes: int) -> object:
    """Return the value of an expression (not of a slot) on a document, or UNDEFINED. Raises ExpressionError."""
    return _evaluate(expression, encode(document), max_bytes)


def _evaluate(expression: str, encoded: bytes, max_bytes: int) -> object:
    check_expression(expression)
    answer = run(expression, encoded)
    if answer is None:
        return UNDEFINED
    if len(answer) > max_bytes:
        message = f"The expression returns {len(answer)} bytes of JSON; {max_bytes} are allowed."
        raise ExpressionError("expression_output_too_large", message)
    value: object = orjson.loads(answer)
    return value


_TOKEN: Final = re.compile(
    r"\s+|/\*.*?(?:\*/|\Z)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*+(?:\"|\Z)|'(?:[^'\\]|\\.)*+(?:'|\Z)|`[^`]*+(?:`|\Z)|\d++(?:\.\d++)?(?:[eE][+-]?\d++)?)"
    r"|(?P<name>\$?\w++|\$)|(?P<sign>.)",
    re.DOTALL,
)
_REGEX: Final = re.compile(r"/(?:[^/\\]|\\.)++/\w*+", re.DOTALL)
_OPERATORS_THAT_ARE_NAMES: Final = frozenset(("and", "or", "in"))


@lru_cache(maxsize=2048)
def check_expression(expression: str) -> None:
    """Refuse an expression that is too long, names what is forbidden, or does not compile. Raises ExpressionError."""
    if len(expression) > MAX_EXPRESSION_CHARACTERS:
        message = f"The expression has {len(expression)} characters; {MAX_EXPRESSION_CHARACTERS} are allowed."
        raise ExpressionError("invalid_expression", message)
    if any(name in expression for name in _FORBIDDEN_NAMES):
        _refuse_forbidden(expression)
    parse(expression)


def _refuse_forbidden(expression: str) -> None:
    """Raise ExpressionError for a forbidden name that is not inside of a text, a comment or a regular expression."""
    place, after_operand = 0, False
    while place < len(expression):
        # A "/" begins a regular expression where an operand is expected, and divides where one has just ended.
        regex = _REGEX.match(expression, place) if expression[place] == "/" and not after_operand else None
        if regex is not None and not expression.startswith("/*", place):
            place, after_operand = regex.end(), True
            continue
        token = _TOKEN.match(expression, place)
        assert token is not None  # any single character is a token
        place = token.end()
        name = token["name"]
        if name is not None:
            if name in _FORBIDDEN_NAMES:
                message = f"{name} is not allowed in the expressions of an actions.json."
                raise ExpressionError("disallowed_expression_function", message)
            after_operand = name not in _OPERATORS_THAT_ARE_NAMES
        elif token["text"] is not None:
            after_operand = True
        elif token["sign"] is not None:
            after_operand = token["sign"] in ")]}"
