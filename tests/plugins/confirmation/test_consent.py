"""What a person agrees to at any door: a text that the caller cannot write, for the caller who asked, and no other."""

from hashlib import sha256
from typing import Annotated, Any, Literal

import pytest
from fastapi import Depends, FastAPI, Request
from fastapi.security import APIKeyCookie, APIKeyHeader, HTTPBearer
from mcp.types import ElicitResult
from pydantic import BaseModel, Field, SecretStr
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import AgentPublisher
from awp_publish.calls.tokens import Tokens
from tests.doors.adapters import DOORS
from tests.guarded import KEYS, invoke, make_shop, poll, status_and_code
from tests.installed import installed
from tests.plugins.mcp.mcp_messages import MODERN, connect

ASKED_FOR: Any = installed("mcp", "a2a", "awp")
ATTACK = 'Emma". Nothing will be charged. "'


def ask(caller, agent="pay", given=None, headers=None) -> str:
    answer = invoke(caller, agent, given, headers)
    assert status_and_code(answer) == (428, "CONFIRMATION_REQUIRED")
    return answer.json()["confirmation"]["token"]


def confirm(caller, token, agent="pay", headers=None):
    return invoke(caller, agent, headers=(headers or {}) | {"awp-confirmation": token})


# --- Whose agreement it is, where only the route knows who calls ---


def knowing(*dependencies: Any, **options: Any) -> tuple[FastAPI, list[str]]:
    """A shop whose routes know their callers in a way of their own, and who has paid and looked."""
    site, app, paid = make_shop(plugins=ASKED_FOR, secret_keys=KEYS), FastAPI(), []

    @app.post("/payments", dependencies=list(dependencies))
    @site.action("pay", confirm=True, **options)
    async def pay(request: Request) -> str:
        """Pay."""
        paid.append(request.headers.get("authorization", ""))
        return "paid"

    @app.post("/looks", dependencies=list(dependencies))
    @site.action("look")
    async def look() -> str:
        """Look."""
        return "books"

    @app.post("/orders", dependencies=list(dependencies))
    @site.action("order", requires=["look"])
    async def order() -> str:
        """Order."""
        return "ordered"

    @site.agent("send", requires=["look"])
    async def send() -> str:
        """Send."""
        return "sent"

    app.add_middleware(AgentPublisher, site=site)
    return app, paid


@pytest.mark.parametrize("door", DOORS)
def test_a_confirmation_is_good_for_the_credentials_it_was_asked_for_with(open_client, door):
    app, paid = knowing(Depends(HTTPBearer()))
    caller = DOORS[door](open_client(app))
    token = caller.call("pay", token="ann").question["token"]
    refused = caller.call("pay", token="ben", confirmation=token)
    assert refused.code == "CONFIRMATION_FOREIGN"
    assert refused.question["token"] != token
    for confirmation in (token, None):  # nobody is asked for a caller whom the route would refuse
        nobody = caller.call("pay", confirmation=confirmation)
        assert (nobody.code, nobody.question) == ("AUTHENTICATION_REQUIRED", {})
        assert nobody.challenge.split(" ")[0] == "Bearer"  # at MCP with the metadata of the route's scheme
    assert paid == []
    assert caller.call("pay", token="ann", confirmation=token).output == "paid"
    assert paid == ["Bearer ann"]


@pytest.mark.parametrize("door", DOORS)
def test_a_receipt_is_good_for_the_credentials_it_was_given_to(open_client, door):
    caller = DOORS[door](open_client(knowing(Depends(HTTPBearer()))[0]))
    receipt = caller.call("look", token="ann").receipt
    assert receipt is not None
    for agent in ("order", "send"):
        assert caller.call(agent, token="ben", receipts=[receipt]).code == "PREREQUISITE_REQUIRED"
        assert caller.call(agent, token="ann", receipts=[receipt]).code is None


