"""Pages are loaded as browsers load them: redirects, refreshes, kinds of content, headers."""

import gzip

import pytest

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import Fetched
from tests.browsing.driving import HOME, Agent, details_of, headers_of, page, redirect

HELLO = "<title>Hello</title><main><h1>Hello</h1></main>"
SEND = '<form method=post action="/send"><input name=a value=1><button>Send</button></form>'


def answer(body: bytes, content_type: str | None = None, status: int = 200, *headers: tuple[str, str]) -> Fetched:
    said = () if content_type is None else (("content-type", content_type),)
    return Fetched(status, (*said, *headers), body)


def test_a_navigation_answers_all_that_the_descriptions_name():
    agent = Agent({"/": HELLO}, start=None)
    result = agent.navigate("/")
    assert result == {
        "url": "https://shop.example/",
        "status": 200,
        "content_type": "text/html; charset=utf-8",
        "title": "Hello",
        "html_bytes": len(HELLO),
        "som_bytes": agent.som()["meta"]["som_bytes"],
        "som_ready": True,
        "load_ms": 0,
        "fetch_ms": 0,
        "pipeline_ms": 0,
        "page_id": "p_1",
        "cursor": 1,
        "redirects": [],
    }


def test_a_request_has_the_headers_of_a_browser():
    agent = Agent({"/": '<a href="/b">B</a>', "/b": SEND, "/send": HELLO}, user_agent="Finder/1", locale="de-AT")
    assert agent.web.last.headers == (
        ("host", "shop.example"),
        ("user-agent", "Finder/1"),
        ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("accept-language", "de-AT,de;q=0.9"),
        ("sec-fetch-dest", "document"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-site", "none"),
        ("sec-fetch-user", "?1"),
    )
    agent.click("a")
    said = headers_of(agent.web.last)
    assert (said["referer"], said["sec-fetch-site"]) == ("https://shop.example/", "same-origin")
    assert "origin" not in said
    agent.click("button")
    said = headers_of(agent.web.last)
    assert (said["referer"], said["origin"]) == ("https://shop.example/b", HOME)
    assert said["content-type"] == "application/x-www-form-urlencoded"


def test_between_the_origins_of_a_site_only_the_origin_is_told_and_never_from_https_to_http():
    origins = Origins.of("https://shop.example", "https://m.shop.example", "http://old.shop.example")
    links = '<a id=m href="https://m.shop.example/">M</a><a id=old href="http://old.shop.example/">Old</a>'
    agent = Agent({"/": links}, origins=origins)
    agent.click("#old")
    assert "referer" not in headers_of(agent.web.last)
    agent.navigate(HOME)
    agent.click("#m")
    assert headers_of(agent.web.last)["referer"] == "https://shop.example/"
    assert agent.web.last.origin == "https://m.shop.example"


@pytest.mark.parametrize(
    "options", [{"user_agent": "a\r\nb: c"}, {"user_agent": ""}, {"locale": "en us"}, {"locale": ""}]
)
def test_a_session_that_no_header_could_carry_is_refused(options):
    with pytest.raises(AwpError, match="INVALID_REQUEST"):
        Agent(**options)


@pytest.mark.parametrize(
    ("status", "method", "after"),
    [(301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST"), (308, "POST", "POST"),
     (301, "GET", "GET"), (303, "GET", "GET"), (307, "GET", "GET")],
)  # fmt: skip
def test_a_redirect_keeps_or_changes_the_method(status, method, after):
    form = SEND.replace("post", method)
    agent = Agent({"/": form, "/send": redirect("end#place", status), "/end": HELLO})
    effects = agent.click("button")["effects"]
    assert agent.web.last.method == after
    assert agent.web.last.body == (b"a=1" if after == "POST" else b"")
    assert ("content-type" in headers_of(agent.web.last)) is (after == "POST")
    assert effects["url"] == "https://shop.example/end#place"


def test_the_fragment_of_a_link_survives_a_redirect_that_has_none():
    agent = Agent({"/": '<a href="/a#x">A</a>', "/a": redirect("/b"), "/b": HELLO})
    assert agent.click("a")["effects"]["url"] == "https://shop.example/b#x"


def test_redirects_are_followed_ten_times():
    pages = {f"/{n}": redirect(f"/{n + 1}") for n in range(12)} | {"/12": HELLO}
    assert len(Agent(pages, start="/2").navigate("/2")["redirects"]) == 10
    with pytest.raises(AwpError, match="More than 10 redirects") as failed:
        Agent(pages, start="/1")
    assert failed.value.code == "NAVIGATION_FAILED"


@pytest.mark.parametrize("location", ["https://evil.example/x", "javascript:alert(1)", "https://[", "//evil.example"])
def test_a_redirect_to_somewhere_else_fails_naming_where(location):
    agent = Agent({"/": HELLO, "/out": redirect(location)})
    with pytest.raises(AwpError) as failed:
        agent.navigate("/out")
    assert failed.value.code == "NAVIGATION_FAILED"
    assert location.split(":")[-1] in details_of(failed)["location"]
    assert agent.url == "https://shop.example/"


def test_a_redirect_may_be_written_in_utf8():
    bytes_of_utf8 = "/caf\u00e9".encode().decode("latin-1")
    agent = Agent({"/": HELLO, "/a": redirect(bytes_of_utf8), "/b": redirect("/caf\u00e9"), "/caf%C3%A9": HELLO})
    assert [agent.navigate(url)["url"] for url in ("/a", "/b")] == ["https://shop.example/caf%C3%A9"] * 2


def test_a_compressed_answer_is_not_taken_for_a_page():
    agent = Agent({"/": answer(gzip.compress(b"<h1>x"), "text/html", 200, ("Content-Encoding", "gzip"))}, start=None)
    with pytest.raises(AwpError, match="compressed") as refused:
        agent.navigate("/")
    assert refused.value.code == "NAVIGATION_FAILED"
    identity = answer(b"<h1>x", "text/html", 200, ("Content-Encoding", "identity"))
    assert Agent({"/": identity}).som()["regions"]


@pytest.mark.parametrize("status", [304, 302, 300])
def test_a_redirect_without_a_place_is_no_page(status):
    with pytest.raises(AwpError, match="without a page"):
        Agent({"/": answer(b"", None, status)})


@pytest.mark.parametrize(
    "head",
    [
        '<meta http-equiv="Refresh" content="0; url=/b">',
        "<meta http-equiv=refresh content=\"0;URL='/b'\">",
        '<meta http-equiv=refresh content="0,/b">',
        '<meta http-equiv=refresh content="0.9 /b">',
    ],
)
def test_a_refresh_without_delay_is_followed(head):
    agent = Agent({"/": f"<head>{head}</head><p>Wait", "/b": HELLO})
    assert agent.url == "https://shop.example/b"
    assert headers_of(agent.web.last)["referer"] == "https://shop.example/"


@pytest.mark.parametrize(
    "head",
    [
        '<meta http-equiv=refresh content="5; url=/b">',
        '<meta http-equiv=refresh content="0">',
        '<meta http-equiv=refresh content="0; url=/">',
        '<meta name=refresh content="0; url=/b">',
        "<title>refresh</title>",
    ],
)
def test_other_refreshes_leave_the_page_where_it_is(head):
    assert Agent({"/": f"<head>{head}</head><p>Wait", "/b": HELLO}).url == "https://shop.example/"


def test_a_refresh_in_a_header_is_followed_and_counts_as_a_redirect():
    agent = Agent({"/": page("<p>Wait", 200, ("Refresh", "0; url=/b")), "/b": HELLO}, start=None)
    assert agent.navigate("/")["redirects"] == ["https://shop.example/b"]
    loop = {"/": page("<p>x", 200, ("refresh", "0;/b")), "/b": page("<p>x", 200, ("refresh", "0;/"))}
    with pytest.raises(AwpError, match="redirects"):
        Agent(loop)


def test_an_error_page_is_a_page():
    agent = Agent({"/": HELLO})
    result = agent.navigate("/nowhere")
    assert (result["status"], result["title"], result["som_ready"]) == (404, "Not found", True)


@pytest.mark.parametrize(
    "failed",
    [
        answer(b'{"detail": "gone"}', "application/json", 410),
        answer(b"", "text/html", 500),
        answer(b"oops", "text/plain", 500),
        answer(b"\x89PNG", "image/png"),
        answer(b"%PDF", "application/pdf"),
        answer(b"<p>x", "text/html", 200, ("Content-Disposition", 'attachment; filename="x.html"')),
        answer(b"x" * 2_000, "text/html"),
    ],
)
def test_an_answer_that_is_not_a_page_fails_and_the_previous_page_stays(failed):
    agent = Agent({"/": HELLO, "/x": failed}, limits={"page_bytes": 1_000})
    with pytest.raises(AwpError) as raised:
        agent.navigate("/x")
    assert raised.value.code == "NAVIGATION_FAILED"
    assert details_of(raised)["status"] == failed.status
    assert details_of(raised)["url"] == "https://shop.example/x"
    assert agent.url == "https://shop.example/"
    assert agent.som()["title"] == "Hello"


def test_the_sites_words_about_an_error_are_passed_on():
    with pytest.raises(AwpError) as raised:
        Agent({"/": answer(b'{"detail": "gone"}', "application/json", 410)})
    assert details_of(raised)["body"] == '{"detail": "gone"}'


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b'{"a": "<b>"}', "application/json", '{"a": "<b>"}'),
        (b"line", "text/plain", "line"),
        ("gr\u00fcn".encode("latin-1"), "text/plain; charset=iso-8859-1", "gr\u00fcn"),
        (b"plain", None, "plain"),
        (b"odd", "text/plain; charset=nonsense", "odd"),
    ],
)
def test_text_is_shown_as_one_paragraph(body, content_type, text):
    agent = Agent({"/": answer(body, content_type)}, start=None)
    result = agent.navigate("/")
    assert result["html_bytes"] == len(body)
    assert [element["text"] for element in agent.elements()] == [text]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b" <!DOCTYPE html><h1>Hello", None), (b"<h1>Hello", "TEXT/HTML"), (b"<h1>Hello</h1>", "application/xhtml+xml")],
)
def test_html_is_known_by_its_type_or_its_beginning(body, content_type):
    assert Agent({"/": answer(body, content_type)}).elements("heading")[0]["text"] == "Hello"


