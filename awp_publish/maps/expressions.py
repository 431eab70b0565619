"""Expressions of an actions.json: JSONata in slots `{% ... %}`, evaluated within limits of time, depth and size.

Two engines implement the language: jsonatapy, in Rust, and jsonata-python, for platforms without a wheel of the first.
Both hold the interpreter lock while they evaluate, so a thread would not help; evaluation ends after `TIMEOUT_MS`, and
what the timeout cannot stop (`$pad`, and with the second engine sequences and regular expressions) is limited or
refused here.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, TypeAlias

import orjson

MAX_EXPRESSION_CHARACTERS: Final = 4_000
MAX_DOCUMENT_BYTES: Final = 2_000_000
"""The largest document that expressions are evaluated on, in bytes of JSON."""
TIMEOUT_MS: Final = 50
MAX_STACK_DEPTH: Final = 200
MAX_SEQUENCE: Final = 10_000
MAX_PAD_CHARACTERS: Final = 10_000
MAX_FILL_SECONDS: Final = 0.5
"""Seconds that all slots of one value may take together; nothing else runs meanwhile."""
FORBIDDEN: Final = frozenset(("eval", "random", "now", "millis"))
"""Functions that would run code from data, or return something else each time (V1, workflow)."""

_FORBIDDEN_NAMES: Final = tuple(f"${name}" for name in sorted(FORBIDDEN))


class ExpressionError(Exception):
    """An expression that cannot be parsed or evaluated. `code` is one of the runtime's failure codes."""

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)


class Undefined:
    """The value of an expression without a result. A member with an undefined slot is left out; null stays null."""

    def __repr__(self) -> str:
        return "UNDEFINED"


UNDEFINED: Final = Undefined()

Evaluate: TypeAlias = Callable[[bytes], bytes | None]
"""Turns a JSON document into a JSON value, None if undefined."""


# --- Slots ---


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
    answer = _engine()(expression)(encoded)
    if answer is None:
        return UNDEFINED
    if len(answer) > max_bytes:
        message = f"The expression returns {len(answer)} bytes of JSON; {max_bytes} are allowed."
        raise ExpressionError("expression_output_too_large", message)
    value: object = orjson.loads(answer)
    return value


# --- Reading expressions ---

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
    """Refuse an expression that is too long, calls what is forbidden, or does not compile. Raises ExpressionError."""
    if len(expression) > MAX_EXPRESSION_CHARACTERS:
        message = f"The expression has {len(expression)} characters; {MAX_EXPRESSION_CHARACTERS} are allowed."
        raise ExpressionError("invalid_expression", message)
    place, after_operand, repeats = 0, False, False
    is_bounded = _engine() is _compile_in_rust
    if is_bounded and not any(name in expression for name in _FORBIDDEN_NAMES):
        place = len(expression)  # there is nothing to look for
    while place < len(expression):
        # A "/" begins a regular expression where an operand is expected, and divides where one has just ended.
        found = _REGEX.match(expression, place) if expression[place] == "/" and not after_operand else None
        if found is not None and not expression.startswith("/*", place):
            place, after_operand, repeats = found.end(), True, True
            continue
        token = _TOKEN.match(expression, place)
        assert token is not None  # any single character is a token
        place = token.end()
        name = token["name"]
        if name is not None:
            if name[1:] in FORBIDDEN and name[0] == "$":
                message = f"{name} is not allowed in the expressions of an actions.json."
                raise ExpressionError("disallowed_expression_function", message)
            after_operand = name not in _OPERATORS_THAT_ARE_NAMES
        elif token["text"] is not None:
            after_operand = True
        elif token["sign"] is not None:
            after_operand = token["sign"] in ")]}"
            repeats = repeats or expression.startswith("..", place - 1)
    if repeats and not is_bounded:
        message = "Regular expressions and ranges need the engine jsonatapy, which is not installed."
        raise ExpressionError("invalid_expression", message)
    if is_bounded:
        _parse_in_rust(expression)
    else:
        _engine()(expression)


# --- The engines ---


def _refuse(*_: object) -> object:
    raise ValueError("This function is not allowed in the expressions of an actions.json.")


