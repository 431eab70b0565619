"""What a request shows of its caller, and what is believed of it."""

import pytest
from hypothesis import given, strategies as st
from starlette.authentication import AuthCredentials, AuthenticationBackend, BaseUser, SimpleUser
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse

from awp_publish.calls.application_users import ApplicationUser, SessionUser
from awp_publish.http.client_address import client_address, read_trusted_proxies
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Receive, Scope, Send, read_fields
from awp_publish.http.origins import is_cross_site, refuse_foreign_host, refuse_foreign_pages
from awp_publish.problems import CrossSiteCookies, ForeignHost
from tests.client import TestClient

NOBODY = read_trusted_proxies([])
PROXIES = read_trusted_proxies(["10.0.0.0/8", "2001:db8:1::/48", "203.0.113.9"])
ON_A_SOCKET = read_trusted_proxies(["unix"])


def address(peer: object, headers: dict[str, str], proxies: object = PROXIES) -> str:
    fields = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    client = (peer, 4711) if isinstance(peer, str) else peer
    return client_address({"type": "http", "client": client}, fields, proxies)  # type: ignore[arg-type]


def test_headers_session_user_and_scopes_are_carried_over():
    user, session = SimpleUser("anna"), {"user_id": 7}
    scope = {"client": ("192.0.2.1", 1), "session": session, "user": user, "auth": AuthCredentials(["read"])}
    credentials = read_credentials(scope, {b"authorization": b"Bearer abc", b"x-name": b"M\xfcller"}, NOBODY)
    assert credentials.headers == {"authorization": "Bearer abc", "x-name": "Müller"}
    assert (credentials.session, credentials.user) == (session, user)
    assert credentials.scopes == frozenset({"read"})
    assert credentials.address == "192.0.2.1"


def test_without_middleware_there_is_neither_session_nor_user():
    credentials = read_credentials({"type": "http"}, {}, NOBODY)
    assert (credentials.session, credentials.user, credentials.address) == (None, None, "")
    assert credentials.scopes == frozenset()


class AnnaLogsIn(AuthenticationBackend):
    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, BaseUser]:
        return AuthCredentials(["authenticated"]), SimpleUser("anna")


def test_starlettes_own_middleware_is_understood():
    """The real session and authentication middleware, around an application that says who calls."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/login":
            scope["session"]["user_id"] = 7
        credentials = read_credentials(scope, read_fields(scope["headers"]), NOBODY)
        callers = [await know(credentials) for know in (SessionUser(), ApplicationUser())]
        told = [None if caller is None else [caller.id, *caller.scopes] for caller in callers]
        await JSONResponse(told)(scope, receive, send)

    authenticating = AuthenticationMiddleware(application, backend=AnnaLogsIn())
    client = TestClient(SessionMiddleware(authenticating, secret_key="secret"), base_url="https://shop.example")
    assert client.get("/").json() == [None, ["anna", "authenticated"]]
    client.get("/login")
    assert client.get("/").json() == [["7"], ["anna", "authenticated"]]


# --- The address ---


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded"])
def test_strangers_are_not_believed(header):
    told = {header: "for=198.51.100.1" if header == "forwarded" else "198.51.100.1"}
    assert address("192.0.2.1", told) == "192.0.2.1"
    assert address("10.0.0.1", told, NOBODY) == "10.0.0.1"
    assert address("10.0.0.1", told) == "198.51.100.1"


@pytest.mark.parametrize(
    ("forwarded_for", "client"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("198.51.100.1, 10.1.1.1, 203.0.113.9", "198.51.100.1"),
        ("192.0.2.66, 198.51.100.1, 10.1.1.1", "198.51.100.1"),
        ("192.0.2.66,198.51.100.1", "198.51.100.1"),
        ("198.51.100.1:51234", "198.51.100.1"),
        ("[2001:db8:2:3:4:5:6:7]:51234", "2001:db8:2:3::/64"),
        ("2001:db8:2:3:4:5:6:7", "2001:db8:2:3::/64"),
        ("198.51.100.1, 2001:db8:1::7", "198.51.100.1"),
        ("198.51.100.1, ::ffff:10.1.1.1", "198.51.100.1"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
        ("198.51.100.1, unknown, 10.1.1.1", "10.1.1.1"),
        ("198.51.100.1, , 10.1.1.1", "10.1.1.1"),
        ("unknown", "10.0.0.1"),
        ("", "10.0.0.1"),
        ("010.1.1.1", "10.0.0.1"),
        ("10.1.1.1, 10.1.1.2", "10.1.1.1"),
        (", ".join(["198.51.100.1"] + ["10.1.1.1"] * 1000), "10.1.1.1"),
    ],
)
def test_x_forwarded_for_is_walked_from_the_right_past_proxies_of_ours(forwarded_for, client):
    assert address("10.0.0.1", {"x-forwarded-for": forwarded_for}) == client


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("for=198.51.100.1", "198.51.100.1"),
        ('For="198.51.100.1:4711";proto=https;by=10.0.0.1', "198.51.100.1"),
        ('proto=https; for="[2001:db8:2:3::1]:4711"', "2001:db8:2:3::/64"),
        ("for=192.0.2.66, for=198.51.100.1, for=10.1.1.1", "198.51.100.1"),
        ("for=192.0.2.66, for=_hidden, for=10.1.1.1", "10.1.1.1"),
        ("for=192.0.2.66, proto=https", "10.0.0.1"),
        ("for=192.0.2.66;for=192.0.2.67", "10.0.0.1"),
        ('for="192.0.2.66, for=198.51.100.1', "198.51.100.1"),
    ],
)
def test_forwarded_is_read_the_same_way(forwarded, client):
    assert address("10.0.0.1", {"forwarded": forwarded}) == client


def test_of_both_headers_neither_is_believed_unless_the_site_names_one():
    """One is the proxy's, and the other what the caller sent along."""
    told = {"x-forwarded-for": "198.51.100.1", "forwarded": "for=192.0.2.66"}
    assert address("10.0.0.1", told) == "10.0.0.1"
    for name, client in (("x-forwarded-for", "198.51.100.1"), ("forwarded", "192.0.2.66"), ("x-real-ip", "10.0.0.1")):
        assert address("10.0.0.1", told, read_trusted_proxies(["10.0.0.0/8"], name)) == client


