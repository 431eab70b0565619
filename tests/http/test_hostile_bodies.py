"""Bodies from strangers: a clear problem, never a 500, never a guess."""

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Limits, Site
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


def test_a_body_is_refused_by_its_declared_length_before_it_is_read(open_client):
    site = Site("Shop", "Sells.", url="https://shop.example", limits=Limits(max_body_bytes=1000))
    site.declare("any", method="POST", path="/any", description="Anything.")
    client = open_client(AgentPublisher(Starlette(), site=site))
    answer = client.post("/agents/actions/any", content=b" " * 1001, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")
    assert answer.json()["max_body_bytes"] == 1000
    exact = b"{}".ljust(1000)
    assert client.post("/agents/actions/any", content=exact, headers=JSON).json()["code"] != "BODY_TOO_LARGE"


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_at_all_make_a_server_error(client, body):
    answer = client.post("/agents/actions/echo", content=body, headers=JSON)
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


@pytest.mark.parametrize("path", ["/agents/actions/echo", *map("/{}".format, installed("mcp", "a2a"))])
def test_a_length_of_any_number_of_digits_is_too_large(client, path):
    headers = {**JSON, "content-length": "9" * 5000}
    answer = client.post(path, content=iter([b"{}"]), headers=headers)
    assert answer.status_code == 413
