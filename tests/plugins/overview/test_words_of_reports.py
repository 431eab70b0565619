"""What pages and reports for people say of actions, calls and approvals."""

import re
from html import unescape

import pytest
from hypothesis import given, strategies as st

from awp_publish.client import doors
from awp_publish.model import DoorFacts, Idempotency, RateLimit
from awp_publish.plugins.approval.file import PARTS, ActionApproval, compare, digests_of
from awp_publish.plugins.overview.connect import clients
from awp_publish.plugins.overview.copied_code import python_call
from awp_publish.plugins.overview.samples import sample_input
from awp_publish.plugins.overview.words import limits_of, schema_tables
from awp_publish.plugins.traffic.record import describe_traffic
from awp_publish.plugins.traffic.report import TrafficReport, TrafficRow
from awp_publish.schema import compile_schema
from tests.documents.catalogs import WOA_DOOR, make_action, make_catalog

MCP_DOOR = DoorFacts("mcp", "2026-07-28", "/mcp")

DAYS = ("2026-01-01", "2026-01-02")
REPORT = TrafficReport(
    DAYS,
    (
        TrafficRow(DAYS[0], "woa", "search", "ann", "key", "ok", 3),
        TrafficRow(DAYS[0], "mcp", "order", "", "", "ok", 2),
        TrafficRow(DAYS[1], "woa", "order", "ann", "key", "rate-limited", 1),
        TrafficRow(DAYS[1], "job", "print", "", "", "ok", 4),
    ),
)

CHANGES = [
    ({"name": "Other"}, "words"),
    ({"description": "Say goodbye."}, "words"),
    ({"tags": ("a",)}, "words"),
    ({"examples": ({"a": 1},)}, "words"),
    ({"preconditions": ("logged in",)}, "words"),
    ({"confirmation_summary": "Really?"}, "words"),
    ({"confirmation_summary": str}, "words"),
    ({"inputs": {"type": "object", "properties": {"a": {}}}}, "inputs"),
    ({"outputs": {"type": "string"}}, "outputs"),
    ({"effect": "write"}, "effect"),
    ({"asker": "site"}, "policy"),
    ({"scopes": ("buy",)}, "policy"),
    ({"audience": "known"}, "policy"),
    ({"expose": ("woa",)}, "policy"),
    ({"expose": ()}, "policy"),
    ({"allow_agents": ("verified",)}, "policy"),
    ({"rate_limit": RateLimit(1, 60)}, "policy"),
    ({"idempotency": Idempotency()}, "policy"),
    ({"needs_confirmation": True}, "policy"),
    ({"requires": ("a",)}, "policy"),
    ({"depends_on": ("a",)}, "policy"),
    ({"execution": "async"}, "policy"),
]


@pytest.mark.parametrize(("change", "part"), CHANGES)
def test_every_change_of_an_action_is_approved_anew_by_its_part(change, part):
    approved = {"ping": digests_of(make_action())}
    assert [item.state for item in compare([make_action()], approved)] == ["approved"]
    (standing,) = compare([make_action(**change)], approved)
    assert (standing.state, standing.changed) == ("changed", (part,))
    assert part in PARTS
    assert str(standing) == f"changed  ping ({part})"


def test_added_and_removed_actions_are_listed_without_details():
    standing = compare([make_action("new")], {"old": digests_of(make_action("old"))})
    assert standing == (ActionApproval("new", "new"), ActionApproval("old", "gone"))
    assert [str(item) for item in standing] == ["new      new", "gone     old"]


def test_a_report_has_a_table_for_each_way_to_count():
    text = describe_traffic(REPORT)
    titles = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert titles == [
        "10 calls and page reads, 2026-01-01 to 2026-01-02",
        *("day", "door", "action or page", "caller", "outcome", "refusals", "jobs"),
    ]
    assert re.search(r"^jobs\n +4  print  ok$", text, re.MULTILINE)
    assert re.search(r"^refusals\n +1  rate-limited$", text, re.MULTILINE)


@pytest.mark.parametrize("width", [300, 720])
def test_the_bars_of_a_chart_stand_within_it(width):
    chart = REPORT.chart(width, legend=False)
    bars = [(float(x), float(wide)) for x, wide in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', chart)]
    assert bars
    assert all(x >= 48 and x + wide <= width - 8 for x, wide in bars)


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"q": "a", "n": 1}, "client.call(\"ping\", q='a', n=1)"),
        ({"a-b": 1}, "client.call(\"ping\", {'a-b': 1})"),
        ({"class": 1}, "client.call(\"ping\", {'class': 1})"),
        ({}, 'client.call("ping")'),
    ],
)
def test_a_call_is_shown_as_a_person_would_write_it(inputs, code):
    assert python_call(make_action(), inputs) == code


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array"}, []),
        ({"type": "array", "items": {"type": "integer", "minimum": 3}}, [3]),
        ({"type": "number", "exclusiveMinimum": 4}, 5),
        ({"type": "number", "maximum": 0.5}, 0.5),
        ({"type": "string", "maxLength": 2}, ".."),
        ({"type": "string", "format": "date"}, "2026-12-24"),
        ({"enum": ["x", "y"]}, "x"),
        ({"type": "object", "properties": {"b": {"type": "boolean"}, "c": {}}, "required": ["b"]}, {"b": True}),
    ],
)
def test_a_sample_is_the_least_that_a_type_allows(schema, value):
    inputs = {"type": "object", "properties": {"a": schema, "optional": {}}, "required": ["a"]}
    assert sample_input(make_action(inputs=inputs)) == {"a": value}


