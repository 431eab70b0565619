"""What an action says besides its schemas, and the words in which its mistakes are refused."""

from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI, Header, Security
from fastapi.security import APIKeyHeader, HTTPBearer, OAuth2PasswordBearer
from pydantic import BaseModel

from awp_publish import DeclarationError, Idempotency


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


@pytest.mark.parametrize(
    ("options", "published"),
    [
        ({}, {"id": "order", "name": "Order", "description": "Order a book.", "method": "POST", "path": "/orders"}),
        ({"name": "Order it"}, {"name": "Order it"}),
        ({"description": "Buy."}, {"description": "Buy."}),
        ({}, {"type": "state_change", "intent": "write", "sideEffect": "destructive"}),
        ({"effect": "read"}, {"intent": "read", "sideEffect": "safe", "type": "data_retrieval"}),
        ({"effect": "idempotent"}, {"sideEffect": "idempotent"}),
        ({"effect": "write"}, {"intent": "write", "sideEffect": "destructive"}),
        ({"effect": "write", "idempotency": True}, {"sideEffect": "idempotent"}),
        ({"effect": "delete"}, {"intent": "delete", "sideEffect": "destructive"}),
        ({"effect": "irreversible", "idempotency": True}, {"intent": "write", "sideEffect": "destructive"}),
        ({"idempotency": True}, {"sideEffect": "idempotent"}),
        ({"tags": ["books", "orders"]}, {"x-tags": ["books", "orders"]}),
        ({"rate_limit": "3/minute"}, {"rateLimit": {"requests": 3, "window": "1m"}}),
        ({"rate_limit": "3 per 2 hours"}, {"rateLimit": {"requests": 3, "window": "2h"}}),
        ({"scopes": ["orders:write"]}, {"authScopes": ["orders:write"], "authentication_required": True}),
        ({"extensions": {"x-shelf": 3}}, {"x-shelf": 3}),
    ],
)
def test_what_an_action_says_reaches_the_awas_manifest(site, start, options, published):
    read = start(ordering(site, **options)).awas("order")
    assert {name: read.get(name) for name in published} == published


@pytest.mark.parametrize(
    ("options", "published"),
    [
        ({}, {"auth_required": False, "execution_model": "sync", "sensitivity": "standard"}),
        ({"auth_required": True}, {"auth_required": True}),
        ({"execution": "async"}, {"execution_model": "async"}),
        ({"effect": "read"}, {"sensitivity": None, "reversible": None}),
        ({"effect": "idempotent"}, {"sensitivity": "standard", "reversible": None}),
        ({"effect": "write"}, {"sensitivity": "standard", "requires_human_confirmation": None}),
        ({"effect": "delete"}, {"sensitivity": "destructive", "reversible": None}),
        (
            {"effect": "irreversible"},
            {"sensitivity": "irreversible", "reversible": False, "requires_human_confirmation": True},
        ),
        ({"confirm": True}, {"requires_human_confirmation": True, "sensitivity": "standard"}),
        ({"confirm": "Order {count} of {book}."}, {"requires_human_confirmation": True}),
        ({"rate_limit": "30/minute"}, {"rate_limit": "30/minute"}),
        ({"idempotency": False}, {"idempotency": None}),
    ],
)
def test_what_an_action_says_reaches_agent_json(site, start, options, published):
    read = start(ordering(site, **options)).agent_json("order")
    assert {name: read.get(name) for name in published} == published


@pytest.mark.parametrize(
    ("idempotency", "window"),
    [(True, "24h"), ("1h", "1h"), ({"window": "3m"}, "3m"), (Idempotency("2d", "key"), "2d")],
)
def test_an_idempotency_window_may_be_written_in_several_ways(site, start, idempotency, window):
    read = start(ordering(site, idempotency=idempotency)).agent_json("order")["idempotency"]
    assert (read["supported"], read["window"]) == (True, window)


def test_examples_are_published(site, start):
    front = start(ordering(site, examples=[{"book": "Emma"}, {"book": "Emma", "count": 2}]))
    assert "Emma" in str(front.awas("order"))


def test_dependencies_are_published(site, start):
    app = ordering(site, depends_on=["search"])

    @app.get("/search")
    @site.action("search")
    async def search() -> list[str]:
        """Search."""
        return []

    front = start(app)
    assert front.client.get("/agent.json").json()["dependencies"] == {"order": ["search"]}


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
    site.include(operations=["secret"])
    front = start(authorized(scheme))
    assert front.agent_json("secret")["auth_required"] is required
    assert front.awas("secret").get("authScopes") == (["read"] if required else None)


def test_the_declaration_has_the_last_word_on_authentication(site, start):
    site.declare("secret", method="GET", path="/secret", auth_required=False)
    assert start(authorized(HTTPBearer())).agent_json("secret")["auth_required"] is False


def test_a_required_authorization_header_is_a_credential_and_no_input(site, start):
    app = FastAPI()

    @app.get("/me")
    @site.action("me")
    async def me(authorization: Annotated[str, Header()]) -> str:
        """Say who I am."""
        return authorization

    front = start(app)
    assert front.inputs("me")["properties"] == {}
    assert front.agent_json("me")["auth_required"] is True
    answer = front.client.post("/agents/me/invoke", json={"input": {}}, headers={"authorization": "Bearer x"})
    assert answer.json() == "Bearer x"


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
    assert front.agent_json("me")["auth_required"] is True
    answer = front.client.post("/agents/me/invoke", json={"input": {}}, headers={"authorization": "Bearer x"})
    assert answer.json() == "x"


