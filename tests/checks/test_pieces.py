"""The small functions that checks use: patterns, URLs, hosts, times and pointers."""

import socket
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from awp_publish.checks.expressions import is_pattern, matches
from awp_publish.checks.inner_schemas import InnerSchemas
from awp_publish.checks.places import exists, position, select
from awp_publish.checks.text import is_timestamp
from awp_publish.checks.urls import is_host_name, is_private, url_fault
from awp_publish.cli.fetching import FetchRefused, fetch_document
from awp_publish.schema.pointers import child
from awp_publish.schema.reading import DIALECT, depth_exceeds


@pytest.mark.parametrize("pattern", [r"(?<n>a)\k<n>", "[^]", "[]", r"\p{L}", "a{,3}", "(?<=a)b", r"^\S+@\S+$", r"\cA"])
def test_expressions_of_javascript_compile(pattern: str) -> None:
    assert is_pattern(pattern)


@pytest.mark.parametrize("pattern", ["[", "(", "a**", "a{2,1}", "[z-a]", "\\", "(?P<", "*"])
def test_what_is_no_expression_does_not_compile(pattern: str) -> None:
    assert not is_pattern(pattern)


def test_an_expression_that_explodes_is_answered_all_the_same() -> None:
    assert matches(r"^(a+)+$", "a" * 60 + "!") is False
    assert matches(r"^(?=a)(a+)+\1$", "a" * 60 + "!") in (False, None)
    assert matches("a" * 6000, "a") is None


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example",
        "https://a.example:8443/b?c=d#e",
        "/a/{id}",
        "mailto:a@b.example",
        "//a.example/b",
        "https://[::1]/",
        "https://bücher.example/ä",
        "*",
        "https://{tenant}.a.example/",
    ],
)
def test_a_well_formed_url_passes(url: str) -> None:
    assert url_fault(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://",
        "http:///a",
        "https://a b.example",
        "/a b",
        "https://[::1",
        "https://a:99999/",
        "/%zz",
        "https://a_b!/",
        "a\nb",
    ],
)
def test_a_malformed_url_is_told(url: str) -> None:
    assert url_fault(url)


@pytest.mark.parametrize(
    "host",
    [
        "10.1.2.3",
        "192.168.0.1",
        "172.16.0.1",
        "169.254.169.254",
        "127.0.0.1",
        "localhost",
        "a.localhost",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:10.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "printer.local",
        "db.internal",
        "0.0.0.0",
    ],
)
def test_a_private_host_is_recognised_in_every_spelling(host: str) -> None:
    assert is_private(host)


@pytest.mark.parametrize("host", ["[64:ff9b::a00:1]", "[2002:a00:1::]", "224.0.0.1", "[::ffff:10.0.0.1]", "2130706433"])
def test_no_spelling_of_an_address_is_fetched_that_not_everybody_reaches(host: str) -> None:
    with pytest.raises(FetchRefused, match="in its own network"):
        fetch_document(f"http://{host}/", max_bytes=1)


@pytest.mark.parametrize(
    "host", ["a.example", "8.8.8.8", "192.0.2.1", "2001:db8::1", "172.32.0.1", "10.example", "fade.example"]
)
def test_a_public_host_is_left_alone(host: str) -> None:
    assert not is_private(host)


@pytest.mark.parametrize(
    "name", ["a", "a.example", "a-b.example.", "xn--bcher-kva.example", "127.0.0.1", "bücher.example"]
)
def test_a_host_name_is_one(name: str) -> None:
    assert is_host_name(name)


@pytest.mark.parametrize("name", ["", ".", "-a.example", "a..b", "a_b", "a/b", "https://a", "a b", "a" * 64])
def test_what_is_no_host_name_is_told(name: str) -> None:
    assert not is_host_name(name)


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00:00Z", "2026-01-31", "2026-01-31T12:00:00.5+01:00", "2026-01-31 12:00"]
)
def test_a_time_is_one(text: str) -> None:
    assert is_timestamp(text)


@pytest.mark.parametrize("text", ["", "now", "31.01.2026", "2026-13-01", "2026-01-31T25:00:00Z", "2026-1-1"])
def test_what_is_no_time_is_told(text: str) -> None:
    assert not is_timestamp(text)


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


def test_references_start_from_the_nearest_resource() -> None:
    schema = {
        "$id": "https://a.example/root",
        "$defs": {
            "inner": {
                "$id": "inner",
                "$defs": {"x": {"$anchor": "here"}},
                "allOf": [{"$ref": "#here"}, {"$ref": "#/$defs/x"}],
            },
            "bad": {"$ref": "#here"},
            "by_id": {"$ref": "https://a.example/inner#/$defs/x"},
            "relative": {"$ref": "inner"},
            "meta": {"$ref": DIALECT},
            "away": {"$ref": "https://b.example/"},
        },
    }
    assert [(wrong.keyword, wrong.pointer) for wrong in InnerSchemas("/s").violations({"s": schema})] == [
        ("external", "/s/$defs/away/$ref")
    ]
    lost = {"s": {"$defs": {"bad": {"$ref": "#here"}}}}
    assert [(wrong.keyword, wrong.pointer) for wrong in InnerSchemas("/s").violations(lost)] == [
        ("reference", "/s/$defs/bad/$ref")
    ]


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
