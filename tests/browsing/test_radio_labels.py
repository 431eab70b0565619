"""Radio buttons are chosen by their values and by the labels that a person reads."""

import pytest

from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, details_of

PAGE = """<main><form action=/s><fieldset id=ship>
<label>Next day <input type=radio name=ship value=fast></label>
<input type=radio name=ship value=slow id=slow checked><label for=slow>Within a week</label>
<label>slow <input type=radio name=ship value=pigeon></label>
<label>Collect <input type=radio name=ship value=shop disabled></label>
<label>Twice <input type=radio name=ship value=first></label>
<label>Twice <input type=radio name=ship value=second></label>
<input type=radio name=ship aria-label="Anything else">
</fieldset><fieldset><label>Next day <input type=radio name=wrap value=paper></label></fieldset>
<button id=go>Go</button></form></main>"""


@pytest.fixture
def agent() -> Agent:
    return Agent({"/": PAGE, "/s": "<p>Sent"})


def sent_by(agent: Agent) -> str:
    agent.click("#go")
    return agent.web.last.path.partition("?")[2]


WORDS = [
    ("fast", "fast"),
    ("Next day", "fast"),
    ("  nEXT DAY\n", "fast"),
    ("Within a week", "slow"),
    ("slow", "slow"),  # a value wins over the label of another button
    ("Slow", "pigeon"),  # values are compared exactly
    ("Twice", "first"),
    ("second", "second"),
    ("on", "on"),  # the value of a button that has none
    ("anything else", "on"),
]


@pytest.mark.parametrize("target", ["#ship", "[value=slow]"])
@pytest.mark.parametrize(("words", "value"), WORDS)
def test_a_button_is_selected_by_its_value_or_label(agent, target, words, value):
    agent.act("select", target, value=words)
    assert sent_by(agent) == f"ship={value}"


@pytest.mark.parametrize(("words", "value"), WORDS)
def test_a_form_is_filled_with_a_button_by_its_value_or_label(agent, words, value):
    agent.act("fill_form", "#go", fields={"ship": words})
    assert sent_by(agent) == f"ship={value}"


def test_a_button_is_a_field_of_its_own_by_its_label(agent):
    agent.act("fill_form", "#go", fields={" within a  WEEK": True, "Anything else": True})
    assert sent_by(agent) == "ship=on"


@pytest.mark.parametrize("target", ["#ship", "[value=slow]"])
@pytest.mark.parametrize("words", ["never", "", "paper", "Next"])
def test_words_that_no_button_of_the_group_has_are_refused_with_its_choices(agent, target, words):
    with pytest.raises(AwpError, match="No radio button has the value") as refused:
        agent.act("select", target, value=words)
    details = details_of(refused)
    assert details["value"] == words
    assert details["choices"] == [
        {"value": "fast", "text": "Next day"},
        {"value": "slow", "text": "Within a week"},
        {"value": "pigeon", "text": "slow"},
        {"value": "shop", "text": "Collect"},
        {"value": "first", "text": "Twice"},
        {"value": "second", "text": "Twice"},
        {"value": "on", "text": "Anything else"},
    ]
    assert sent_by(agent) == "ship=slow"


@pytest.mark.parametrize("words", ["shop", "Collect"])
def test_a_disabled_button_is_refused_by_either_name(agent, words):
    with pytest.raises(AwpError, match="disabled") as refused:
        agent.act("select", "#ship", value=words)
    assert refused.value.code == "CONFLICT"
    assert sent_by(agent) == "ship=slow"


def test_a_refusal_lists_at_most_a_hundred_choices():
    buttons = "".join(f"<label>No {n} <input type=radio name=n value={n}></label>" for n in range(150))
    agent = Agent({"/": f"<form action=/s><fieldset id=all>{buttons}</fieldset><button id=go>Go</button></form>"})
    with pytest.raises(AwpError) as refused:
        agent.act("select", "#all", value="No 150")
    choices = details_of(refused)["choices"]
    assert (len(choices), choices[-1]) == (100, {"value": "99", "text": "No 99"})
    agent.act("select", "#all", value="No 149")
    assert sent_by(agent) == "n=149"


def test_a_button_without_a_label_is_a_choice_without_text():
    html = "<form action=/s><input type=radio name=a value=1 id=a><input type=radio name=a value=2></form>"
    agent = Agent({"/": html})
    with pytest.raises(AwpError) as refused:
        agent.act("select", "#a", value="3")
    assert details_of(refused)["choices"] == [{"value": "1", "text": ""}, {"value": "2", "text": ""}]


@pytest.mark.parametrize("words", ["", " ", "\n"])
def test_blank_words_choose_no_button_without_a_label(words):
    buttons = "<input type=radio name=a value=1><input type=radio name=a value=2 checked><button id=go>Go</button>"
    page = f"<form action=/s>{buttons}</form>"
    agent = Agent({"/": page, "/s": "<p>Sent"})
    with pytest.raises(AwpError, match="No radio button has the value"):
        agent.act("select", "[value='1']", value=words)
    assert sent_by(agent) == "a=2"
