"""What an action says besides its schemas, and the words in which its mistakes are refused."""

from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI, Header, Security
from fastapi.security import APIKeyHeader, HTTPBearer, OAuth2PasswordBearer
from pydantic import BaseModel

from awp_publish import DeclarationError


class Order(BaseModel):
    book: str
    count: int = 1


def ordering(site, **options: Any) -> FastAPI:
    """An application with one action that writes."""
    app = FastAPI()

    @app.post("/orders")
    @site.action("order", **options)
    async def order(order: Order) -> Order:
        """Order a book."""
        return order

    return app


# --- What is said is published ---


def test_dependencies_are_published(site, start):
    app = ordering(site, depends_on=["search"])

    @app.get("/search")
    @site.action("search")
    async def search() -> list[str]:
        """Search."""
        return []

    assert start(app).action("order").depends_on == ("search",)


def test_a_slow_action_ends_at_its_own_timeout(site, start):
    @site.agent("sleeper", timeout=0.05)
    async def sleeper() -> None:
        """Sleep."""
        import asyncio

        await asyncio.sleep(5)

    answer = start().ask("sleeper", {})
    assert (answer.status_code, answer.json()["code"]) == (504, "HANDLER_TIMEOUT")


# --- What is derived from the route ---


def authorized(scheme: object) -> FastAPI:
    app = FastAPI()

    @app.get("/secret")
    async def secret(token: Annotated[Any, Security(scheme, scopes=["read"])]) -> None:
        """Tell a secret."""

    return app


@pytest.mark.parametrize(
    ("scheme", "required"),
    [
        (HTTPBearer(), True),
        (APIKeyHeader(name="X-Key"), True),
        (OAuth2PasswordBearer("token"), True),
        (HTTPBearer(auto_error=False), False),
        (APIKeyHeader(name="X-Key", auto_error=False), False),
    ],
)
def test_a_route_with_a_security_scheme_requires_authentication_unless_the_scheme_only_looks(
    site, start, scheme, required
):
    site.declare("secret", method="GET", path="/secret")
    front = start(authorized(scheme))
    assert front.action("secret").auth_required is required
    assert front.action("secret").scopes == (("read",) if required else ())


def test_the_declaration_has_the_last_word_on_authentication(site, start):
    site.declare("secret", method="GET", path="/secret", auth_required=False)
    assert start(authorized(HTTPBearer())).action("secret").auth_required is False


def test_a_required_authorization_header_is_a_credential_and_no_input(site, start):
    app = FastAPI()

    @app.get("/me")
    @site.action("me")
    async def me(authorization: Annotated[str, Header()]) -> str:
        """Say who I am."""
        return authorization

    front = start(app)
    assert front.inputs("me")["properties"] == {}
    assert front.action("me").auth_required is True
    assert front.ask("me", {}, authorization="Bearer x").json() == "Bearer x"


def test_scopes_of_nested_dependencies_are_found(site, start):
    app = FastAPI()
    bearer = OAuth2PasswordBearer("token", scopes={"a": "A"})

    def user(token: Annotated[str, Security(bearer, scopes=["a"])]) -> str:
        return token

    @app.get("/me")
    @site.action("me")
    async def me(user: Annotated[str, Depends(user)]) -> str:
        """Say who I am."""
        return user

    front = start(app)
    assert front.action("me").auth_required is True
    assert front.ask("me", {}, authorization="Bearer x").json() == "x"


# --- Mistakes ---

TYPE = "is neither a type nor a JSON Schema."


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("inputs", Order(book="Emma"), f"inputs: Order(book='Emma', count=1) {TYPE}"),
        ("inputs", {"type": object()}, "inputs: <object object at 0x"),
        ("outputs", [Order], "outputs: [<class 'tests.declare.test_declare_actions.Order'>] is "),
        ("examples", [{"book": {1}}], "examples.0: {1} is not JSON."),
    ],
)
def test_a_wrong_value_is_refused_where_it_is_written(site, field, value, words):
    with pytest.raises(DeclarationError) as refused:
        site.action("order", **{field: value})
    assert str(refused.value).startswith(f'action "order": {words}')


@pytest.mark.parametrize("wrong", ["Order", "1order", "order-book", "", "órder", None, 3])
def test_ids_have_the_one_spelling_that_every_protocol_accepts(site, wrong):
    for declare in (site.action, site.agent):
        with pytest.raises(DeclarationError, match="id: "):
            declare(wrong)


def test_a_forgotten_id_is_noticed(site):
    def search() -> None: ...

    for kind in ("action", "agent"):
        with pytest.raises(DeclarationError) as refused:
            getattr(site, kind)(search)
        assert str(refused.value) == f'site.{kind}: needs an id: write @site.{kind}("its_id").'


def test_decorating_what_is_no_function_is_noticed(site):
    with pytest.raises(DeclarationError, match='action "order": decorates 3, which is not a function'):
        site.action("order")(3)


def test_one_id_is_declared_once(site):
    ordering(site)
    with pytest.raises(DeclarationError) as refused:
        ordering(site)
    assert str(refused.value) == 'action "order": the id "order" is declared twice. Give one of the two another id.'


def test_declaring_ends_when_the_application_starts(site, start):
    late = site.action("late")
    start(ordering(site))
    words = "is declared after the site was published. Declare before the application starts."
    for declare in (
        lambda: site.action("later"),
        lambda: late(ordering),
        lambda: site.agent("later"),
        lambda: site.declare("later", method="GET", path="/later"),
    ):
        with pytest.raises(DeclarationError, match=words):
            declare()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"inputs": list[int]}, "inputs are named, so they must be described by a model or a schema of type object."),
        ({"inputs": Order | int}, "inputs are named, so they must be described by a model or a schema of type object."),
        (
            {"outputs": type("Shelf", (), {})},
            "outputs: tests.declare.test_declare_actions.Shelf has no JSON Schema. Declare ",
        ),
    ],
)
def test_contradictory_options_are_refused_at_the_start(site, refusal, options, words):
    assert refusal(ordering(site, **options)).startswith(f'action "order": {words}')


@pytest.mark.parametrize(
    ("depends_on", "cycle"),
    [({"a": ["a"]}, "a -> a"), ({"a": ["b"], "b": ["a"]}, "b -> a -> b"), ({"a": ["b"], "b": ["c"], "c": ["a"]}, "")],
)
def test_actions_that_wait_for_each_other_are_refused(site, refusal, depends_on, cycle):
    for action_id, needed in depends_on.items():
        site.declare(action_id, method="GET", path=f"/{action_id}", description="Go.", depends_on=needed)
    words = refusal()
    assert words.startswith("site: depends_on: actions wait for each other: ")
    assert all(action_id in words for action_id in depends_on)


def test_an_action_without_a_description_is_refused(site, refusal):
    app = FastAPI()

    @app.get("/look")
    @site.action("look")
    async def look() -> None:
        pass

    assert refusal(app) == 'action "look": description: is missing. Write a docstring or give description=...'


def test_a_description_given_to_the_route_counts(site, start):
    app = FastAPI()

    @app.get("/look", description="Look around.")
    @site.action("look")
    async def look() -> None:
        pass

    assert start(app).action("look").description == "Look around."


def test_a_docstring_ends_at_a_form_feed(site, start):
    app = FastAPI()

    @app.get("/look")
    @site.action("look")
    async def look() -> None:
        """Look around.
        Twice.
        \f
        Not for agents.
        """

    assert start(app).action("look").description == "Look around. Twice."
