"""Forms send what the HTML standard says, case by case, worked out by hand."""

import pytest

from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, headers_of

DONE = "<title>Done</title><p>Done"


def press(html: str, target: str = "#go", **options) -> Agent:
    agent = Agent({"/": html, "/s": DONE, "/t": DONE}, **options)
    agent.click(target)
    return agent


def test_servers_read_the_multipart_form():
    from tests.client import TestClient

    async def app(scope, receive, send):
        from starlette.requests import Request
        from starlette.responses import JSONResponse

        async with Request(scope, receive).form() as form:
            said = [[name, value if isinstance(value, str) else value.filename] for name, value in form.multi_items()]
        await JSONResponse(said)(scope, receive, send)

    html = (
        '<form method=post action="/s" enctype="multipart/form-data"><input name=a value="\u20ac">'
        "<input name=a value=2>"
        "<textarea name=t>x\ny</textarea><button id=go>Go</button></form>"
    )
    last = press(html).web.last
    answer = TestClient(app).post("/s", content=last.body, headers={"content-type": headers_of(last)["content-type"]})
    assert answer.json() == [["a", "\u20ac"], ["a", "2"], ["t", "x\r\ny"]]


def test_a_page_in_another_encoding_sends_its_forms_in_it():
    controls = "<input name=a value=1><input type=hidden name=_charset_><button id=go>Go</button>"
    html = f'<meta charset=windows-1252><form method=post action="/s">{controls}</form>'
    agent = Agent({"/": html, "/s": DONE}, start=None)
    agent.web.pages = {**agent.web.pages, "/": _untyped(agent.web.pages["/"])}
    agent.navigate("/")
    agent.act("type", "[name=a]", value="\u00fc")
    agent.click("#go")
    assert agent.web.last.body == b"a=%FC&_charset_=windows-1252"


def _untyped(html):
    from awp_publish.browsing.page import Fetched

    return Fetched(200, (("content-type", "text/html"),), html.encode())


def test_a_form_that_fails_is_an_error_and_not_a_click_without_effect():
    from awp_publish.browsing.page import Fetched

    failing = Fetched(500, (("content-type", "application/json"),), b"{}")
    agent = Agent({"/": '<form action="/s"><button id=go>Go</button></form>', "/s": failing})
    with pytest.raises(AwpError, match="NAVIGATION_FAILED"):
        agent.click("#go")


def test_a_reset_button_gives_the_form_its_first_values_back_and_no_other():
    html = (
        '<form action="/s"><input name=a value=1><input type=checkbox name=c checked><button type=reset>R</button>'
        "<button id=go>Go</button></form><input id=other>"
    )
    agent = Agent({"/": html, "/s": DONE})
    agent.act("type", "[name=a]", value="2")
    agent.act("toggle", "[name=c]")
    agent.act("type", "#other", value="3")
    agent.click("[type=reset]")
    assert [e.get("attrs", {}).get("value") for e in agent.elements("text_input")] == ["1", "3"]
    agent.click("#go")
    assert agent.web.last.path == "/s?a=1&c=on"
