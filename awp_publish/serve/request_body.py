"""The body of a request to a door: whole, no larger than the site takes, and in time."""

import asyncio
from typing import Final

from awp_publish.problems import BodyTimeout, BodyTooLarge
from awp_publish.serve.reply import Fields, Message, Receive, Scope

BODY_TIMEOUT: Final = 30.0
"""Seconds in which a body has to arrive, and one more for each SLOWEST bytes of it that have."""

SLOWEST: Final = 16_384
"""Bytes a second. Who sends less, however patiently, holds a connection for nothing."""


_LONGEST: Final = 100
"""Digits of a length that can be read as a number; Python reads no more than 4300."""


class HungUp(Exception):
    """The caller left before its request was complete; there is nobody to answer."""


async def read_body(scope: Scope, fields: Fields, receive: Receive, most: int) -> bytes:
    """The body, at most `most` bytes. Raises BodyTooLarge as early as the request shows it, BodyTimeout, and HungUp."""
    declared = fields.get(b"content-length")
    if declared is not None and declared.isdigit() and (len(declared) > _LONGEST or int(declared) > most):
        raise _too_large(most)
    receive, body = receive_in_time(scope, receive), bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HungUp
        body += message.get("body", b"")
        if len(body) > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return bytes(body)


def receive_in_time(scope: Scope, receive: Receive) -> Receive:
    """Return `receive`, which raises BodyTimeout while the body does not come."""
    begun, size, is_whole = asyncio.get_running_loop().time(), 0, False

    async def receive_next() -> Message:
        nonlocal size, is_whole
        if is_whole:
            return await receive()
        try:
            async with asyncio.timeout_at(begun + BODY_TIMEOUT + size / SLOWEST):
                message = await receive()
        except TimeoutError as error:
            # RFC 9110 section 15.5.9: the connection ends with this answer. HTTP/2 has no such header.
            close = [("Connection", "close")] if str(scope.get("http_version", "1.1")).startswith("1") else []
            detail = f"{size} bytes of the body have arrived, and then too little for too long."
            raise BodyTimeout(detail, headers=close) from error
        size += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        return message

    return receive_next


async def wait_for_hang_up(receive: Receive) -> None:
    """Return when the caller of a request whose body was read has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than {most} bytes.", members={"max_body_bytes": most})
