"""Requests to other servers: one deadline for all of a request, bounded bytes, public addresses only."""

import datetime
import json
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from awp_publish import cli
from awp_publish.cli.fetching import FetchRefused, fetch_document
from awp_publish.client import AgentClient, CallFailed
from awp_publish.http import outgoing
from awp_publish.http.outgoing import (
    AddressNotPublic,
    AnswerTooLarge,
    Deadline,
    OutOfTime,
    RequestFailed,
    connect,
    is_public_address,
    request,
)
from awp_publish.plugins.identity import fetching
from awp_publish.problems import TemporarilyUnavailable
from tests.dripping_server import DRIPS, POURS, Sender, hostile_server
from tests.plugins.identity.test_jwt import bearer, published, refusal_of, shown, token

SECONDS = 0.15


def named(answers: Any) -> Any:
    return pytest.mark.parametrize("answer", answers, ids=lambda one: one.__name__)


# Each client that the package has, with a short deadline; each says in its own way that the time was over.


@named(DRIPS)
def test_no_answer_stretches_the_deadline_of_a_request(answer):
    with hostile_server(answer) as server:
        with pytest.raises(OutOfTime, match=r"longer than 0\.15 seconds"):
            request("GET", server.url, deadline=Deadline(SECONDS), max_bytes=1_000_000, is_public=False)
        assert len(server.requests) <= 1
        assert server.sent < 100_000


@named(DRIPS)
def test_no_answer_stretches_the_deadline_of_a_check(answer, monkeypatch, capsys):
    defaults: Any = fetch_document.__kwdefaults__
    monkeypatch.setitem(defaults, "seconds", SECONDS)
    monkeypatch.setattr("awp_publish.cli.synthesize.REQUEST_SECONDS", SECONDS)
    with hostile_server(answer) as server:
        for verb in (["check"], ["markdown"], ["synthesize", "--allow-private"]):
            assert cli.main([*verb, f"{server.url}/agent.json"]) == 2
            assert "took longer than 0.15 seconds" in capsys.readouterr().err
        assert len(server.requests) <= 8


@named(DRIPS)
def test_no_answer_stretches_the_deadline_of_a_call(answer):
    with hostile_server(answer) as server, AgentClient(server.url, door="plain", timeout=SECONDS) as client:
        with pytest.raises(TimeoutError, match=r"not answered within 0\.15 seconds"):
            client.document("/agent.json")
        assert len(server.requests) <= 1


@named(DRIPS)
def test_no_receiver_of_a_webhook_stretches_its_deadline(answer):
    with hostile_server(answer) as server:
        assert outgoing.post(server.url, b"{}", {}, seconds=SECONDS, trusted=[server.url]) == "timeout"
        assert len(server.requests) <= 1


@named(DRIPS)
async def test_keys_are_read_as_soon_as_a_dripping_server_is_well(answer, monkeypatch):
    monkeypatch.setattr(fetching, "FETCH_TIMEOUT", SECONDS)
    is_well = threading.Event()

    async def recover(sender: Sender) -> None:
        if not is_well.is_set():
            await answer(sender)
        body = json.dumps(published("first")).encode()
        await sender.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with hostile_server(recover) as server:
        authenticator = bearer(jwks=None, jwks_url=f"{server.url}/jwks.json", clock=lambda: 1000.0)
        refusal = await refusal_of(authenticator, token())
        assert isinstance(refusal, TemporarilyUnavailable)
        assert ("Retry-After", "1") in refusal.headers
        is_well.set()
        monkeypatch.setattr(fetching, "FETCH_TIMEOUT", 30)
        assert await authenticator(shown(token())) is not None, "no second passes on this clock"
        assert len(server.requests) == 2


@named(POURS)
def test_no_answer_is_read_beyond_its_limit(answer):
    read: list[int] = []
    take = outgoing._Exchange.receive_into

    def count(exchange: Any, buffer: Any) -> int:
        read.append(take(exchange, buffer))
        return read[-1]

    with hostile_server(answer) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(outgoing._Exchange, "receive_into", count)
        with pytest.raises(AnswerTooLarge):
            request("GET", server.url, deadline=Deadline(30), max_bytes=10_000, is_public=False)
        assert sum(read) <= outgoing.MAX_HEAD_BYTES + 6 * 10_000 + 2 * 65_536


