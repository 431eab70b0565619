"""The log records of the SDKs of MCP and A2A, without what the request said.

At their debug level they print bodies and answers, and their warnings quote what cannot be read: inputs, tokens. Of a
record that is made while a door of ours is open are left its place, its level and where an exception came from.
"""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

NAMES: Final = ("a2a.", "mcp.", "sse_starlette")

_inside: Final[ContextVar[bool]] = ContextVar("awp_publish_inside_sdk", default=False)


@contextmanager
def without_contents() -> Iterator[None]:
    """Serve a request, in this task and those that it starts."""
    before = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(before)


def keep_contents_out() -> None:
    """Have the loggers of the SDKs, which exist once they are imported, leave out what is logged `without_contents`."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.startswith(NAMES) and isinstance(logger, logging.Logger):
            logger.addFilter(_leave_out)  # once, however often


def _leave_out(record: logging.LogRecord) -> bool:
    if not _inside.get():
        return True
    record.msg = f"{record.funcName}, line {record.lineno} (what it says is left out: it may hold what a caller sent)"
    record.args = ()
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        frames = "".join(traceback.format_tb(error.__traceback__))
        record.exc_text = f"Traceback (most recent call last):\n{frames}{type(error).__name__}"
    record.exc_info = None
    record.stack_info = None
    return True
