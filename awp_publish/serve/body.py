"""Reading the body of a request to a door of ours, and noticing when its caller leaves."""

from awp_publish.problems import BodyTooLarge
from awp_publish.serve.reply import Fields, Receive


class HungUp(Exception):
    """The caller left before its request was complete; there is nobody to answer."""


async def read_body(fields: Fields, receive: Receive, most: int) -> bytes:
    """The whole body of a request, of at most `most` bytes. Raises BodyTooLarge, HungUp."""
    declared = fields.get(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > most:
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


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than {most} bytes.", members={"max_body_bytes": most})


async def wait_for_hang_up(receive: Receive) -> None:
    """Returns when the caller has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