@pytest.mark.parametrize(
    ("told", "client"),
    [
        ("198.51.100.1", "198.51.100.1"),
        (" 2001:db8:2:3:4:5:6:7 ", "2001:db8:2:3::/64"),
        ("[2001:db8:2:3::1]:443", "2001:db8:2:3::/64"),
        ("198.51.100.1, 192.0.2.66", "10.0.0.1"),
        ("198.51.100.1 192.0.2.66", "10.0.0.1"),
        ("unknown", "10.0.0.1"),
        ("", "10.0.0.1"),
    ],
)
def test_any_other_header_holds_one_address(told, client):
    proxies = read_trusted_proxies(["10.0.0.0/8"], "cf-connecting-ip")
    assert address("10.0.0.1", {"cf-connecting-ip": told, "x-forwarded-for": "192.0.2.66"}, proxies) == client
    assert address("192.0.2.1", {"cf-connecting-ip": told}, proxies) == "192.0.2.1"
    assert address("10.0.0.1", {"x-forwarded-for": "192.0.2.66"}, proxies) == "10.0.0.1"


@pytest.mark.parametrize("peer", [None, ""])
def test_a_peer_on_a_socket_file_is_believed_if_the_site_says_so(peer):
    told = {"x-forwarded-for": "198.51.100.1"}
    assert address(peer, told, ON_A_SOCKET) == "198.51.100.1"
    assert address(peer, told) == ""
    assert address("192.0.2.1", told, ON_A_SOCKET) == "192.0.2.1"


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:2:3:4:5:6:7", "2001:db8:2:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_one_caller_has_one_address(peer, client):
    assert address(peer, {}) == client


@given(st.text(st.characters(max_codepoint=255)) | st.text('for=";,[]:.1f_', max_size=60))
def test_any_forwarding_header_gives_an_address(text):
    for header in ("x-forwarded-for", "forwarded"):
        assert address("10.0.0.1", {header: text})


@pytest.mark.parametrize("given_network", ["10.0.0.0/33", "proxy.example", "", "10.0.0.1:80", "Unix"])
def test_a_proxy_that_is_none_is_refused_in_plain_words(given_network):
    with pytest.raises(ValueError, match="is not an address or network"):
        read_trusted_proxies(["10.0.0.1", given_network])


# --- Other sites' pages ---

OWN = frozenset({"https://shop.example", "https://shop.example:8443"})


