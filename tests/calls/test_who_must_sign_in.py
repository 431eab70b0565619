"""Who must sign in: routes whose security scheme refuses nobody, background actions, where tokens come from."""

from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI, Header, HTTPException, Request, Security, status
from fastapi.security import APIKeyHeader, OAuth2PasswordBearer
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser, requires
from starlette.endpoints import HTTPEndpoint
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from awp_publish import AgentPublisher, BearerToken, Credentials, DeclarationError, Principal, current_caller
from tests.doors.adapters import DOORS
from tests.doors.callers import Asked as Sent
from tests.guarded import KEYS, invoke, make_shop
from tests.installed import installed, is_installed

scheme = OAuth2PasswordBearer("auth/login", auto_error=False)


class User(str):
    """A user."""


class Basket(str):
    """What belongs to a user, or to nobody."""


async def user_or_nobody(token: Annotated[str | None, Depends(scheme)]) -> User | None:
    return User(token) if token == "ann" else None


async def current_user(user: Annotated[User | None, Depends(user_or_nobody)]) -> User:
    if user is None:
        raise HTTPException(401, "Who are you?")
    return user


async def users_of_a_library(token: str | None = Depends(scheme)):
    """Without annotations of its own, as those that libraries write at run time."""
    if token != "ann":
        raise HTTPException(401)
    return User(token)


async def basket(user: Annotated[User | None, Depends(user_or_nobody)]) -> Basket:
    return Basket(user or "nobody")


TOKEN = Depends(scheme)


async def not_annotated(token=TOKEN):
    if not token:
        raise HTTPException(401)
    return token


async def derived(token=TOKEN):
    user = {"ann": User("ann")}.get(token)
    if user is None or not user:
        raise HTTPException(401)
    yield user


async def checked_last(token=TOKEN):
    if token == "ann" and token:
        return token
    raise HTTPException(401)


class Checked:
    def __init__(self, token=TOKEN) -> None:
        if token not in ("ann",):
            raise HTTPException(401)


async def by_header(request: Request) -> None:
    if "Authorization" not in request.headers:
        raise HTTPException(status.HTTP_401_UNAUTHORIZED)


async def by_session(request: Request) -> str:
    user = request.session.get("user")
    if not user:
        raise HTTPException(401)
    return user


async def by_cookie(request: Request) -> str:
    if sid := request.cookies.get("sid"):
        return sid
    raise HTTPException(401)


class Preferences:
    def __init__(self, lang: str = "en", token: str | None = TOKEN) -> None:
        self.lang, self.token = lang, token


async def of_public_pages_too(request: Request) -> None:
    path = request.url.path
    if path == "/mine":
        return
    if not request.cookies.get("sid"):
        raise HTTPException(401)


async def with_a_basket(request: Request) -> None:
    if "basket" not in request.session:
        raise HTTPException(404)


async def of_nobody_too(token=TOKEN):
    if token is None:
        return None
    if token != "ann":
        raise HTTPException(401)
    return token


TOKEN_OR_NOBODY = Depends(of_nobody_too)


async def admin(user=TOKEN_OR_NOBODY):
    if user is None:
        raise HTTPException(401)
    return user


REFUSING = (not_annotated, derived, checked_last, Checked, admin, by_header, by_session, by_cookie)
OPEN = (of_nobody_too, Preferences, of_public_pages_too, with_a_basket)


@pytest.mark.parametrize("dependency", [*REFUSING, *OPEN], ids=lambda made: made.__name__)
def test_dependencies_without_annotations_say_by_their_code_whether_they_refuse_nobody(open_client, dependency):
    site, app = make_shop(), FastAPI()

    user = Depends(dependency)

    @app.get("/mine")
    @site.action("show_mine")
    async def show_mine(user=user) -> str:
        """Show what is mine."""
        return "mine"

    app.add_middleware(AgentPublisher, site=site)
    open_client(app)
    assert site.catalog.actions[0].auth_required is (dependency in REFUSING)


def test_a_class_of_parameters_with_an_optional_key_requires_no_sign_in(open_client):
    site, app = make_shop(), FastAPI()

    @app.get("/hello")
    @site.action("greet")
    async def greet(preferences: Annotated[Preferences, Depends()]) -> str:
        """Greet."""
        return preferences.lang

    @app.get("/bye", dependencies=[Depends(Preferences)])
    @site.action("leave")
    async def leave() -> str:
        """Leave."""
        return "bye"

    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    assert [action.auth_required for action in site.catalog.actions] == [False, False]
    assert client.get("/agents/actions/greet?lang=de").json() == "de"


