"""Actions do to a page what a person's hand does, and say so where they cannot."""

import pytest

from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, details_of, page

FORM = """<main><form action="/s" method=post>
<label for=name>Name</label><input id=name name=name maxlength=5>
<input type=number name=amount aria-label=Amount><input type=color name=colour aria-label=Colour>
<textarea name=note aria-label=Note>first</textarea>
<input name=fixed value=x readonly aria-label=Fixed><input name=off disabled aria-label=Off>
<input type=file name=file aria-label=File>
<select name=size aria-label=Size><option value=s>Small<option value=l>Large<option value=x disabled>Huge</select>
<select name=tags multiple aria-label=Tags><option>red<option selected>green<option>blue</select>
<fieldset id=pay><label>Card <input type=radio name=pay value=card aria-label=Card></label>
<label>Cash <input type=radio name=pay value=cash checked aria-label=Cash></label></fieldset>
<label id=box><b>Accept</b> <input type=checkbox name=ok aria-label=Accept></label>
<label for=nothing id=vain>Vain</label>
<button id=go name=go value=1>Go</button></form>
<details id=more><summary id=sum>More <i id=inner>x</i></summary><p id=within>Hidden words</p></details>
<h1>Title</h1><p id=plain>Plain</p></main>"""


@pytest.fixture
def agent() -> Agent:
    return Agent({"/": FORM, "/s": lambda fetch: page("<title>Sent</title><p>Sent")})


def sent_by(agent: Agent) -> str:
    agent.click("#go")
    return agent.web.last.body.decode()


UNTOUCHED = "name=&amount=&colour=%23000000&note=first&fixed=x&file=&size=s&tags=green&pay=cash&go=1"


def changed(*pairs: str) -> str:
    fields = UNTOUCHED.split("&")
    for pair in pairs:
        name = pair.partition("=")[0]
        fields = [pair if field.partition("=")[0] == name else field for field in fields]
    return "&".join(fields)


@pytest.mark.parametrize(
    ("action", "target", "value", "sent"),
    [
        ("type", "#name", "Ada", changed("name=Ada")),
        ("type", "#name", "A\nda", changed("name=Ada")),
        ("primitive.type", "#name", 42, changed("name=42")),
        ("type", "[name=amount]", "1.5", changed("amount=1.5")),
        ("type", "[name=amount]", 3, changed("amount=3")),
        ("type", "[name=colour]", "#FF8800", changed("colour=%23ff8800")),
        ("type", "[name=note]", "a\r\nb", changed("note=a%0D%0Ab")),
        ("clear", "[name=note]", None, changed("note=")),
        ("select", "[name=size]", "l", changed("size=l")),
        ("select", "[name=size]", "Large", changed("size=l")),
        ("select", "[name=size]", " large ", changed("size=l")),
        ("select", "[name=size]", ["l"], changed("size=l")),
        ("select", "[name=tags]", "blue", changed("tags=blue")),
        ("select", "[name=tags]", ["red", "blue"], changed("tags=red&tags=blue")),
        ("select", "[name=tags]", [], UNTOUCHED.replace("tags=green&", "")),
        ("clear", "[name=tags]", None, UNTOUCHED.replace("tags=green&", "")),
        ("select", "[value=card]", None, changed("pay=card")),
        ("select", "[value=cash]", "card", changed("pay=card")),
        ("select", "[value=cash]", "Card", changed("pay=card")),
        ("select", "#pay", "card", changed("pay=card")),
        ("toggle", "[value=card]", None, changed("pay=card")),
        ("click", "[value=card]", None, changed("pay=card")),
        ("toggle", "[name=ok]", None, changed("pay=cash&ok=on")),
        ("click", "[name=ok]", None, changed("pay=cash&ok=on")),
        ("click", "#box b", None, changed("pay=cash&ok=on")),
        ("click", "#name", None, UNTOUCHED),
    ],
)
def test_an_action_changes_what_the_form_sends(agent, action, target, value, sent):
    intent = {} if value is None else {"value": value}
    result = agent.act(action, target, **intent)
    assert result["status"] == "ok"
    assert sent_by(agent) == sent


def test_a_box_flips_back():
    agent = Agent(
        {"/": "<form action=/s><input type=checkbox name=a checked><button id=go>Go</button></form>", "/s": "<p>x"}
    )
    for expected in (False, True):
        agent.act("toggle", "[name=a]")
        assert agent.elements("checkbox")[0]["attrs"]["checked"] is expected


