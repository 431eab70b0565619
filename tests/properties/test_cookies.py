"""A session keeps cookies as another client does, never for longer than browsers may, and writes what it reads."""

import httpx
import pytest
from hypothesis import given, settings, strategies as st

from awp_publish.browsing.addresses import parse_address
from awp_publish.browsing.cookies import Cookie, CookieJar, parse_set_cookie, write_set_cookie

NOW = 1_800_000_000.0
DAYS_400 = 400 * 86_400
HERE = parse_address("https://www.shop.example/a/b")
PATHS = ("/", "/a", "/a/", "/a/b", "/ab", "/b")
NAMES = st.sampled_from(["a", "b", "c"])


@given(st.integers(1, 10**14))
def test_no_cookie_is_kept_for_longer_than_400_days_by_its_age(seconds):
    cookie = parse_set_cookie(f"a=1; Max-Age={seconds}", HERE, NOW)
    assert cookie is not None
    assert cookie.expires == NOW + min(seconds, DAYS_400)


@pytest.mark.parametrize(("year", "is_capped"), [(2027, False), (2050, True), (9999, True)])
def test_no_cookie_is_kept_for_longer_than_400_days_by_its_date(year, is_capped):
    cookie = parse_set_cookie(f"a=1; Expires=Thu, 01 Jul {year} 10:00:00 GMT", HERE, NOW)
    assert cookie is not None
    assert cookie.expires is not None
    assert (cookie.expires == NOW + DAYS_400) is is_capped
    assert cookie.expires <= NOW + DAYS_400


@given(
    st.builds(
        Cookie,
        name=st.from_regex(r"[a-z]{1,5}", fullmatch=True),
        value=st.from_regex(r"[a-z0-9=\"]{0,5}", fullmatch=True),
        domain=st.just("www.shop.example"),
        path=st.sampled_from(PATHS),
        host_only=st.booleans(),
        expires=st.none() | st.integers(1, DAYS_400).map(lambda seconds: NOW + seconds),
        secure=st.booleans(),
        http_only=st.booleans(),
        same_site=st.sampled_from(["", "Lax", "Strict", "None"]),
    )
)
def test_a_cookie_that_is_written_is_read_as_the_same(cookie):
    assert parse_set_cookie(write_set_cookie(cookie, NOW), HERE, NOW) == cookie


@settings(max_examples=100)  # with fewer, a cookie that is sent without its Secure is missed
@given(
    st.lists(
        st.builds(
            "{}={}; Path={}{}".format,
            NAMES,
            st.integers(0, 9),
            st.sampled_from(PATHS),
            st.sampled_from(["", "; Max-Age=0", "; Max-Age=60", "; Secure", "; Domain=shop.example"]),
        ),
        max_size=6,
    ),
    st.sampled_from(PATHS),
    st.sampled_from(["https://www.shop.example", "https://m.shop.example", "http://www.shop.example"]),
)
def test_cookies_are_sent_where_httpx_sends_them(set_cookies, path, origin):
    jar, theirs = CookieJar(180, 4096), httpx.Cookies()
    jar.store_from([("Set-Cookie", text) for text in set_cookies], HERE, NOW)
    request = httpx.Request("GET", str(HERE))
    for text in set_cookies:  # of one answer, it deletes the cookies of an expired one before it stores any
        theirs.extract_cookies(httpx.Response(200, headers=[("Set-Cookie", text)], request=request))
    later = httpx.Request("GET", origin + path)
    theirs.set_cookie_header(later)
    ours = jar.header_for(parse_address(origin + path), NOW)
    assert sorted(ours.split("; ")) == sorted(later.headers.get("Cookie", "").split("; "))