def make_app(**options):
    site, app = make_shop(plugins=installed("mcp", "a2a", "awp"), secret_keys=KEYS, **options), FastAPI()

    @app.post("/auth/login")
    @site.action("log_in")
    async def log_in() -> dict[str, str]:
        """Log in."""
        return {"access_token": "ann", "token_type": "bearer"}

    @app.get("/mine")
    @site.action("show_mine")
    async def show_mine(user: Annotated[User, Depends(current_user)]) -> str:
        """Show what is mine."""
        return user

    @app.get("/library")
    @site.action("show_library")
    async def show_library(user: Annotated[User, Depends(users_of_a_library)]) -> str:
        """Show what is mine, too."""
        return user

    @app.get("/around", dependencies=[Depends(current_user)])
    @site.action("show_around")
    async def show_around() -> str:
        """Show around."""
        return "around"

    @app.get("/basket")
    @site.action("show_basket")
    async def show_basket(mine: Annotated[Basket, Depends(basket)]) -> str:
        """Show the basket."""
        return mine

    @app.get("/hello")
    @site.action("greet")
    async def greet(user: Annotated[User | None, Depends(user_or_nobody)]) -> str:
        """Greet."""
        return user or "nobody"

    @app.get("/listed", responses={401: {}})
    @site.action("show_listed")
    async def show_listed(token: Annotated[str | None, Depends(scheme)]) -> str:
        """Show what OpenAPI says needs a caller."""
        if token is None:
            raise HTTPException(401)
        return token

    if is_installed("jobs"):

        @app.post("/report")
        @site.action("make_report", execution="async")
        async def make_report(user: Annotated[User, Depends(current_user)]) -> str:
            """Make a report."""
            return user

    app.add_middleware(AgentPublisher, site=site)
    return app


@pytest.mark.needs("agent_json", "jobs")
@pytest.mark.needs("plain")
def test_documents_say_who_must_sign_in_though_the_scheme_refuses_nobody(open_client):
    auth = open_client(make_app()).get("/agent.json").json()["auth"]
    assert set(auth["required_for"]) == {"show_mine", "show_library", "show_around", "show_listed", "make_report"}
    assert set(auth["optional_for"]) == {"log_in", "show_basket", "greet"}


@pytest.mark.needs("jobs")
@pytest.mark.parametrize("door", DOORS)
def test_nobody_gets_a_job_that_the_route_would_refuse(open_client, door):
    caller = DOORS[door](open_client(make_app()))
    refused = caller.call("make_report")
    assert (refused.code, refused.detail) == ("AUTHENTICATION_REQUIRED", "Who are you?")
    assert caller.call("make_report", token="wrong").code == "INVALID_CREDENTIALS"
    assert caller.call("make_report", token="ann").code is None


def ask_header(authorization: Annotated[str | None, Header()] = None) -> None:
    if not authorization:
        raise HTTPException(401)


def ask_request(request: Request) -> None:
    if "Authorization" not in request.headers:
        raise HTTPException(401)


def ask_cookie(request: Request) -> None:
    if not request.cookies.get("sid"):
        raise HTTPException(401)


class Asked:
    def __call__(self, token=TOKEN) -> None:
        if token is None:
            raise HTTPException(401)


@pytest.mark.needs("jobs")
@pytest.mark.parametrize("asked", [ask_header, ask_request, ask_cookie, Asked(), None])
def test_nobody_gets_a_job_however_the_route_asks_who_calls(open_client, asked):
    site, app = make_shop(secret_keys=KEYS), FastAPI()

    async def make_report() -> str:
        """Make a report."""
        return "report"

    async def make_own_report(token=TOKEN) -> str:
        """Make a report."""
        if not token:
            raise HTTPException(401)
        return "report"

    declared = site.action("make_report", execution="async")
    dependencies = [] if asked is None else [Depends(asked)]
    app.post("/report", dependencies=dependencies)(declared(make_own_report if asked is None else make_report))
    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    assert client.post("/agents/actions/make_report", json={}).status_code == 401
    known = {"authorization": "Bearer ann", "cookie": "sid=1"}
    assert client.post("/agents/actions/make_report", json={}, headers=known).status_code == 202


@pytest.mark.parametrize("door", DOORS)
def test_a_refusal_says_which_action_answers_with_the_token(open_client, door):
    assert "Call log_in, then" in DOORS[door](open_client(make_app())).call("show_mine").recovery


