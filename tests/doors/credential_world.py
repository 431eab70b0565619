"""A shop with an action for each kind of guard, and every way to call one: the columns of the matrix of credentials.

A way that is new is one entry of `WAYS`. The doors of `tests.doors.adapters` are ways by themselves.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.middleware.sessions import SessionMiddleware
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from awp_publish import AgentPublisher, Confirmation, Site, current_caller
from awp_publish.declare.plugins import doors_of
from tests.direct_client import DirectClient
from tests.doors.adapters import DOORS, EVERY_DOOR
from tests.doors.credential_rows import COOKIE_SECRET, RIGHT, SIGNER, Row, authenticators, name_of, token
from tests.guarded import KEYS, make_shop
from tests.installed import installed, is_installed
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import CLASSIC, MODERN, headers_of, message

MARK: Final = "Zauberwort"
"""What only those may read who may call."""

HINT: Final = "Hexenkessel"
"""What the descriptions of hidden actions say, which only those may read who may know of them."""

AUTHENTICATED: Final[Mapping[str, Any]] = {"auth_required": True}


OF_THE_ROUTE: Final = (
    "a token",
    "a token and a signature",
    "the right line twice",
    "the right line before a wrong one",
)
"""Rows that a route with a security scheme of FastAPI's lets in: it looks at the first line alone."""


@dataclass(frozen=True)
class Guarded:
    """An action. `scopes` are what its callers need; `options` are those of its declaration."""

    options: Mapping[str, Any]
    scopes: frozenset[str] = frozenset()
    has_route: bool = False
    route_authenticates: bool = False

    @property
    def is_hidden(self) -> bool:
        return "audience" in self.options

    @property
    def is_background(self) -> bool:
        return self.options.get("execution") == "async"

    @property
    def asks(self) -> bool:
        return bool(self.options.get("confirm")) or self.options.get("effect") == "irreversible"

    @property
    def follows(self) -> bool:
        return "requires" in self.options

    @property
    def takes_keys(self) -> bool:
        return "idempotency" in self.options

    @property
    def needs_signature(self) -> bool:
        return "allow_agents" in self.options

    def caller_of(self, row: Row) -> str | None:
        """For whom the handler may run with these credentials, None if it may not."""
        if self.route_authenticates:
            return "ann" if row.name in OF_THE_ROUTE else None
        is_missing = row.borrows and (self.asks or self.follows)
        may = self.scopes <= row.granted and not is_missing and (row.signs or not self.needs_signature)
        return row.caller if may else None

    def is_for(self, row: Row) -> bool:
        """Whether the handler may run with these credentials."""
        return self.caller_of(row) is not None


def _buy(**options: Any) -> Guarded:
    return Guarded({"scopes": ["buy"], **options}, frozenset({"buy"}))


def _mine(**options: Any) -> Guarded:
    return Guarded({**AUTHENTICATED, **options})


def _routed(guarded: Guarded) -> Guarded:
    return Guarded(guarded.options, guarded.scopes, has_route=True, route_authenticates=guarded.route_authenticates)


ACTIONS: Final[Mapping[str, Guarded]] = {
    "mine": _mine(),
    "buy": _buy(),
    "known": Guarded({"audience": "known"}),
    "restock": Guarded({"audience": "stock"}, frozenset({"stock"})),
    "operate": Guarded({"audience": "operator", "confirm": True}, frozenset({"operator"})),
    "sign": _mine(allow_agents=[SIGNER]),
    "pay": _mine(confirm=True),
    "wire": _buy(effect="irreversible", idempotency="24h"),
    "send": _mine(requires=["prepare"]),
    "order": _mine(idempotency="24h"),
    "scarce": _mine(rate_limit="100000/minute"),
    "later": _mine(execution="async"),
    "buy_later": _buy(execution="async", idempotency="24h"),
    "route_mine": _routed(_mine()),
    "route_buy": _routed(_buy()),
    "route_pay": _routed(_buy(confirm=True)),
    "route_order": _routed(_mine(idempotency="24h")),
    "route_known": _routed(Guarded({"audience": "known"})),
    "route_own": Guarded({}, has_route=True, route_authenticates=True),
}


