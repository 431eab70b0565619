"""Requests to addresses that callers name: once, to public addresses, within their time."""

import socket
from contextlib import suppress
from threading import Event, Thread

import pytest

from awp_publish.policy.fetching import Posted, connect_public, post
from tests.serve.webhook_receiver import receiving

BODY = b'{"type": "gap"}'


@pytest.fixture
def receiver(monkeypatch):
    with receiving(monkeypatch) as receiver:
        yield receiver


def test_a_trusted_origin_is_reached_and_no_redirect_is_followed(receiver):
    receiver.statuses = [204, 302]
    for status in (204, 302):
        answer = post(f"{receiver.url}/hook?a=b", BODY, {"X-One": "1"}, trusted=[receiver.url])
        assert answer == Posted(status, b"")
    assert [(one.path, one.headers["x-one"], one.body) for one in receiver.received] == [("/hook?a=b", "1", BODY)] * 2


def test_what_is_not_trusted_has_to_be_public(receiver, monkeypatch):
    https = receiver.url.replace("http:", "https:")
    assert post(https, BODY, {}) == "connection_refused"
    assert post(receiver.url, BODY, {}) == "connection_refused", "only https goes to strangers"
    monkeypatch.setattr("socket.getaddrinfo", Mock(side_effect=socket.gaierror("no such name")))
    assert post("https://nobody.invalid/", BODY, {}) == "connection_refused"
    assert receiver.received == []


def test_a_server_without_tls_is_told_from_one_that_is_not_there(receiver):
    https = receiver.url.replace("http:", "https:")
    assert post(https, BODY, {}, trusted=[https]) == "tls_error"
    assert post("http://127.0.0.1:1/", BODY, {}, trusted=["http://127.0.0.1:1"]) == "connection_refused"


def test_a_server_that_does_not_answer_is_not_waited_for():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        origin = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert post(origin, BODY, {}, seconds=0.05, trusted=[origin]) == "timeout"


def test_a_header_that_breaks_out_is_not_sent(receiver):
    assert post(receiver.url, BODY, {"X-One": "1\r\nX-Two: 2"}, trusted=[receiver.url]) == "connection_refused"
    assert receiver.received == []


def test_each_address_of_a_name_is_tried_within_the_time(receiver, monkeypatch):
    resolve = socket.getaddrinfo

    def resolve_name(host, *args, **kwargs):
        addresses = ["127.0.0.2", "127.0.0.1"] if host == "hooks.test" else [host]
        return [entry for address in addresses for entry in resolve(address, *args, **kwargs)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve_name)
    monkeypatch.setattr("awp_publish.policy.fetching.is_public_address", lambda _: True)
    connected = connect_public(("hooks.test", int(receiver.url.rpartition(":")[2])), 5.0)
    assert connected.getpeername()[0] == "127.0.0.1"
    connected.close()


def test_a_handshake_that_comes_byte_by_byte_is_cut_in_time():
    def drip() -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.sendall(b"\x16\x03\x03\x40\x00")  # a TLS record of 16 KiB
            while not given_up.wait(0.02):
                connection.sendall(b"\x00")

    given_up = Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=drip, daemon=True)
        thread.start()
        origin = f"https://127.0.0.1:{server.getsockname()[1]}"
        assert post(origin, BODY, {}, seconds=0.3, trusted=[origin]) == "timeout"
        thread.join(20)  # the server sees that the connection was cut
        given_up.set()
        assert not thread.is_alive()