@pytest.mark.needs("discovery")
def test_llms_txt_says_where_the_token_comes_from(open_client):
    client = open_client(make_app())
    assert "`Authorization: Bearer ...`; log_in answers with the token" in client.get("/llms.txt").text
    assert "`Authorization: Bearer ...`. The action `log_in` answers with the token." in client.get("/auth.md").text


@pytest.mark.parametrize("door", DOORS)
def test_auth_required_holds_for_a_route_whose_security_is_optional(open_client, door):
    site, app = make_shop(plugins=installed("mcp", "a2a", "awp"), secret_keys=KEYS), FastAPI()

    @app.get("/hello")
    @site.action("greet", auth_required=True)
    async def greet(key: Annotated[str | None, Depends(APIKeyHeader(name="x-key", auto_error=False))]) -> str:
        """Greet."""
        return key or "nobody"

    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    assert site.catalog.actions[0].auth_required
    assert DOORS[door](client).call("greet").code == "AUTHENTICATION_REQUIRED"
    client.headers["x-key"] = "k"
    assert DOORS[door](client).call("greet").output == "k"


def by_reading_alone(request: Request) -> str:
    return request.session.get("user") or "nobody"


async def reports(request: Request) -> str:
    """Make a report."""
    if not request.cookies.get("sid"):
        raise HTTPException(401)
    return "report"


@pytest.mark.parametrize(
    ("asked", "options", "message"),
    [
        (None, {"auth_required": True}, "nobody, and its route is not known to refuse callers who have not signed in"),
        (by_reading_alone, {"auth_required": True}, "is not known to refuse callers"),
        (by_cookie, {"scopes": ["buy"]}, "nobody would check its scopes"),
        (reports, {"auth_required": True, "execution": "async"}, "signed in, before a job is accepted"),
    ],
)
def test_auth_required_is_refused_where_nobody_would_ask(open_client, asked, options, message):
    site, app = make_shop(secret_keys=KEYS), FastAPI()

    async def greet() -> str:
        """Greet."""
        return "hello"

    handler = asked if asked is reports else greet
    dependencies = [] if asked in (None, reports) else [Depends(asked)]
    app.post("/hello", dependencies=dependencies)(site.action("greet", **options)(handler))
    app.add_middleware(AgentPublisher, site=site)
    with pytest.raises(DeclarationError, match=message):
        open_client(app)


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"execution": "async"}, marks=pytest.mark.needs("jobs")),
        pytest.param({"confirm": True}, marks=pytest.mark.needs("confirmation")),
    ],
)
@pytest.mark.parametrize("door", DOORS)
def test_at_a_site_that_authenticates_nobody_the_code_of_a_route_is_relied_on(open_client, door, options):
    site, app = make_shop(plugins=installed("mcp", "a2a", "awp"), secret_keys=KEYS), FastAPI()

    @app.post("/mine", dependencies=[Depends(by_cookie)])
    @site.action("show_mine", auth_required=True, **options)
    async def show_mine() -> str:
        """Show what is mine."""
        return "mine"

    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    assert site.catalog.actions[0].auth_required
    caller = DOORS[door](client)
    assert caller.call("show_mine").code == "AUTHENTICATION_REQUIRED"
    client.headers["cookie"] = "sid=1"
    assert DOORS[door](client).call("show_mine").code == ("CONFIRMATION_REQUIRED" if "confirm" in options else None)


def test_routes_of_starlette_that_need_a_caller_say_so_by_their_code(open_client):
    site = make_shop()

    @requires("authenticated")
    async def show_mine(request):
        """Show what is mine."""

    class Orders(HTTPEndpoint):
        @requires(["orders"], status_code=401)
        async def get(self, request):
            """List orders."""

    async def show_basket(request):
        """Show the basket."""
        if not request.user.is_authenticated:
            return JSONResponse({"detail": "Who are you?"}, 401)
        return JSONResponse([])

    async def greet(request):
        """Greet."""
        if "name" not in request.session:
            return JSONResponse("Hello.", 404)
        return JSONResponse("Hello.")

    handlers: dict[str, Any] = {"mine": show_mine, "orders": Orders, "basket": show_basket, "greet": greet}
    for name in handlers:
        site.declare(name, method="GET", path=f"/{name}", description=f"See {name}.")
    app = Starlette(routes=[Route(f"/{name}", handler) for name, handler in handlers.items()])
    open_client(AgentPublisher(app, site=site))
    assert [action.id for action in site.catalog.actions if action.auth_required] == ["mine", "orders", "basket"]


