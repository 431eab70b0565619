"""Cookies are kept and sent as RFC 6265 says."""

import pytest

from awp_publish.browsing.addresses import Origins, parse_address
from awp_publish.browsing.cookies import CookieJar, parse_cookie_date, parse_set_cookie
from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, headers_of, page, redirect

NOW = 1_800_000_000.0
SHOP = parse_address("https://www.shop.example/books/list")


def sent(set_cookies: list[str], to: str, by: str = str(SHOP), now: float = NOW) -> str:
    jar = CookieJar(180, 4096)
    jar.store_from([("Set-Cookie", text) for text in set_cookies], parse_address(by), NOW)
    return jar.header_for(parse_address(to), now)


@pytest.mark.parametrize(
    ("set_cookie", "to", "header"),
    [
        ("a=1", "https://www.shop.example/books/x", "a=1"),
        ("a=1", "https://www.shop.example/", ""),
        ("a=1; Path=/", "https://www.shop.example/", "a=1"),
        ("a=1; Path=/bo", "https://www.shop.example/books/x", ""),
        ("a=1; Path=/books/", "https://www.shop.example/books/x", "a=1"),
        ("a=1; Path=books", "https://www.shop.example/books/x", "a=1"),
        ("a=1; path=/", "https://shop.example/", ""),
        ("a=1; Path=/; Domain=shop.example", "https://shop.example/", "a=1"),
        ("a=1; Path=/; Domain=.Shop.Example", "https://m.shop.example/", "a=1"),
        ("a=1; Path=/; Domain=example", "https://www.shop.example/", ""),
        ("a=1; Path=/; Domain=other.example", "https://www.shop.example/", ""),
        ("a=1; Path=/; Secure", "http://www.shop.example/", ""),
        ("a=1; Path=/; Secure", "https://www.shop.example/", "a=1"),
        ("a=1; Path=/; Max-Age=0", "https://www.shop.example/", ""),
        ("a=1; Path=/; Max-Age=-5", "https://www.shop.example/", ""),
        ("a=1; Path=/; Max-Age=x; Expires=Wed, 09 Jun 2021 10:18:14 GMT", "https://www.shop.example/", ""),
        ("a=1; Path=/; Max-Age=60; Expires=Wed, 09 Jun 2021 10:18:14 GMT", "https://www.shop.example/", "a=1"),
        ("a=1; Path=/; Expires=nonsense", "https://www.shop.example/", "a=1"),
        ('a="1 2"; Path=/; HttpOnly; SameSite=Strict', "https://www.shop.example/", 'a="1 2"'),
        ("alone; Path=/", "https://www.shop.example/", "alone"),
        ("=; Path=/", "https://www.shop.example/", ""),
        ("a=b=c; Path=/", "https://www.shop.example/", "a=b=c"),
        ("a=1\x00; Path=/", "https://www.shop.example/", ""),
        ("__Host-a=1; Path=/; Secure", "https://www.shop.example/", "__Host-a=1"),
        ("__Host-a=1; Path=/; Secure; Domain=shop.example", "https://www.shop.example/", ""),
        ("__Host-a=1; Secure; Path=/books", "https://www.shop.example/books/", ""),
        ("__Secure-a=1; Path=/", "https://www.shop.example/", ""),
        ("=__Secure-a; Path=/; Secure", "https://www.shop.example/", ""),
        ("__host-a; Path=/; Secure", "https://www.shop.example/", ""),
    ],
)
def test_a_cookie_goes_where_it_may(set_cookie, to, header):
    assert sent([set_cookie], to) == header


def test_a_promise_of_the_whole_host_says_its_path():
    assert sent(["__Host-a=1; Secure"], "https://www.shop.example/", by="https://www.shop.example/") == ""
    assert sent(["a=1; Secure"], "https://www.shop.example/", by="https://www.shop.example/") == "a=1"


def test_longer_paths_come_first_then_older_cookies():
    cookies = ["a=1; Path=/", "b=2; Path=/", "a=3; Path=/books", "b=4; Path=/"]
    assert sent(cookies, "https://www.shop.example/books/x") == "a=3; a=1; b=4"


def test_a_cookie_ends_when_its_time_is_over():
    cookie = ["a=1; Path=/; Max-Age=60"]
    assert sent(cookie, "https://www.shop.example/", now=NOW + 59) == "a=1"
    assert sent(cookie, "https://www.shop.example/", now=NOW + 60) == ""


def test_secure_cookies_are_kept_on_the_machine_itself_and_not_over_plain_http():
    assert sent(["a=1; Path=/; Secure"], "http://localhost:8000/", "http://localhost:8000/") == "a=1"
    assert sent(["a=1; Path=/; Secure"], "https://www.shop.example/", "http://www.shop.example/") == ""


def test_an_address_in_numbers_has_no_parent_domain():
    assert parse_set_cookie("a=1; Domain=0.0.1", parse_address("http://127.0.0.1/"), NOW) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784111777),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784111777),
        ("Sun Nov  6 08:49:37 1994", 784111777),
        ("06 november 1994 8:49:37", 784111777),
        ("1 Jan 69 00:00:00", 3124224000),
        ("31 Feb 2020 00:00:00", None),
        ("06 Nov 1994", None),
        ("25:00:00 06 Nov 1994", None),
        ("", None),
    ],
)
def test_dates_are_read_by_the_algorithm_of_the_rfc(text, seconds):
    assert parse_cookie_date(text) == seconds


def test_the_jar_is_bounded():
    jar = CookieJar(3, 20)
    for number in range(10):
        jar.store_from([("set-cookie", f"n{number}=1; Path=/")], SHOP, NOW)
    jar.store_from([("set-cookie", "big=" + "x" * 30)], SHOP, NOW)
    assert [cookie.name for cookie in jar] == ["n7", "n8", "n9"]


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
