"""Redacts the log records of the MCP and A2A SDKs.

Their debug records contain requests and answers, and their warnings quote invalid input, which may contain secrets.
Records that are made while a door of ours handles a request keep only their location, level and traceback.
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
    """Redact the SDKs' records inside this block, including tasks that are started in it."""
    before = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(before)


def keep_contents_out() -> None:
    """Install the filter on the SDKs' loggers. Call this after the SDKs are imported."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.startswith(NAMES) and isinstance(logger, logging.Logger):
            logger.addFilter(_leave_out)  # adding it again has no effect


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
