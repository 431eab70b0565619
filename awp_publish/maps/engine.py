"""JSONata, by jsonatapy (in Rust), within limits of time, depth and size.

It holds the interpreter lock while it evaluates, so a thread would not help; evaluation ends after `TIMEOUT_MS`, and
what the timeout cannot stop (`$pad`) is limited here.
"""

import threading
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

TIMEOUT_MS: Final = 50
MAX_STACK_DEPTH: Final = 200
MAX_SEQUENCE: Final = 10_000
MAX_PAD_CHARACTERS: Final = 10_000

_HOST_ERROR: Final = "host function raised ValueError: "
"""What jsonatapy puts before the message of `_pad` and `_refuse`."""


class ExpressionError(Exception):
    """An expression that cannot be parsed or evaluated. `code` is one of the runtime's failure codes."""

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)


def has_engine() -> bool:
    """Return True if jsonatapy is installed."""
    return find_spec("jsonatapy") is not None


def parse(expression: str) -> Any:
    """Return a compiled expression. Raises ExpressionError `invalid_expression`."""
    try:
        return _jsonatapy().compile(expression)
    except ValueError as error:
        message = f"The expression cannot be parsed: {error}."
        raise ExpressionError("invalid_expression", message) from None


def run(expression: str, document: bytes) -> bytes | None:
    """Return the value of an expression on a JSON document, None if undefined. Raises ExpressionError.

    The expression is compiled for each evaluation: jsonatapy's objects must be used and freed in the thread that made
    them.
    """
    compiled = parse(expression)
    for name in ("eval", "now", "millis"):  # it has no `$random`
        compiled.register_override(name, _refuse)
    compiled.register_override("pad", _pad)
    try:
        answer = compiled.evaluate_json_or_none(
            document.decode(),
            timeout=TIMEOUT_MS,
            max_stack_depth=MAX_STACK_DEPTH,
            max_sequence_length=MAX_SEQUENCE,
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the engine is not an Exception
        cause = str(error).removeprefix(_HOST_ERROR)[:300].rstrip(".")
    else:
        return None if answer is None else answer.encode()
    finally:
        del compiled
    # Outside of the handler, whose traceback would keep the compiled expression alive in another thread.
    raise ExpressionError("expression_evaluation_failed", f"The expression failed: {cause}.")


def _refuse(*_: object) -> object:
    raise ValueError("This function is not allowed in the expressions of an actions.json.")


def _pad(text: object = None, width: object = None, fill: object = " ", *_: object) -> object:
    """Do the same as JSONata's `$pad`, up to a limited width."""
    if text is None:
        return None
    if not isinstance(text, str) or isinstance(width, bool) or not isinstance(width, (int, float)):
        raise ValueError("$pad takes a text and a width.")
    if not abs(width) <= MAX_PAD_CHARACTERS:
        raise ValueError(f"$pad is limited to {MAX_PAD_CHARACTERS} characters.")
    size = int(width)
    missing = abs(size) - len(text)
    if missing <= 0:
        return text
    letters = fill if isinstance(fill, str) and fill else " "
    padding = (letters * (missing // len(letters) + 1))[:missing]
    return text + padding if size > 0 else padding + text


@cache
def _jsonatapy() -> Any:
    """Import the engine in a thread that does not end. Raises ExpressionError if it is not installed.

    jsonatapy keeps state of the thread that first imports it, and aborts the process if it is used after that thread.
    """
    if not has_engine():
        message = 'Expressions need JSONata. Install it: pip install "awp-publish[actions]".'
        raise ExpressionError("invalid_expression", message)
    if threading.current_thread() is not threading.main_thread():
        imported = threading.Event()

        def import_and_stay() -> None:
            try:
                import_module("jsonatapy")
            finally:
                imported.set()
            threading.Event().wait()

        threading.Thread(target=import_and_stay, name="awp_publish jsonatapy", daemon=True).start()
        imported.wait()
    return import_module("jsonatapy")
