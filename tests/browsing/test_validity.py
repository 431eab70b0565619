"""A form that a browser would not send is not sent, and the agent is told why, field by field."""

from typing import Any

import pytest

from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, details_of


def faults_of(controls: str, *acts: tuple[str, str, object], form: str = "", button: str = "") -> dict[str, str]:
    """The names of the fields with what is wrong of each; none when the form was sent."""
    html = f'<form action="/s" {form}>{controls}<button id=go {button}>Go</button></form>'
    agent = Agent({"/": html, "/s": "<p>Done"})
    for action, target, value in acts:
        agent.act(action, target, value=value)
    try:
        agent.click("#go")
    except AwpError as error:
        refused: dict[str, Any] = dict(error.describe())
    else:
        assert len(agent.web.asked) == 2
        return {}
    assert (refused["code"], len(agent.web.asked)) == ("INVALID_REQUEST", 1)
    return {fault["name"]: fault["reason"] for fault in refused["details"]["invalid"]}


@pytest.mark.parametrize(
    "controls",
    [
        "<input name=a required>",
        "<input name=a required type=number value=abc>",
        "<textarea name=a required></textarea>",
        "<input type=checkbox name=a required>",
        "<input type=radio name=a value=1><input type=radio name=a value=2 required>",
        "<select name=a required><option value=''>Choose<option>1</select>",
        "<select name=a required multiple><option>1</select>",
        "<input type=file name=a required>",
        "<input name=a pattern=[a-z]+ value=abc1>",
        "<input name=a pattern='a|b' value=ab>",
        "<input type=number name=a min=5 value=4>",
        "<input type=number name=a max=5 value=6>",
        "<input type=number name=a min=6 max=1 value=7>",
        "<input type=date name=a min=2026-01-01 value=2025-12-31>",
        "<input type=time name=a min=09:00 max=17:00 value=18:00>",
        "<input type=time name=a min=22:00 max=06:00 value=12:00>",
        "<input type=month name=a max=2026-05 value=2026-06>",
        "<input type=week name=a max=2026-W10 value=2026-W11>",
        "<input type=datetime-local name=a min=2026-01-01T10:00 value=2026-01-01T09:59>",
        "<input name=b required form=nothing><input name=a required>",
    ],
)
def test_the_form_is_held_back(controls):
    assert list(faults_of(controls)) == ["a"]


@pytest.mark.parametrize(
    "pattern", [r"[a-z0-9\-]+", r"[\&\-]", r"[\]\.]+", r"[\(]", r"[!.]", r"[\w.]+", r"[ -@]", "é+", r"\d{2}", r"[\/]"]
)
def test_a_pattern_is_read_as_browsers_read_it(pattern):
    assert list(faults_of(f"<input name=a pattern='{pattern}' value='Ä٣'>")) == ["a"]


def test_a_radio_button_without_a_name_is_a_group_of_its_own():
    boxes = "<input type=radio required id=first><input type=radio required>"
    assert faults_of(boxes, ("click", "#first", None)) == {"": "one of the group must be selected"}


@pytest.mark.parametrize(
    "controls",
    [
        "<input name=a required value=x>",
        "<input name=a required disabled><fieldset disabled><input name=b required></fieldset>",
        "<input name=a required readonly><textarea name=b required readonly></textarea>",
        "<input type=hidden name=a required>",
        "<input type=range name=a required step=7 value=3>",
        "<datalist><input name=a required></datalist>",
        "<input type=radio name=a required><input type=radio name=a checked>",
        "<select name=a required><option>1</select>",
        "<select name=a required><optgroup><option value=''>x</optgroup></select>",
        "<input type=email name=a><input type=url name=b><input type=number name=c min=5>",
        "<input type=email name=a value=a.b+c@d-e.example>",
        "<input type=url name=a value='mailto:x'><input type=url name=b value='https://u@x.example/'>",
        "<input name=a pattern=[a-z]+ value=abc><input name=b pattern='(' value=x><input name=c pattern=x>",
        "<input name=a pattern='(?=.*\\d)[a-z0-9]+' value=abc>",
        "<textarea name=a pattern=x>y</textarea>",
        "<input type=number name=a step=any value=1.234><input type=number name=b value=1.5>",
        "<input type=number name=a step=0.1 value=0.3 min=0><input type=number name=b step=-1 value=2>",
        "<input type=time name=a min=22:00 max=06:00 value=23:00>",
        "<input type=date name=a min=2026-01-01 step=7 value=2026-01-08>",
        "<input name=a maxlength=2 minlength=2 value=long>",
        "<input type=number name=a min=1 value=1e40><input type=number name=b min=0 step=1e-300 value=123456.7>",
        "<input name=a pattern='a)|(b' value=c><input name=b pattern='[' value=c>",
        "<input name=a pattern='[a-z0-9-]+' value='c!'><input name=b pattern='[\\w-]' value='!'>",
        "<input name=a pattern='\\_' value=c><input name=b pattern='(?i)a' value=c>",
        "<input name=a pattern='\\-' value=x>",
        "<select name=a required><option disabled selected>1<option>2</select>",
        "<input type=url name=a value='x:'>",
        "<input name=a pattern='[(]' value=c><input name=b pattern='[a!!]' value=c>",
    ],
)
def test_the_form_is_sent(controls):
    assert faults_of(controls) == {}


@pytest.mark.parametrize(
    "controls",
    [
        "<input type=email name=a value=nobody>",
        "<input type=email name=a value='a@b c'>",
        "<input type=email multiple name=a value='a@b.c,x'>",
        "<input type=url name=a value=example.com>",
        "<input type=url name=a value='https://'>",
        "<input type=number name=a value=1.5 min=0>",
        "<input type=number name=a step=0.1 min=0 value=0.25>",
        "<input type=number name=a step=3 min=1 value=3>",
        "<input type=date name=a min=2026-01-01 step=7 value=2026-01-09>",
    ],
)
def test_the_site_itself_judges_types_and_steps(controls):
    assert faults_of(controls) == {}


@pytest.mark.parametrize(("form", "button"), [("novalidate", ""), ("", "formnovalidate")])
def test_a_form_or_a_button_may_do_without(form, button):
    assert faults_of("<input name=a required>", form=form, button=button) == {}


def test_every_field_is_named_with_its_id_and_label():
    html = (
        '<form action="/s"><label for=e>Email</label><input id=e name=email required><input type=radio name=r required>'
        "<input type=radio name=r><input name=n pattern=[0-9]+ title='Digits only' value=x>"
        "<button id=go>Go</button></form>"
    )
    agent = Agent({"/": html})
    with pytest.raises(AwpError, match="Email: a value is required") as refused:
        agent.click("#go")
    first, second, third = details_of(refused)["invalid"]
    assert first["element_id"] == agent.elements("text_input")[0]["id"]
    assert (first["name"], first["label"], first["reason"]) == ("email", "Email", "a value is required")
    assert (second["name"], second["reason"]) == ("r", "one of the group must be selected")
    assert (third["name"], third["reason"]) == ("n", "Digits only")


def test_what_the_agent_wrote_must_be_long_enough():
    controls = "<input name=a minlength=3>"
    assert faults_of(controls, ("type", "[name=a]", "ab")) == {"a": "it is shorter than 3 characters"}
    assert faults_of(controls, ("type", "[name=a]", "\U0001f600a")) == {}
    assert faults_of(controls, ("type", "[name=a]", "")) == {}


def test_a_pattern_made_to_be_slow_is_not():
    controls = f"<input name=a pattern='(a|aa)+$' value='{'a' * 5000}!'>"
    assert list(faults_of(controls)) == ["a"]