@pytest.mark.parametrize("target", ["#more", "#sum", "#inner"])
def test_details_open_and_close(agent, target):
    for expected in (True, False):
        assert agent.click(target)["effects"]["som_changed"] is True
        assert agent.elements("details")[0]["attrs"]["open"] is expected


def test_a_click_within_open_details_leaves_them_open(agent):
    agent.act("toggle", "#more")
    with pytest.raises(AwpError, match="cannot be used with click"):
        agent.click("#within")
    assert agent.elements("details")[0]["attrs"]["open"] is True


@pytest.mark.parametrize(
    ("action", "target", "value", "code", "said"),
    [
        ("type", "#plain", "x", "INVALID_REQUEST", "cannot be used with type"),
        ("type", "#go", "x", "INVALID_REQUEST", "cannot be used with type"),
        ("type", "[name=ok]", "x", "INVALID_REQUEST", "cannot be used with type"),
        ("clear", "[name=size]", None, "INVALID_REQUEST", "cannot be used with clear"),
        ("select", "#name", "x", "INVALID_REQUEST", "cannot be used with select"),
        ("click", "#vain", None, "INVALID_REQUEST", "A paragraph cannot be used with click"),
        ("click", "#plain", None, "INVALID_REQUEST", "A paragraph cannot be used with click"),
        ("select", "#plain", "x", "INVALID_REQUEST", "cannot be used with select"),
        ("toggle", "#name", None, "INVALID_REQUEST", "cannot be used with toggle"),
        ("toggle", "h1", None, "INVALID_REQUEST", "cannot be used with toggle"),
        ("type", "#name", None, "INVALID_REQUEST", "Missing required param: intent.value"),
        ("type", "#name", ["x"], "INVALID_REQUEST", "intent.value must be a string"),
        ("type", "#name", True, "INVALID_REQUEST", "intent.value must be a string"),
        ("type", "#name", "toolong", "INVALID_REQUEST", "at most 5 characters"),
        ("type", "[name=note]", "x" * 100_001, "INVALID_REQUEST", "longer than 100000"),
        ("type", "[name=amount]", "three", "INVALID_REQUEST", "a number such as"),
        ("type", "[name=colour]", "red", "INVALID_REQUEST", "a colour such as"),
        ("type", "[name=fixed]", "y", "CONFLICT", "read-only"),
        ("clear", "[name=fixed]", None, "CONFLICT", "read-only"),
        ("type", "[name=off]", "y", "CONFLICT", "disabled"),
        ("click", "[name=off]", None, "CONFLICT", "disabled"),
        ("type", "[name=file]", "y", "UNSUPPORTED", "Files"),
        ("select", "[name=size]", None, "INVALID_REQUEST", "Missing required param: intent.value"),
        ("select", "[name=size]", "medium", "INVALID_REQUEST", "no option 'medium'"),
        ("select", "[name=size]", "x", "INVALID_REQUEST", "disabled option"),
        ("select", "[name=size]", ["s", "l"], "INVALID_REQUEST", "one choice"),
        ("select", "[name=size]", {"value": "s"}, "INVALID_REQUEST", "must be a string"),
        ("select", "[value=cash]", "gold", "INVALID_REQUEST", "No radio button"),
        ("fly", "#name", None, "INVALID_REQUEST", "Unknown action: fly"),
        ("intent.checkout", "#name", None, "UNSUPPORTED", "Not supported: intent.checkout"),
        (7, "#name", None, "INVALID_REQUEST", "action must be a string"),
        ("submit", "#plain", None, "INVALID_REQUEST", "does not belong to a form"),
    ],
)
def test_an_impossible_action_on_an_element_is_refused_and_changes_nothing(agent, action, target, value, code, said):
    before = agent.som()
    with pytest.raises(AwpError, match=said) as refused:
        agent.act(action, target, **({} if value is None else {"value": value}))
    assert refused.value.code == code
    assert agent.som() == before


def test_a_refusal_names_what_the_element_can_do_and_which_choices_there_are(agent):
    with pytest.raises(AwpError) as refused:
        agent.act("type", "[name=ok]", value="x")
    assert details_of(refused)["actions"] == ["toggle"]
    with pytest.raises(AwpError) as refused:
        agent.act("select", "[name=size]", value="medium")
    assert details_of(refused)["choices"] == [{"value": "s", "text": "Small"}, {"value": "l", "text": "Large"}]


