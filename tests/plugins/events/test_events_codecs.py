"""What events and webhooks write is read back as it was, and what they decide alone."""

import base64
import hashlib
import hmac
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from awp_publish import Principal
from awp_publish.http.outgoing import Posted
from awp_publish.model import Event
from awp_publish.plugins.events.audiences import log_of, logs_for, read_audience, read_cursor, write_cursor
from awp_publish.plugins.events.filters import filters_of, is_match
from awp_publish.plugins.events.hook import (
    MAX_RETRYING,
    PAUSES,
    SUSPENDED_AFTER,
    SUSPENDED_SECONDS,
    RefusedCallback,
    Webhook,
    read_secret,
    read_webhook,
    reason_of,
)
from awp_publish.problems import DeclarationError
from awp_publish.schema import compile_schema

TEXT = st.text(max_size=6).filter(lambda text: text.isprintable())
TIMES = st.none() | st.floats(0, 1e10)
WEBHOOKS = st.builds(
    Webhook,
    id=TEXT,
    kind=TEXT,
    principal=TEXT,
    url=TEXT,
    secret=st.none() | TEXT,
    old_secret=st.none() | st.tuples(TEXT, st.floats(0, 1e10)),
    expires=TIMES,
    about=st.dictionaries(TEXT, st.integers(0, 9) | TEXT, max_size=2),
    logs=st.lists(TEXT, max_size=2).map(tuple),
    retries=st.lists(st.tuples(st.lists(TEXT, max_size=2), st.integers(1, 5), st.floats(0, 1e10)), max_size=2),
    is_active=st.booleans(),
    last_delivery=TIMES,
    last_error=st.sampled_from([None, "timeout", "http_4xx"]),
    failed_since=TIMES,
    failures=st.integers(0, 200),
)


@given(WEBHOOKS)
def test_a_webhook_is_read_as_it_was_written(webhook):
    assert read_webhook(webhook.write()) == webhook


SHIPPED = Event("order_shipped", "", {}, {})
LOGS = st.sampled_from(["public", "known", "scope:a"]).map(lambda audience: log_of("order_shipped", audience))


@given(st.dictionaries(LOGS, st.tuples(TEXT, st.integers(0, 2**53 - 1)), min_size=1))
def test_a_cursor_is_read_as_it_was_written_for_its_event_alone(positions):
    cursor = write_cursor(positions)
    assert read_cursor(SHIPPED, cursor) == positions
    assert read_cursor(Event("order_lost", "", {}, {}), cursor) is None
    assert "=" not in cursor


@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from([0, 1, True, False, "1", None, 1.0]), max_size=3), st.data()
)
def test_a_payload_matches_its_own_values_and_no_others(data, drawn):
    asked = drawn.draw(st.dictionaries(st.sampled_from("abc"), st.sampled_from([0, 1, True, "1", 1.0]), max_size=2))
    text = {name: repr(float(value)) if type(value) is int else repr(value) for name, value in data.items()}
    assert is_match(asked, data) == all(
        text.get(name) == (repr(float(value)) if type(value) is int else repr(value)) for name, value in asked.items()
    )


def test_plain_members_of_a_payload_are_filters():
    plain = {"a": {"type": "string"}, "b": {"enum": [1, 2]}, "c": {"const": None}, "d": {"type": "boolean"}}
    other = {"x": {"type": "object"}, "y": {"type": "array"}, "z": {}}
    schema = {"properties": {**plain, **other, "e": {"type": "integer", "default": 3}}}
    closed = {"type": "object", "additionalProperties": False}
    assert filters_of(schema) == {**closed, "properties": {**plain, "e": {"type": "integer"}}}
    assert filters_of({"properties": True}) == filters_of({"$defs": {}}) == {**closed, "properties": {}}
    named = {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "number"}}}
    assert filters_of(named) == {**closed, **named}
    assert compile_schema(filters_of(named)).is_valid({"a": 1})


@pytest.mark.parametrize(
    ("audience", "canonical"),
    [
        *[(name, name) for name in ("public", "known", "scope:buy")],
        ("buy", "scope:buy"),
        ("principal:ann", f"principal:{Principal('ann', issuer='bearer').key}"),
        (Principal("ann"), f"principal:{Principal('ann', issuer='bearer').key}"),
        (Principal("ann", issuer="other"), f"principal:{Principal('ann', issuer='other').key}"),
        *[(wrong, None) for wrong in ("", "principal:", "scope:", 5, "two words")],
    ],
)
def test_an_audience_has_one_form(audience, canonical):
    if canonical is None:
        with pytest.raises(DeclarationError, match="audience"):
            read_audience("event", audience, "bearer")
    else:
        assert read_audience("event", audience, "bearer") == canonical


def test_an_id_that_several_may_have_is_refused():
    for audience in ("principal:ann", Principal("ann")):
        with pytest.raises(DeclarationError, match="may mean somebody else"):
            read_audience("event", audience, None)
    assert read_audience("event", Principal("ann", issuer="x"), None)


