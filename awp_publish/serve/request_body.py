"""The body of a request to a door: whole, and no larger than the site takes."""

from typing import Final

from awp_publish.problems import BodyTooLarge
from awp_publish.serve.reply import Fields, Receive

_LONGEST: Final = 100
"""Digits of a length that can be read as a number; Python reads no more than 4300."""


class HungUp(Exception):
    """The caller left before its request was complete; there is nobody to answer."""


async def read_body(fields: Fields, receive: Receive, most: int) -> bytes:
    """The body, at most `most` bytes. Raises BodyTooLarge, as early as the request shows it, and HungUp."""
    declared = fields.get(b"content-length")
    if declared is not None and declared.isdigit() and (len(declared) > _LONGEST or int(declared) > most):
        raise _too_large(most)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HungUp
        body += message.get("body", b"")
        if len(body) > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return bytes(body)


async def wait_for_hang_up(receive: Receive) -> None:
    """Return when the caller of a request whose body was read has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than {most} bytes.", members={"max_body_bytes": most})
