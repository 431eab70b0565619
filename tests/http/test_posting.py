"""Requests to addresses that callers name: once, to public addresses, within their time."""

import socket
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from unittest.mock import Mock

import pytest

from awp_publish.http import outgoing
from awp_publish.http.outgoing import Deadline, Posted, connect
from tests.plugins.events.webhook_receiver import receiving

post = partial(outgoing.post, seconds=5.0)

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
    assert [(delivery.path, delivery.headers["x-one"], delivery.body) for delivery in receiver.received] == [
        ("/hook?a=b", "1", BODY)
    ] * 2


def test_an_untrusted_receiver_has_to_be_public(receiver, monkeypatch):
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


@pytest.fixture
def connections(monkeypatch):
    """The connections that are asked for: each with its time, and what becomes of it."""
    asked: list[tuple[str, float]] = []
    outcomes: dict[str, OSError | socket.socket] = {}

    def connect_to(address, timeout):
        asked.append((address[0], timeout))
        if isinstance(outcome := outcomes[address[0]], OSError):
            raise outcome
        return outcome

    def resolve(host, port, **_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (outcome, port)) for outcome in (*outcomes, *outcomes)]

    monkeypatch.setattr(socket, "create_connection", connect_to)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked, outcomes


def test_the_addresses_of_a_name_are_tried_in_turn_within_one_time(connections):
    asked, outcomes = connections
    first, other = socket.socketpair()
    with first, other:
        outcomes |= {"1.1.1.1": ConnectionRefusedError(), "2606:4700::1": TimeoutError(), "8.8.8.8": first}
        assert connect("shop.example", 443, Deadline(8.0)) is first
    assert [one for one, _ in asked] == ["1.1.1.1", "2606:4700::1", "8.8.8.8"]
    assert (asked[0][1] <= 4.0, asked[1][1] <= 4.0, asked[2][1] <= 8.0) == (True, True, True)


def test_the_last_failure_of_all_addresses_is_told(connections):
    asked, outcomes = connections
    outcomes |= {"1.1.1.1": TimeoutError(), "8.8.8.8": ConnectionRefusedError("the last")}
    with pytest.raises(ConnectionRefusedError, match="the last"):
        connect("shop.example", 443, Deadline(8.0))
    assert len(asked) == 2


def test_no_address_of_a_name_is_asked_if_one_is_private(connections):
    asked, outcomes = connections
    outcomes |= {"1.1.1.1": ConnectionRefusedError(), "10.0.0.1": ConnectionRefusedError()}
    with pytest.raises(OSError, match="address that is not public"):
        connect("shop.example", 443, Deadline(8.0))
    assert asked == []


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