def test_the_charset_of_the_answer_is_used():
    agent = Agent({"/": answer("<h1>Gr\u00fcn</h1>".encode("latin-1"), 'text/html; charset="ISO-8859-1"')})
    assert agent.elements("heading")[0]["text"] == "Gr\u00fcn"


@pytest.mark.parametrize("status", [204, 205])
def test_an_answer_without_content_leaves_the_page_as_it_is(status):
    agent = Agent({"/": HELLO + '<a href="/done">Done</a>', "/done": answer(b"", None, status)})
    effects = agent.click("a")["effects"]
    assert (effects["navigated"], effects["status"], effects["url"]) == (False, status, "https://shop.example/")
    assert agent.navigate("/done")["som_ready"] is False
    assert agent.som()["title"] == "Hello"


@pytest.mark.parametrize("base", ["/books/", "https://shop.example/books/x"])
def test_links_are_relative_to_the_base_of_the_page(base):
    agent = Agent({"/": f'<head><base target=_top><base href="{base}"></head><a href=42>B</a>', "/books/42": HELLO})
    assert agent.click("a")["effects"]["url"] == "https://shop.example/books/42"


def test_an_empty_link_leads_to_the_base_of_the_page():
    agent = Agent({"/": "<head><base href=/books/></head><a href=''>B</a>", "/books/": HELLO})
    assert agent.click("a")["effects"]["url"] == "https://shop.example/books/"