SCHEMES: dict[str, tuple[Any, dict[str, str], dict[str, str]]] = {
    "a header that the scheme names": (APIKeyHeader(name="X-Partner"), {"x-partner": "ann"}, {"x-partner": "ben"}),
    "one that only looks": (
        APIKeyHeader(name="X-Partner", auto_error=False),
        {"x-partner": "ann"},
        {"x-partner": "ben"},
    ),
    "a cookie that the scheme names": (
        APIKeyCookie(name="sid"),
        {"cookie": "theme=dark; sid=ann"},
        {"cookie": "theme=dark; sid=ben"},
    ),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_routes_own_scheme_says_which_credentials_count(open_client, scheme):
    dependency, ann, ben = SCHEMES[scheme]
    client = open_client(knowing(Depends(dependency))[0])
    token = ask(client, headers=ann)
    assert status_and_code(confirm(client, token, headers=ben)) == (403, "CONFIRMATION_FOREIGN")
    assert confirm(client, token, headers=ann).json() == "paid"
    receipt = invoke(client, "look", headers=ann).headers["awp-receipt"]
    assert status_and_code(invoke(client, "order", headers=ben | {"awp-receipt": receipt})) == (
        428,
        "PREREQUISITE_REQUIRED",
    )
    assert invoke(client, "order", headers=ann | {"awp-receipt": receipt}).json() == "ordered"


@pytest.mark.parametrize(
    ("ann", "ben"),
    [
        ({"x-user-id": "ann"}, {"x-user-id": "ben"}),
        ({"x-shop-key": "ann"}, {"x-shop-key": "ben"}),
        ({"x-auth-token": "ann"}, {"x-auth-token": "ben"}),
        ({"cookie": "sessionid=ann"}, {"cookie": "sessionid=ben"}),
        ({"cookie": "sessionid=ann"}, {}),
    ],
)
def test_apparent_credentials_count_where_the_route_declares_none(open_client, ann, ben):
    client = open_client(knowing()[0])
    token = ask(client, headers=ann)
    assert status_and_code(confirm(client, token, headers=ben)) == (403, "CONFIRMATION_FOREIGN")
    assert confirm(client, token, headers=ann).json() == "paid"


def test_headers_that_change_with_each_request_do_not_identify_a_caller(open_client):
    client = open_client(knowing()[0])
    token = ask(client, headers={"x-request-id": "1", "user-agent": "a", "cookie": "AWSALB=1; _ga=1; sid=ann"})
    again = {"x-request-id": "2", "user-agent": "b", "cookie": "sid=ann; AWSALB=2; _ga=2", "x-csrf-token": "2"}
    assert confirm(client, token, headers=again | {"idempotency-key": "k-1"}).json() == "paid"


@pytest.mark.parametrize("stands", ["outside", "inside"])
@pytest.mark.parametrize("scheme", [None, HTTPBearer(auto_error=False), HTTPBearer()])
def test_sessions_count_wherever_their_middleware_stands(open_client, stands, scheme):
    """Starlette signs its cookie anew with each answer; what is in it stays the same."""
    site, app = make_shop(secret_keys=KEYS), FastAPI()

    @app.get("/login/{name}")
    async def log_in(name: str, request: Request) -> None:
        request.session["user"] = name

    @app.post("/payments", dependencies=[Depends(scheme)] if scheme else [])
    @site.action("pay", confirm=True)
    async def pay(request: Request) -> str:
        """Pay."""
        return f"paid by {request.session['user']}"

    for middleware in ("publisher", "session") if stands == "outside" else ("session", "publisher"):
        if middleware == "publisher":
            app.add_middleware(AgentPublisher, site=site)
        else:
            app.add_middleware(SessionMiddleware, secret_key="x" * 32)
    ann, ben = open_client(app), open_client(app)
    bearer = {"authorization": "Bearer both"}
    ann.get("/login/ann")
    ben.get("/login/ben")
    token = ask(ann, headers=bearer)
    assert status_and_code(confirm(ben, token, headers=bearer)) == (403, "CONFIRMATION_FOREIGN")
    assert confirm(ann, token, headers=bearer).json() == "paid by ann"


def test_a_session_that_an_earlier_action_fills_does_not_spoil_its_receipt(open_client):
    site, app = make_shop(secret_keys=KEYS), FastAPI()

    @app.post("/basket")
    @site.action("fill")
    async def fill(request: Request) -> None:
        """Fill the basket."""
        request.session["basket"] = ["Emma"]

    @app.post("/orders")
    @site.action("order", requires=["fill"])
    async def order(request: Request) -> list[str]:
        """Order what is in the basket."""
        return list(request.session["basket"])

    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key="x" * 32)
    client = open_client(app)
    receipt = invoke(client, "fill").headers["awp-receipt"]
    assert invoke(client, "order", headers={"awp-receipt": receipt}).json() == ["Emma"]


