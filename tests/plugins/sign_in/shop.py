"""A shop with accounts, a browser, and an agent's side of OAuth, for tests of sign-in."""

import base64
import hashlib
import re
import secrets
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, FastAPI, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.routing import Route

from awp_publish import AgentPublisher, SessionUser, SignIn, Site
from benchmarks.person import hidden_fields
from tests.client import TestClient

URL = "https://shop.example"
BACK = "https://agent.example/callback"
KEYS = ["a-secret-key-of-this-test-and-nobody-else"]
LOGIN = "<form method=post><input name=name><button>Sign in</button></form>"


def digest_of(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def customer(request: Request) -> str:
    name = request.session.get("user")
    if name is None:
        raise HTTPException(401, "Sign in first.")
    return str(name)


def make_shop(url: str | list[str] = URL, *, sessions_outside: bool = False, **options: Any) -> FastAPI:
    """A FastAPI site with a session cookie, whose login page is made by hand."""
    settings: dict[str, Any] = {"store": "memory:", "secret_keys": KEYS, "plugins": ["mcp", "a2a"]}
    settings |= options.pop("settings", {})
    chosen: dict[str, Any] = {"login": "/login", "user": SessionUser("user"), "scopes": {"orders": "Place orders"}}
    settings["plugins"] = [SignIn(**chosen | options), *settings["plugins"]]
    site = Site("Shop", "Sells things.", url, **settings)
    app = FastAPI()
    if not sessions_outside:
        app.add_middleware(SessionMiddleware, secret_key="a")
    app.add_middleware(AgentPublisher, site=site)
    if sessions_outside:
        app.add_middleware(SessionMiddleware, secret_key="a")

    @app.get("/login")
    async def login_page() -> HTMLResponse:
        return HTMLResponse(LOGIN)

    @app.post("/login")
    async def login(request: Request, next: str = "/", name: str = Form()) -> RedirectResponse:  # noqa: A002
        request.session["user"] = name
        return RedirectResponse(next, 303)

    @app.get("/logout")
    async def logout(request: Request) -> RedirectResponse:
        request.session.clear()
        return RedirectResponse("/", 303)

    @app.get("/books")
    @site.action("list_books")
    async def list_books() -> list[str]:
        """List all books."""
        return ["Emma"]

    @app.get("/me")
    @site.action("read_profile", auth_required=True)
    async def read_profile(name: str = Depends(customer)) -> str:
        """Read the customer's name."""
        return name

    @app.post("/basket")
    @site.action("add_book", auth_required=True)
    async def add_book(request: Request, title: str, name: str = Depends(customer)) -> list[str]:
        """Put a book into the basket."""
        request.session["basket"] = [*request.session.get("basket", []), title]
        return list(request.session["basket"])

    @app.post("/orders")
    @site.action("order_book", auth_required=True, scopes=["orders"])
    async def order_book(title: str, name: str = Depends(customer)) -> str:
        """Order a book."""
        return f"{title} for {name}"

    app.state.site = site
    return app


def make_starlette_shop(url: str = URL) -> Starlette:
    """A smaller one of Starlette alone, whose sessions are outside of us."""
    sign_in = SignIn(login="/login", user=SessionUser("user"), scopes={"orders": "Place orders"})
    site = Site("Shop", "Sells things.", url, store="memory:", secret_keys=KEYS, plugins=["mcp", sign_in])

    async def login_page(request: Request) -> HTMLResponse:
        return HTMLResponse(LOGIN)

    async def login(request: Request) -> RedirectResponse:
        request.session["user"] = (await request.form())["name"]
        return RedirectResponse(request.query_params["next"], 303)

    @site.action("list_books")
    async def list_books(request: Request) -> JSONResponse:
        """List all books."""
        return JSONResponse(["Emma"])

    @site.action("read_profile", auth_required=True)
    async def read_profile(request: Request) -> JSONResponse:
        """Read the customer's name."""
        return JSONResponse(request.session["user"])

    @site.action(
        "order_book",
        auth_required=True,
        scopes=["orders"],
        inputs={"type": "object", "properties": {"title": {"type": "string"}}},
    )
    async def order_book(request: Request) -> JSONResponse:
        """Order a book."""
        return JSONResponse(f"{(await request.json())['title']} for {request.session['user']}")

    return Starlette(
        routes=[
            Route("/login", login_page),
            Route("/login", login, methods=["POST"]),
            Route("/books", list_books),
            Route("/me", read_profile),
            Route("/orders", order_book, methods=["POST"]),
        ],
        middleware=[Middleware(SessionMiddleware, secret_key="a"), Middleware(AgentPublisher, site=site)],
    )


def sent_back(answer) -> dict[str, str]:
    """Return what goes back to an agent: at once, or with a person who follows the link of a page."""
    assert answer.status_code in (303, 400), answer.text
    links = [unescape(link) for link in re.findall(r'<a href="([^"]+)"', answer.text)]
    address = answer.headers.get("location") or links[0]
    assert address.startswith(BACK)
    return dict(parse_qsl(urlsplit(address).query))


class Agent:
    """A client of the site's authorization server, and the browser of the person who uses it."""

    def __init__(self, client: TestClient, browser: TestClient, redirect: str = BACK, **metadata: Any) -> None:
        self.http, self.browser, self.redirect = client, browser, redirect
        self.server = client.get("/.well-known/oauth-authorization-server").json()
        registered = client.post(self.server["registration_endpoint"], json={"redirect_uris": [redirect], **metadata})
        assert registered.status_code == 201, registered.text
        self.id = registered.json()["client_id"]
        self.verifier = secrets.token_urlsafe(40)

    @property
    def challenge(self) -> str:
        return digest_of(self.verifier)

    def ask(self, **parameters: Any):
        """Open the authorization endpoint in the browser."""
        asked = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": self.redirect,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "state": "the state",
            "scope": "orders",
            "resource": f"{URL}/mcp",
        }
        asked = {name: value for name, value in (asked | parameters).items() if value is not None}
        return self.browser.get(self.server["authorization_endpoint"], params=asked, follow_redirects=False)

    def follow(self, answer, name: str = "ann"):
        """Go where the browser is sent, sign in on the way, until somebody has to answer or another site is reached.

        Somebody without a name does not sign in.
        """
        while answer.status_code in (302, 303, 307):
            address = answer.headers["location"]
            if urlsplit(address).netloc not in ("", urlsplit(str(self.browser.base_url)).netloc):
                return answer
            answer = self.browser.get(address, follow_redirects=False)
            if answer.text == LOGIN and not name:
                return answer
            if answer.text == LOGIN:
                answer = self.browser.post(str(answer.url), data={"name": name}, follow_redirects=False)
        return answer

    def answer(self, page, answer: str = "allow", scopes: list[str] | None = None):
        """Press a button of the consent page."""
        form = hidden_fields(page.text)
        chosen = re.findall(r'name="scope" value="([^"]+)"', page.text) if scopes is None else scopes
        return self.browser.post(
            re.findall(r'action="([^"]+)"', page.text)[0],
            data={**form, "answer": answer, "scope": chosen},
            follow_redirects=False,
        )

    def consent(self, name: str = "ann", **parameters: Any) -> dict[str, str]:
        """Let the person sign in and allow; return what comes back to the client."""
        page = self.follow(self.ask(**parameters), name)
        sent = self.answer(page) if page.status_code == 200 else page
        assert sent.status_code == 303, sent.text
        return dict(parse_qsl(urlsplit(sent.headers["location"]).query))

    def exchange(self, code: str, **changes: Any):
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.id,
            "redirect_uri": self.redirect,
            "code_verifier": self.verifier,
            **changes,
        }
        return self.send_form({name: value for name, value in form.items() if value is not None})

    def refresh(self, token: str, **changes: Any):
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.id, **changes}
        return self.send_form(form)

    def send_form(self, form: dict[str, Any]):
        """Ask for tokens."""
        return self.http.post(self.server["token_endpoint"], data=form)

    def sign_in(self, name: str = "ann", **parameters: Any) -> dict[str, Any]:
        """Return the tokens of a person who has allowed everything."""
        answered = self.exchange(self.consent(name, **parameters)["code"])
        assert answered.status_code == 200, answered.text
        return answered.json()


def invoke(http: TestClient, action: str, token: str | None = None, **given: Any):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return http.post(f"/agents/{action}/invoke", json={"input": given}, headers=headers)