def test_an_answer_says_what_was_meant_and_what_came_of_it(agent):
    result = agent.act("type", {"ref": agent.elements("text_input")[0]["id"]}, value="Ada")
    assert result["status"] == "ok"
    assert result["resolved"]["role"] == "text_input"
    effects = {"navigated": False, "som_changed": True, "navigation": False, "som_cursor": 2, "confidence": 1.0}
    assert result["effects"] == effects
    assert result["target_resolved"] == {"element_id": result["resolved"]["element_id"], "confidence": 1.0}
    assert result["artifacts"] == {"som_cursor": "c:2"}
    effects = agent.click("#go")["effects"]
    assert (effects["navigated"], effects["navigation"]) == (True, True)
    assert (effects["url"], effects["status"], effects["title"]) == ("https://shop.example/s", 200, "Sent")
    assert effects["som_cursor"] == 3


def test_an_equal_value_is_no_change(agent):
    agent.act("type", "#name", value="Ada")
    assert agent.act("type", "#name", value="Ada")["effects"]["som_changed"] is False


def test_links_are_followed_relative_to_the_page_whatever_their_window():
    agent = Agent(
        {"/a/": '<a href="b?x=1" target=_blank download><b>To B</b></a>', "/a/b": "<title>B</title><p>B"}, start="/a/"
    )
    effects = agent.click("b")["effects"]
    assert (effects["navigated"], effects["url"]) == (True, "https://shop.example/a/b?x=1")


def test_a_link_within_the_page_needs_no_request_and_keeps_what_was_typed():
    agent = Agent({"/": "<a href='#end'>End</a><input name=a><p id=end>x"})
    agent.act("type", "input", value="1")
    effects = agent.click("a")["effects"]
    assert (effects["navigated"], effects["url"], len(agent.web.asked)) == (True, "https://shop.example/#end", 1)
    assert agent.elements("text_input")[0]["attrs"]["value"] == "1"


def test_a_link_that_leads_nowhere_is_no_failure_of_the_click_but_is_told():
    agent = Agent({"/": '<a href="/x">X</a>', "/x": page("", 500)})
    effects = agent.click("a")["effects"]
    assert (effects["navigated"], effects["som_changed"]) == (False, False)
    assert effects["error"]["code"] == "NAVIGATION_FAILED"


@pytest.mark.parametrize("href", ["https://evil.example/", "javascript:void(0)", "mailto:a@b.example", "tel:1"])
def test_a_link_to_elsewhere_is_refused(href):
    agent = Agent({"/": f'<a href="{href}">X</a>'})
    with pytest.raises(AwpError) as refused:
        agent.click("a")
    assert refused.value.code == "PERMISSION_DENIED"
    assert details_of(refused)["url"].startswith(href)


@pytest.mark.parametrize("options", [{"submit": True}])
def test_typing_can_press_enter(options):
    html = "<form action=/s><input name=q><button name=b value=1>Go</button><button name=c>Other</button></form>"
    agent = Agent({"/": html, "/s": "<p>x"})
    agent.act("type", "input", value="books", options=options)
    assert agent.web.last.path == "/s?q=books&b=1"
    assert agent.session.tab().history.entries[0].overlay


def test_enter_in_a_form_without_a_button_submits_it_and_with_a_disabled_one_does_not():
    agent = Agent({"/": "<form action=/s><input name=q></form>", "/s": "<p>x"})
    agent.act("type", "input", value="books", options={"submit": True})
    assert agent.web.last.path == "/s?q=books"
    agent = Agent({"/": "<form action=/s><input name=q><button disabled>Go</button></form>"})
    with pytest.raises(AwpError, match="disabled"):
        agent.act("type", "input", value="books", options={"submit": True})


@pytest.mark.parametrize(
    "target", [{"css": "[name=q]"}, {"css": "button"}, {"role": "form", "text": "find"}, {"query": {"role": "form"}}]
)
def test_a_form_can_be_submitted_by_what_is_in_it(target):
    html = (
        "<main><form aria-label='Find books' action=/s><input name=q value=1><button name=b>Go</button></form></main>"
    )
    agent = Agent({"/": html, "/s": "<p>x"})
    agent.act("submit_form", target)
    assert agent.web.last.path == "/s?q=1&b="


