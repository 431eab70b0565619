"""Cookies are kept and sent as RFC 6265 says."""

import pytest

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, headers_of, page, redirect


def test_cookies_of_redirects_are_kept_and_sent_on():
    pages = {"/": "<p>x", "/login": redirect("/me", 302, ("Set-Cookie", "sid=1; Path=/; HttpOnly")), "/me": "<p>Me"}
    agent = Agent(pages, start="/login")
    assert agent.url == "https://shop.example/me"
    assert headers_of(agent.web.last)["cookie"] == "sid=1"


def test_agents_read_set_and_clear_cookies():
    agent = Agent({"/": page("<p>x", 200, ("set-cookie", "a=1; Path=/; Max-Age=60"), ("set-cookie", "b=2; Path=/x"))})
    assert agent.cookies == {"a": "1", "b": "2"}
    assert agent.call("session.cookies.get", url="/")["count"] == 1
    assert agent.call("session.cookies.set", cookies=[{"name": "c", "value": "3", "httpOnly": True}]) == {"set": 1}
    cookie = agent.call("session.cookies.get", name="c")["cookies"][0]
    assert cookie["http_only"] is True
    assert (cookie["domain"], cookie["path"], cookie["host_only"]) == ("shop.example", "/", True)
    agent.navigate("/")
    assert headers_of(agent.web.last)["cookie"] == "a=1; c=3"
    assert agent.call("session.cookies.clear", name="a") == {"cleared": 1}
    assert agent.call("session.cookies.clear") == {"cleared": 2}
    assert agent.cookies == {}


@pytest.mark.parametrize(
    "cookie",
    [
        {"value": "1"},
        {"name": "a"},
        {"name": "a;b", "value": "1"},
        {"name": "a", "value": "1\r\nx: y"},
        {"name": "a", "value": "\u20ac"},
        {"name": "a", "value": "1", "domain": "evil.example"},
        {"name": "a", "value": "1", "path": "x"},
        {"name": "a", "value": "1", "secure": "yes"},
        {"name": "a", "value": "1", "expires": "tomorrow"},
        {"name": "a", "value": "1", "same_site": "Maybe"},
        {"name": "a", "value": "x" * 5000},
    ],
)
def test_a_cookie_that_no_browser_would_keep_is_refused_and_none_of_its_list_is_set(cookie):
    agent = Agent()
    with pytest.raises(AwpError) as refused:
        agent.call("session.cookies.set", cookies=[{"name": "good", "value": "1"}, cookie])
    assert refused.value.code == "INVALID_REQUEST"
    assert agent.cookies == {}


@pytest.mark.parametrize("cookies", [None, {}, ["a=1"], "a=1"])
def test_cookies_are_set_as_an_array_of_objects(cookies):
    with pytest.raises(AwpError, match="'cookies' array"):
        Agent().call("session.cookies.set", cookies=cookies)


def test_a_cookie_of_a_whole_domain_reaches_every_host_of_the_site():
    origins = Origins.of("https://shop.example", "https://www.shop.example")
    agent = Agent({"/": "<p>x"}, start=None, origins=origins)
    agent.call("session.cookies.set", cookies=[{"name": "a", "value": "1", "domain": ".shop.example"}])
    agent.navigate("https://www.shop.example/")
    assert headers_of(agent.web.last)["cookie"] == "a=1"
