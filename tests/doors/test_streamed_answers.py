"""At the plain door, an answer that a route streams is passed on as it comes, unless the whole is needed first."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import AgentPublisher, Limits, Site
from awp_publish.http.exchange import Message
from tests.guarded import KEYS
from tests.installed import is_installed

LIMITED = {"rate_limit": "10/minute"} if is_installed("limits") else {}


@dataclass
class Shop:
    """A route that sends a part, and the next one only when the test has got the first."""

    options: dict[str, Any] = field(default_factory=dict)
    media_type: str | None = "text/plain"
    parts: tuple[bytes, ...] = (b"one ", b"two ", b"three")
    fails: bool = False
    outside: bool = False
    timeout: float = 30.0
    path: str = "/agents/actions/write"
    described: Any = None
    got: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    def app(self) -> Any:
        site = Site("Shop", "Sells.", url="https://shop.example", secret_keys=KEYS, limits=Limits(timeout=self.timeout))
        app = FastAPI()

        @app.post("/write", response_model=self.described)
        @site.action("write", **self.options)
        async def write() -> StreamingResponse:
            """Write a story."""

            async def parts() -> AsyncIterator[bytes]:
                try:
                    yield self.parts[0]
                    await self.got.wait()
                    for part in self.parts[1:]:
                        yield part
                    if self.fails:
                        raise RuntimeError("a bug")
                finally:
                    self.left.set()

            return StreamingResponse(parts(), media_type=self.media_type, headers={"x-total-count": "3"})

        app.add_middleware(AgentPublisher, site=site)
        if self.outside:
            app.add_middleware(SessionMiddleware, secret_key="of the test")
        return app

    async def ask(self, **headers: str) -> list[Message]:
        """Return the messages of an answer, of which the second part comes only after the first has been sent."""
        sent: list[Message] = []
        asked: list[Message] = [{"type": "http.request", "body": b"{}", "more_body": False}]

        async def receive() -> Message:
            if asked:
                return asked.pop()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Message) -> None:
            sent.append(message)
            if message.get("body"):
                self.got.set()

        own = {"host": "shop.example", "content-type": "application/json", **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "https",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in own.items()],
            "client": ("127.0.0.1", 5000),
            "server": ("shop.example", 443),
            "state": {},
        }
        async with asyncio.timeout(20):
            await self.app()(scope, receive, send)
        return sent


def read(sent: list[Message]) -> tuple[int, dict[bytes, bytes], bytes]:
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize("outside", [False, True], ids=["alone", "with middleware outside"])
@pytest.mark.parametrize("described", [None, dict[str, int]], ids=["as it is", "as an object"])
@pytest.mark.parametrize("media_type", ["text/plain", "text/event-stream", "application/pdf", "application/x-ndjson"])
@pytest.mark.needs("plain")
async def test_parts_are_passed_on_as_they_come(media_type, described, outside):
    shop = Shop(LIMITED, media_type, outside=outside, described=described)
    sent = await shop.ask(x_request_id="seven")
    status, headers, body = read(sent)
    assert (status, body) == (200, b"one two three")
    assert [message["body"] for message in sent[1:]] == [b"one ", b"two ", b"three", b""]
    assert [message.get("more_body", False) for message in sent[1:]] == [True, True, True, False]
    assert headers[b"content-type"].startswith(media_type.encode())
    assert (headers[b"cache-control"], headers[b"x-content-type-options"]) == (b"no-store", b"nosniff")
    assert (headers[b"x-request-id"], headers[b"x-total-count"]) == (b"seven", b"3")
    assert (b"ratelimit" in headers) == bool(LIMITED)


@pytest.mark.needs("plain")
async def test_a_stream_may_take_longer_than_its_action_has_for_the_beginning():
    shop = Shop(timeout=0.2)
    original = shop.got.wait

    async def wait() -> bool:
        await original()
        await asyncio.sleep(0.6)
        return True

    shop.got.wait = wait  # type: ignore[method-assign, assignment]
    assert read(await shop.ask())[2] == b"one two three"


@pytest.mark.needs("plain")
async def test_a_stream_that_fails_has_no_end(caplog):
    shop = Shop(fails=True)
    sent = await shop.ask()
    assert read(sent)[2] == b"one two three"
    assert all(message.get("more_body") for message in sent[1:])
    assert "action write failed" in caplog.text


@pytest.mark.parametrize(
    ("options", "headers", "media_type"),
    [
        ({"idempotency": "24h"}, {"idempotency_key": "one"}, "text/plain"),
        ({"outputs": {"type": "string", "maxLength": 100}}, {}, "text/plain"),
        ({}, {}, "application/json"),
    ],
    ids=["recorded under a key", "validated", "JSON"],
)
@pytest.mark.needs("plain")
async def test_an_answer_of_which_the_whole_is_needed_is_read_whole(options, headers, media_type):
    shop = Shop(options, media_type, (b'"one ', b'two"') if media_type.endswith("json") else (b"one ", b"two"))
    shop.got.set()
    sent = await shop.ask(**headers)
    assert len(sent) == 2
    assert read(sent)[0] == 200
    assert b"content-length" in dict(sent[0]["headers"])


@pytest.mark.needs("plain")
async def test_a_key_that_is_not_given_records_nothing_and_the_answer_is_passed_on():
    sent = await Shop({"idempotency": "24h"}).ask()
    assert [message["body"] for message in sent[1:]] == [b"one ", b"two ", b"three", b""]


@pytest.mark.needs("guarded_routes")
@pytest.mark.parametrize("outside", [False, True], ids=["alone", "with middleware outside"])
@pytest.mark.parametrize("media_type", ["text/plain", "text/html", "application/json"])
async def test_a_guarded_route_streams_to_its_own_visitors_as_it_did_without_gates(media_type, outside):
    shop = Shop({"rate_limit": "10/minute", "guard_routes": True}, media_type, outside=outside, path="/write")
    sent = await shop.ask()
    status, headers, body = read(sent)
    assert (status, body) == (200, b"one two three")
    assert [message["body"] for message in sent[1:]] == [b"one ", b"two ", b"three", b""]
    assert headers[b"content-type"].startswith(media_type.encode())
    assert headers[b"x-total-count"] == b"3"
    assert b"ratelimit" in headers


@pytest.mark.needs("guarded_routes")
async def test_the_answer_of_a_guarded_route_that_is_recorded_is_read_whole():
    shop = Shop({"idempotency": "24h", "guard_routes": True}, path="/write")
    shop.got.set()
    sent = await shop.ask(idempotency_key="one")
    assert len(sent) == 2
    assert read(sent)[2] == b"one two three"


@pytest.mark.needs("guarded_routes")
async def test_a_guarded_route_whose_stream_fails_has_no_end():
    sent = await Shop({"rate_limit": "10/minute", "guard_routes": True}, fails=True, path="/write").ask()
    assert read(sent)[2] == b"one two three"
    assert all(message.get("more_body") for message in sent[1:])


@pytest.mark.needs("plain")
async def test_gates_refuse_before_anything_is_sent():
    sent = await Shop({"confirm": True}).ask()
    assert read(sent)[0] == 428
    assert len(sent) == 2
