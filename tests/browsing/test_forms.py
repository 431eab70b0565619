"""Forms send what the HTML standard says, case by case, worked out by hand."""

import pytest

from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, headers_of

DONE = "<title>Done</title><p>Done"


def press(html: str, target: str = "#go", **options) -> Agent:
    agent = Agent({"/": html, "/s": DONE, "/t": DONE}, **options)
    agent.click(target)
    return agent


def query_of(controls: str, target: str = "#go") -> str:
    """What a GET form with these controls sends."""
    agent = press(f'<form action="/s">{controls}<button id=go>Go</button></form>', target)
    path, _, query = agent.web.last.path.partition("?")
    assert path == "/s"
    return query


@pytest.mark.parametrize(
    ("controls", "query"),
    [
        ("<input name=a value=1><input name=b value=2>", "a=1&b=2"),
        ("<input type=datetime-local name=a value='2026-04-01 10:00:00.000'>", "a=2026-04-01T10%3A00"),
        ("<input type=datetime-local name=a value='2026-04-01T10:00:30.500'>", "a=2026-04-01T10%3A00%3A30.5"),
        ("<input type=datetime-local name=a value='2026-04-01T10:00:00.25'>", "a=2026-04-01T10%3A00%3A00.25"),
        ("<input type=range name=a min=0 max=1 step=0.0000001 value=0.00000012>", "a=1e-7"),
        ("<input name=b value=1><input name=a value=2><input name=b value=3>", "b=1&a=2&b=3"),
        ("<input value=1><input name='' value=2>", ""),
        ("<input name=a>", "a="),
        ("<input name=a type=unknown value=1>", "a=1"),
        ("<input name=a value=1 disabled><input name=b value=2 readonly>", "b=2"),
        ("<input type=hidden name=a value=1>", "a=1"),
        ("<input type=hidden name=_charset_ value=x>", "_charset_=UTF-8"),
        ("<input type=hidden name=_ChArSeT_>", "_ChArSeT_=UTF-8"),
        ("<input name=_charset_ value=x>", "_charset_=x"),
        ("<input type=hidden name=a value='1\n2'>", "a=1%0D%0A2"),
        ("<input name=a value='1\n2'>", "a=12"),
        ("<input type=email name=a value=' x@y.z '>", "a=x%40y.z"),
        ("<input type=email multiple name=a value=' x@y.z , b@c.d'>", "a=x%40y.z%2Cb%40c.d"),
        ("<input type=url name=a value=' https://x.y '>", "a=https%3A%2F%2Fx.y"),
        ("<input type=number name=a value=abc><input type=number name=b value=1e2>", "a=&b=1e2"),
        ("<input type=range name=a><input type=range name=b min=10 max=20 value=99>", "a=50&b=20"),
        ("<input type=range name=a min=10 max=5>", "a=10"),
        ("<input type=color name=a><input type=color name=b value=#ABCDEF>", "a=%23000000&b=%23abcdef"),
        ("<input type=date name=a value=2026-02-30><input type=date name=b value=2026-02-28>", "a=&b=2026-02-28"),
        ("<input type=datetime-local name=a value='2026-02-28 10:00'>", "a=2026-02-28T10%3A00"),
        ("<input type=week name=a value=2026-W54><input type=month name=b value=2026-12>", "a=&b=2026-12"),
        ("<input type=checkbox name=a><input type=checkbox name=b checked>", "b=on"),
        ("<input type=checkbox name=a value=1 checked><input type=checkbox name=a value=2 checked>", "a=1&a=2"),
        ("<input type=radio name=a value=1 checked><input type=radio name=a value=2 checked>", "a=2"),
        ("<input type=radio name=a value=1><input type=radio name=a value=2>", ""),
        ("<input type=radio checked><input type=radio name=a checked>", "a=on"),
        ("<input type=file name=a>", "a="),
        ("<input type=submit name=a value=1><input type=reset name=b value=2><button name=c value=3>C</button>", ""),
        ("<input type=image name=a>", ""),
        ("<textarea name=a>\none\ntwo\r\nthree</textarea>", "a=one%0D%0Atwo%0D%0Athree"),
        ("<textarea name=a> x </textarea>", "a=+x+"),
        ("<select name=a><option>One<option value=2>Two</select>", "a=One"),
        ("<select name=a><option> One \n more </select>", "a=One+more"),
        ("<select name=a><option disabled>One<option>Two</select>", "a=Two"),
        ("<select name=a><option>1<option selected>2<option selected>3</select>", "a=3"),
        ("<select name=a size=3><option>1<option>2</select>", ""),
        ("<select name=a multiple><option>1<option selected>2<option selected>3</select>", "a=2&a=3"),
        ("<select name=a multiple><option selected disabled>1<option selected>2</select>", "a=2"),
        ("<select name=a><optgroup disabled><option>1</optgroup><optgroup><option>2</optgroup></select>", "a=2"),
        ("<select name=a></select>", ""),
        ("<select name=a><option label=L>T</select>", "a=T"),
        ("<fieldset disabled><input name=a value=1></fieldset><input name=b value=2>", "b=2"),
        ("<fieldset disabled><legend><input name=a value=1></legend><legend><input name=b></legend></fieldset>", "a=1"),
        ("<fieldset disabled><fieldset><legend><input name=a></legend></fieldset></fieldset>", ""),
        ("<fieldset disabled><legend><fieldset disabled><input name=a></fieldset></legend></fieldset>", ""),
        ("<datalist><input name=a value=1></datalist><input name=b value=2>", "b=2"),
        ("<object name=a></object><output name=b>1</output><input name=c value=2>", "c=2"),
        ("<input name=a value=x dirname=a.dir>", "a=x&a.dir=ltr"),
        ("<div dir=rtl><input name=a value=x dirname=d></div>", "a=x&d=rtl"),
        ("<input name=a value='1 \u05d0' dir=auto dirname=d>", "a=1+%D7%90&d=rtl"),
        ("<input name=a value=x dirname=''>", "a=x"),
        ("<div dir=rtl><input type=tel name=a value=1 dirname=d></div>", "a=1&d=ltr"),
        ("<textarea name=a dirname=d dir=RTL>x</textarea>", "a=x&d=rtl"),
        ("<input name='\u00e4 &' value='\u20ac=+~*-._'>", "%C3%A4+%26=%E2%82%AC%3D%2B%7E*-._"),
    ],
)
def test_a_form_sends_its_entries(controls, query):
    assert query_of(controls) == query


