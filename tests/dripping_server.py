"""Servers for tests that answer so slowly, or so much, that their answer never ends; each counts what it has sent."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

PAUSE = 0.005
Answer = Callable[["Sender"], Awaitable[None]]


@dataclass
class Sender:
    """The server's side of one connection."""

    writer: asyncio.StreamWriter
    server: "HostileServer"

    async def send(self, data: bytes) -> None:
        self.server.sent += len(data)
        self.writer.write(data)
        await self.writer.drain()

    async def drip(self, *pieces: bytes) -> None:
        """Send the pieces again and again, with a pause after each, until the client closes the connection."""
        while True:
            for piece in pieces:
                await self.send(piece)
                await asyncio.sleep(PAUSE)

    async def drip_once(self, data: bytes) -> None:
        for place in range(len(data)):
            await self.send(data[place : place + 1])
            await asyncio.sleep(0.001)

    async def pour(self, piece: bytes) -> None:
        while True:
            await self.send(piece * 100)


@dataclass
class HostileServer:
    """A server at `url`. `requests` are the first lines of what it was asked, `sent` the bytes that it has sent."""

    url: str = ""
    requests: list[str] = field(default_factory=list)
    sent: int = 0


async def drip_status(sender: Sender) -> None:
    await sender.drip(b"x")


async def drip_headers(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    await sender.drip(b"x")


async def drip_chunk_line(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1;")
    await sender.drip(b"x")


async def drip_chunks(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    await sender.drip(b"1\r\n", b" \r\n")


async def drip_trailers(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    await sender.drip(b"X-One: 1\r\n")


async def drip_body(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
    await sender.drip(b" ")


async def drip_continue(sender: Sender) -> None:
    await sender.drip(b"HTTP/1.1 100 Continue\r\n\r\n")


DRIPS: tuple[Answer, ...] = (
    drip_status,
    drip_headers,
    drip_chunk_line,
    drip_chunks,
    drip_trailers,
    drip_body,
    drip_continue,
)


async def pour_continue(sender: Sender) -> None:
    await sender.pour(b"HTTP/1.1 100 Continue\r\nX-One: 1\r\n\r\n")


async def pour_body(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    await sender.pour(b" " * 100)


async def pour_trailers(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    await sender.pour(b"X-One: 1\r\n")


async def pour_chunk_extensions(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    await sender.pour(b"1;" + b"x" * 1000 + b"\r\n \r\n")


POURS: tuple[Answer, ...] = (pour_continue, pour_body, pour_trailers, pour_chunk_extensions)


@contextmanager
def hostile_server(answer: Answer) -> Iterator[HostileServer]:
    """Serve on a loopback address, on an event loop in a thread of its own."""
    server = HostileServer()
    ready = threading.Event()
    takers = set[asyncio.Task[None]]()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        takers.add(cast("asyncio.Task[None]", asyncio.current_task()))
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                server.requests.append(head.partition("\r\n")[0])
                length = next((line[15:] for line in head.lower().split("\r\n") if line[:15] == "content-length:"), "0")
                await reader.readexactly(int(length))
                await answer(Sender(writer, server))
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()

    async def serve() -> None:
        stop = asyncio.Event()
        async with await asyncio.start_server(take, "127.0.0.1", 0) as listening:
            server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            running.append((asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()
            listening.close()
            while tasks := asyncio.all_tasks() - {asyncio.current_task()}:  # some may still accept a connection
                for task in takers & tasks:
                    task.cancel()
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)  # the transports are closed

    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        [(loop, stop)] = running
        loop.call_soon_threadsafe(stop.set)
        thread.join()
