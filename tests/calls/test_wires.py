"""Calls as the wires of doors write them, with what accompanies their input."""

import json
from dataclasses import replace
from typing import Any

import pytest

from awp_publish.calls.wire import NotYet, WireCall, WireRequest, WireResponse
from awp_publish.client import CallFailed, doors
from tests.documents.catalogs import make_route_action
from tests.installed import installed

SEARCH = make_route_action("search", {"q": {"type": "string"}})
ORDER = make_route_action("order", {"title": {"type": "string"}}, method="POST")

SHOUT = replace(make_route_action("texts_shout", {}), agent_id="texts", operation="shout")


def written(door: str, **facts: Any) -> WireRequest:
    wire = doors()[door]
    return wire.write(WireCall(**facts), wire.path)


@pytest.mark.parametrize(
    ("facts", "method", "path", "body"),
    [
        ({"action": "search", "inputs": {"q": "a b"}, "declared": SEARCH}, "GET", "/agents/actions/search?q=a+b", None),
        ({"action": "search", "inputs": {}, "declared": SEARCH}, "GET", "/agents/actions/search", None),
        (
            {"action": "order", "inputs": {"title": "x"}, "declared": ORDER},
            "POST",
            "/agents/actions/order",
            {"title": "x"},
        ),
        ({"action": "a/b", "inputs": {}}, "POST", "/agents/actions/a%2Fb", {}),
    ],
)
@pytest.mark.needs("plain")
def test_a_plain_call_has_its_inputs_where_its_method_has_them(facts, method, path, body):
    request = written("plain", **facts)
    assert (request.method, request.path.replace("%20", "+"), request.body) == (method, path, body)


@pytest.mark.needs("woa")
@pytest.mark.parametrize(
    ("action", "path", "envelope"),
    [
        ("search", "/agents/search/invoke", {"input": {"q": "a"}}),
        ("texts.shout", "/agents/texts/invoke", {"operation": "shout", "input": {"q": "a"}}),
    ],
)
def test_an_envelope_names_the_operation_of_an_agent(action, path, envelope):
    request = written("woa", action=action, inputs={"q": "a"})
    assert (request.method, request.path, json.loads(request.content())) == ("POST", path, envelope)


@pytest.mark.needs("woa")
def test_an_envelope_names_the_operation_of_a_declared_action_unless_it_is_the_only_one():
    for declared, envelope in ((SEARCH, {"input": {}}), (SHOUT, {"operation": "shout", "input": {}})):
        assert json.loads(written("woa", action=declared.id, inputs={}, declared=declared).content()) == envelope
    assert written("woa", action="texts_shout", inputs={}, declared=SHOUT).path == "/agents/texts/invoke"


@pytest.mark.parametrize("allow", ["GET", "PUT", "PATCH", "DELETE, OPTIONS"])
@pytest.mark.needs("plain")
def test_a_plain_call_is_sent_again_by_the_method_that_is_allowed(allow):
    call = WireCall(action="order", inputs={})
    answer = doors()["plain"].read(
        call, written("plain", action="order", inputs={}), WireResponse(405, {"allow": allow}, b"{}")
    )
    assert isinstance(answer, NotYet)
    assert answer.request.method == allow.partition(",")[0]


@pytest.mark.parametrize("door", installed("woa", "plain"))
def test_members_beside_the_input_are_sent_in_headers(door):
    request = written(
        door, action="order", inputs={}, key="k", confirmation="c", receipts=["r1", "r2"], session="s", declared=ORDER
    )
    sent = {name: value for name, value in request.headers if name != "Content-Type"}
    assert {name.title(): value for name, value in sent.items()} == {
        "Idempotency-Key": "k",
        "Awp-Confirmation": "c",
        "Awp-Receipt": "r1, r2",
        "Awp-Session": "s",
    }
    assert not [name for name, _ in written(door, action="order", inputs={}).headers if name.title().startswith("Awp")]


@pytest.mark.parametrize("door", sorted(doors()))
def test_a_refusal_before_a_call_is_a_call_that_failed(door):
    call = WireCall(action="order", inputs={})
    problem = {"status": 403, "code": "ORIGIN_NOT_ALLOWED", "detail": "This origin may not call."}
    refused = WireResponse(403, {"content-type": "application/problem+json"}, json.dumps(problem).encode())
    with pytest.raises(CallFailed) as failed:
        doors()[door].read(call, written(door, action="order", inputs={}), refused)
    assert failed.value.code == "ORIGIN_NOT_ALLOWED"


@pytest.mark.parametrize(
    ("door", "documents", "address"),
    [
        pytest.param(*row, marks=pytest.mark.needs(row[0]))
        for row in (
            ("mcp", {"/agent.json": {"protocols": {"mcp": {"endpoint": "/tools"}}}}, "/tools"),
            ("mcp", {"/agent.json": {"protocols": {"x-mcp": {"endpoint": "/tools"}}}}, "/tools"),
            ("woa", {"/agent.json": {"protocols": {"woa": {"endpoint": "/run/{agent_id}"}}}}, "/run/{agent_id}"),
            (
                "woa",
                {
                    "/.well-known/woa.json": {
                        "transports": {"rest": {"base": "https://a.example/", "invoke_path": "/x"}}
                    }
                },
                "https://a.example/x",
            ),
            ("woa", {"/.well-known/woa.json": {"transports": {"rest": {"base": 7}}}}, "7/agents/{agent_id}/invoke"),
            ("plain", {"/agent.json": {"actions": [{"id": "a", "endpoint": "/do/actions/a"}]}}, "/do/actions"),
            ("plain", {"/agent.json": {"actions": [7, {"id": "a", "endpoint": 7}]}}, "/agents/actions"),
            (
                "plain",
                {"/agent.json": {"actions": [{}], "protocols": {"x-som": {"endpoint": "/do/som"}}}},
                "/do/actions",
            ),
            (
                "plain",
                {"/agent.json": {"actions": [{}], "agent_status": {"status_endpoint": "/x/status"}}},
                "/x/actions",
            ),
            ("plain", {"/agent.json": {"actions": 7}}, None),
            ("mcp", {}, None),
            ("woa", {}, None),
        )
    ],
)
def test_a_door_is_where_the_documents_of_a_site_say(door, documents, address):
    find = doors()[door].find
    assert find is not None
    assert find(lambda path: documents.get(path, {})) == address
