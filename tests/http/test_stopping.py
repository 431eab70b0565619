"""A server that is asked to stop while streams are open: they end by themselves, and so does the server."""

import json
import signal
from contextlib import ExitStack, suppress

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.http.test_killed_process import Server
from tests.http.test_real_server import NO_CERTIFICATES
from tests.plugins.mcp.mcp_messages import CLASSIC, MODERN, headers_of, message

pytestmark = pytest.mark.slow

APPLICATION = """
import asyncio
from fastapi import FastAPI
from awp_publish import AgentPublisher, Site, report_progress
from awp_publish.plugins.jobs import worker

worker.Worker.stop.__defaults__ = (0.1,)  # seconds that it waits for jobs
site = Site(name="Shop", description="Sells things.", url="https://shop.example", plugins=["mcp", "a2a", "awp"])
site.event("order_shipped")
app = FastAPI()


@site.agent("pack", execution="async", effect="read")
async def pack() -> str:
    "Pack for a long time."
    report_progress(0.1, "packing")
    await asyncio.sleep(600)
    return "packed"


app.add_middleware(AgentPublisher, site=site)
"""

LISTEN = message("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
EVENTS = message("events/stream", {"name": "order_shipped"})
FOLLOWED, OLDER = (
    message("tools/call", {"name": "pack"}, version=item, meta={"progressToken": 1}) for item in (MODERN, CLASSIC)
)
PART = {"data": {"skill": "order_shipped", "input": {}}}
TOLD = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "SendStreamingMessage",
    "params": {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [PART]}},
}
HOST = {"host": "shop.example"}


def test_open_streams_end_when_the_server_is_asked_to_stop(tmp_path):
    (tmp_path / "shop.py").write_text(APPLICATION)
    server = Server(tmp_path, "memory:")
    sent = [
        ("/mcp", LISTEN, headers_of(LISTEN)),
        ("/mcp", EVENTS, headers_of(EVENTS)),
        ("/mcp", FOLLOWED, headers_of(FOLLOWED)),
        ("/mcp", OLDER, headers_of(OLDER, CLASSIC)),
        ("/a2a", TOLD, {"a2a-version": "1.0"}),
    ]
    try:
        server.start()
        with ExitStack() as stack:
            client = stack.enter_context(httpx2.Client(base_url=server.url, verify=NO_CERTIFICATES, timeout=20))
            address = server.url.replace("http", "ws") + "/awp"
            socket = stack.enter_context(connect(address, additional_headers=HOST))
            streams = [
                stack.enter_context(client.stream("POST", path, json=body, headers={**headers, **HOST}))
                for path, body, headers in sent
            ]
            texts = [stream.iter_text() for stream in streams]
            beginnings = [next(text) for text in texts]
            assert all(stream.headers["content-type"].startswith("text/event-stream") for stream in streams), beginnings
            process = server.stop()
            rests = ["".join(text) for text in texts[:3]]
            for text in texts[3:]:  # which the library of the SDKs cuts off
                with suppress(httpx2.RemoteProtocolError):
                    list(text)
            with pytest.raises(ConnectionClosed):
                socket.recv()
            assert process.wait(60) in (0, -signal.SIGTERM)
    finally:
        server.kill()
    # Streams of ours end with the answer to what began them, that of a job with where to go on.
    last = [json.loads(rest.rsplit("data: ", 1)[-1])["result"] for rest in rests]
    assert [item["resultType"] for item in last] == ["complete"] * 3
    assert last[2]["structuredContent"]["status"] == "accepted"