async def send_truncated(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")


async def send_garbage(sender: Sender) -> None:
    await sender.send(b"SSH-2.0-OpenSSH_9.6\r\n")


async def send_bad_chunk(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")


async def send_many_headers(sender: Sender) -> None:
    await sender.send(b"HTTP/1.1 200 OK\r\n" + b"X-One: 1\r\n" * 200 + b"\r\n")


async def send_nothing(_: Sender) -> None:
    pass


@named((send_truncated, send_garbage, send_bad_chunk, send_many_headers, send_nothing))
def test_every_invalid_http_answer_is_the_same_kind_of_failure(answer):
    with hostile_server(answer) as server, pytest.raises(OSError, match=r"answer|reset"):
        request("GET", server.url, deadline=Deadline(30), max_bytes=1000, is_public=False)


def test_only_the_beginning_is_read_where_that_is_enough():
    async def pour(sender: Sender) -> None:
        await sender.send(b"HTTP/1.1 200 OK\r\n\r\n")
        await sender.pour(b"x" * 100)

    with hostile_server(pour) as server:
        answer = outgoing.post(server.url, b"{}", {}, seconds=30, max_bytes=50, trusted=[server.url])
        assert answer == (200, b"x" * 50)


def test_a_resolver_that_does_not_answer_is_not_waited_for(monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.wait(30) and [])
    with pytest.raises(OutOfTime):
        request("GET", "https://slow.example/", deadline=Deadline(SECONDS), max_bytes=10)
    answers.set()


# Addresses


@pytest.mark.parametrize(
    "block",
    # The special-purpose registries of IANA (iana-ipv4-special-registry, iana-ipv6-special-registry), multicast, and
    # what embeds an IPv4 address.
    [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.0.0/29",
        "192.0.0.8/32",
        "192.0.0.170/32",
        "192.0.0.171/32",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "255.255.255.255/32",
        "::1/128",
        "::/128",
        "::7f00:0/104",
        "::ffff:10.0.0.0/104",
        "::ffff:127.0.0.0/104",
        "::ffff:169.254.0.0/112",
        "64:ff9b::a00:0/104",
        "64:ff9b:1::/48",
        "100::/64",
        "100:0:0:1::/64",
        "2001::/32",
        "2001:2::/48",
        "2001:10::/28",
        "2001:20::/28",
        "2001:db8::/32",
        "2002:a00::/24",
        "2002:7f00::/24",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fd00::/8",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    ],
)
def test_no_special_purpose_address_is_public(block):
    network = ip_network(block)
    ends = {network.network_address, network.broadcast_address, ip_address(int(network.network_address) | 1)}
    assert not [str(end) for end in ends if is_public_address(str(end))]
    for end in ends:
        with pytest.raises(AddressNotPublic):
            connect(str(end), 443, Deadline(5))


def test_other_addresses_are_public():
    public = "1.1.1.1 9.255.255.255 11.0.0.0 100.128.0.0 172.32.0.0 192.0.1.0 192.169.0.0 198.20.0.0 223.255.255.255"
    for text in [*public.split(), "2606:4700::1", "2001:4860:4860::8888", "2003::1", "::ffff:1.1.1.1"]:
        assert is_public_address(text), text


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch):
    """A name that is rebound to a private address after the check."""
    answers = [["1.1.1.1"], ["127.0.0.1"]]
    connected: list[str] = []

    def resolve(host: str, port: int, **_: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (item, port)) for item in answers.pop(0)]

    def connect_to(address: tuple[str, int], *_: object) -> socket.socket:
        connected.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect_to)
    with pytest.raises(ConnectionRefusedError):
        request("GET", "http://rebound.example/", deadline=Deadline(5), max_bytes=10)
    assert connected == ["1.1.1.1"]
    assert len(answers) == 1


