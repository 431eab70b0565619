"""The record of calls: one line for each, OpenTelemetry spans where somebody wants them, and never a secret."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, ApiKey, Refused, current_caller
from tests.guarded import ANN, Caller, invoke, known_callers, make_shop, poll, publish
from tests.installed import is_installed

GUARDS: dict[str, Any] = {
    **({"idempotency": "24h"} if is_installed("idempotency") else {}),
    **({"rate_limit": "100/minute"} if is_installed("limits") else {}),
}
LINE = {"door", "action", "principal", "label", "outcome", "status", "ms", "request_id"}


@pytest.fixture
def record(caplog):
    """The lines of the record so far, read."""
    caplog.set_level(logging.INFO, logger="awp_publish.access")

    def read():
        lines = [one.getMessage() for one in caplog.records if one.name == "awp_publish.access"]
        return [json.loads(line) for line in lines]

    return read


def make_site(**options):
    site = make_shop(**{"authenticate": [known_callers(), ApiKey({"key-of-cleo": "cleo"})], **options})

    @site.agent("order", **GUARDS)
    async def order(word: str = "a book", how: str = "") -> str:
        """Order a book."""
        if how == "refuse":
            raise Refused("No.", code="NO_BOOKS")
        if how == "fail":
            raise RuntimeError("a bug")
        return word

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """What is mine."""
        return str(current_caller())

    if is_installed("confirmation"):

        @site.agent("pay", effect="irreversible", auth_required=True)
        async def pay(pin: str = "") -> str:
            """Pay."""
            return "paid"

    if is_installed("jobs"):

        @site.agent("print", execution="async")
        async def print_book() -> str:
            """Print."""
            return "printed"

    return site


def test_each_call_has_one_line_of_json(open_client, record):
    client = publish(make_site(), open_client)
    answer = invoke(client, "order", {"word": "private"}, ANN | {"x-request-id": "r-1"})
    (line,) = record()
    assert set(line) == LINE
    assert line.pop("ms") >= 0
    assert line == {
        "door": "plain",
        "action": "order",
        "principal": "ann",
        "label": "unknown",
        "outcome": "ok",
        "status": 200,
        "request_id": answer.headers["x-request-id"],
    }


@pytest.mark.parametrize(
    ("agent", "given", "headers", "expected"),
    [
        ("order", {}, {}, ("order", None, "ok", 200)),
        ("order", {"how": "refuse"}, ANN, ("order", "ann", "NO_BOOKS", 409)),
        ("order", {"how": "fail"}, ANN, ("order", "ann", "HANDLER_FAILED", 500)),
        ("order", {"word": 5}, ANN, ("order", "ann", "INVALID_INPUT", 422)),
        ("mine", {}, {}, ("mine", None, "AUTHENTICATION_REQUIRED", 401)),
        ("mine", {}, {"authorization": "Bearer wrong"}, ("mine", None, "INVALID_CREDENTIALS", 401)),
        pytest.param(
            *("pay", {}, ANN, ("pay", "ann", "CONFIRMATION_REQUIRED", 428)), marks=pytest.mark.needs("confirmation")
        ),
        ("nobody", {}, ANN, (None, None, "UNKNOWN_ACTION", 404)),
    ],
)
def test_refusals_and_failures_have_their_lines_too(open_client, record, agent, given, headers, expected):
    client = publish(make_site(), open_client)
    invoke(client, agent, given, headers)
    (line,) = record()
    assert (line["action"], line["principal"], line["outcome"], line["status"]) == expected


def test_listeners_are_given_the_facts_and_a_broken_one_is_passed_over(open_client, record):
    site, told = make_site(), list[object]()

    def break_down(facts):
        raise RuntimeError("a bug of a listener")

    site.on_call(break_down)
    site.on_call(told.append)
    client = publish(site, open_client)
    assert invoke(client, "order", {"word": "private"}, ANN).status_code == 200
    client.get("/agents/actions/order")
    assert told == record()
    assert [line["outcome"] for line in record()] == ["ok", "METHOD_NOT_ALLOWED"]


def test_requests_that_never_became_calls_have_their_lines(open_client, record):
    client = publish(make_site(), open_client)
    client.post("/agents/actions/order", json=[])
    client.post("/agents/actions/order", content=b"{", headers={"content-type": "application/json"})
    client.get("/agents/actions/order")
    client.post("/agents/actions/order", json={}, headers={"cookie": "a=b", "origin": "https://evil.example"})
    assert [line["outcome"] for line in record()] == [
        "INVALID_INPUT",
        "NOT_JSON",
        "METHOD_NOT_ALLOWED",
        "CROSS_SITE_COOKIES",
    ]


@pytest.mark.needs("jobs", "idempotency")
def test_a_replay_has_a_line_and_a_job_has_one_when_it_is_done(open_client, record):
    client = publish(make_site(), open_client)
    for _ in range(2):
        invoke(client, "order", headers={"idempotency-key": "k-1"})
    poll(client, invoke(client, "print", headers=ANN).headers["location"], ANN)
    lines = [(line["door"], line["outcome"], line["status"], line["principal"]) for line in record()]
    assert lines == [
        ("plain", "ok", 200, None),
        ("plain", "ok", 200, None),
        ("plain", "ok", 202, "ann"),
        ("job", "ok", 200, "ann"),
    ]


@pytest.mark.needs("plain")
async def test_a_call_whose_caller_hung_up_has_a_line(record):
    site, begun = make_shop(), asyncio.Event()

    @site.agent("wait")
    async def wait() -> None:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()

    caller = Caller(AgentPublisher(Starlette(), site=site), "wait", {})
    call = asyncio.create_task(caller.call())
    await begun.wait()
    caller.hang_up()
    await call
    (line,) = record()
    assert (line["action"], line["outcome"], line["status"]) == ("wait", "UNANSWERED", None)


@pytest.mark.parametrize("log_inputs", [False, True])
def test_inputs_are_in_the_record_only_if_the_site_asks_for_it(open_client, record, log_inputs, caplog):
    client = publish(make_site(log_inputs=log_inputs), open_client)
    invoke(client, "order", {"word": "pri\nvate\u2028"})
    (line,) = record()
    assert line.get("input") == ({"word": "pri\nvate\u2028"} if log_inputs else None)
    assert ("vate" in caplog.text) == log_inputs
    answer = next(one for one in caplog.records if one.name == "awp_publish.access")
    assert "\n" not in answer.getMessage()


def test_while_nobody_listens_nothing_is_recorded(open_client, caplog):
    caplog.set_level(logging.WARNING)
    assert invoke(publish(make_site(), open_client), "order").status_code == 200
    assert [one for one in caplog.records if one.name == "awp_publish.access"] == []


# --- Secrets ---

SECRETS = ["ann-secret-token", "key-of-cleo", "wr0ng-t0ken", "wr0ng-key", "c00kie-value", "my-idem-key", "1234-pin"]


def guarded_session(client):
    """All kinds of calls with all kinds of secrets, and their answers."""
    wrong = [
        {"authorization": "Bearer wr0ng-t0ken"},
        {"x-api-key": "wr0ng-key"},
        {"authorization": "Basic wr0ng-t0ken"},
    ]
    right = [ANN, {"x-api-key": "key-of-cleo"}, {}]
    more = {"cookie": "session=c00kie-value", "idempotency-key": "my-idem-key"}
    for who in (*wrong, *right):
        for agent in ("order", "mine", "pay", "print", "nobody"):
            given = {"pin": "1234-pin"} if agent == "pay" else {}
            answer = invoke(client, agent, given, who | more)
            yield answer
            if agent == "pay" and "confirmation" in answer.json():
                token = answer.json()["confirmation"]["token"]
                for changed in (token, token, token + "x"):
                    yield invoke(client, agent, given, who | more | {"awp-confirmation": changed})
        yield invoke(client, "order", {"how": "fail"}, who | more | {"idempotency-key": "my-idem-key-2"})
        yield invoke(client, "order", {"how": "refuse"}, who | more, idempotency_key="my-idem-key-3")
    for path in ("/agent.json", "/.well-known/ai-actions.json", "/.well-known/woa.json", "/agents/status"):
        yield client.get(path, headers=ANN | more)


@pytest.mark.needs("jobs", "idempotency", "confirmation")
def test_no_secret_is_ever_in_a_log_line_a_problem_or_a_document(open_client, caplog):
    caplog.set_level(logging.DEBUG)
    site = make_site()
    client = publish(site, open_client)
    answers = list(guarded_session(client))
    assert {answer.status_code for answer in answers} >= {200, 202, 400, 401, 404, 409, 428, 500}
    ours = "\n".join(f"{r.getMessage()} {r.exc_text or ''}" for r in caplog.records if r.name.startswith("awp_publish"))
    tokens = [
        answer.json()["confirmation"]["token"]
        for answer in answers
        if "confirmation" in answer.text[:9999] and isinstance(answer.json(), dict) and "confirmation" in answer.json()
    ]
    for secret in (*SECRETS, *tokens, site.keys[0]):
        assert secret not in ours, secret
    for answer in answers:
        for secret in set(SECRETS) - {"1234-pin"}:
            assert secret not in answer.text, (secret, answer.text)
            assert secret not in str(answer.headers), (secret, answer.headers)


# --- OpenTelemetry ---

SPANS = """
import json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.applications import Starlette
from tests.client import TestClient
from awp_publish import AgentPublisher
from awp_publish.plugins.telemetry.spans import is_on
from tests.guarded import ANN, invoke
from tests.plugins.telemetry.test_record_of_calls import make_site

