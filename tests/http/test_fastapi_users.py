"""fastapi-users as it is: who must sign in is known to documents, start-up, llms.txt and challenges."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from fastapi_users import BaseUserManager, FastAPIUsers, UUIDIDMixin, schemas
from fastapi_users.authentication import AuthenticationBackend, BearerTransport, JWTStrategy
from fastapi_users.db import BaseUserDatabase

from awp_publish import AgentPublisher, Site
from tests.client import TestClient
from tests.installed import installed

SECRET = "only for tests, and long enough for a signature"


@dataclass
class User:
    id: uuid.UUID
    email: str
    hashed_password: str
    is_active: bool = True
    is_superuser: bool = False
    is_verified: bool = True


@dataclass
class Users(BaseUserDatabase[User, uuid.UUID]):
    by_id: dict[uuid.UUID, User] = field(default_factory=dict)

    async def get(self, id: uuid.UUID) -> User | None:  # noqa: A002
        return self.by_id.get(id)

    async def get_by_email(self, email: str) -> User | None:
        return next((user for user in self.by_id.values() if user.email == email.lower()), None)

    async def create(self, create_dict: dict[str, Any]) -> User:
        user = User(uuid.uuid4(), **create_dict)
        self.by_id[user.id] = user
        return user

    async def update(self, user: User, update_dict: dict[str, Any]) -> User:
        vars(user).update(update_dict)
        return user


class Manager(UUIDIDMixin, BaseUserManager[User, uuid.UUID]):
    reset_password_token_secret = verification_token_secret = SECRET


@pytest.fixture
def client() -> TestClient:
    users = Users()

    async def manager() -> AsyncIterator[Manager]:
        yield Manager(users)

    def strategy() -> JWTStrategy[User, uuid.UUID]:
        return JWTStrategy(SECRET, lifetime_seconds=600)

    backend = AuthenticationBackend("jwt", BearerTransport("auth/jwt/login"), strategy)
    accounts: Any = FastAPIUsers[User, uuid.UUID](manager, [backend])
    active, maybe = accounts.current_user(active=True), accounts.current_user(optional=True)
    app = FastAPI()
    app.include_router(accounts.get_auth_router(backend), prefix="/auth/jwt", tags=["auth"])
    app.include_router(
        accounts.get_register_router(schemas.BaseUser, schemas.BaseUserCreate), prefix="/auth", tags=["auth"]
    )
    app.include_router(accounts.get_users_router(schemas.BaseUser, schemas.BaseUserUpdate), prefix="/users")
    site = Site("Shop", "Sells books.", url="https://shop.example", plugins=installed("mcp", "a2a"))

    @app.post("/orders", status_code=201)
    @site.action("order_book")
    async def order_book(title: str, user: Annotated[User, Depends(active)]) -> str:
        """Order a book."""
        return f"{title} for {user.email}"

    @app.get("/books")
    @site.action("list_books")
    async def list_books(user: Annotated[User | None, Depends(maybe)]) -> list[str]:
        """List books, the reader's own first."""
        return [user.email if user else "nobody"]

    site.include(tags=["auth"], operations=["auth:jwt.login", "register:register"])
    app.add_middleware(AgentPublisher, site=site)
    return TestClient(app, base_url="https://shop.example")


@pytest.mark.needs("discovery")
@pytest.mark.needs("plain")
def test_documents_know_who_must_sign_in_and_where_a_token_comes_from(client):
    with client:
        authentication = client.get("/agent.json").json()["auth"]
        assert "order_book" in authentication["required_for"]
        assert "list_books" in authentication["optional_for"]
        assert not set(authentication["required_for"]) & set(authentication["optional_for"])
        assert "auth_jwt_login" not in authentication["required_for"]
        guide = client.get("/llms.txt").text
        assert "- order_book {title}: Order a book. [sign in]" in guide
        assert "auth_jwt_login answers with the token" in guide


def test_a_challenge_leads_to_a_token_and_the_token_to_the_order(client):
    with client:
        order = {"input": {"title": "Emma"}}
        refused = client.post("/agents/order_book/invoke", json=order)
        assert (refused.status_code, refused.json()["code"]) == (401, "AUTHENTICATION_REQUIRED")
        assert "Bearer" in refused.headers["www-authenticate"]
        assert "Call auth_jwt_login, then" in refused.json()["recovery"]
        person = {"email": "ann@shop.example", "password": "a long enough password"}
        made = client.post("/agents/actions/register_register", json=person)
        assert made.status_code == 201, made.text
        sent = {"username": person["email"], "password": person["password"]}
        token = client.post("/agents/actions/auth_jwt_login", json=sent)
        assert token.status_code == 200, token.text
        headers = {"authorization": f"Bearer {token.json()['access_token']}"}
        ordered = client.post("/agents/order_book/invoke", json=order, headers=headers)
        assert (ordered.status_code, ordered.json()) == (201, "Emma for ann@shop.example")
        books = client.get("/agents/actions/list_books", headers=headers).json()
        assert books == ["ann@shop.example"]
        assert client.get("/agents/actions/list_books").json() == ["nobody"]


def test_a_wrong_password_is_said_in_the_words_of_the_route(client):
    with client:
        answer = client.post("/agents/actions/auth_jwt_login", json={"username": "eve@x.example", "password": "wrong"})
        assert answer.status_code == 400
        assert "LOGIN_BAD_CREDENTIALS" in answer.json()["detail"]