def test_times_are_measured_with_the_clock_that_is_given():
    agent = Agent({}, start=None)

    def slow(_):
        agent.clock.now += 1.25
        return HELLO

    agent.web.pages = {"/": slow}
    result = agent.navigate("/")
    assert (result["fetch_ms"], result["load_ms"], result["pipeline_ms"]) == (1250, 1250, 0)


def test_a_navigation_that_is_given_up_changes_nothing():
    agent = Agent({"/": HELLO, "/b": "<p>B"})
    steps = agent.session.tab().navigate("/b")
    next(steps)
    with pytest.raises(AwpError, match="busy") as refused:
        agent.navigate("/b")
    assert refused.value.code == "CONFLICT"
    steps.close()
    assert (agent.url, agent.som()["title"]) == ("https://shop.example/", "Hello")
    assert agent.navigate("/b")["status"] == 200


def test_a_request_of_a_script_looks_like_one():
    agent = Agent({"/": "<p>Home", "/data": "12345"})
    agent.web.drive(agent.session.tab().fetch("/data", 10))
    sent = headers_of(agent.web.last)
    assert {name: sent.get(name) for name in ("accept", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-user")} == {
        "accept": "*/*",
        "sec-fetch-dest": "empty",
        "sec-fetch-mode": "cors",
        "sec-fetch-user": None,
    }


def test_an_answer_that_is_not_a_page_is_reported_with_its_type():
    image = Fetched(200, (("Content-Type", "image/png"),), b"\x89PNG")
    agent = Agent({"/": "<p>Home", "/a.png": image})
    with pytest.raises(AwpError) as refused:
        agent.navigate("/a.png")
    assert details_of(refused) == {"url": "https://shop.example/a.png", "status": 200, "content_type": "image/png"}
