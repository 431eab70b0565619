"""What a request shows of its caller, and what is believed of it."""

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
from tests.client import TestClient

NOBODY = read_trusted_proxies([])
PROXIES = read_trusted_proxies(["10.0.0.0/8", "2001:db8:1::/48", "203.0.113.9"])


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
        results = [None if caller is None else [caller.id, *caller.scopes] for caller in callers]
        await JSONResponse(results)(scope, receive, send)

    authenticating = AuthenticationMiddleware(application, backend=AnnaLogsIn())
    client = TestClient(SessionMiddleware(authenticating, secret_key="secret"), base_url="https://shop.example")
    assert client.get("/").json() == [None, ["anna", "authenticated"]]
    client.get("/login")
    assert client.get("/").json() == [["7"], ["anna", "authenticated"]]


@given(st.text(st.characters(max_codepoint=255)) | st.text('for=";,[]:.1f_', max_size=60))
def test_any_forwarding_header_gives_an_address(text):
    for header in ("x-forwarded-for", "forwarded"):
        assert address("10.0.0.1", {header: text})
