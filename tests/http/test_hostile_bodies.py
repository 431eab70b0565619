"""Bodies from strangers: a clear problem, never a 500, never a guess."""

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Limits, Site
from awp_publish.http.exchange import Message
from tests.client import TestClient
from tests.examples import examples
from tests.installed import installed

JSON = {"content-type": "application/json"}
KNOWN = {"NOT_JSON", "ENVELOPE_NOT_AN_OBJECT", "INVALID_ENVELOPE", "MISSING_INPUT", "AGENT_MISMATCH"}
KNOWN |= {"UNKNOWN_OPERATION", "INVALID_INPUT", "BODY_TOO_LARGE"}


@pytest.fixture
def client(site: Site, open_client) -> TestClient:
    @site.agent("echo", inputs={"type": "object"}, outputs={"type": "object"})
    async def echo(given: dict[str, object]) -> dict[str, object]:
        """Give back what came."""
        return given

    return open_client(AgentPublisher(Starlette(), site=site))


HOSTILE = {
    "duplicate names": (b'{"input": {"a": 1, "a": 2}}', 'the name "a" twice'),
    "duplicate names far inside": (b'{"input": {"a": [{"b": {"c": 1, "c": 1}}]}}', 'the name "c" twice'),
    "a duplicate written as an escape": (b'{"input": {"a": 1, "\\u0061": 2}}', 'the name "a" twice'),
    "a duplicate input": (b'{"input": {}, "input": {"x": 1}}', 'the name "input" twice'),
    "NaN": (b'{"input": {"a": NaN}}', "NaN"),
    "Infinity": (b'{"input": {"a": -Infinity}}', "-Infinity"),
    "a float beyond a double": (b'{"input": {"a": 1e999}}', "beyond a double"),
    "an integer beyond 64 bits": (b'{"input": {"a": 18446744073709551616}}', "beyond 64 bits"),
    "an integer just beyond 64 bits": (b'{"input": {"a": 9223372036854775808}}', "beyond 64 bits"),
    "an integer of ten thousand digits": (b'{"input": {"a": ' + b"9" * 10_000 + b"}}", "beyond 64 bits"),
    "bytes that are not UTF-8": (b'{"input": {"a": "\xff"}}', "not UTF-8"),
    "UTF-16": ('{"input": {}}'.encode("utf-16"), "not UTF-8"),
    "a byte order mark": (b'\xef\xbb\xbf{"input": {}}', "not JSON"),
    "a lone surrogate": (b'{"input": {"a": "\\ud800"}}', "surrogate"),
    "a lone surrogate as a name": (b'{"input": {"\\udfff": 1}}', "surrogate"),
    "deep arrays": (b'{"input": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "nested too deeply"),
    "deep objects": (b'{"input": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, "nested too deeply"),
    "two documents": (b'{"input": {}}{}', "Extra data"),
    "a trailing comma": (b'{"input": {},}', "not JSON"),
    "a comment": (b'{"input": {} /* hi */}', "not JSON"),
    "a control character": (b'{"input": {"a": "\x00"}}', "not JSON"),
}


@pytest.mark.parametrize(("body", "words"), HOSTILE.values(), ids=HOSTILE.keys())
def test_what_two_parsers_could_read_differently_is_refused(client, body, words):
    answer = client.post("/agents/echo/invoke", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (400, "NOT_JSON")
    assert words in answer.json()["detail"]


@pytest.mark.parametrize(
    "given", [{"a": 2**63 - 1}, {"a": -(2**63)}, {"a": 0.1}, {"a": "😀\u2028"}, {"": None}, {"a": [[[{}]]]}]
)
def test_what_is_plain_json_arrives_as_it_is(client, given):
    body = json.dumps({"input": given})
    assert client.post("/agents/echo/invoke", content=body, headers=JSON).json() == given


def test_a_surrogate_pair_is_one_character(client):
    answer = client.post("/agents/echo/invoke", content=b'{"input": {"a": "\\ud83d\\ude00"}}', headers=JSON)
    assert answer.json() == {"a": "😀"}


@pytest.mark.parametrize(("depth", "status"), [(100, 200), (199, 200), (200, 400), (300, 400), (900, 400)])
def test_nesting_is_taken_to_a_depth_that_every_part_can_carry(client, depth, status):
    opening, closing = '{"a":' * (depth - 1), "}" * (depth - 1)
    body = '{"input": {"a": ' + opening + "1" + closing + "}}"
    assert client.post("/agents/echo/invoke", content=body, headers=JSON).status_code == status


def test_many_brackets_side_by_side_are_not_nesting(client):
    given = {"a": [[] for _ in range(1000)], "b": "[" * 1000}
    assert client.post("/agents/echo/invoke", json={"input": given}).json() == given


@pytest.mark.needs("woa")
async def test_who_asks_before_sending_a_body_over_the_limit_sends_none():
    site = Site("Shop", "Sells.", url="https://shop.example", limits=Limits(max_body_bytes=1000))
    site.declare("any", method="GET", path="/any", description="Anything.")
    publisher = AgentPublisher(Starlette(), site=site)
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body was asked for")

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"content-length", b"2000"), (b"expect", b"100-continue")]
    path = {"type": "http", "method": "POST", "path": "/agents/any/invoke", "query_string": b"", "headers": headers}
    await publisher(path, receive, send)
    assert sent[0]["status"] == 413


def test_a_body_is_refused_by_its_declared_length_before_it_is_read(open_client):
    site = Site("Shop", "Sells.", url="https://shop.example", limits=Limits(max_body_bytes=1000))
    site.declare("any", method="GET", path="/any", description="Anything.")
    client = open_client(AgentPublisher(Starlette(), site=site))
    answer = client.post("/agents/any/invoke", content=b" " * 1001, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")
    assert answer.json()["max_body_bytes"] == 1000
    exact = b'{"input": {}}'.ljust(1000)
    assert client.post("/agents/any/invoke", content=exact, headers=JSON).json()["code"] != "BODY_TOO_LARGE"


@pytest.mark.needs("woa")
@pytest.mark.parametrize(("sent_bytes", "asked_for"), [(1_000_000, 1), (3_000_000, 3), (None, 9)])
async def test_a_streamed_body_over_the_limit_is_dropped_up_to_a_bound(sent_bytes, asked_for):
    site = Site("Shop", "Sells.", url="https://shop.example", limits=Limits(max_body_bytes=1000))
    site.declare("any", method="GET", path="/any", description="Anything.")
    publisher = AgentPublisher(Starlette(), site=site)
    asked = 0
    sent: list[Message] = []

    async def receive() -> Message:
        nonlocal asked
        asked += 1
        more = sent_bytes is None or asked * 1_000_000 < sent_bytes
        return {"type": "http.request", "body": b" " * 1_000_000, "more_body": more}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/agents/any/invoke",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    await publisher(scope, receive, send)
    assert sent[0]["status"] == 413
    assert asked == asked_for


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_at_all_make_a_server_error(client, body):
    answer = client.post("/agents/echo/invoke", content=body, headers=JSON)
    assert answer.status_code in (200, 400, 422)
    assert answer.status_code == 200 or answer.json()["code"] in KNOWN


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(envelope=VALUES | st.fixed_dictionaries({"input": VALUES}, optional={"agent": VALUES, "operation": VALUES}))
def test_no_envelope_at_all_makes_a_server_error(client, envelope):
    answer = client.post("/agents/echo/invoke", content=json.dumps(envelope), headers=JSON)
    assert answer.status_code in (200, 400, 422)
    if answer.status_code == 200:
        assert answer.json() == envelope["input"]


@pytest.mark.parametrize("path", ["/agents/echo/invoke", *map("/{}".format, installed("mcp", "a2a"))])
def test_a_length_of_any_number_of_digits_is_too_large(client, path):
    headers = {**JSON, "content-length": "9" * 5000}
    answer = client.post(path, content=iter([b"{}"]), headers=headers)
    assert answer.status_code == 413