def test_a_caller_reads_the_logs_of_those_audiences_that_it_is_of():
    ann = Principal("ann", frozenset({"b", "a"}))
    audiences = ["public", "known", f"principal:{ann.key}", "scope:a", "scope:b"]
    assert logs_for(SHIPPED, ann) == tuple(log_of("order_shipped", audience) for audience in audiences)
    assert logs_for(SHIPPED, None) == (log_of("order_shipped", "public"),)
    assert len({log_of(event, audience) for event in ("a", "b") for audience in audiences}) == 10


def webhook(**members: Any) -> Webhook:
    named: dict[str, Any] = {"id": "w", "kind": "k", "principal": "p", "url": "u"}
    return Webhook(**named | members)


def posted(status: int) -> Posted:
    return Posted(status, b"")


@pytest.mark.parametrize(
    ("answer", "reason", "is_final"),
    [
        *[(posted(status), None, True) for status in (200, 204, 299)],
        *[(posted(status), "http_4xx", status in (410, 413)) for status in (199, 300, 400, 404, 410, 413, 429, 499)],
        *[(posted(status), "http_5xx", False) for status in (500, 503)],
        *[(failure, failure, False) for failure in ("timeout", "connection_refused", "tls_error")],
    ],
)
def test_an_answer_decides_whether_a_webhook_is_tried_again(answer, reason, is_final):
    assert reason_of(answer) == reason
    hook = webhook(last_error="timeout", failed_since=5.0, failures=3)
    assert hook.note(answer) is is_final
    if reason is None:
        assert (hook.last_error, hook.failed_since, hook.failures) == (None, None, 0)
        assert hook.last_delivery is not None
    else:
        told = ("timeout", 5.0, 3) if is_final else (reason, 5.0, 4)
        assert (hook.last_error, hook.failed_since, hook.failures, hook.last_delivery) == (*told, None)


@pytest.mark.parametrize("failures", [SUSPENDED_AFTER - 2, SUSPENDED_AFTER - 1])
@pytest.mark.parametrize("hours", [0.9, 1.1])
def test_a_webhook_is_suspended_after_many_failures_over_a_long_time(failures, hours):
    hook = webhook(failures=failures, failed_since=time.time() - hours * SUSPENDED_SECONDS)
    hook.note("timeout")
    assert hook.is_active is not (failures == SUSPENDED_AFTER - 1 and hours > 1)
    fresh = webhook()
    fresh.note("timeout")
    assert fresh.failed_since is not None


def test_a_message_is_tried_again_later_and_later_and_not_for_ever():
    hook, now = webhook(), time.time()
    for attempts, pause in enumerate(PAUSES, 1):
        hook.try_again(["m"], attempts)
        [(key, counted, due)] = hook.retries
        assert (key, counted) == (["m"], attempts)
        assert due >= now + pause
    hook.try_again(["m"], len(PAUSES) + 1)
    assert hook.retries == []
    for number in range(MAX_RETRYING + 1):
        hook.try_again([number], 1)
    assert [key for key, _, _ in hook.retries] == [[number] for number in range(1, MAX_RETRYING + 1)]
    hook.give_up([5])
    assert len(hook.retries) == MAX_RETRYING - 1


def test_messages_are_signed_with_the_secret_and_for_a_while_with_the_one_before():
    keys = [b"k" * 24, b"o" * 64]
    new, old = (f"whsec_{base64.b64encode(key).decode()}" for key in keys)
    hook = webhook(secret=new)
    hook.rotate(new)
    assert hook.old_secret is None
    for before, signers in ((None, keys[:1]), (old, keys)):
        hook.rotate(before)
        headers = hook.signed(hook.message("m", b"{}", {"x": "y"}))
        signed = f"m.{headers['webhook-timestamp']}.".encode() + b"{}"
        expected = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in signers]
        assert headers["webhook-signature"] == " ".join(f"v1,{text}" for text in expected)
        assert {"Content-Type": "application/json", "x": "y", "webhook-id": "m"}.items() <= headers.items()
    hook.old_secret = old, time.time() - 1
    assert " " not in hook.signed(hook.message("m", b"{}", {}))["webhook-signature"]
    assert "webhook-signature" not in webhook().signed(hook.control("ping", b""))
    assert webhook(secret="plain").signed(hook.control("ping", b""))["webhook-signature"].startswith("v1,")
    assert hook.control("ping", b"").headers == {"X-MCP-Subscription-Id": "w"}


@pytest.mark.parametrize("length", [23, 24, 64, 65])
def test_a_secret_has_24_to_64_bytes(length):
    secret = f"whsec_{base64.b64encode(b'k' * length).decode()}"
    if 24 <= length <= 64:
        assert read_secret(secret) == b"k" * length
    else:
        with pytest.raises(RefusedCallback):
            read_secret(secret)


@pytest.mark.parametrize("secret", ["", "whsec_", "x", f"whsec_{'a' * 33}", f"whsec_{'A' * 32}==="])
def test_an_invalid_secret_is_refused(secret):
    with pytest.raises(RefusedCallback):
        read_secret(secret)


def test_a_record_is_kept_a_day_longer_than_its_webhook():
    later, earlier = webhook(expires=time.time() + 1000), webhook(expires=time.time() - 1000)
    assert (later.has_expired(), earlier.has_expired(), webhook().has_expired()) == (False, True, False)
    assert 86_400 < later.seconds <= 87_400
    assert earlier.seconds == 86_400
    assert webhook().seconds > 9 * 365 * 86_400
