"""Addresses are read as browsers read them, and only the site's own are opened."""

import pytest

from awp_publish.browsing.addresses import BadAddress, Origins, parse_address
from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, details_of

BASE = "https://shop.example/books/list?page=2#top"


@pytest.mark.parametrize(
    ("reference", "meant"),
    [
        ("/cart", "https://shop.example/cart"),
        ("42", "https://shop.example/books/42"),
        ("./42", "https://shop.example/books/42"),
        ("../about", "https://shop.example/about"),
        ("../../../about", "https://shop.example/about"),
        ("a/./b/../c/", "https://shop.example/books/a/c/"),
        ("..", "https://shop.example/"),
        ("%2e%2E/x", "https://shop.example/x"),
        ("?q=1", "https://shop.example/books/list?q=1"),
        ("?", "https://shop.example/books/list?"),
        ("#end", "https://shop.example/books/list?page=2#end"),
        ("", "https://shop.example/books/list?page=2"),
        ("//shop.example/x", "https://shop.example/x"),
        ("\\\\other.example\\x", "https://other.example/x"),
        ("/\\other.example", "https://other.example/"),
        ("https:/x", "https://shop.example/x"),
        ("https:x", "https://shop.example/books/x"),
        ("http:x", "http://x/"),
        ("HTTPS://SHOP.Example:443/A", "https://shop.example/A"),
        ("http://shop.example:80", "http://shop.example/"),
        ("https://shop.example:8443/", "https://shop.example:8443/"),
        (" \n/a\tb ", "https://shop.example/ab"),
        ("/caf\u00e9 \u20ac", "https://shop.example/caf%C3%A9%20%E2%82%AC"),
        ('/a"<>`{}', "https://shop.example/a%22%3C%3E%60%7B%7D"),
        ("?a'b\"c d", "https://shop.example/books/list?a%27b%22c%20d"),
        ("/100%", "https://shop.example/100%"),
        ("/a%2Fb", "https://shop.example/a%2Fb"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example/"),
        ("https://[::0001]:8000/", "https://[::1]:8000/"),
    ],
)
def test_a_reference_means_what_it_means_in_a_browser(reference, meant):
    assert str(parse_address(reference, parse_address(BASE))) == meant


@pytest.mark.parametrize(
    "text",
    ["javascript:alert(1)", "data:text/html,x", "mailto:a@b.example", "about:blank", "file:///etc/passwd", "https://",
     "https://a b/", "https://u:p@shop.example/", "https://shop.example:99999/", "https://shop.example:x/", "https://[::x]/"],
)  # fmt: skip
def test_what_is_no_page_has_no_address(text):
    with pytest.raises(BadAddress):
        parse_address(text, parse_address(BASE))


@pytest.mark.parametrize(
    "url",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "http://shop.example/", "https://shop.example:444/",
     "https://shop.example.evil.example/", "javascript:alert(1)", "mailto:a@shop.example", "https://shop.example@evil.example/"],
)  # fmt: skip
def test_foreign_addresses_are_refused_and_never_asked_for(url):
    agent = Agent({"/": "<p>Home"})
    with pytest.raises(AwpError) as refused:
        agent.navigate(url)
    assert refused.value.code == "PERMISSION_DENIED"
    assert details_of(refused)["allowed"] == ["https://shop.example"]
    assert len(agent.web.asked) == 1


def test_a_mounted_site_ends_where_its_prefix_ends():
    origins = Origins.of("https://shop.example/store/", "http://127.0.0.1:8000/store")
    agent = Agent({"/store/": "<p>Home", "/store/a": "<p>A"}, start=None, origins=origins)
    assert agent.navigate("a")["url"] == "https://shop.example/store/a"
    assert agent.navigate("http://127.0.0.1:8000/store/")["status"] == 200
    assert agent.web.last.origin == "http://127.0.0.1:8000"
    for url in ("/", "/storefront", "/store/../admin", "/store/%2e%2e/admin"):
        with pytest.raises(AwpError, match="PERMISSION_DENIED"):
            agent.navigate(url)


@pytest.mark.parametrize("urls", [(), ("https://a.example/x", "https://a.example/y"), ("ftp://a.example",), ("a",)])
def test_a_site_without_an_address_is_a_mistake(urls):
    with pytest.raises(ValueError, match=r"address|scheme"):
        Origins.of(*urls)


@pytest.mark.parametrize(
    ("params", "said"), [({}, "Missing required param: url"), ({"url": 1}, "url must be a string")]
)
def test_an_address_must_be_given_as_text(params, said):
    with pytest.raises(AwpError, match=said) as refused:
        Agent().call("page.navigate", **params)
    assert refused.value.code == "INVALID_REQUEST"


def test_an_endless_address_is_refused():
    with pytest.raises(AwpError, match="longer than") as refused:
        Agent().navigate("/" + "a" * 10_000)
    assert refused.value.code == "INVALID_REQUEST"