def _pad(text: object, width: object, fill: object = " ") -> object:
    """Do the same as JSONata's `$pad`, up to a limited width."""
    if text is None:
        return None
    if not isinstance(text, str) or isinstance(width, bool) or not isinstance(width, (int, float)):
        raise ValueError("$pad takes a text and a width.")
    size = int(width)
    if abs(size) > MAX_PAD_CHARACTERS:
        raise ValueError(f"$pad is limited to {MAX_PAD_CHARACTERS} characters.")
    missing = abs(size) - len(text)
    if missing <= 0:
        return text
    letters = fill if isinstance(fill, str) and fill else " "
    padding = (letters * (missing // len(letters) + 1))[:missing]
    return text + padding if size > 0 else padding + text


def _parse_in_rust(expression: str) -> Any:
    import jsonatapy

    try:
        return jsonatapy.compile(expression)
    except ValueError as error:
        message = f"The expression cannot be parsed: {error}."
        raise ExpressionError("invalid_expression", message) from None


def _compile_in_rust(expression: str) -> Evaluate:
    """Compile for one evaluation: jsonatapy's objects must be used and freed in the thread that made them."""
    compiled = _parse_in_rust(expression)
    for name in ("eval", "now", "millis"):  # it has no `$random`
        compiled.register_override(name, _refuse)
    compiled.register_override("pad", _pad)
    holder = [compiled]
    del compiled

    def evaluate(document: bytes) -> bytes | None:
        try:
            answer = holder.pop().evaluate_json_or_none(
                document.decode(),
                timeout=TIMEOUT_MS,
                max_stack_depth=MAX_STACK_DEPTH,
                max_sequence_length=MAX_SEQUENCE,
            )
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the engine is not an Exception
            failure = _failed(error)
        else:
            return None if answer is None else answer.encode()
        raise failure

    return evaluate


def _compile_in_python(expression: str) -> Evaluate:
    from jsonata import Jsonata
    from jsonata.utils import Utils

    try:
        compiled: Any = Jsonata(f"{expression} ", timeout=TIMEOUT_MS, stack=MAX_STACK_DEPTH)
        compiled.set_output_convert_nulls(False)
        for name in FORBIDDEN:
            compiled.register_lambda(name, _refuse)
        compiled.register_lambda("pad", _pad)
    except Exception as error:
        raise ExpressionError("invalid_expression", f"The expression cannot be parsed: {error}.") from error

    def plain(value: object) -> object:
        if value is Utils.NULL_VALUE:
            return None
        raise TypeError("a function is not a value")

    def evaluate(document: bytes) -> bytes | None:
        try:
            value = compiled.evaluate(orjson.loads(document))
            if value is None:
                return None
            return orjson.dumps(value, default=plain)
        except Exception as error:
            raise _failed(error) from error

    return evaluate


def _failed(error: BaseException) -> ExpressionError:
    cause = str(error).removeprefix(_HOST_ERROR)[:300].rstrip(".")
    return ExpressionError("expression_evaluation_failed", f"The expression failed: {cause}.")


_HOST_ERROR: Final = "host function raised ValueError: "
"""What jsonatapy puts before the message of `_pad` and `_refuse`."""


def has_engine() -> bool:
    """Return True if an engine for JSONata is installed."""
    return find_spec("jsonatapy") is not None or find_spec("jsonata") is not None


def _import_for_all_threads(name: str) -> None:
    """Import a module in a thread that does not end.

    jsonatapy keeps state of the thread that first imports it, and aborts the process if it is used after that thread.
    """
    if threading.current_thread() is threading.main_thread():
        import_module(name)
        return
    imported = threading.Event()

    def import_and_stay() -> None:
        try:
            import_module(name)
        finally:
            imported.set()
        threading.Event().wait()

    threading.Thread(target=import_and_stay, name=f"awp_publish {name}", daemon=True).start()
    imported.wait()


@lru_cache(maxsize=1)
def _engine() -> Callable[[str], Evaluate]:
    """Return the installed engine. Raises ExpressionError if there is none."""
    if find_spec("jsonatapy") is not None:
        _import_for_all_threads("jsonatapy")
        return _compile_in_rust
    if find_spec("jsonata") is not None:
        return _compile_in_python
    message = 'Expressions need JSONata. Install it: pip install "awp-publish[actions]".'
    raise ExpressionError("invalid_expression", message)