@dataclass(frozen=True)
class Extras:
    """What goes with a call besides credentials."""

    key: str | None = None
    confirmation: str | None = None
    receipts: tuple[str, ...] = ()
    session: str | None = None

    @property
    def members(self) -> dict[str, Any]:
        """As an envelope has them."""
        named = {"idempotency_key": self.key, "confirmation": self.confirmation, "receipts": list(self.receipts)}
        return {name: value for name, value in (named | {"session": self.session}).items() if value not in (None, [])}

    @property
    def headers(self) -> dict[str, str]:
        """As headers have them."""
        named = {"idempotency-key": self.key, "awp-confirmation": self.confirmation, "awp-session": self.session}
        named |= {"awp-receipt": ", ".join(self.receipts) or None}
        return {name: value for name, value in named.items() if value is not None}


Run: TypeAlias = tuple[str, str]
"""The action that ran, and the id of its caller."""


@dataclass
class World:
    """The shop, started, and what has happened in it."""

    site: Site
    client: DirectClient
    runs: list[Run]
    confirmations: dict[str, str] = field(default_factory=dict)
    receipts: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    tasks: dict[tuple[str, str], str] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    new_key: Callable[[], str] = field(default_factory=lambda: map("key-{}".format, count()).__next__)

    def wear(self, row: Row) -> None:
        """Send these credentials with each request from now on."""
        self.client.wear = row.lines

    def settle(self, runs: int = 0) -> None:
        """Let work in the background go on, until this many handlers have run."""
        for _ in range(3):
            self.client.do(asyncio.sleep(0))
        for _ in range(1000):
            if len(self.runs) >= runs:
                return
            self.client.do(_pause())

    def invoke(self, action: str, extras: Extras = Extras()) -> Any:
        """A call at the WoA door, with what is worn."""
        envelope = {"input": {}, **extras.members}
        return self.client.post(f"/agents/{action}/invoke", json=envelope, headers=extras.headers)

    def extras_of(self, name: str, row: Row) -> Extras:
        """What the caller of a row brings: what is their own where they may call, else what was given to ann."""
        action = ACTIONS[name]
        session = self.sessions.get(row.session)
        if action.is_for(row):
            return Extras(
                self.new_key() if action.takes_keys else None,
                self._ask(name, row) if action.asks else None,
                (self._receipt_of(row),) if action.follows else (),
                session,
            )
        ann = RIGHT[0]
        if action.takes_keys and name not in self.keys:
            extras = self.extras_of(name, ann)
            self.wear(ann)
            assert self.invoke(name, extras).status_code < 300
            self.keys[name] = str(extras.key)
        if action.asks and name not in self.confirmations:
            self.confirmations[name] = self._ask(name, ann)
        if action.follows and name not in self.receipts:
            self.receipts[name] = self._receipt_of(ann)
        own = action.takes_keys and not row.borrows and row.caller is not None
        return Extras(
            self.new_key() if own else self.keys.get(name),
            self.confirmations.get(name),
            (self.receipts[name],) if action.follows else (),
            session,
        )

    def _ask(self, name: str, row: Row) -> str:
        self.wear(row)
        return str(self.invoke(name).json()["confirmation"]["token"])

    def _receipt_of(self, row: Row) -> str:
        self.wear(row)
        return str(self.invoke("prepare").headers["awp-receipt"])


