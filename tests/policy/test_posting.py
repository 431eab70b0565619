"""Requests to addresses that callers name: once, to public addresses, within their time."""

import socket
from unittest.mock import Mock

import pytest

from awp_publish.policy.fetching import Posted, post
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