@contextmanager
def serving(answer: Any, context: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path}")
            status, headers, body = answer(self)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def context(tmp_path, monkeypatch):
    """A TLS context of a server that this process trusts, for shop.test and localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.DNSName("shop.test")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(file)
    return made


def test_https_is_never_left_for_http(context, capsys):
    with (
        serving(lambda _: (200, {}, b"{}")) as (plain, asked),
        serving(lambda _: (302, {"Location": f"http://localhost:{plain}/x"}, b""), context) as (port, visited),
    ):
        address = f"https://localhost:{port}/agent.json"
        assert cli.main(["check", address]) == 2
        assert "leads to an address that is not encrypted" in capsys.readouterr().err
        with pytest.raises(FetchRefused, match="not encrypted"):
            fetch_document(address, max_bytes=100, allow_private=True)
        with AgentClient(f"https://localhost:{port}") as client, pytest.raises(CallFailed) as failed:
            client.document("/agent.json")
        assert failed.value.code == "OFF_SITE_REDIRECT"
        with pytest.raises(RequestFailed, match="not encrypted"):
            request("GET", address, deadline=Deadline(30), max_bytes=9, is_public=False, max_redirects=3)
        assert len(visited) == 4
        assert asked == []


def test_http_may_be_left_for_https(context):
    with (
        serving(lambda _: (200, {}, b"{}"), context) as (secure, asked),
        serving(lambda _: (302, {"Location": f"https://localhost:{secure}/x"}, b"")) as (port, _),
    ):
        fetched = fetch_document(f"http://localhost:{port}/", max_bytes=100, allow_private=True)
        assert (fetched.body, fetched.url) == (b"{}", f"https://localhost:{secure}/x")
        assert asked == ["GET /x"]


def test_a_public_address_never_leads_to_a_private_one(monkeypatch, capsys):
    """Not even for a person who may read this machine: a public site must not send them there."""
    with (
        serving(lambda _: (200, {}, b'{"secret": 1}')) as (inside, asked),
        serving(lambda _: (302, {"Location": f"http://127.0.0.1:{inside}/admin"}, b"")) as (port, visited),
    ):
        monkeypatch.setattr(outgoing, "is_public_address", lambda text: text == "127.0.0.2")
        real = socket.getaddrinfo
        addresses = {"public.example": "127.0.0.2"}
        monkeypatch.setattr(socket, "getaddrinfo", lambda host, *a, **k: real(addresses.get(host, host), *a, **k))
        connect_to = socket.create_connection

        def as_public(address: tuple[str, int], timeout: float) -> Any:
            made = connect_to(("127.0.0.1", address[1]), timeout)
            return Public(made) if address[0] == "127.0.0.2" else made

        class Public:
            def __init__(self, made: socket.socket) -> None:
                self._made = made

            def getpeername(self) -> tuple[str, int]:
                return ("127.0.0.2", 80)

            def __getattr__(self, name: str) -> Any:
                return getattr(self._made, name)

        monkeypatch.setattr(socket, "create_connection", as_public)
        assert cli.main(["check", f"http://public.example:{port}/agent.json"]) == 2
        assert "in its own network" in capsys.readouterr().err
        assert visited == ["GET /agent.json"]
        assert asked == []
        with AgentClient(f"http://public.example:{port}", allow_private=True) as client, pytest.raises(CallFailed):
            client.document("/agent.json")
        assert asked == []


def test_a_redirect_that_never_ends_is_left(capsys):
    with serving(lambda handler: (302, {"Location": f"{handler.path}x"}, b"")) as (port, asked):
        assert cli.main(["check", f"http://127.0.0.1:{port}/agent.json"]) == 2
        assert "leads to more than 3 other addresses" in capsys.readouterr().err
        assert len(asked) == 4


def test_all_redirects_share_one_deadline():
    async def lead_on(sender: Sender) -> None:
        await sender.drip_once(b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")

    with hostile_server(lead_on) as server:
        with pytest.raises(OutOfTime):
            request("GET", server.url, deadline=Deadline(0.6), max_bytes=10, is_public=False, max_redirects=1_000)
        assert len(server.requests) < 1_000


@pytest.mark.parametrize("location", ["http://[::1", "ftp://a.example/", "http://u:p@a.example/"])
def test_a_location_that_is_no_address_is_refused(location):
    with serving(lambda _: (302, {"Location": location}, b"")) as (port, asked):
        with pytest.raises(FetchRefused):
            fetch_document(f"http://127.0.0.1:{port}/", max_bytes=10, allow_private=True)
        with pytest.raises((OSError, ValueError)):
            request(
                "GET",
                f"http://127.0.0.1:{port}/",
                deadline=Deadline(30),
                max_bytes=10,
                is_public=False,
                max_redirects=1,
            )
        assert len(asked) == 2


def test_a_body_is_only_sent_again_where_the_redirect_keeps_it():
    def lead(handler: BaseHTTPRequestHandler) -> Any:
        length = int(handler.headers.get("content-length") or 0)
        body = handler.rfile.read(length)
        return (
            (308, {"Location": "/kept"}, b"")
            if handler.path == "/308"
            else ((302, {"Location": "/lost"}, b"") if handler.path == "/302" else (200, {}, body))
        )

    with serving(lead) as (port, asked):
        options: Any = {"body": b"hello", "max_bytes": 100, "is_public": False, "max_redirects": 3}
        url = f"http://127.0.0.1:{port}"
        assert request("POST", f"{url}/308", deadline=Deadline(30), **options).body == b"hello"
        with pytest.raises(RequestFailed, match="would change the request to a GET"):
            request("POST", f"{url}/302", deadline=Deadline(30), **options)
        assert asked == ["POST /308", "POST /kept", "POST /302"]


def test_keys_of_the_site_s_own_server_may_be_behind_a_proxy(monkeypatch):
    """As they were before: addresses that the site itself names use the proxy of the environment."""
    seen: list[tuple[str, str | None]] = []

    def answer(handler: BaseHTTPRequestHandler) -> Any:
        seen.append((handler.path, handler.headers["Proxy-Authorization"]))
        return 200, {}, b'{"keys": []}'

    with serving(answer) as (port, _):
        monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "")
        document = fetching.fetch_json("http://login.internal/jwks?a=b", most_bytes=100)
        assert document == {"keys": []}
        basic = b64encode(b"me:secret").decode()
        assert seen == [("http://login.internal/jwks?a=b", f"Basic {basic}")]
        with pytest.raises(OSError, match=r"not public|known|resolution|name"):
            fetching.fetch_json("http://127.0.0.1:1/jwks", most_bytes=100, is_public=True)
        assert len(seen) == 1
