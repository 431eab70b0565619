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


def test_a_pattern_made_to_be_slow_is_not():
    controls = f"<input name=a pattern='(a|aa)+$' value='{'a' * 5000}!'>"
    assert list(faults_of(controls)) == ["a"]