def make_world() -> World:
    """Start the shop."""
    runs: list[Run] = []
    site = make_shop(
        # What is confirmed at the start is sent until the end of a long run.
        plugins=[*installed("mcp", "a2a", "awp", "bridge", "overview"), Confirmation("24h")],
        authenticate=authenticators(),
        secret_keys=KEYS,
        guard_routes=True,
        store="memory:",
    )
    app = FastAPI(openapi_url=None)

    def run(name: str, caller: str | None = None) -> str:
        principal = current_caller()
        who = caller or (name_of(principal) if principal is not None else "nobody")
        runs.append((name, who))
        return f"{MARK} {name} for {who};"

    for name, action in ACTIONS.items():
        described: dict[str, Any] = {
            "description": f"Do what {HINT} {name} does." if action.is_hidden else f"Do {name}."
        }
        if not action.has_route:
            handler: Any = partial(_handler, run, name)
            site.agent(name, **action.options, **described, inputs={"type": "object"}, outputs={"type": "string"})(
                _async(handler)
            )
        elif action.route_authenticates:
            _add_own(app, site, name, run)
        else:
            route = _async(partial(_handler, run, name))
            app.post(f"/routes/{name}")(route)
            site.action(name, **action.options, **described)(route)

    @site.agent("prepare", **AUTHENTICATED)
    async def prepare() -> bool:
        """Prepare."""
        return True

    @app.post("/sign-in")
    @site.action("sign_in")
    async def sign_in(request: Request) -> str:
        """Begin a session."""
        request.session["basket"] = "books"
        return "welcome"

    @app.post("/log-in")
    @site.action("log_in")
    async def log_in(request: Request) -> str:
        """Become somebody in a session, which gets another id."""
        request.session["user"] = "cat"
        return "welcome"

    @app.post("/sign-out")
    @site.action("sign_out")
    async def sign_out(request: Request) -> str:
        """End a session."""
        request.session.clear()
        return "bye"

    @app.get("/forms/{name}", response_class=HTMLResponse, include_in_schema=False)
    async def form(name: str) -> str:
        return f'<title>F</title><main><form method="post" action="/routes/{name}"><button>Go</button></form></main>'

    app.add_middleware(AgentPublisher, site=site, check=False)
    app.add_middleware(SessionMiddleware, secret_key=COOKIE_SECRET)
    world = World(site, DirectClient(app), runs)
    _begin_sessions(world)
    return world


def _handler(run: Callable[[str], str], name: str) -> str:
    return run(name)


def _async(work: Callable[[], str]) -> Callable[[], Any]:
    async def call() -> str:
        return work()

    return call