def test_a_form_is_filled_at_once_by_names_labels_and_ids(agent):
    amount = next(e["id"] for e in agent.elements("text_input") if e["label"] == "Amount")
    fields = {"Name": "Ada", amount: 3, "size": "Large", "tags": ["red", "blue"], "pay": "card", "ok": True}
    result = agent.act("semantic.fill_form", {"css": "#name"}, fields=fields, options={"submit": True})
    assert result["effects"]["navigated"] is True
    assert agent.web.last.body.decode() == changed(
        "name=Ada", "amount=3", "size=l", "tags=red&tags=blue", "pay=card&ok=on"
    )


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": "Ada", "nobody": "x"}, "NOT_FOUND"),
        ({"name": "Ada", "size": "medium"}, "INVALID_REQUEST"),
        ({"name": "Ada", "ok": "yes"}, "INVALID_REQUEST"),
        ({"name": "Ada", "off": "x"}, "CONFLICT"),
        ("Ada", "INVALID_REQUEST"),
        (None, "INVALID_REQUEST"),
    ],
)
def test_a_form_is_filled_as_a_whole_or_not_at_all(agent, fields, code):
    with pytest.raises(AwpError) as refused:
        agent.act("fill_form", {"css": "#name"}, fields=fields)
    assert refused.value.code == code
    assert sent_by(agent) == UNTOUCHED


def test_scrolling_keeps_a_position(agent):
    positions = [
        agent.act("scroll", value="down"),
        agent.act("scroll", {"css": "h1"}, direction="down", amount=2),
        agent.act("primitive.scroll", value="up"),
        agent.act("scroll", value="top"),
        agent.act("scroll", value="up"),
    ]
    assert [answer["effects"]["scroll_y"] for answer in positions] == [300, 900, 600, 0, 0]
    assert [answer["effects"]["som_changed"] for answer in positions] == [False] * 5
    assert positions[0]["resolved"] is None
    assert positions[1]["resolved"]["role"] == "heading"
    assert agent.act("scroll", value="bottom")["effects"]["scroll_y"] > 900


@pytest.mark.parametrize("intent", [{"value": "sideways"}, {"value": 3}, {"amount": "much"}, {"amount": True}])
def test_a_scroll_into_nowhere_is_refused(agent, intent):
    with pytest.raises(AwpError, match="INVALID_REQUEST"):
        agent.act("scroll", **intent)


@pytest.mark.parametrize(
    ("params", "code", "said"),
    [
        ({}, "INVALID_REQUEST", "Missing required param: intent$"),
        ({"intent": "click"}, "INVALID_REQUEST", "intent must be an object"),
        ({"intent": {}}, "INVALID_REQUEST", "Missing required param: intent.target"),
        ({"intent": {"action": "fly", "target": {"css": "#nothing"}}}, "NOT_FOUND", "Target element not found"),
        ({"intent": {"action": "fly", "target": {"css": "h1"}}}, "INVALID_REQUEST", "Unknown action: fly"),
        ({"intent": {"target": {"css": "h1"}}}, "INVALID_REQUEST", "Unknown action: $"),
        ({"page_id": "p_9", "intent": {}}, "NOT_FOUND", "Page not found: p_9"),
    ],
)
def test_intents_are_checked_in_the_order_of_the_reference(agent, params, code, said):
    with pytest.raises(AwpError) as refused:
        agent.call("page.act", **params)
    assert refused.value.code == code
    with pytest.raises(AwpError, match=said):
        agent.call("page.act", **params)


def test_only_so_many_controls_of_a_page_can_be_changed():
    html = "<form>" + "".join(f"<input type=checkbox id=c{n}>" for n in range(5)) + "</form>"
    agent = Agent({"/": html}, limits={"changed_controls": 3})
    for number in range(3):
        agent.act("toggle", f"#c{number}")
    with pytest.raises(AwpError, match="More than 3 controls"):
        agent.act("toggle", "#c3")


@pytest.mark.parametrize(
    ("href", "path"),
    [("", "/"), (" /x ", "/x"), ("?a=1", "/?a=1")],
)
def test_an_address_is_taken_without_the_blanks_around_it(href, path):
    agent = Agent({"/": f"<a href='{href}'>X</a>", "/x": "<p>x"})
    agent.click("a")
    assert agent.web.last.path == path


@pytest.mark.parametrize("base", ["javascript:x", "https://["])
def test_a_base_that_is_no_address_is_as_if_it_were_not_there(base):
    agent = Agent({"/": f"<base href='{base}'><a href=x>X</a>", "/x": "<p>x"})
    assert agent.click("a")["effects"]["url"] == "https://shop.example/x"


def test_a_reset_button_without_a_form_does_nothing():
    agent = Agent({"/": "<main><input id=a aria-label=A><button type=reset>R</button></main>"})
    agent.act("type", "#a", value="1")
    assert agent.click("button")["effects"]["som_changed"] is False


@pytest.mark.parametrize("fields", [{}, {f"f{n}": "x" for n in range(101)}])
def test_a_form_is_filled_with_some_fields_and_not_with_endless_ones(agent, fields):
    with pytest.raises(AwpError, match="INVALID_REQUEST"):
        agent.act("fill_form", {"css": "#name"}, fields=fields)