@pytest.mark.needs("jobs")
def test_the_receipt_of_a_background_job_is_its_callers_too(open_client):
    site, app = make_shop(secret_keys=KEYS), FastAPI()

    @app.post("/looks", dependencies=[Depends(HTTPBearer())])
    @site.action("look", execution="async")
    async def look() -> str:
        """Look."""
        return "books"

    @app.post("/orders", dependencies=[Depends(HTTPBearer())])
    @site.action("order", requires=["look"])
    async def order() -> str:
        """Order."""
        return "ordered"

    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    ann, ben = ({"authorization": f"Bearer {name}"} for name in ("ann", "ben"))
    accepted = invoke(client, "look", headers=ann)
    assert accepted.status_code == 202
    receipt = poll(client, accepted.headers["location"], ann).headers["awp-receipt"]
    assert status_and_code(invoke(client, "order", headers=ben | {"awp-receipt": receipt})) == (
        428,
        "PREREQUISITE_REQUIRED",
    )
    assert invoke(client, "order", headers=ann | {"awp-receipt": receipt}).json() == "ordered"


def test_no_hash_of_a_password_or_a_pin_can_be_guessed_from_a_token(open_client):
    """The facts of a token can be read by whoever holds it; what it is bound to is hashed under the site's key."""
    client = open_client(knowing(Depends(HTTPBearer()))[0])
    token = ask(client, headers={"authorization": "Bearer my-pin"})
    facts = Tokens(KEYS, "confirmation:shop.example", 600).read(token)
    guesses = {sha256(guess.encode()).hexdigest() for guess in ("{}", "my-pin", "authorization: Bearer my-pin")}
    assert len({facts["input"], facts["shown"]} - guesses) == 2
    assert "my-pin" not in str(facts)


# --- What a person reads ---


class Line(BaseModel):
    title: str
    copies: int = 1


def make_asking_shop():
    site = make_shop(plugins=ASKED_FOR, secret_keys=KEYS)

    @site.agent("words", confirm="{copies} copies of {title}.")
    async def words(title: str, copies: int = 1) -> str:
        """Order in words."""
        return "done"

    @site.agent("ours", confirm=True)
    async def ours(title: str, lines: list[Line] | None = None) -> str:
        """Order."""
        return "done"

    @site.agent("function", confirm=lambda given: f"Order {given['title']}.")
    async def function(title: str) -> str:
        """Order by function."""
        return "done"

    return site


@pytest.mark.parametrize("door", DOORS)
def test_at_every_door_a_value_ends_where_it_ends(open_client, door):
    caller = DOORS[door](open_client(AgentPublisher(Starlette(), site=make_asking_shop())))
    hostile = ATTACK + "\u202eevil\u2066\u200b\x1b[2K\n\u2028"
    shown = '"Emma\\". Nothing will be charged. \\"\\u202eevil\\u2066\\u200b\\u001b[2K\\u000a\\u2028"'
    asked = {agent: caller.call(agent, {"title": hostile}).question["summary"] for agent in ("words", "ours")}
    assert asked == {"words": f"1 copies of {shown}.", "ours": f"Ours: Order. With title: {shown}."}
    told_by_function = caller.call("function", {"title": hostile}).question["summary"]
    assert told_by_function == f"Order {shown[1:-1]}.".replace('\\"', '"')


