"""What every door has to hold: each refusal of a guarded call, provoked for real, is told with all that it knows."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, BearerToken, Principal, Refused, Site
from awp_publish.calls.call import Call
from awp_publish.calls.guard import in_order
from awp_publish.calls.tokens import Tokens
from awp_publish.declare.plugins import gates_of
from awp_publish.problems import AuthExpired, StoreUnavailable
from awp_publish.stores.memory import MemoryStore
from tests.documents.known import PROBLEMS
from tests.doors.adapters import EVERY_DOOR as DOORS
from tests.doors.callers import DoorCaller, Told
from tests.guarded import KEYS, Watched, make_shop
from tests.installed import installed, is_installed
from tests.plugins.mcp.mcp_messages import without_cookie_jar

CONFIRMATIONS = "confirmation:shop.example"
ASKED_FOR = installed("mcp", "a2a", "awp", "bridge")
"""Doors that a site has to ask for."""


@dataclass
class Shop:
    """A door to a shop, and what a test may do behind it."""

    door: DoorCaller
    site: Site
    store: Watched
    runs: list[str]
    begun: threading.Event
    go: threading.Event
    prices: list[int]

    def ask(self) -> str:
        return self.door.call("pay", token="ann").question["token"]


def _check(token: str) -> Principal | None:
    if token == "old":
        raise AuthExpired("The token has expired.")
    return Principal(token, frozenset({"buy"} if token == "ann" else ())) if token in ("ann", "ben") else None


@pytest.fixture(params=DOORS)
def shop(request, open_client) -> Iterator[Shop]:
    store, runs, begun, go, prices = Watched(MemoryStore()), [], threading.Event(), threading.Event(), [5]
    site = make_shop(store=store, authenticate=BearerToken(_check), secret_keys=KEYS, plugins=ASKED_FOR)

    @site.agent("look", rate_limit="2/minute")
    async def look() -> str:
        """Look at books."""
        return "books"

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """What is mine."""
        return "mine"

    @site.agent("buy", scopes=["buy"])
    async def buy() -> str:
        """Buy a book."""
        return "bought"

    @site.agent("order", idempotency="24h")
    def order(copies: int = 1, how: str = "") -> int:
        """Order books."""
        runs.append("order")
        if how == "slow":
            begun.set()
            go.wait(30)
        return len(runs)

    @site.agent("charge", idempotency="24h", effect="irreversible")
    async def charge() -> None:
        """Charge a card."""
        runs.append("charge")
        connection = asyncio.ensure_future(asyncio.sleep(60))
        connection.cancel()  # not by a caller who has gone: a failure as any other
        await connection

    @site.agent("print", idempotency="24h")
    async def print_(copies: int = 1) -> str:
        """Print books."""
        runs.append("print")
        return "x" * 100_000 * copies

    @site.agent("pay", confirm=True, auth_required=True)
    async def pay(copies: int = 1) -> str:
        """Pay books."""
        runs.append("pay")
        return "paid"

    @site.agent("cancel", confirm=True)
    async def cancel(copies: int = 1) -> str:
        """Cancel an order."""
        return "cancelled"

    @site.agent("send", requires=["look"])
    async def send() -> str:
        """Send books."""
        return "sent"

    async def summarize_basket(given: Mapping[str, object], call: Call) -> str:
        assert call.principal is not None
        if prices[-1] == 0:
            raise Refused("The basket is empty.")
        if prices[-1] < 0:
            raise RuntimeError("a bug")
        await asyncio.sleep(60 if prices[-1] > 1000 else 0)
        return f"Pay {prices[-1]} pounds for what {call.principal.id} has chosen."

    @site.agent("check_out", confirm=summarize_basket, requires=["look"], auth_required=True, timeout=1)
    async def check_out(copies: int = 1) -> str:
        """Order what is in the basket."""
        runs.append("check_out")
        return "ordered"

    @site.action("sign_in")
    async def sign_in(request: Request) -> JSONResponse:
        """Sign in."""
        request.session["name"] = "ann"
        return JSONResponse("welcome")

    @site.action("whoami")
    async def whoami(request: Request) -> JSONResponse:
        """Say who is signed in."""
        return JSONResponse(request.session.get("name", "nobody"))

    routes = [Route("/sign-in", sign_in, methods=["POST"]), Route("/me", whoami, methods=["GET"])]
    app = Starlette(routes=routes, middleware=[Middleware(SessionMiddleware, secret_key="secret")])
    client = without_cookie_jar(open_client(AgentPublisher(app, site=site)))
    yield Shop(DOORS[request.param](client), site, store, runs, begun, go, prices)
    go.set()


# --- How each refusal is provoked ---


def reach_the_limit(shop: Shop) -> Told:
    return [shop.door.call("look") for _ in range(3)][-1]


def reuse_a_key(shop: Shop) -> Told:
    assert shop.door.call("order", key="k-1").output == 1
    return shop.door.call("order", {"copies": 2}, key="k-1")


def hurry(shop: Shop) -> Told:
    """Call again while the first call is running."""
    first = threading.Thread(target=shop.door.call, args=("order", {"how": "slow"}), kwargs={"key": "k-1"})
    first.start()
    assert shop.begun.wait(30)
    answer = shop.door.call("order", {"how": "slow"}, key="k-1")
    shop.go.set()
    first.join(30)
    assert shop.door.call("order", {"how": "slow"}, key="k-1").is_replayed
    return answer


def fail_and_retry(shop: Shop) -> Told:
    agreed = shop.door.call("charge").question["token"]
    assert shop.door.call("charge", key="k-1", confirmation=agreed).code == "HANDLER_FAILED"
    return shop.door.call("charge", key="k-1")


def ask_for_much_twice(shop: Shop) -> Told:
    assert shop.door.call("print", key="k-1").output == "x" * 100_000
    assert shop.door.call("print", {"copies": 2}, key="k-1").code == "IDEMPOTENCY_KEY_REUSED"
    return shop.door.call("print", key="k-1")


def bring_an_old_confirmation(shop: Shop) -> Told:
    tokens = Tokens(KEYS, CONFIRMATIONS, 600, clock=lambda: time.time() - 601)
    facts = Tokens(KEYS, CONFIRMATIONS, 600).read(shop.ask())
    return shop.door.call("pay", token="ann", confirmation=tokens.write(facts)[0])


def confirm_twice(shop: Shop) -> Told:
    confirmation = shop.ask()
    assert shop.door.call("pay", token="ann", confirmation=confirmation).output == "paid"
    return shop.door.call("pay", token="ann", confirmation=confirmation)


def confirm_what_has_changed(shop: Shop) -> Told:
    shop.door.call("look", token="ann")
    confirmation = shop.door.call("check_out", token="ann").question["token"]
    shop.prices.append(50)
    return shop.door.call("check_out", token="ann", confirmation=confirmation)


def call_a_degraded_action(shop: Shop) -> Told:
    shop.site.set_status(degraded_actions=["order"])
    shop.site.refresh()
    return shop.door.call("order")


def lose_the_store(shop: Shop) -> Told:
    async def lose(steps):
        raise StoreUnavailable("The site's store cannot be reached.")

    shop.store.trouble = lose
    return shop.door.call("order", key="k-1")


OF_PLUGINS = {"TemporarilyUnavailable": "status", "SessionUnknown": "sessions"}
"""What provokes a problem of a plug-in."""
PROVOCATIONS: dict[str, Callable[[Shop], Told]] = {
    "AuthenticationRequired": lambda shop: shop.door.call("mine"),
    "InvalidCredentials": lambda shop: shop.door.call("mine", token="wrong"),
    "AuthExpired": lambda shop: shop.door.call("mine", token="old"),
    "SessionUnknown": lambda shop: shop.door.call("look", session="A" * 56),
    "InsufficientScope": lambda shop: shop.door.call("buy", token="ben"),
    "ForeignHost": lambda shop: shop.door.call("look", as_rebound_page=True),
    "CrossSiteCookies": lambda shop: shop.door.call("look", as_foreign_page=True),
    "RateLimited": reach_the_limit,
    "InvalidIdempotencyKey": lambda shop: shop.door.call("order", key="k" * 256),
    "IdempotencyKeyReused": reuse_a_key,
    "IdempotencyKeyInFlight": hurry,
    "OutcomeUnknown": fail_and_retry,
    "AnswerNotKept": ask_for_much_twice,
    "ConfirmationRequired": lambda shop: shop.door.call("pay", token="ann"),
    "ConfirmationExpired": bring_an_old_confirmation,
    "ConfirmationTampered": lambda shop: shop.door.call("pay", token="ann", confirmation=shop.ask() + "x"),
    "ConfirmationForeign": lambda shop: shop.door.call("pay", token="ben", confirmation=shop.ask()),
    "ConfirmationSpent": confirm_twice,
    "ConfirmationMismatch": lambda shop: shop.door.call("pay", {"copies": 2}, token="ann", confirmation=shop.ask()),
    "ConfirmationStale": confirm_what_has_changed,
    "PrerequisiteRequired": lambda shop: shop.door.call("send"),
    "TemporarilyUnavailable": call_a_degraded_action,
    "StoreUnavailable": lose_the_store,
}
RETRIED = {"RateLimited", "IdempotencyKeyInFlight", "TemporarilyUnavailable", "StoreUnavailable"}
CHALLENGED = {"AuthenticationRequired", "InvalidCredentials", "AuthExpired", "SessionUnknown", "InsufficientScope"}

HAD_RUN = {"IdempotencyKeyReused", "IdempotencyKeyInFlight", "OutcomeUnknown", "AnswerNotKept", "ConfirmationSpent"}
"""Refused because of an earlier call, which has reached its handler."""

KINDS = {kind.__name__: kind for kind in PROBLEMS}
TOLD_ELSEWHERE = {"InvalidInput", "UnknownAgent", "InsufficientPermissions"}


def test_every_refusal_of_a_gate_is_provoked():
    gates = in_order(gates_of(Site("Shop", "Sells things.", url="https://shop.example").plugins))
    assert {kind.__name__ for gate in gates for kind in gate.refuses} - TOLD_ELSEWHERE <= set(PROVOCATIONS)


@pytest.mark.needs("jobs")
@pytest.mark.parametrize(
    "name",
    [name for name in PROVOCATIONS if name in KINDS and (name not in OF_PLUGINS or is_installed(OF_PLUGINS[name]))],
)
def test_every_refusal_is_told_with_all_that_it_knows_and_has_reached_no_handler(shop, name):
    kind, told = KINDS[name], PROVOCATIONS[name](shop)
    assert told.code == kind.slug.upper().replace("-", "_")
    way = shop.door.ways.get(name)
    seconds = f"{told.retry_after} second{'' if told.retry_after == 1 else 's'} (Retry-After)"
    is_linked = is_installed("agent_json") or "/agent.json" not in kind.default_recovery
    words = kind.default_recovery if is_linked else kind.unlinked_recovery
    expected = words.replace("the seconds in Retry-After", seconds)
    assert told.recovery == expected if way is None else way in told.recovery
    assert told.detail
    assert (told.retry_after is not None and told.retry_after >= 1) == (name in RETRIED)
    assert bool(told.challenge) == (name in CHALLENGED)
    assert set(told.question) == ({"token", "summary", "expires_at"} if name.startswith("Confirmation") else set())
    assert len(shop.runs) == (name in HAD_RUN)


@pytest.mark.needs("woa")
@pytest.mark.needs("plain")
def test_a_declared_recovery_replaces_the_doors_own(open_client):
    site = make_shop(plugins=ASKED_FOR, secret_keys=KEYS, errors={"CONFIRMATION_REQUIRED": "Ring us up."})

    @site.agent("pay", confirm=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    client = open_client(AgentPublisher(Starlette(), site=site))
    assert {make(client).call("pay").recovery for make in DOORS.values()} == {"Ring us up."}


def test_an_answer_that_is_too_large_for_a_caller_nobody_knows_is_kept_for_one_who_is_known(shop):
    assert not shop.door.call("print", token="ann", key="k-1").is_replayed
    again = shop.door.call("print", token="ann", key="k-1")
    assert (again.is_replayed, again.output, shop.runs) == (True, "x" * 100_000, ["print"])


def test_a_damaged_record_of_a_key_is_a_store_that_is_unavailable(shop):
    assert shop.door.call("order", key="k-1").output == 1
    for damaged in (b"", b"\xff{", b"[]", b'{"for": 1}', b'{"for": 1, "state": "done"}', b'"done"\n1', b"null"):
        shop.store.told_instead = damaged
        answer = shop.door.call("order", key="k-1")
        assert (answer.code, answer.retry_after) == ("STORE_UNAVAILABLE", 1)
    shop.store.told_instead = None
    assert shop.door.call("order", key="k-1").is_replayed
    assert shop.runs == ["order"]


# --- And each success ---


def test_a_confirmed_call_succeeds(shop):
    assert shop.door.call("pay", token="ann", confirmation=shop.ask()).output == "paid"


def test_a_retried_call_is_told_its_recorded_answer(shop):
    first, again = (shop.door.call("order", key="k-1") for _ in range(2))
    assert (first.output, first.is_replayed) == (1, False)
    assert (again.output, again.is_replayed) == (1, True)


def test_a_receipt_opens_what_depends_on_it(shop):
    receipt = shop.door.call("look").receipt
    assert receipt is not None
    assert shop.door.call("send", receipts=["rubbish", receipt]).output == "sent"


@pytest.mark.needs("sessions")
def test_a_session_is_handed_out_once_and_has_its_cookies_wherever_it_is_shown(shop):
    if shop.door.keeps_cookies:
        pytest.skip("a page in process has the cookies itself")
    begun = shop.door.call("sign_in")
    assert (begun.output, shop.door.call("whoami").output) == ("welcome", "nobody")
    assert begun.session is not None
    shown = shop.door.call("whoami", session=begun.session)
    assert (shown.output, shown.session) == ("ann", None)


def test_callers_are_let_through_with_what_they_need(shop):
    assert shop.door.call("mine", token="ben").output == "mine"
    assert shop.door.call("buy", token="ann").output == "bought"


# --- What is secret, what is not JSON, and how much is taken ---

SECRET = "hunter2-and-more"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


class SignIn(BaseModel):
    name: str
    password: SecretStr


class Ticket(BaseModel):
    number: int
    token: str = Field(json_schema_extra={"readOnce": True})


def make_vault(facts: list[Any], store: MemoryStore) -> AgentPublisher:
    site = make_shop(plugins=ASKED_FOR, secret_keys=KEYS, store=store, log_inputs=True)
    site.on_call(facts.append)

    @site.agent("sign_in", confirm="Sign in {name} with {password}.")
    async def sign_in(given: SignIn) -> str:
        """Sign in."""
        return given.name

    @site.agent("issue", idempotency="24h")
    async def issue() -> Ticket:
        """Issue a ticket."""
        return Ticket(number=7, token=SECRET)

    @site.agent("small", max_body_bytes=2_000)
    async def small(text: str) -> int:
        """Count."""
        return len(text)

    @site.agent("large", max_body_bytes=2_000_000)
    async def large(text: str) -> int:
        """Count."""
        return len(text)

    @site.agent("draw")
    async def draw() -> Annotated[bytes, Field(json_schema_extra={"contentMediaType": "image/png"})]:
        """Draw."""
        return PICTURE

    async def cover(request: Request) -> Response:
        named = {"content-disposition": "attachment; filename*=UTF-8''..%2F%E2%82%AC%20rates.pdf"}
        return Response(b"all ASCII", media_type="application/pdf", headers=named)

    async def speak(request: Request) -> Response:
        return Response(b"RIFF", media_type="audio/wav")

    async def table(request: Request) -> Response:
        return Response("a,\xff\n", media_type="text/csv")

    views = {"cover": cover, "speak": speak, "table": table}
    for name in views:
        site.declare(name, method="GET", path=f"/{name}", description=f"Give a {name}.")
    app = Starlette(routes=[Route(f"/{name}", view) for name, view in views.items()])
    return AgentPublisher(app, site=site)


@pytest.fixture(params=DOORS)
def vault(request, open_client) -> DoorCaller:
    return DOORS[request.param](open_client(make_vault([], MemoryStore())))


@pytest.mark.parametrize("door", DOORS)
def test_a_password_is_in_no_summary_log_or_store(open_client, caplog, door):
    facts: list[Any] = []
    store = MemoryStore()
    caller = DOORS[door](open_client(make_vault(facts, store)))
    given = {"name": "ann", "password": SECRET}
    with caplog.at_level("DEBUG"):
        asked = caller.call("sign_in", given)
        assert "ann" in asked.question["summary"]
        assert SECRET not in str(asked)
        assert caller.call("sign_in", given, confirmation=asked.question["token"]).output == "ann"
        assert SECRET not in str(caller.call("sign_in", {"password": SECRET, "nmae": "ann"}))
    noted = [fact["input"] for fact in facts if "input" in fact]
    assert {"name": "ann", "password": "(hidden)"} in noted
    assert SECRET not in f"{facts}{caplog.text}"
    assert SECRET.encode() not in b"".join(value for value, _ in store._values.entries.values())


def test_one_time_values_are_given_once(vault):
    first, again = (vault.call("issue", key="k-1") for _ in range(2))
    assert first.output == {"number": 7, "token": SECRET}
    assert (again.code, again.output) == ("ANSWER_NOT_KEPT", None)
    assert "only once" in again.detail


def test_a_picture_a_sound_and_a_file_come_as_what_they_are(vault):
    assert vault.call("draw").content == ("image/png", "", PICTURE)
    assert vault.call("speak").content == ("audio/wav", "", b"RIFF")
    assert vault.call("cover").content == ("application/pdf", "€ rates.pdf", b"all ASCII")
    assert vault.call("table").output == "a,\xff\n"


def test_an_action_has_its_own_limit_of_a_body(vault):
    assert vault.call("small", {"text": "x" * 1000}).output == 1000
    refused = vault.call("small", {"text": "x" * 2000})
    assert (refused.code, "2000 bytes" in refused.detail) == ("BODY_TOO_LARGE", True)
    assert vault.call("large", {"text": "x" * 1_500_000}).output == 1_500_000
    assert vault.call("sign_in", {"name": "x" * 1_500_000, "password": ""}).code == "BODY_TOO_LARGE"


# --- What comes before what ---


def test_nobody_is_asked_about_a_call_that_cannot_go_through(shop):
    refused = {
        "AUTHENTICATION_REQUIRED": shop.door.call("check_out"),
        "INVALID_INPUT": shop.door.call("check_out", {"copies": "many"}, token="ann"),
        "PREREQUISITE_REQUIRED": shop.door.call("check_out", token="ann"),
    }
    assert {code: told.code for code, told in refused.items()} == {code: code for code in refused}
    shop.door.call("look", token="ann")
    shop.prices.append(0)
    empty = shop.door.call("check_out", token="ann")
    assert (empty.code, empty.detail) == ("REFUSED", "The basket is empty.")
    assert [told.question for told in (*refused.values(), empty)] == [{}] * 4
    shop.prices.append(5)
    assert shop.door.call("check_out", token="ann").code == "CONFIRMATION_REQUIRED"


def test_a_consent_covers_what_the_person_has_read_and_nothing_else(shop):
    stale = confirm_what_has_changed(shop)
    assert stale.question["summary"] == "Pay 50 pounds for what ann has chosen."
    assert shop.runs == []
    agreed = stale.question["token"]
    assert shop.door.call("check_out", token="ann", confirmation=agreed).output == "ordered"
    shop.prices.append(0)
    assert shop.door.call("check_out", token="ann", confirmation=agreed).code == "CONFIRMATION_SPENT"
    assert shop.runs == ["check_out"]


@pytest.mark.parametrize("price", [-1, 2000], ids=["fails", "hangs"])
def test_a_summary_that_cannot_be_made_is_a_failure_and_never_a_consent(shop, price):
    shop.door.call("look", token="ann")
    agreed = shop.door.call("check_out", token="ann").question["token"]
    shop.prices.append(price)
    for confirmation in (None, agreed):
        answer = shop.door.call("check_out", token="ann", confirmation=confirmation)
        assert (answer.code, answer.question) == ("HANDLER_FAILED", {})
    assert shop.runs == []


def test_a_known_callers_success_is_remembered_and_no_receipt_is_asked_for(shop):
    assert shop.door.call("look", token="ann").output == "books"
    assert shop.door.call("send", token="ann").output == "sent"
    answer = shop.door.call("send", token="ben")
    assert answer.code == "PREREQUISITE_REQUIRED"
    assert "receipt" not in answer.detail
    assert "If you are not authenticated" in answer.recovery
    assert shop.door.call("send").code == "PREREQUISITE_REQUIRED"


def test_no_action_is_to_be_repeated_for_its_receipt(shop):
    assert "Do not repeat a call only to get its receipt" in shop.door.call("send").recovery
