"""A site whose accounts are those of fastapi-users, with its cookie and its `current_user`."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import Depends, FastAPI, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.security import OAuth2PasswordRequestForm

from awp_publish import AgentPublisher, Person, SignIn, Site
from tests.client import TestClient
from tests.plugins.sign_in.shop import KEYS, LOGIN, URL, Agent, invoke

pytest.importorskip("fastapi_users", reason="fastapi-users is not installed")

from fastapi_users import BaseUserManager, FastAPIUsers, UUIDIDMixin
from fastapi_users.authentication import AuthenticationBackend, CookieTransport
from fastapi_users.authentication.strategy import JWTStrategy
from fastapi_users.db import BaseUserDatabase
from fastapi_users.schemas import BaseUserCreate

PASSWORD = "a password of this test"


@dataclass
class User:
    """An account, as fastapi-users wants it."""

    id: uuid.UUID
    email: str
    hashed_password: str
    is_active: bool = True
    is_superuser: bool = False
    is_verified: bool = False


class Accounts(BaseUserDatabase[Any, uuid.UUID]):
    """The site's database."""

    def __init__(self) -> None:
        self.users: dict[uuid.UUID, User] = {}

    async def get(self, id: uuid.UUID) -> User | None:  # noqa: A002
        return self.users.get(id)

    async def get_by_email(self, email: str) -> User | None:
        return next((user for user in self.users.values() if user.email == email), None)

    async def create(self, create_dict: dict[str, Any]) -> User:
        user = User(uuid.uuid4(), **create_dict)
        self.users[user.id] = user
        return user


class Manager(UUIDIDMixin, BaseUserManager[Any, uuid.UUID]):
    """The site's own rules for accounts; it has none."""


def make_site(accounts: Accounts) -> FastAPI:
    """Return a shop whose login page calls fastapi-users, and whose routes depend on its `current_user`."""
    backend = AuthenticationBackend(
        "cookie", CookieTransport(cookie_name="shop"), lambda: JWTStrategy(secret=KEYS[0], lifetime_seconds=3600)
    )

    async def get_manager() -> AsyncIterator[Manager]:
        yield Manager(accounts)

    users = FastAPIUsers[Any, uuid.UUID](get_manager, [backend])
    active = Depends(users.current_user(active=True))

    async def find_user(request: Request) -> Person | None:
        user = await backend.get_strategy().read_token(request.cookies.get("shop"), Manager(accounts))
        return Person(str(user.id), user.email) if user is not None and user.is_active else None

    sign_in = SignIn(login="/login", user=find_user, scopes={"orders": "Place orders"})
    site = Site("Shop", "Sells things.", URL, plugins=["mcp", sign_in], store="memory:", secret_keys=KEYS)
    app = FastAPI()
    app.include_router(users.get_auth_router(backend), prefix="/auth")

    @app.get("/login")
    async def show_login() -> HTMLResponse:
        return HTMLResponse(LOGIN)

    @app.post("/login")
    async def login(next: str = "/", name: str = Form()) -> RedirectResponse:  # noqa: A002
        manager = Manager(accounts)
        form = OAuth2PasswordRequestForm(username=f"{name}@example.com", password=PASSWORD)
        user = await manager.authenticate(form)
        answer = await backend.login(backend.get_strategy(), user)
        return RedirectResponse(next, 303, {"set-cookie": answer.headers["set-cookie"]})

    @app.get("/me")
    @site.action("read_profile")
    async def read_profile(user: User = active) -> str:
        """Read the customer's address."""
        return user.email

    @app.post("/orders")
    @site.action("order_book", auth_required=True, scopes=["orders"])
    async def order_book(title: str, user: User = active) -> str:
        """Order a book."""
        return f"{title} for {user.email}"

    app.add_middleware(AgentPublisher, site=site)
    return app


async def test_people_of_fastapi_users_let_an_agent_act_until_they_are_blocked(open_client):
    accounts = Accounts()
    ann = await Manager(accounts).create(BaseUserCreate(email="ann@example.com", password=PASSWORD))
    shop = open_client(make_site(accounts))
    assert invoke(shop, "read_profile").status_code == 401
    agent = Agent(shop, TestClient(shop.app, base_url=URL))
    tokens = agent.sign_in("ann")
    assert invoke(shop, "read_profile", tokens["access_token"]).json() == "ann@example.com"
    assert invoke(shop, "order_book", tokens["access_token"], title="Emma").json() == "Emma for ann@example.com"
    ann.is_active = False
    refused = invoke(shop, "order_book", tokens["access_token"], title="Emma")
    assert refused.status_code == 401
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