@pytest.mark.parametrize(
    ("button", "query"),
    [
        ("<button id=b name=b value=1>B</button>", "b=1"),
        ("<button id=b name=b>B</button>", "b="),
        ("<button id=b type=nonsense name=b>B</button>", "b="),
        ("<button id=b name=b dirname=c>B</button>", "b="),
        ("<input id=b type=submit name=b dirname=c>", "b=&c=ltr"),
        ("<input id=b type=submit name=b>", "b="),
        ("<input id=b type=submit name=b value='Buy it'>", "b=Buy+it"),
        ("<input id=b type=image name=b alt=B>", "b.x=0&b.y=0"),
        ("<input id=b type=image alt=B>", "x=0&y=0"),
        ("<button id=b name=b value=1><span id=inner>Inner</span></button>", "b=1"),
    ],
)
def test_the_button_that_submits_is_sent_too_and_no_other(button, query):
    assert query_of(button, "#b") == query


def test_a_click_inside_of_a_button_presses_it():
    assert query_of("<button name=b value=1><span id=inner>Inner</span></button>", "#inner") == "b=1"


@pytest.mark.parametrize(
    ("html", "path"),
    [
        ('<form id=f action="/s"><button id=go>Go</button></form><input name=a value=1 form=f>', "/s?a=1"),
        ('<form action="/s"><input name=a form=none><button id=go>Go</button></form>', "/s?"),
        ('<form id=f action="/s"></form><form action="/t"><button id=go form=f name=b>Go</button></form>', "/s?b="),
        ('<form id=f action="/s"><form action="/t"><input name=a value=1><button id=go>Go</button></form>', "/s?a=1"),
        (
            '<table><form action="/s"><tr><td><input name=a value=1><td><button id=go>Go</button></form></table>',
            "/s?a=1",
        ),
        ('<form action="/s?old=1#part"><input name=a value=1><button id=go>Go</button></form>', "/s?a=1"),
        ('<form action="/s" method=nonsense><button id=go>Go</button></form>', "/s?"),
        ('<form action="/t"><input name=a value=1><button id=go formaction="/s">Go</button></form>', "/s?a=1"),
        ("<form><input name=a value=1><button id=go>Go</button></form>", "/?a=1"),
        ('<form action="  "><button id=go>Go</button></form>', "/?"),
        ('<base href="/x/"><form action="../s"><button id=go>Go</button></form>', "/s?"),
        ('<form action="/s" target=_blank><button id=go formtarget=x>Go</button></form>', "/s?"),
    ],
)
def test_the_form_that_owns_the_button_says_where_to(html, path):
    assert press(html).web.last.path == path