def _add_own(app: FastAPI, site: Site, name: str, run: Callable[[str, str], str]) -> None:
    async def read_user(shown: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> str:
        if shown.credentials != token():
            raise HTTPException(401, "Unknown token.", {"www-authenticate": "Bearer"})
        return "ann"

    @app.post(f"/routes/{name}")
    @site.action(name)
    async def own(user: Annotated[str, Depends(read_user)]) -> str:
        """Do what the route itself allows."""
        return run(name, user)


def _begin_sessions(world: World) -> None:
    """Sessions of ann: one that goes on, one that has ended, one by its old id, and an id that never was one."""
    world.wear(RIGHT[1])
    for name in ("another's", "ended", "old"):
        world.sessions[name] = world.invoke("sign_in").headers["awp-session"]
    world.invoke("sign_out", Extras(session=world.sessions["ended"]))
    renewed = world.invoke("log_in", Extras(session=world.sessions["old"])).headers["awp-session"]
    assert renewed != world.sessions["old"]
    world.sessions["garbage"] = "A" * 56


# --- Ways ---

Send: TypeAlias = Callable[[World, str, Extras], None]
"""Makes one call, or reads what one came to, with the credentials that are worn."""


@dataclass(frozen=True)
class Way:
    """One way to an action, through a door. `fits` tells the actions that it leads to.

    `rights` are the rows of right credentials that lead through it: not all can be sent everywhere. One that `reads`
    leads to the answer of ann's earlier call; one that is `closed` leads nowhere, for anybody. `tells` is whether a
    refusal has a code, `has_sessions` whether a call may name the session of a caller without cookies, `takes` which
    credentials can be sent.
    """

    door: str
    send: Send
    fits: Callable[[Guarded], bool] = lambda action: True
    rights: frozenset[str] = frozenset(row.name for row in RIGHT)
    reads: bool = False
    closed: bool = False
    tells: bool = True
    has_sessions: bool = True
    takes: Callable[[Row], bool] = lambda row: True


UNREADABLE: Final = (KeyError, IndexError, TypeError, ValueError, AssertionError, WebSocketDisconnect)
"""How the adapter of a door says that an answer is no refusal of a gate. The bytes are judged, not this."""


def through(make: Callable[[Any], Any], world: World, name: str, extras: Extras) -> None:
    """Call through the adapter of a door."""
    with suppress(*UNREADABLE):
        make(world.client).call(
            name,
            key=extras.key,
            confirmation=extras.confirmation,
            receipts=extras.receipts,
            session=extras.session,
        )


def _mcp(
    world: World,
    method: str,
    params: Mapping[str, Any],
    extras: Extras,
    version: str = MODERN,
    capabilities: Mapping[str, Any] | None = None,
    **more: Any,
) -> Any:
    beside = extras.members
    session = beside.pop("session", None)
    meta = {f"awp/{key.replace('idempotency_key', 'idempotencyKey')}": value for key, value in beside.items()} | more
    if session is not None:
        params = {**params, "arguments": {"session": session}}
    sent = message(method, params, version=version, meta=meta, capabilities=capabilities)
    named = {"mcp-name": params["taskId"]} if "taskId" in params else {}
    return world.client.post("/mcp", json=sent, headers=headers_of(sent, version) | named)


def mcp_by_sdk(world: World, name: str, extras: Extras) -> None:
    _mcp(world, "tools/call", {"name": name, "arguments": {}}, extras, progressToken="p")


def mcp_classic(world: World, name: str, extras: Extras) -> None:
    _mcp(world, "tools/call", {"name": name, "arguments": {}}, extras, CLASSIC)


TASKS: Final[Mapping[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def mcp_task(world: World, name: str, extras: Extras) -> None:
    answer = _mcp(world, "tools/call", {"name": name, "arguments": {}}, extras, capabilities=TASKS)
    with suppress(*UNREADABLE):
        _follow_task(world, answer.json()["result"]["taskId"])


def _follow_task(world: World, task: str) -> None:
    for _ in range(200):
        answer = _mcp(world, "tasks/get", {"taskId": task}, Extras(), capabilities=TASKS)
        if answer.json()["result"]["status"] != "working":
            return
        world.client.do(_pause())


async def _pause() -> None:
    await asyncio.sleep(0.005)


def _a2a_message(name: str, extras: Extras, *, is_old: bool, is_rpc: bool) -> dict[str, Any]:
    data = {"skill": name, "input": {}, **extras.members}
    wrapped = {"data": data} if is_old and not is_rpc else data
    part: dict[str, Any] = {"kind": "data", "data": wrapped} if is_old and is_rpc else {"data": wrapped}
    parts = "content" if is_old and not is_rpc else "parts"
    role = "user" if is_old and is_rpc else "ROLE_USER"
    whole: dict[str, Any] = {"messageId": "m-1", "role": role, parts: [part]}
    return {"request" if is_old and not is_rpc else "message": whole}


def a2a(world: World, name: str, extras: Extras, *, method: str, is_old: bool = False) -> None:
    """A message of A2A, as JSON-RPC, or as HTTP+JSON where the method is an address."""
    is_rpc = not method.startswith("/")
    params = _a2a_message(name, extras, is_old=is_old, is_rpc=is_rpc)
    headers = {} if is_old else {"a2a-version": "1.0"}
    if is_rpc:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        world.client.post("/a2a", json=body, headers=headers)
    else:
        world.client.post(f"/a2a{method}", json=params, headers=headers)


def awp_with_hello(world: World, name: str, extras: Extras) -> None:
    """The token stands in the greeting, and the upgrade has none."""
    worn = world.client.wear
    lines = worn({"method": "GET", "raw_path": b"/awp"})
    tokens = [
        value[7:].decode("latin-1") for key, value in lines if key == b"authorization" and value[:7] == b"Bearer "
    ]
    rest = [line for line in lines if line[0] != b"authorization"]
    world.client.wear = lambda scope: rest
    auth = {"auth": {"method": "auth.bearer", "token": tokens[0]}} if tokens else {}
    try:
        with AwpClient.open(world.client) as caller:  # type: ignore[arg-type]
            if "result" in caller.ask("awp.hello", auth):
                _invoke_skill(caller, name, extras)
    except (WebSocketDenialResponse, WebSocketDisconnect):
        pass
    finally:
        world.client.wear = worn


def _invoke_skill(caller: AwpClient, name: str, extras: Extras) -> None:
    members = extras.members
    key = members.pop("idempotency_key", None)
    caller.ask("skills.invoke", {"skill": name, "args": {}, **members}, key=key)


def awp_form(world: World, name: str, extras: Extras) -> None:
    """A page with a form, of which a session presses the button."""
    with suppress(WebSocketDenialResponse, WebSocketDisconnect), AwpClient.open(world.client) as caller:  # type: ignore[arg-type]
        if "result" not in caller.ask("awp.hello"):
            return
        answer = caller.ask("session.create")
        if "result" not in answer:
            return
        session = answer["result"]["session_id"]
        worn = dict(world.client.wear({"method": "GET", "raw_path": b"/awp"})).get(b"cookie", b"").decode("latin-1")
        for pair in filter(None, worn.split("; ")):
            key, _, value = pair.partition("=")
            cookie = {"name": key, "value": value, "domain": "shop.example"}
            caller.ask("session.cookies.set", {"session_id": session, "cookies": [cookie]})
        caller.ask("page.navigate", {"session_id": session, "url": f"/forms/{name}"})
        intent = {"action": "click", "target": {"css": "button"}}
        caller.ask("page.act", {"session_id": session, "intent": intent})
        caller.ask("page.observe", {"session_id": session})


def route(world: World, name: str, extras: Extras) -> None:
    world.client.post(f"/routes/{name}", headers=extras.headers)


def overview(world: World, name: str, extras: Extras, *, door: str) -> None:
    """The form of the overview, with the credentials typed in."""
    lines = dict(world.client.wear({"method": "POST", "raw_path": b"/agents"}))
    typed = {"awp-door": door, "awp-do": "send", "awp-key": extras.key, "awp-confirmation": extras.confirmation}
    typed |= {"awp-receipts": ", ".join(extras.receipts), "awp-session": extras.session}
    typed |= {"awp-authorization": lines.get(b"authorization", b"").decode("latin-1")}
    typed |= {"awp-x-api-key": lines.get(b"x-api-key", b"").decode("latin-1")}
    world.client.post(f"/agents/try/{name}", data={key: value for key, value in typed.items() if value})


def batch(world: World, name: str, extras: Extras, *, path: str) -> None:
    """Several messages in one body, which neither protocol has."""
    sent = message("tools/call", {"name": name, "arguments": {}}, version=CLASSIC)
    if path == "/a2a":
        params = _a2a_message(name, extras, is_old=False, is_rpc=True)
        sent = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    headers = {"accept": "application/json, text/event-stream", "a2a-version": "1.0", "mcp-protocol-version": CLASSIC}
    world.client.post(path, json=[sent], headers=headers)


# --- Reading what ann's calls came to ---


def _task_of(world: World, kind: str, name: str, make: Callable[[], str]) -> str:
    """The id of a call that ann has made, once for each action."""
    if (kind, name) not in world.tasks:
        worn = world.client.wear
        world.wear(RIGHT[0])
        world.tasks[kind, name] = make()
        world.client.wear = worn
        world.client.sent.clear()
        world.runs.clear()
    return world.tasks[kind, name]


def _job_of(world: World, name: str) -> str:
    def make() -> str:
        answer = world.invoke(name, world.extras_of(name, RIGHT[0]))
        job = str(answer.json()["job_id"])
        for _ in range(200):
            if world.client.get(f"/agents/jobs/{job}").json()["status"] == "done":
                break
            world.client.do(_pause())
        return job

    return _task_of(world, "job", name, make)


def read_job(world: World, name: str, extras: Extras) -> None:
    world.client.get(f"/agents/jobs/{_job_of(world, name)}")


def get_job(world: World, name: str, extras: Extras, *, version: str) -> None:
    _mcp(world, "tools/call", {"name": "get_job", "arguments": {"job_id": _job_of(world, name)}}, Extras(), version)


def _mcp_task_of(world: World, name: str) -> str:
    def make() -> str:
        extras = world.extras_of(name, RIGHT[0])
        answer = _mcp(world, "tools/call", {"name": name, "arguments": {}}, extras, capabilities=TASKS)
        task = str(answer.json()["result"]["taskId"])
        _follow_task(world, task)
        return task

    return _task_of(world, "mcp", name, make)


def read_mcp_task(world: World, name: str, extras: Extras, *, method: str) -> None:
    more: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
    _mcp(world, method, {"taskId": _mcp_task_of(world, name), **more}, Extras(), capabilities=TASKS)


def _a2a_task_of(world: World, name: str) -> str:
    def make() -> str:
        start = len(world.client.sent)
        a2a(world, name, world.extras_of(name, RIGHT[0]), method="SendMessage")
        found = re.search(rb'"task":\s*{[^{}]*?"id":\s*"([\w-]+)"', bytes(world.client.sent[start:]))
        assert found is not None, bytes(world.client.sent[start:])
        return found[1].decode()

    return _task_of(world, "a2a", name, make)


def read_a2a_task(world: World, name: str, extras: Extras, *, method: str, is_old: bool = False) -> None:
    task = _a2a_task_of(world, name)
    headers = {} if is_old else {"a2a-version": "1.0"}
    if method.startswith("/"):
        world.client.get("/a2a" + method.format(task=task), headers=headers)
        return
    params = {"includeArtifacts": True} if method == "ListTasks" else {"id": task}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    world.client.post("/a2a", json=body, headers=headers)


def published(world: World, name: str, extras: Extras, *, document: str) -> None:
    """The address that a document publishes, read again for each call; the plain one where it hides the action."""
    listed = world.client.get(document).json()["actions"]
    entry = next((item for item in listed if name in (item.get("id"), item.get("name"))), None)
    address = f"/agents/actions/{name}"
    if entry is not None:
        answer = re.search(r'"(?:https://shop\.example)?(/(?:agents/actions|routes)/\w+)"', json.dumps(entry))
        assert answer is not None, entry
        address = answer[1]
    world.client.post(address, json=None if address.startswith("/routes") else {}, headers=extras.headers)


def _background(action: Guarded) -> bool:
    return action.is_background


def _now(action: Guarded) -> bool:
    return not action.is_background


def _routes(action: Guarded) -> bool:
    return action.has_route


def _for_visitors(action: Guarded) -> bool:
    """Whether a visitor with a cookie may send the form of a page."""
    return action.has_route and not (action.asks or action.scopes or action.route_authenticates)


def _in_greeting(row: Row) -> bool:
    """Whether a greeting can say what the header Authorization does."""
    lines = row.lines({"method": "GET", "raw_path": b"/awp"})
    tokens = [value for key, value in lines if key == b"authorization"]
    return not tokens or (len(lines) == 1 and re.fullmatch(rb"Bearer [!-~]+", tokens[0]) is not None)


def _in_form(row: Row) -> bool:
    """Whether the fields of a form can say what the headers do: one line, which is not made for one request."""
    names = [key for key, _ in row.lines({"method": "POST", "raw_path": b"/agents"})]
    return len(names) <= 1 or {b"dpop", b"signature", b"authorization", b"x-api-key"}.isdisjoint(names)


def _without_cookie(row: Row) -> bool:
    """Whether a row is more than a cookie: the pages of the bridge have cookies of their own."""
    return row.name != "a cookie"


_TYPED: Final = frozenset({"a token", "a key", "a cookie"})


def _ways() -> Iterable[tuple[str, Way]]:
    for door, make in DOORS.items():
        yield door, Way(door, partial(through, make))
    if is_installed("bridge"):
        send = partial(through, EVERY_DOOR["bridge"])
        yield "bridge", Way("bridge", send, has_sessions=False, takes=_without_cookie)
    yield "mcp by the SDK", Way("mcp", mcp_by_sdk)
    yield f"mcp {CLASSIC}", Way("mcp", mcp_classic)
    yield "an mcp task", Way("mcp", mcp_task, _background)
    for method in ("SendMessage", "SendStreamingMessage", "/message:send", "/message:stream"):
        yield f"a2a 1.0 {method}", Way("a2a", partial(a2a, method=method))
    for method in ("message/send", "message/stream", "/v1/message:send", "/v1/message:stream"):
        yield f"a2a 0.3 {method}", Way("a2a", partial(a2a, method=method, is_old=True))
    yield (
        "awp with a token in its greeting",
        Way("awp", awp_with_hello, rights=frozenset({"a token"}), takes=_in_greeting),
    )
    by_cookie = frozenset({"a cookie"})
    yield "a form in awp", Way("awp", awp_form, _for_visitors, by_cookie, tells=False, has_sessions=False)
    yield "the route itself", Way("route", route, _routes, has_sessions=False)
    documents = {"agent_json": "/agent.json", "awas": "/.well-known/ai-actions.json"}
    for document in (path for plugin, path in documents.items() if is_installed(plugin)):
        send = partial(published, document=document)
        yield f"the address in {document}", Way("plain", send, has_sessions=False)
    for door in DOORS:
        typed = Way("overview", partial(overview, door=door), rights=_TYPED, has_sessions=False, takes=_in_form)
        yield f"the overview's form for {door}", typed
    yield "a batch of mcp", Way("mcp", partial(batch, path="/mcp"), closed=True, tells=False)
    yield "a batch of a2a", Way("a2a", partial(batch, path="/a2a"), closed=True, tells=False)
    reads = partial(Way, reads=True, tells=False)
    yield "a job", reads("jobs", read_job, _background)
    for version in (MODERN, CLASSIC):
        yield f"a job by mcp {version}", reads("mcp", partial(get_job, version=version), _background)
    yield "the task of mcp", reads("mcp", partial(read_mcp_task, method="tasks/get"), _background)
    for method in ("GetTask", "ListTasks", "/tasks/{task}", "/tasks?includeArtifacts=true"):
        yield f"the task of a2a by {method}", reads("a2a", partial(read_a2a_task, method=method), _now)
    for method in ("tasks/get", "/v1/tasks/{task}"):
        yield f"the task of a2a 0.3 by {method}", reads("a2a", partial(read_a2a_task, method=method, is_old=True), _now)


WAYS: Final = {name: way for name, way in _ways() if way.door == "route" or is_installed(way.door)}

NO_CALLS: Final[Mapping[str, str]] = {
    "status": "says whether the site works",
    "som": "reads pages, as their visitors do",
    "metrics": "counts calls",
}
"""Doors that lead to no action, and why."""


def doors_without_a_way(site: Site) -> list[str]:
    """The doors of a site, by the tables of its plug-ins, through which no way of the matrix leads."""
    opened = (door.name for listed in doors_of(site.plugins, site.settings.paths).values() for door in listed)
    led = {way.door for way in WAYS.values()} | set(NO_CALLS)
    return sorted({*opened} - led)


# --- Judging a cell ---

UNKNOWN: Final = frozenset(
    {"UNKNOWN_ACTION", "UNKNOWN_AGENT", "UNKNOWN_OPERATION", "unknown_action", "This site has no tool"}
)
"""How the doors say that there is no such action; MCP has no problem for it."""

_TOLD: Final = re.compile(rf"{MARK} \w+ for ([^\s;]+);".encode())
_SHOWN: Final = re.compile(rf"{HINT} (\w+) does".encode())


def codes_of(action: Guarded, row: Row) -> frozenset[str]:
    """The problems of which one refuses a call that is not for a row."""
    if action.is_hidden and (row.caller is None or not action.scopes <= row.granted):
        return UNKNOWN | row.codes if row.caller is None else UNKNOWN
    if action.route_authenticates:  # the route knows nothing but its token, and says so in its own way
        by_us = {"AUTHENTICATION_REQUIRED", "INVALID_CREDENTIALS", "AUTH_EXPIRED"}
        return row.codes | by_us | {"Not authenticated", "Unknown token."}
    if row.caller is None:
        return row.codes
    if not action.scopes <= row.granted:
        return frozenset({"INSUFFICIENT_SCOPE"})
    if action.needs_signature and not row.signs:
        return frozenset({"INSUFFICIENT_PERMISSIONS"})
    return frozenset({"CONFIRMATION_FOREIGN"} if action.asks else {"PREREQUISITE_REQUIRED"})


def is_cell(row: Row, way: Way, action: Guarded) -> bool:
    """Whether a way leads to an action, and can be tried with these credentials."""
    return way.fits(action) and way.takes(row) and (not row.session or (way.has_sessions and not way.reads))


def try_cell(world: World, row: Row, way: Way, name: str) -> list[str]:
    """Call an action in one way with some credentials, and return what is wrong with what came of it."""
    action, client = ACTIONS[name], world.client
    if row.is_spent:
        extras = world.extras_of(name, RIGHT[1])
        world.wear(row)
        way.send(world, name, extras)
        world.settle()
    extras = world.extras_of(name, row)
    world.settle()
    world.wear(row)
    client.sent.clear()
    world.runs.clear()
    way.send(world, name, extras)
    is_led = not (way.reads or way.closed)
    may_run, is_right = action.caller_of(row) if is_led else None, row.name in way.rights
    world.settle(1 if may_run and is_right and action.is_background else 0)
    sent, runs = bytes(client.sent), list(world.runs)
    client.wear = lambda scope: []

    wrong = [f"{run[0]} ran for {run[1]}" for run in runs if run != (name, may_run)]
    if len(runs) > 1:
        wrong.append(f"ran {len(runs)} times")
    if may_run and is_right and not runs:
        wrong.append("did not run")
    if way.reads and row is RIGHT[0] and not _TOLD.search(sent):
        wrong.append("ann is not told what her own call came to")
    told = {found.decode() for found in _TOLD.findall(sent)}
    wrong += [f"told the answer of {caller}" for caller in told - {row.caller, may_run}]
    wrong += [f"told of {found.decode()}" for found in set(_SHOWN.findall(sent)) if not _may_know(row, found.decode())]
    if way.tells and is_led and not action.is_for(row):
        expected = codes_of(action, row)
        if not any(code.encode() in sent for code in expected):
            wrong.append(f"was not refused with {' or '.join(sorted(expected))}: {sent[-300:].decode('latin-1')}")
    return wrong


def _may_know(row: Row, name: str) -> bool:
    return row.caller is not None and ACTIONS[name].scopes <= row.granted