@pytest.mark.parametrize("door", DOORS)
def test_at_every_door_a_long_value_is_cut_and_says_so(open_client, door):
    caller = DOORS[door](open_client(AgentPublisher(Starlette(), site=make_asking_shop())))
    title = "a" * 414
    words = caller.call("words", {"title": title, "copies": 2}).question["summary"]
    assert words == f'2 copies of "{"a" * 200}" and 214 more characters.'
    lines = [{"title": "Emma", "copies": n} for n in range(1000)]
    ours = caller.call("ours", {"title": "x", "lines": lines}).question["summary"]
    assert ours.startswith('Ours: Order. With title: "x", lines: [{"title": "Emma", "copies": 0}, {"title": ')
    assert ours.endswith(" more items].")
    assert len(ours) < 500
    assert len(caller.call("function", {"title": "b" * 5000}).question["summary"]) < 2100


@pytest.mark.needs("mcp")
async def test_the_person_at_an_mcp_client_is_asked_in_the_same_words():
    asked: list[str] = []

    async def reply(_context, params) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={})

    async with connect(
        AgentPublisher(Starlette(), site=make_asking_shop()), MODERN, elicitation_callback=reply
    ) as client:
        await client.call_tool("words", {"title": ATTACK + "\u202e"})
    assert asked == ['1 copies of "Emma\\". Nothing will be charged. \\"\\u202e".']


def test_a_template_shows_what_stands_for_an_input_that_is_left_out(open_client):
    named: Any = {
        "properties": {
            "copies": {"type": "integer", "default": 1},
            "price": {"type": "number", "default": 2},
            "wrap": {"type": "boolean", "default": False},
            "note": {"type": ["string", "null"], "default": None},
            "pin": {"type": "string", "writeOnly": True, "default": "1234"},
            "title": {"type": "string"},
        }
    }
    words = "{copies} at {price:.2f}, wrapped: {wrap}, note: {note}, pin: {pin}, title: {title}"
    left_out = summary_of(open_client, {}, words, **named)
    assert left_out == "1 at 2.00, wrapped: false, note: (not given), pin: (hidden), title: (not given)"
    given = summary_of(open_client, {"copies": 3, "price": 5, "wrap": True, "note": None}, words, **named)
    assert given == "3 at 5.00, wrapped: true, note: null, pin: (hidden), title: (not given)"


def summary_of(open_client, given, summary=None, **inputs):
    site = make_shop(secret_keys=KEYS)

    @site.agent("pay", confirm=True if summary is None else summary, inputs={"type": "object", **inputs})
    async def pay(given: Any) -> None:
        """Pay."""

    answer = invoke(open_client(AgentPublisher(Starlette(), site=site)), "pay", given)
    assert status_and_code(answer) == (428, "CONFIRMATION_REQUIRED")
    return answer.json()["confirmation"]["summary"]