assert not is_on()
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
if "with" in sys.argv:
    trace.set_tracer_provider(provider)
site = make_site()

@site.agent("nested")
async def nested() -> str:
    "Make a span of its own."
    with trace.get_tracer("the shop").start_as_current_span("inside"):
        return "x"

with TestClient(AgentPublisher(Starlette(), site=site), base_url="https://shop.example") as client:
    for agent, given in (("nested", {}), ("order", {"how": "fail"}), ("mine", {}), ("order", {"word": "private"})):
        invoke(client, agent, given, ANN if agent == "order" else None)
spans = [{"name": s.name, "kind": s.kind.name, "status": s.status.status_code.name, "attributes": dict(s.attributes),
          "parent": s.parent and s.parent.span_id, "id": s.context.span_id} for s in exporter.get_finished_spans()]
print(json.dumps(spans))
"""


def spans_of(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-W", "ignore", "-c", SPANS, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_calls_are_spans_where_a_tracer_provider_is_set():
    inside, nested, failed, refused, private = spans_of("with")
    assert (inside["name"], inside["parent"]) == ("inside", nested["id"])
    assert (nested["name"], nested["kind"], nested["status"]) == ("plain nested", "SERVER", "UNSET")
    assert failed["status"] == "ERROR"
    assert failed["attributes"]["awp_publish.outcome"] == "HANDLER_FAILED"
    assert failed["attributes"]["awp_publish.principal"] == "ann"
    assert (refused["status"], refused["attributes"]["awp_publish.status"]) == ("UNSET", 401)
    assert "private" not in str(private)


@pytest.mark.slow
def test_there_are_no_spans_without_a_tracer_provider():
    assert spans_of("without") == []
