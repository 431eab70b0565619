"""Applications without any framework, beside which others are measured."""

from typing import Final

from awp_publish.http.exchange import AsgiApp, RawHeaders, Receive, Scope, Send

JSON_ANSWER: Final[RawHeaders] = ((b"content-type", b"application/json"), (b"content-length", b"11"))
HTML_ANSWER: Final[RawHeaders] = ((b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"11"))
SMALL_BODY: Final = b'{"ok":true}'


def bare(body: bytes = SMALL_BODY, headers: RawHeaders = JSON_ANSWER, status: int = 200) -> AsgiApp:
    """The least that an ASGI application can do: the same bytes for every request."""
    listed = list(headers)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": listed})
        await send({"type": "http.response.body", "body": body})

    return answer


def beside(app: AsgiApp) -> AsgiApp:
    """An application with a middleware around it that does nothing: the least that any middleware costs."""

    async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)

    return pass_on