class ByToken(AuthenticationBackend):
    async def authenticate(self, conn):
        name = conn.headers.get("authorization") or conn.cookies.get("sid")
        scopes = ["authenticated", *(["orders"] if name == "Bearer ann" else [])]
        return (AuthCredentials(scopes), SimpleUser(name)) if name else None


@pytest.mark.parametrize("door", DOORS)
def test_a_caller_who_shows_nothing_is_asked_to_sign_in_where_requires_answers_403(open_client, door):
    site = make_shop(plugins=["mcp", "a2a", "awp", "bridge"])

    @requires("orders")
    async def list_orders(request):
        """List orders."""
        return JSONResponse(["Emma"])

    site.declare("list_orders", method="POST", path="/orders")
    app = Starlette(routes=[Route("/orders", list_orders, methods=["POST"])])
    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(AuthenticationMiddleware, backend=ByToken())
    client = open_client(app)
    assert DOORS[door](client).call("list_orders").code == "AUTHENTICATION_REQUIRED"
    client.headers["authorization"] = "Bearer bob"
    assert DOORS[door](client).call("list_orders").code == "INSUFFICIENT_PERMISSIONS"
    client.headers["authorization"] = "Bearer ann"
    assert DOORS[door](client).call("list_orders").code is None
    del client.headers["authorization"]
    client.headers["cookie"] = "sid=1"
    assert DOORS[door](client).call("list_orders").code == "INSUFFICIENT_PERMISSIONS"


def by_presence(request: Request) -> None:
    if "authorization" not in request.headers:
        raise HTTPException(401)


def by_caller() -> None:
    if current_caller() is None:
        raise HTTPException(401)


def by_scheme(key: str = Depends(APIKeyHeader(name="x-key"))) -> None:
    """Another secret than the site's tokens."""


@pytest.mark.parametrize(
    ("asked", "options", "statuses"),
    [
        (by_presence, {"scopes": ["buy"]}, [401, 401, 403, 200]),
        (by_caller, {"scopes": ["buy"]}, [401, 401, 403, 200]),
        (by_presence, {"auth_required": True}, [401, 401, 200, 200]),
        (by_presence, {}, [401, 401, 200, 200]),
        (by_scheme, {"scopes": ["buy"]}, [200, None, 403, 200]),  # doors of connections refuse what they do not know
    ],
)
@pytest.mark.parametrize("door", DOORS)
def test_an_owners_declaration_holds_even_if_the_route_authenticates(open_client, door, asked, options, statuses):
    tokens = {"t-none": Principal("ann"), "t-buy": Principal("bob", frozenset({"buy"}))}
    site = make_shop(plugins=installed("mcp", "a2a", "awp"), authenticate=BearerToken(tokens), secret_keys=KEYS)
    app = FastAPI()

    @app.post("/buy", dependencies=[Depends(asked)])
    @site.action("buy", **options)
    async def buy() -> dict[str, str]:
        """Buy."""
        return {}

    app.add_middleware(AgentPublisher, site=site)
    caller = DOORS[door](open_client(app))
    for token, status_code in zip((None, "wrong", "t-none", "t-buy"), statuses, strict=True):
        if status_code is None:
            continue
        headers = {"x-key": "k", **({"authorization": f"Bearer {token}"} if token else {})}
        code = {
            200: (None,),
            401: ("AUTHENTICATION_REQUIRED", "INVALID_CREDENTIALS"),
            403: ("INSUFFICIENT_SCOPE",),
        }[status_code]
        assert caller.send(Sent("buy", {}, headers, {})).code in code, token


class Introspection:
    """An owner's own authenticator of access tokens, as one that asks an authorization server (RFC 7662)."""

    scheme, method, challenge = "oauth2", "oauth", "Bearer"

    async def __call__(self, credentials: Credentials) -> Principal | None:
        return Principal("ann") if "authorization" in credentials.headers else None


@pytest.mark.parametrize("is_instant", [False, True])
def test_a_token_of_an_owners_own_authenticator_needs_the_scopes_of_the_routes_scheme(open_client, is_instant):
    known_by = Introspection()
    vars(known_by)["is_instant"] = is_instant
    site, app = make_shop(authenticate=known_by), FastAPI()

    @app.post("/buy", dependencies=[Security(OAuth2PasswordBearer("token", scopes={"buy": "Buy"}), scopes=["buy"])])
    @site.action("buy")
    async def buy() -> dict[str, str]:
        """Buy."""
        return {}

    app.add_middleware(AgentPublisher, site=site)
    refused = invoke(open_client(app), "buy", {}, {"authorization": "Bearer t"})
    assert (refused.status_code, refused.json()["code"]) == (403, "INSUFFICIENT_SCOPE")
