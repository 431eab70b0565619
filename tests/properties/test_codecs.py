"""The two sides of a codec are inverse: what is written is read as what it was."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from awp_publish.browsing.addresses import BadAddress, parse_address
from awp_publish.calls.progress import Progress
from awp_publish.calls.tokens import Expired, NotOurs, Tokens
from awp_publish.http.forms import Upload, read_form
from awp_publish.http.multipart import File, write_multipart
from awp_publish.http.strict_json import parse_json
from awp_publish.plugins.awp.messages import JsonText, read_msgpack, write_frame, write_json
from awp_publish.plugins.jobs.job import Job, JobResult, read_job, write_job
from awp_publish.problems import InvalidInput, JobCancelled, Problem, Violation
from awp_publish.stores.store import decode, encode

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELD_NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='\\%"'), min_size=1, max_size=6)


@given(st.dictionaries(TEXT, JSON, max_size=3))
def test_a_frame_is_read_as_the_message_that_was_written(message):
    assert read_msgpack(write_frame(message, is_packed=True)["bytes"]) == message
    assert parse_json(write_frame(message, is_packed=False)["text"].encode()) == message
    assert read_msgpack(write_frame({"raw": JsonText(write_json(message))}, is_packed=True)["bytes"]) == {
        "raw": message
    }


@given(st.lists(st.tuples(FIELD_NAMES, TEXT), max_size=4), st.lists(st.tuples(FIELD_NAMES, st.binary()), max_size=2))
def test_a_multipart_form_is_read_as_the_fields_that_were_written(fields, files):
    content_type, body = write_multipart(fields, [(name, File("a.txt", "text/plain", data)) for name, data in files])
    read = read_form(content_type.encode() if isinstance(content_type, str) else content_type, body)
    assert read == [*fields, *files]
    uploads = [value for _, value in read if isinstance(value, Upload)]
    assert [(upload.filename, upload.media_type) for upload in uploads] == [("a.txt", "text/plain")] * len(files)


@given(st.text())
def test_a_key_of_a_store_is_read_as_the_text_that_it_was(text):
    assert decode(encode(text)) == text


@given(st.text("abc./\\?#%:@[]é 12", max_size=12), st.sampled_from(["https://a.example/b/c?d#e", "http://[::1]:8000/"]))
def test_an_address_that_is_written_is_read_as_the_same(text, base):
    try:
        address = parse_address(text, parse_address(base))
    except BadAddress:
        return
    assert parse_address(str(address)) == address


@given(st.dictionaries(st.sampled_from(["action", "input", "é"]), JSON, max_size=3), st.integers(0, 50))
def test_a_token_is_read_by_its_key_and_purpose_until_it_expires(facts, seconds):
    now = [1_800_000_000.0]
    tokens = Tokens(["new-key", "old-key"], "test", 20, clock=lambda: now[0])
    token, expires = Tokens(["old-key"], "test", 20, clock=lambda: now[0]).write(facts)
    assert expires == now[0] + 20
    now[0] += seconds
    if seconds < 20:
        assert {name: value for name, value in tokens.read(token).items() if name in facts} == facts
    else:
        with pytest.raises(Expired):
            tokens.read(token)
    for other in (Tokens(["new-key"], "test", 20), Tokens(["old-key"], "other", 20)):
        with pytest.raises(NotOurs):
            other.read(token)


OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
MOMENTS = st.integers(0, 10**9).map(lambda seconds: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=seconds))
BYTES = st.text(st.characters(max_codepoint=255), max_size=5).map(lambda text: text.encode("latin-1"))
PROBLEMS = st.builds(
    lambda kind, detail, errors, headers, members: kind(detail, errors=errors, headers=headers, members=members),
    st.sampled_from([Problem, InvalidInput, JobCancelled]),
    TEXT,
    st.lists(st.builds(Violation, TEXT, TEXT), max_size=3),
    st.lists(st.tuples(TEXT, TEXT), max_size=3),
    OBJECTS,
)
JOBS = st.builds(
    Job,
    **dict.fromkeys(("id", "action", "principal", "request_id", "door", "share", "worker"), TEXT),
    **dict.fromkeys(("input", "context"), OBJECTS),
    **dict.fromkeys(("reserved", "attempt"), st.integers(0, 9)),
    **dict.fromkeys(("has_turn", "cancel_requested"), st.booleans()),
    **dict.fromkeys(("created", "updated"), MOMENTS),
    status=st.sampled_from(["accepted", "running", "done", "failed", "cancelled"]),
    progress=st.none() | st.builds(Progress, st.floats(0, 1), TEXT),
    result=st.none() | st.builds(JobResult, st.integers(200, 599), st.tuples(st.tuples(BYTES, BYTES)), st.binary()),
    problem=st.none() | PROBLEMS,
)


@given(JOBS)
def test_a_record_is_read_as_the_job_that_was_written(job):
    again = read_job(write_job(job), job.id)
    assert replace(again, problem=None) == replace(job, problem=None)
    assert type(again.problem) is type(job.problem)
    for name in ("detail", "status", "code", "recovery", "errors", "headers", "members") if job.problem else ():
        assert getattr(again.problem, name) == getattr(job.problem, name) or not getattr(job.problem, name)


@given(JOBS, JSON, st.sampled_from([2**70, "\ud800", b"raw", {1: (2,)}, {"a": [object]}]), st.integers(0, 300))
def test_a_value_that_json_cannot_represent_costs_a_record_nothing_else(job, value, odd, levels):
    for _ in range(levels):
        odd = [odd]
    again = read_job(write_job(replace(job, input={"value": value, "odd": odd})))
    assert again.input["value"] == value
    assert replace(again, input={}, problem=None) == replace(job, input={}, problem=None)
