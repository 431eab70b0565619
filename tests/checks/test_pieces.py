"""The small functions that checks use: patterns, URLs, hosts, times and pointers."""

import socket
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from awp_publish.checks.expressions import matches
from awp_publish.checks.places import exists, position, select
from awp_publish.cli.fetching import FetchRefused, fetch_document
from awp_publish.schema.pointers import child
from awp_publish.schema.reading import depth_exceeds


def test_an_expression_that_explodes_is_answered_all_the_same() -> None:
    assert matches(r"^(a+)+$", "a" * 60 + "!") is False
    assert matches(r"^(?=a)(a+)+\1$", "a" * 60 + "!") in (False, None)
    assert matches("a" * 6000, "a") is None


@pytest.mark.parametrize("host", ["[64:ff9b::a00:1]", "[2002:a00:1::]", "224.0.0.1", "[::ffff:10.0.0.1]", "2130706433"])
def test_no_spelling_of_an_address_is_fetched_that_not_everybody_reaches(host: str) -> None:
    with pytest.raises(FetchRefused, match="in its own network"):
        fetch_document(f"http://{host}/", max_bytes=1)


def test_pointers_escape_and_find_their_way() -> None:
    document = {"a/b": {"m~n": [0, {"x": 1}]}}
    pointer = child(child("", "a/b"), "m~n")
    assert pointer == "/a~1b/m~0n"
    assert exists(document, f"{pointer}/1/x")
    for index in ("2", "01", "-1", "\u0661", "", "9" * 5_000):
        assert not exists(document, f"{pointer}/{index}"), index
    assert not exists(document, f"{pointer}/1/x/y")
    assert select(document, "/a~1b/{}/[]/x") == [(f"{pointer}/1/x", 1)]
    assert position(document, f"{pointer}/1/y") == (0, 0, 1, 1)


def test_depth_is_counted_without_recursion() -> None:
    nested: object = 1
    for _ in range(5):
        nested = [nested]
    assert depth_exceeds(nested, 4)
    assert not depth_exceeds(nested, 5)


def test_each_address_of_a_name_is_tried_before_it_counts_as_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo

    def resolve_name(host: str, port: int, *args: int, **kwargs: int) -> list[Any]:
        addresses = ["127.0.0.2", "127.0.0.1"] if host == "shop.test" else [host]
        return [entry for address in addresses for entry in resolve(address, port, *args, **kwargs)]

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

    monkeypatch.setattr(socket, "getaddrinfo", resolve_name)
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.handle_request, daemon=True).start()
        address = f"http://shop.test:{server.server_port}/"
        assert fetch_document(address, max_bytes=10, allow_private=True).body == b"{}"