def rows_of(table: object) -> list[list[str]]:
    """What stands in the cells of a table, row by row."""
    rows = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.DOTALL) for row in str(table).split("<tr>")[1:]]
    return [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row] for row in rows]


def test_inputs_and_outputs_are_each_a_table_or_a_sentence():
    inputs, outputs = map(str, schema_tables(make_action(outputs={"type": "string"})))
    assert "Inputs of ping: nothing." in re.sub(r"<[^>]+>", "", inputs)
    assert "Outputs of ping" in outputs
    assert "nothing" not in outputs


def test_a_table_of_inputs_has_a_row_for_each_member_of_all_objects():
    line = {"type": "object", "properties": {"isbn": {"type": "string", "minLength": 10}}, "required": ["isbn"]}
    place = {"type": "object", "properties": {"city": {"type": ["string", "null"]}}}
    inputs = {
        "lines": {"type": "array", "items": line, "minItems": 1, "description": "What to send."},
        "place": {"type": "object", "properties": {"address": place}},
        "copies": {"type": "integer", "exclusiveMinimum": 0, "default": 1},
        "numbers": {"type": "array", "items": {"type": "number"}},
        "counts": {"type": "array", "items": {"type": "integer"}},
        "scans": {"type": "array", "items": {"type": "string", "contentEncoding": "base64"}},
        "kind": {"enum": ["new", "used"]},
        "any": {},
    }
    table, _ = schema_tables(
        make_action(inputs={"type": "object", "properties": inputs, "required": ["lines", "place"]})
    )
    assert rows_of(table) == [
        ["name", "type", "required", "meaning", "limits"],
        ["lines", "list of objects", "yes", "What to send.", "at least 1 entry"],
        ["lines[].isbn", "text", "yes", "", "at least 10 characters"],
        ["place", "object", "yes", "", ""],
        ["place.address", "object", "no", "", ""],
        ["place.address.city", "text", "no", "", ""],
        ["copies", "whole number", "no", "", "more than 0, default 1"],
        ["numbers", "list of numbers", "no", "", ""],
        ["counts", "list of whole numbers", "no", "", ""],
        ["scans", "list of files", "no", "", ""],
        ["kind", 'one of "new", "used"', "no", "", ""],
        ["any", "anything", "no", "", ""],
    ]


NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={
        "minimum": st.integers(-3, 3),
        "exclusiveMinimum": st.integers(-3, 3),
        "maximum": st.integers(4, 5) | st.just(4.5),
    },
)
FORMATS = st.sampled_from(["date", "date-time", "time", "email", "uri", "uuid"])
TEXTS = st.fixed_dictionaries({"type": st.just("string")}, optional={"format": FORMATS}) | st.fixed_dictionaries(
    {"type": st.just("string"), "minLength": st.integers(0, 5)}, optional={"maxLength": st.integers(5, 9)}
)
OTHERS = st.sampled_from([{"type": "boolean"}, {"enum": [3, 4]}, {"const": "x"}, {"type": "array"}, {"type": "object"}])


def containers(inner: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    members = st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    return st.builds(lambda items: {"type": "array", "items": items, "minItems": 2}, inner) | st.builds(
        lambda needed, others: {"type": "object", "properties": {**others, **needed}, "required": [*needed]},
        members,
        members,
    )


@given(st.recursive(NUMBERS | TEXTS | OTHERS, containers, max_leaves=3))
def test_a_sample_fits_the_schema_that_it_is_made_of(schema):
    inputs = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    sample = sample_input(make_action(inputs=inputs))
    assert not compile_schema(inputs, asserts_formats=True)(sample), sample


@pytest.mark.parametrize(("name", "spelt"), [("My Shop!", "my-shop"), ("書店", "site")])
def test_a_site_has_a_name_that_every_client_takes(name, spelt):
    panels = clients(make_catalog(make_action(), site={"name": name}, doors=(WOA_DOOR, MCP_DOOR)), doors()["woa"])
    text = "".join(str(panel) for listed in panels.values() for panel in listed)
    assert re.search(rf"\b{spelt}\b", text)
    assert "XX" not in text


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"minimum": 1, "maximum": 9}, ["at least 1", "at most 9"]),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 9}, ["more than 1", "less than 9"]),
        ({"minLength": 1, "maxLength": 2}, ["at least 1 character", "at most 2 characters"]),
        ({}, []),
    ],
)
def test_limits_are_told_in_words(facts, words):
    assert limits_of(facts) == words