NAMED: Any = {"properties": {"price": {"type": "number"}, "title": {}, "copies": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("summary", "given", "expected"),
    [
        ("{price:.2f} for {title}", {"price": 2.5, "title": "Emma"}, '2.50 for "Emma"'),
        ("{price:.2f}", {"price": 3}, "3.00"),
        ("{price}", {"price": 1.5e-7}, "1.5e-7"),
        ("{price:,}", {"price": 1234567.5}, "1,234,567.5"),
        ("{copies:d}", {"copies": 2.0}, "2.0"),
        ("{copies:>3}", {"copies": 2}, "  2"),
        ("{title:.2}", {"title": 'E"mma'}, '"E\\"mma"'),
        ("{title:>40}{title!r}{title!s}", {"title": "Emma"}, '"Emma"' * 3),
        ("{title}", {"title": None}, "null"),
        ("{title:.1f}", {"title": True}, "true"),
        ("{{{title}}}", {"title": "{price}"}, '{"{price}"}'),
        ("{title}", {"title": "(not given)"}, '"(not given)"'),
        ("{title}", {"title": "(hidden)"}, '"(hidden)"'),
        ("{title}", {"title": "\\"}, '"\\\\"'),
        ("{title}", {"title": "Straße 東京 🎉"}, '"Straße 東京 🎉"'),
        ("{title}", {"title": "\u201cb\u201d\uff02"}, '"\\u201cb\\u201d\\uff02"'),
        ("{title}", {"title": "a\u05f4 b\u3003"}, '"a\\u05f4 b\\u3003"'),
        ("{title}", {"title": "\u061c\u200e\u200f\ufeff\u00ad\u2060"}, '"\\u061c\\u200e\\u200f\\ufeff\\u00ad\\u2060"'),
        (
            "{title}",
            {"title": "\ue000\U000e0041\U000e0101\u3164\x7f\x9b\u0378"},
            '"\\ue000\\udb40\\udc41\\udb40\\udd01\\u3164\\u007f\\u009b\\u0378"',
        ),
        ("{title}", {"title": {'a"': ["b\n"]}}, '{"a\\"": ["b\\u000a"]}'),
        ("{title}", {"title": [[]] * 3}, "[[], [], []]"),
    ],
)
def test_templates_show_values_as_json(open_client, summary, given, expected):
    assert summary_of(open_client, given, summary, **NAMED) == expected


def test_names_that_the_caller_chooses_are_quoted_too(open_client):
    given = {"title": "Emma", 'x". Free of charge. "': 1, "a\nb": {"c\u202e": 2}}
    assert summary_of(open_client, given, properties={"title": {}}) == (
        'Pay: Pay. With title: "Emma", "a\\u000ab": {"c\\u202e": 2}, "x\\". Free of charge. \\"": 1.'
    )


ADDRESS: Any = {"type": "object", "properties": {"street": {}, "city": {}}}


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        (True, 'Pay: Pay. With title: "Emma", copies: 2, to: {"street": "1", "city": "B", "area": 0}, "a": 1, "z": 2.'),
        ("To {to}", 'To {"street": "1", "city": "B", "area": 0}'),
        (lambda given: f"Pay {given}", None),
    ],
)
def test_the_order_in_which_a_caller_writes_members_changes_nothing(open_client, summary, shown):
    site = make_shop(secret_keys=KEYS)
    properties = {"title": {}, "copies": {"type": "integer"}, "to": {"$ref": "#/$defs/Address"}}
    inputs = {"type": "object", "properties": properties, "$defs": {"Address": ADDRESS}}

    @site.agent("pay", confirm=summary, inputs=inputs)
    async def pay(given: Any) -> str:
        """Pay."""
        return "paid"

    client = open_client(AgentPublisher(Starlette(), site=site))
    to = {"city": "B", "area": 0, "street": "1"}
    given = {"z": 2, "to": to, "copies": 2, "a": 1, "title": "Emma"}
    question = invoke(client, "pay", given).json()["confirmation"]
    if shown is not None:
        assert question["summary"] == shown
    again = {name: given[name] for name in reversed(given)} | {"to": {name: to[name] for name in reversed(to)}}
    assert invoke(client, "pay", again, {"awp-confirmation": question["token"]}).json() == "paid"


def test_the_order_of_a_list_is_part_of_what_a_person_confirms(open_client):
    site = make_shop(secret_keys=KEYS)

    @site.agent("pay", confirm=True)
    async def pay(titles: list[str]) -> None:
        """Pay."""

    client = open_client(AgentPublisher(Starlette(), site=site))
    token = ask(client, given={"titles": ["Emma", "Persuasion"]})
    swapped = invoke(client, "pay", {"titles": ["Persuasion", "Emma"]}, {"awp-confirmation": token})
    assert status_and_code(swapped)[1] == "CONFIRMATION_MISMATCH"


