"""Whatever a server drips, a request of ours ends at its deadline; and redirects lead nowhere they may not."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from awp_publish.checks.fetching import FetchRefused, fetch_document
from awp_publish.client import AgentClient, CallFailed
from awp_publish.outgoing import (
    BadAnswer,
    RedirectRefused,
    TooLarge,
    follow,
    is_public_address,
    post,
    send,
)
from awp_publish.plugins.identity.fetching import FetchedKeys, fetch_json

SECONDS = 0.3
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

DRIPS: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "the status line": (b"HTTP/1.1 2", b" "),
    "headers": (OK, b"X-More: 1\r\n"),
    "one header": (OK + b"X-More: ", b"x"),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunk lines": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "a chunk's extension": (OK + b"Transfer-Encoding: chunked\r\n\r\n1;a=", b"x"),
    "trailers": (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-More: 1\r\n"),
    "the body": (OK + b"Content-Length: 100000\r\n\r\n", b"x"),
    "a body without a length": (OK + b"\r\n", b"x"),
}


@contextmanager
def serving(answer: Callable[[socket.socket, str], None]) -> Iterator[str]:
    """A server of raw bytes: `answer` gets each connection and the path that is asked for."""
    ended = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            asked = b""
            while b"\r\n\r\n" not in asked and (piece := connection.recv(65_536)):
                asked += piece
            answer(connection, asked.partition(b" ")[2].partition(b" ")[0].decode())

    def accept() -> None:
        with suppress(OSError):
            while not ended.is_set():
                connection, _ = server.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        ended.set()


@contextmanager
def dripping(what: str) -> Iterator[tuple[str, threading.Event]]:
    """A server that drips until it is cut off, which the event says."""
    begin, drop = DRIPS[what]
    cut = threading.Event()

    def drip(connection: socket.socket, path: str) -> None:
        try:
            connection.sendall(begin)
            connection.settimeout(0.02)
            while True:
                with suppress(TimeoutError):
                    if not connection.recv(1):
                        break
                connection.sendall(drop)
        except OSError:
            pass
        cut.set()

    with serving(drip) as url:
        yield url, cut


def ask_of(url: str) -> dict[str, Callable[[], object]]:
    """Every way in which we ask, with what it raises or returns at its deadline."""
    until = time.monotonic() + SECONDS
    return {
        "send": lambda: send("GET", url, deadline=until, most_bytes=10**6, only_public=False),
        "follow": lambda: follow(url, deadline=until, most_bytes=10**6, only_public=False),
        "fetch_document": lambda: fetch_document(url, max_bytes=10**6, allow_private=True, seconds=SECONDS),
        "fetch_json": lambda: fetch_json(url, most_bytes=10**6, seconds=SECONDS),
        "client": lambda: AgentClient(url, timeout=SECONDS, allow_private=True).call("find", {}),
        "post": lambda: post(url, b"{}", {}, seconds=SECONDS, trusted=[url]),
    }


@pytest.mark.parametrize("way", ask_of(""))
@pytest.mark.parametrize("what", DRIPS)
def test_a_server_that_drips_is_cut_off_at_the_deadline(what, way):
    with dripping(what) as (url, cut):
        if way == "post":
            assert ask_of(url)[way]() == "timeout"
        else:
            with pytest.raises((TimeoutError, FetchRefused, CallFailed)) as raised:
                ask_of(url)[way]()
            assert isinstance(raised.value, TimeoutError) or "took longer" in f"{raised.value}" or way == "client"
        assert cut.wait(20)


async def test_keys_are_read_as_soon_as_their_server_is_well_again(monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.identity.fetching.PAUSE", 0.0)
    is_well = threading.Event()

    class Keys:
        def find(self, key_id: str | None, algorithm: str) -> str:
            return "a key"

    def answer(connection: socket.socket, path: str) -> None:
        if is_well.is_set():
            connection.sendall(OK + b"Content-Length: 2\r\n\r\n{}")
            return
        for _ in range(1000):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.01)

    def load(url: str) -> Keys:
        fetch_json(url, most_bytes=100, seconds=SECONDS)
        return Keys()

    with serving(answer) as url:
        keys = FetchedKeys(url, load)
        with pytest.raises(Exception, match="cannot read the keys"):
            await keys.find("1", "ES256")
        is_well.set()
        assert await keys.find("1", "ES256") == "a key"


def redirecting(to: str) -> Callable[[socket.socket, str], None]:
    def answer(connection: socket.socket, path: str) -> None:
        moving = b"HTTP/1.1 302 Found\r\nLocation: %b\r\n\r\n" % to.encode()
        connection.sendall(OK + b"Content-Length: 2\r\n\r\n{}" if path == "/there" else moving)

    return answer


def follow_from(url: str) -> str:
    return follow(url, deadline=time.monotonic() + 20, most_bytes=100, only_public=False).url


def test_a_redirect_is_followed():
    with serving(redirecting("/there")) as url:
        assert follow_from(url) == f"{url}/there"


@pytest.mark.parametrize("to", ["/again", "ftp://shop.example/", "http://ann:secret@127.0.0.1/", "http://[::1", "//"])
def test_a_redirect_in_a_circle_or_to_no_web_address_is_refused(to):
    with serving(redirecting(to)) as url, pytest.raises((RedirectRefused, ValueError)):
        follow_from(url)


def test_a_redirect_never_leads_from_a_public_address_to_a_private_one(monkeypatch):
    """Our own server counts as public here, and another address of this machine as private."""
    monkeypatch.setattr("awp_publish.outgoing.is_public_address", lambda address: address == "127.0.0.1")
    with serving(redirecting("/there")) as private:
        port = private.rpartition(":")[2]
        with serving(redirecting(f"http://127.0.0.2:{port}/there")) as url:
            with pytest.raises(OSError, match="not public"):
                follow_from(url)
            with pytest.raises(FetchRefused, match="in its own network"):
                fetch_document(url, max_bytes=100, allow_private=True)


def test_a_redirect_never_leads_from_https_to_http(monkeypatch):
    """The connection is not encrypted here: only the address says https."""

    class Encrypted(socket.socket):
        do_handshake = staticmethod(lambda: None)

    def wrap(self: object, connected: socket.socket, **_: object) -> socket.socket:
        encrypted = Encrypted(fileno=connected.detach())
        encrypted.settimeout(20)
        return encrypted

    monkeypatch.setattr("ssl.SSLContext.wrap_socket", wrap)
    with serving(redirecting("/there")) as there, serving(redirecting(f"{there}/there")) as url:
        https = url.replace("http:", "https:")
        with pytest.raises(RedirectRefused, match="not encrypted"):
            follow_from(https)
        with pytest.raises(FetchRefused, match="not encrypted"):
            fetch_document(https, max_bytes=100, allow_private=True)


def test_an_answer_that_is_too_large_or_none_at_all_is_refused():
    def large(connection: socket.socket, path: str) -> None:
        connection.sendall(OK + b"\r\n" + b"x" * 101)

    with serving(large) as url, pytest.raises(TooLarge):
        send("GET", url, deadline=time.monotonic() + 20, most_bytes=100, only_public=False)
    for head in (b"SSH-2.0\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n"):
        with serving(partial(_say, head)) as url, pytest.raises(BadAnswer):
            send("GET", url, deadline=time.monotonic() + 20, most_bytes=100, only_public=False)


def _say(head: bytes, connection: socket.socket, path: str) -> None:
    connection.sendall(head)


SPECIAL = """
    0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.1.1 172.16.0.1 192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1
    198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::ffff:10.0.0.1 ::10.0.0.1
    64:ff9b::a00:1 64:ff9b:1::1 100::1 100:0:0:1::1 2001::1 2001:2::1 2001:10::1 2001:db8::1 2002:a00:1::1 3fff::1
    5f00::1 fc00::1 fe80::1 fe80::1%eth0 fec0::1 fec0::1%1 ff02::1 localhost 1.1.1 0x7f.1
"""


@pytest.mark.parametrize("address", SPECIAL.split())
def test_an_address_of_a_special_range_is_not_public(address):
    assert not is_public_address(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1", "::ffff:1.1.1.1"])
def test_an_address_of_the_internet_is_public(address):
    assert is_public_address(address)
