"""Request bodies, limited in size and time."""

import asyncio
from collections.abc import Generator
from types import coroutine
from typing import Any, Final, TypeVar

from awp_publish.http.exchange import Fields, Message, Receive, Scope
from awp_publish.problems import BodyTimeout, BodyTooLarge

T = TypeVar("T")

BODY_TIMEOUT: Final = 30.0
"""Seconds within which a body has to arrive, plus one second for every MIN_BYTES_PER_SECOND bytes received."""

MIN_BYTES_PER_SECOND: Final = 16_384
"""The minimum transfer rate of request bodies, so that slow clients cannot hold connections open."""

_MAX_LENGTH_DIGITS: Final = 100
"""Digits of a Content-Length that are converted to a number; Python refuses more than 4300."""

MAX_DROPPED: Final = 8_388_608
DROP_TIMEOUT: Final = 10.0
"""Bytes and seconds up to which the rest of a too large body is read and discarded: a client that is still sending when
the connection closes would see a broken pipe instead of the answer."""


class ClientDisconnect(Exception):
    """The client disconnected before its request was complete."""


async def read_body(scope: Scope, fields: Fields, receive: Receive, most: int) -> bytes:
    """Return the body, which may have up to `most` bytes.

    Raises BodyTooLarge (after reading the rest of the body, up to MAX_DROPPED), BodyTimeout, or ClientDisconnect.
    """
    declared = fields.get(b"content-length", b"")
    if len(declared) > 3 and declared.isdigit() and (len(declared) > _MAX_LENGTH_DIGITS or int(declared) > most):
        length = MAX_DROPPED + 1 if len(declared) > _MAX_LENGTH_DIGITS else int(declared)
        # A client that expects 100 Continue has not sent the body yet.
        if length <= MAX_DROPPED and fields.get(b"expect", b"").lower() != b"100-continue":
            await _drop_rest(receive, MAX_DROPPED)
        raise too_large(most)
    begun, size = 0.0, 0
    parts: list[bytes] | None = None
    arrived: list[Message] = []
    while True:
        steps = _receive_into(arrived, receive).__await__()
        for pending in steps:  # no timer if the message is available at once
            begun = begun or asyncio.get_running_loop().time()
            await wait_in_time(scope, steps, pending, begun, size)
            break
        message = arrived.pop()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body: bytes = message.get("body", b"")
        size += len(body)
        is_whole = not message.get("more_body")
        if size > most:
            if not is_whole:
                await _drop_rest(receive, MAX_DROPPED - size)
            raise too_large(most)
        if is_whole:
            return body if parts is None else b"".join((*parts, body))
        parts = parts or []
        parts.append(body)


async def _receive_into(arrived: list[Message], receive: Receive) -> None:
    """Append a message to a list. A coroutine without a result can be stepped in a `for`, without StopIteration."""
    arrived.append(await receive())


async def _drop_rest(receive: Receive, left: int) -> None:
    """Read and discard the rest of a body, up to `left` bytes. Raises ClientDisconnect."""
    try:
        async with asyncio.timeout(DROP_TIMEOUT):
            while left > 0:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                if not message.get("more_body", False):
                    return
                left -= len(message.get("body", b""))
    except TimeoutError:
        return


async def wait_in_time(scope: Scope, steps: Generator[Any, Any, T], pending: Any, begun: float, size: int) -> T:
    """Wait for a message that was not available at once. `size` bytes have arrived since the time `begun`."""
    try:
        async with asyncio.timeout_at(begun + BODY_TIMEOUT + size / MIN_BYTES_PER_SECOND):
            return await _resumed(steps, pending)
    except TimeoutError as error:
        # RFC 9110 section 15.5.9: the connection ends with this answer. HTTP/2 has no such header.
        close = [("Connection", "close")] if str(scope.get("http_version", "1.1")).startswith("1") else []
        detail = f"The body arrived too slowly: {size} bytes, and then too little for too long."
        raise BodyTimeout(detail, headers=close) from error


@coroutine
def _resumed(steps: Generator[Any, Any, T], pending: Any) -> Generator[Any, Any, T]:
    """Resume an awaitable whose first step has yielded `pending`."""
    try:
        yield pending
    except BaseException as error:
        try:
            pending = steps.throw(error)
        except StopIteration as there:
            result: T = there.value
            return result
        return (yield from _resumed(steps, pending))
    return (yield from steps)


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has disconnected. Call this after the body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def too_large(most: int) -> BodyTooLarge:
    """Return the problem for a body of more than `most` bytes."""
    return BodyTooLarge(f"The body is larger than {most} bytes.", members={"max_body_bytes": most})
