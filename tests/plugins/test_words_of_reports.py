"""What pages and reports for people say of actions, calls and approvals."""

import re

import pytest

from awp_publish.client import doors
from awp_publish.model import DoorFacts, Idempotency, RateLimit
from awp_publish.plugins.approval.file import PARTS, ActionApproval, compare, digests_of
from awp_publish.plugins.overview.connect import clients
from awp_publish.plugins.overview.copied_code import python_call
from awp_publish.plugins.overview.samples import sample_input
from awp_publish.plugins.overview.words import limits_of, schema_tables
from awp_publish.plugins.traffic.record import describe_traffic
from awp_publish.plugins.traffic.report import TrafficReport, TrafficRow
from tests.protocols.catalogs import WOA_DOOR, make_action, make_catalog

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
    ({"auth_required": True}, "policy"),
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
def test_whatever_changes_about_an_action_is_approved_anew_under_its_part(change, part):
    approved = {"ping": digests_of(make_action())}
    assert [one.state for one in compare([make_action()], approved)] == ["approved"]
    (standing,) = compare([make_action(**change)], approved)
    assert (standing.state, standing.changed) == ("changed", (part,))
    assert part in PARTS
    assert str(standing) == f"changed  ping ({part})"


def test_what_is_new_or_gone_is_listed_without_parts():
    standing = compare([make_action("new")], {"old": digests_of(make_action("old"))})
    assert standing == (ActionApproval("new", "new"), ActionApproval("old", "gone"))
    assert [str(one) for one in standing] == ["new      new", "gone     old"]


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
        ({"type": "string", "format": "date"}, "2026-12-24"),
        ({"enum": ["x", "y"]}, "x"),
        ({"type": "object", "properties": {"b": {"type": "boolean"}, "c": {}}, "required": ["b"]}, {"b": True}),
    ],
)
def test_a_sample_is_the_least_that_a_type_allows(schema, value):
    inputs = {"type": "object", "properties": {"a": schema, "optional": {}}, "required": ["a"]}
    assert sample_input(make_action(inputs=inputs)) == {"a": value}


def test_inputs_and_outputs_are_each_a_table_or_a_sentence():
    inputs, outputs = map(str, schema_tables(make_action(outputs={"type": "string"})))
    assert "Inputs of ping: nothing." in re.sub(r"<[^>]+>", "", inputs)
    assert "Outputs of ping" in outputs
    assert "nothing" not in outputs
    inputs, _ = map(
        str,
        schema_tables(
            make_action(inputs={"type": "object", "properties": {"isbn": {}, "note": {}}, "required": ["isbn"]})
        ),
    )
    cells = [re.sub(r"<[^>]+>", " ", row).split() for row in inputs.split("<tr>")]
    assert [(row[0], row[2]) for row in cells if row[:1] in (["isbn"], ["note"])] == [("isbn", "yes"), ("note", "no")]
    assert "nothing" not in inputs


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