# --- Mistakes ---

TYPE = "is neither a type nor a JSON Schema."
TOKEN = "must be letters, digits, - and _."


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("nme", "Order", 'nme: there is no such option; did you mean "name"?'),
        ("version", "1.0", "version: there is no such option"),
        ("name", "", "name: must not be empty."),
        ("description", 3, "description: must be text."),
        ("method", "get", "method: must be 'GET', 'POST', 'PUT', 'PATCH' or 'DELETE', not 'get'."),
        ("path", "orders", "path: 'orders' must begin with \"/\"."),
        ("path", "/orders?a=1", 'path: \'/orders?a=1\' must hold no "?", "#" or space; declare inputs for the query.'),
        ("inputs", "Order", f"inputs: 'Order' {TYPE}"),
        ("inputs", True, f"inputs: True {TYPE}"),
        ("inputs", Order(book="Emma"), f"inputs: Order(book='Emma', count=1) {TYPE}"),
        ("inputs", {"type": object()}, "inputs: <object object at 0x"),
        ("outputs", [Order], "outputs: [<class 'tests.declare.test_declare_actions.Order'>] is "),
        (
            "content_type",
            "text/xml",
            "content_type: must be 'application/json', 'application/x-www-form-urlencoded' or",
        ),
        ("effect", "buy", "effect: must be 'read', 'idempotent', 'write', 'delete' or 'irreversible', not 'buy'."),
        ("tags", "books", "tags: must be a list, not one string."),
        ("tags", [""], "tags.0: must not be empty."),
        ("examples", {"book": "Emma"}, "examples: must be a list."),
        ("examples", ["Emma"], "examples.0: must be a dictionary."),
        ("examples", [{"book": {1}}], "examples.0: {1} is not JSON."),
        ("auth_required", "yes", "auth_required: must be True or False."),
        ("scopes", "orders", "scopes: must be a list, not one string."),
        ("rate_limit", "often", "rate_limit: 'often' is not a rate limit; write it as \"30/minute\"."),
        ("idempotency", 24, 'idempotency: write idempotency as True, "24h" or {"window": "24h", "key_field": '),
        ("idempotency", "a day", "idempotency: 'a day' is not a duration; write a number and one of s, m, h, d"),
        (
            "idempotency",
            {"windw": "1h"},
            'idempotency: write idempotency as True, "24h" or {"window": "24h", "key_field": ',
        ),
        ("idempotency", Idempotency(window=24), 'idempotency: write idempotency as True, "24h" or '),  # type: ignore[arg-type]
        ("selector", "form#order", "selector: there is no such option."),
        ("confirm", 3, 'confirm: must be True, False, a text such as "Order {copies} of {title}", or a function'),
        ("confirm", "", "confirm: must not be empty."),
        ("confirm", "Order {", "confirm: 'Order {' has a brace that does not close"),
        ("requires", "search", "requires: must be a list, not one string."),
        ("depends_on", "search", "depends_on: must be a list, not one string."),
        ("execution", "later", "execution: must be 'sync' or 'async', not 'later'."),
        ("timeout", -1, "timeout: must be greater than 0."),
        (
            "extensions",
            {"x-tags": ["mine"]},
            "extensions: 'x-tags': is a member that documents have already; give yours another name",
        ),
        (
            "extensions",
            {"shelf": 1},
            "extensions: 'shelf': extension names begin with x- (AWAS, section Extensions); members of one document go "
            'under its name, which is one of "agent_json", "awas", "woa".',
        ),
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
        lambda: site.include(),
    ):
        with pytest.raises(DeclarationError, match=words):
            declare()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effect": "irreversible", "confirm": False}, "confirm: an irreversible action always needs confirmation."),
        ({"confirm": "Order {books}."}, 'confirm: "books" is not an input. There are: book, count.'),
        ({"scopes": ["a"], "auth_required": False}, "scopes: need auth_required=True."),
        ({"content_type": "multipart/form-data"}, "content_type: its route takes application/json."),
        ({"method": "GET"}, "method, path: match none of its routes (POST /orders)."),
        ({"path": "/order"}, "method, path: match none of its routes (POST /orders)."),
        ({"examples": [{"book": "Emma"}, {"count": 1}]}, "examples.1: /book is required."),
        ({"examples": [{"book": 3}]}, "examples.0: /book must be a string, not 3."),
        ({"depends_on": ["search"]}, 'depends_on: there is no action "search".'),
        ({"requires": ["search"]}, 'requires: there is no action "search".'),
        ({"inputs": list[int]}, "inputs are named, so they must be described by a model or a schema of type object."),
        ({"inputs": Order | int}, "inputs are named, so they must be described by a model or a schema of type object."),
        ({"inputs": {"type": "objct"}}, "not a valid JSON Schema 2020-12: "),
        (
            {"inputs": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}},
            "not a valid JSON Schema 2020-12: ",
        ),
        ({"outputs": {"$ref": "https://else.example/a"}}, "not a valid JSON Schema 2020-12: "),
        ({"outputs": type("Shelf", (), {})}, "tests.declare.test_declare_actions.Shelf has no JSON Schema. Declare "),
    ],
)
def test_what_does_not_fit_together_is_refused_at_the_start(site, refusal, options, words):
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

    assert start(app).awas("look")["description"] == "Look around."


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

    assert start(app).awas("look")["description"] == "Look around. Twice."
