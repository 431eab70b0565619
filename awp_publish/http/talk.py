"""Messages over a WebSocket of an application in this process."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from awp_publish.http.exchange import AsgiApp, Message, Scope


class TalkFailed(Exception):
    """A WebSocket was refused or closed early. `status` and `body` are those of the refusal, 0 and empty if none."""

    def __init__(self, detail: str, status: int = 0, body: bytes = b"") -> None:
        super().__init__(detail)
        self.status, self.body = status, body


def read_message(text: str | bytes | None) -> dict[str, Any]:
    """Return a message, a JSON object. Raises TalkFailed."""
    try:
        message = json.loads(text or "")
    except (ValueError, RecursionError):
        raise TalkFailed("A message is not JSON.") from None
    if not isinstance(message, dict):
        raise TalkFailed("A message is not a JSON object.")
    return message


async def talk(app: AsgiApp, scope: Scope, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Open a WebSocket and send messages, each after the answer to the one before. Returns the answers.

    Stops after the first answer with an error. Raises TalkFailed.
    """
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    outbox: asyncio.Queue[Message] = asyncio.Queue()
    inbox.put_nowait({"type": "websocket.connect"})
    task = asyncio.ensure_future(app(scope, inbox.get, outbox.put))

    async def receive_next() -> Message:
        """Return the next message. Raises TalkFailed if the connection is closed or the application has returned."""
        received = asyncio.ensure_future(outbox.get())
        waited: set[asyncio.Future[Any]] = {received, task}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not received.done():
            received.cancel()
            raise TalkFailed("The application has no WebSocket at this address.")
        message = received.result()
        if message["type"] == "websocket.http.response.start":
            raise TalkFailed("The connection was refused.", message["status"], (await receive_next()).get("body", b""))
        if message["type"] == "websocket.close":
            raise TalkFailed("The connection was refused.")
        return message

    answers: list[dict[str, Any]] = []
    try:
        await receive_next()  # accepted
        for message in messages:
            inbox.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})
            while True:
                answer = read_message((await receive_next()).get("text"))
                if answer.get("id") in (message["id"], ""):  # empty: the message could not be read
                    break
            answers.append(answer)
            if "error" in answer:
                break
    finally:
        inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await asyncio.wait({task}, timeout=5)
        task.cancel()
        await asyncio.wait({task})
    return answers