def test_the_button_may_say_method_and_type_instead_of_its_form():
    button = '<button id=go formmethod=POST formenctype="text/plain">Go</button>'
    html = f'<form action="/s"><input name=a value=1>{button}</form>'
    last = press(html).web.last
    assert (last.method, last.path, last.body) == ("POST", "/s", b"a=1\r\n")
    assert headers_of(last)["content-type"] == "text/plain"


def test_a_posted_form_is_a_body_and_keeps_the_query_of_its_action():
    last = press(
        '<form method=post action="/s?x=1"><input name=a value="\u20ac 1"><button id=go>Go</button></form>'
    ).web.last
    assert (last.method, last.path, last.body) == ("POST", "/s?x=1", b"a=%E2%82%AC+1")
    assert headers_of(last)["content-type"] == "application/x-www-form-urlencoded"


def test_a_multipart_form_has_a_part_for_every_entry():
    html = (
        '<form method=post action="/s" enctype="multipart/form-data"><input name=\'a"b\n\u00e4\' value="1 &amp; 2">'
        "<input type=file name=f><textarea name=t>x\ny</textarea><button id=go name=go value=1>Go</button></form>"
    )
    last = press(html).web.last
    boundary = headers_of(last)["content-type"].removeprefix("multipart/form-data; boundary=")
    mark = f"--{boundary}".encode()
    assert last.body == b"".join(
        [
            mark + b'\r\nContent-Disposition: form-data; name="a%22b%0D%0A\xc3\xa4"\r\n\r\n1 & 2\r\n',
            mark + b'\r\nContent-Disposition: form-data; name="f"; filename=""\r\n'
            b"Content-Type: application/octet-stream\r\n\r\n\r\n",
            mark + b'\r\nContent-Disposition: form-data; name="t"\r\n\r\nx\r\ny\r\n',
            mark + b'\r\nContent-Disposition: form-data; name="go"\r\n\r\n1\r\n',
            mark + b"--\r\n",
        ]
    )


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


@pytest.mark.parametrize(
    ("attributes", "body"),
    [
        ("accept-charset=iso-8859-1", b"a=%FC%80%26%239731%3B"),
        ('accept-charset="nonsense windows-1252"', b"a=%FC%80%26%239731%3B"),
        ("accept-charset=utf-16", b"a=%C3%BC%E2%82%AC%E2%98%83"),
        ("accept-charset=unicode_escape", b"a=%C3%BC%E2%82%AC%E2%98%83"),
    ],
)
def test_a_form_may_ask_for_another_encoding(attributes, body):
    controls = '<input name=a value="\u00fc\u20ac\u2603"><button id=go>Go</button>'
    html = f'<form method=post action="/s" {attributes}>{controls}</form>'
    assert press(html).web.last.body == body


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


@pytest.mark.parametrize(
    "html",
    [
        '<form action="/s" method=dialog><button id=go>Go</button></form>',
        "<button id=go>Go</button>",
        '<form action="/s"><button id=go type=button>Go</button></form>',
        '<form action="/s"><button id=go form=elsewhere>Go</button></form>',
    ],
)
def test_some_buttons_ask_for_nothing(html):
    agent = Agent({"/": html})
    assert agent.click("#go")["effects"]["navigated"] is False
    assert len(agent.web.asked) == 1


@pytest.mark.parametrize("action", ["https://evil.example/", "javascript:x()", "mailto:a@b.example"])
def test_a_form_to_another_site_is_refused(action):
    with pytest.raises(AwpError) as refused:
        press(f'<form action="{action}"><button id=go>Go</button></form>')
    assert refused.value.code == "PERMISSION_DENIED"


def test_a_form_that_fails_is_an_error_and_not_a_click_without_effect():
    from awp_publish.browsing.page import Fetched

    failing = Fetched(500, (("content-type", "application/json"),), b"{}")
    agent = Agent({"/": '<form action="/s"><button id=go>Go</button></form>', "/s": failing})
    with pytest.raises(AwpError, match="NAVIGATION_FAILED"):
        agent.click("#go")


def test_a_form_may_not_be_endless():
    for method in ("get", "post"):
        html = f'<form method={method} action="/s"><input name=a value="{"x" * 2000}"><button id=go>Go</button></form>'
        with pytest.raises(AwpError, match="larger than 1000"):
            press(html, limits={"form_bytes": 1000})


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