def test_a_function_that_writes_a_summary_is_given_no_secret(open_client):
    site = make_shop(secret_keys=KEYS)

    def say(given: dict[str, Any]) -> str:
        return f"Pay with {given['card']} and {given['pin']}."

    @site.agent("pay", confirm=say)
    async def pay(card: str, pin: SecretStr) -> str:
        """Pay."""
        return f"paid with {pin.get_secret_value()}"

    client = open_client(AgentPublisher(Starlette(), site=site))
    question = invoke(client, "pay", {"card": "1", "pin": "9999"}).json()["confirmation"]
    assert question["summary"] == "Pay with 1 and (hidden)."
    paid = invoke(client, "pay", {"card": "1", "pin": "9999"}, {"awp-confirmation": question["token"]})
    assert paid.json() == "paid with 9999"


def test_nobody_is_asked_about_an_input_that_no_address_can_carry(open_client):
    site, app = make_shop(secret_keys=KEYS, plugins=ASKED_FOR), FastAPI()

    @app.post("/books/{book:path}/order")
    @site.action("order", confirm=True)
    async def order(book: str) -> str:
        """Order."""
        return book

    client = open_client(AgentPublisher(app, site=site))
    for door in DOORS.values():
        for book in ("..", "a/../b"):
            assert door(client).call("order", {"book": book}).code == "INVALID_INPUT"
        assert door(client).call("order", {"book": "a/b"}).code == "CONFIRMATION_REQUIRED"


def test_inputs_too_many_to_be_read_are_counted(open_client):
    summary = summary_of(open_client, {f"n{n:04}": n for n in range(5000)})
    assert summary.endswith('"n0019": 19, and 4980 more inputs.')
    wide = summary_of(open_client, {"title": {f"n{n}": "v" * 300 for n in range(3000)}}, "{title}", **NAMED)
    assert wide.startswith('{"n0": "vvv')
    assert wide.endswith("and 2999 more members}")
    assert len(wide) < 500
    secrets = {"title": {"items": {"writeOnly": True}}}
    assert len(summary_of(open_client, {"title": ["x"] * 5000}, "{title}", properties=secrets)) < 500
    deep: Any = "x"
    for _ in range(150):
        deep = [deep]
    assert "more items" in summary_of(open_client, {"title": deep}, "{title}", **NAMED)


# --- Patterns of names ---


def test_names_are_matched_in_linear_time_and_secrets_behind_patterns_stay_hidden(open_client):
    patterns = {
        "^(a+)+$": {"type": "string"},
        "^secret_": {"writeOnly": True},
        "^(?!plain)": {"type": "string", "format": "password"},
    }
    given = {"title": {"a" * 60 + "!": "1", "secret_pin": "4711", "plain": "5"}}
    summary = summary_of(open_client, given, "{title}", properties={"title": {"patternProperties": patterns}})
    assert "4711" not in summary
    assert summary.count("(hidden)") == 3


def test_members_behind_an_unreadable_pattern_stay_hidden(open_client):
    schema = {"patternProperties": {"^(?!pin)": {}}, "additionalProperties": {"writeOnly": True}}
    assert "4711" not in summary_of(open_client, {"title": {"pin": "4711"}}, "{title}", properties={"title": schema})


def test_choices_and_numbers_are_shown_as_they_are(open_client):
    site = make_shop(secret_keys=KEYS)

    @site.agent("pay", confirm="{copies} by {way}")
    async def pay(way: Literal["card", "cash"], copies: Annotated[int, Field(gt=0)] = 1) -> None:
        """Pay."""

    answer = invoke(open_client(AgentPublisher(Starlette(), site=site)), "pay", {"way": "card", "copies": 3})
    assert answer.json()["confirmation"]["summary"] == '3 by "card"'