@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({}, False),
        ({b"sec-fetch-site": b"same-origin"}, False),
        ({b"sec-fetch-site": b"none"}, False),
        ({b"sec-fetch-site": b"same-site"}, True),
        ({b"sec-fetch-site": b"cross-site"}, True),
        ({b"sec-fetch-site": b"something new"}, True),
        ({b"sec-fetch-site": b"same-origin, cross-site"}, True),
        ({b"sec-fetch-site": b"cross-site", b"origin": b"https://shop.example"}, True),
        ({b"origin": b"https://shop.example"}, False),
        ({b"origin": b"https://Shop.Example:443"}, False),
        ({b"origin": b"https://shop.example:8443"}, False),
        ({b"origin": b"https://shop.example:9000"}, True),
        ({b"origin": b"http://shop.example:443"}, True),
        ({b"origin": b"http://shop.example", b"host": b"shop.example"}, True),
        ({b"origin": b"chrome-extension://shop.example", b"host": b"shop.example"}, True),
        ({b"origin": b"https://shop.example:9000", b"host": b"shop.example:9000"}, False),
        ({b"origin": b"http://shop.example:9000", b"host": b"shop.example:9000"}, True),
        ({b"origin": b"https://shop.example", b"host": b"127.0.0.1:8000"}, False),  # a proxy that replaces Host
        ({b"origin": b"https://shop.example.evil.example"}, True),
        ({b"origin": b"https://evil.example"}, True),
        ({b"origin": b"null"}, True),
        ({b"origin": b""}, True),
        ({b"origin": b"https://"}, True),
        ({b"origin": b"https://:443"}, True),
        ({b"origin": b"http://localhost:8000", b"host": b"localhost:8000"}, False),
        ({b"origin": b"http://localhost:8000", b"host": b"localhost:9000"}, True),
        ({b"origin": b"http://localhost", b"host": b"localhost:80"}, False),
        ({b"origin": b"ftp://localhost:8000", b"host": b"localhost:8000"}, True),
        ({b"origin": b"http://10.0.0.5:8000", b"host": b"10.0.0.5:8000", b"x-forwarded-for": b"192.0.2.1"}, True),
    ],
)
def test_pages_of_other_origins_are_told_from_our_own_and_from_programs(headers, is_foreign):
    assert is_cross_site(headers, OWN) is is_foreign


def test_cookies_authorise_no_call_of_another_sites_page():
    here = {b"host": b"shop.example"}
    foreign = here | {b"origin": b"https://evil.example", b"cookie": b"session=abc"}
    with pytest.raises(CrossSiteCookies) as refusal:
        refuse_foreign_pages(foreign, OWN)
    assert refusal.value.status == 403
    assert "abc" not in str(refusal.value)
    refuse_foreign_pages(here | {b"origin": b"https://evil.example"}, OWN)
    refuse_foreign_pages({b"cookie": b"session=abc"}, OWN)
    refuse_foreign_pages(here | {b"cookie": b"session=abc", b"origin": b"https://shop.example"}, OWN)


@pytest.mark.parametrize(
    ("host", "is_foreign"),
    [
        ("shop.example", False),
        ("Shop.Example", False),
        ("shop.example:443", False),
        ("shop.example:8000", False),
        ("localhost", False),
        ("localhost:8000", False),
        ("shop.localhost:8000", False),
        ("127.0.0.1:8000", False),
        ("192.168.1.7", False),
        ("[::1]:8000", False),
        ("[2001:db8::1]", False),
        ("evil.example", True),
        ("evil.example:443", True),
        ("localhost.evil.example", True),
        ("127.0.0.1.evil.example", True),
        ("evil-localhost", True),
        ("shop.example.evil.example", True),
        ("shop.example, evil.example", True),
        ("shop.example:80, evil.example", True),
        ("evil.example:80@shop.example", True),
        ("[evil.example]", True),
        ("[::1", True),
        ("", True),
        ("\xff", True),
    ],
)
def test_only_names_that_are_the_sites_or_nobodys_are_taken_of_browsers(host, is_foreign):
    named = {b"host": host.encode("latin-1")}
    refuse_foreign_host(named, OWN)
    for told in ({b"origin": b"https://shop.example"}, {b"sec-fetch-site": b"same-origin"}, {b"sec-fetch-mode": b"x"}):
        if not is_foreign:
            refuse_foreign_host(named | told, OWN)
            continue
        with pytest.raises(ForeignHost, match="none of this site's addresses"):
            refuse_foreign_host(named | told | {b"x-forwarded-host": b"shop.example"}, OWN)
