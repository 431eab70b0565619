"""A plug-in as a stranger writes it, in one file outside of the package: a bit of everything that the interface has.

It is no test module. `test_strangers` installs it from a folder of its own, with nothing else in it.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from awp_publish.calls.wire import Wire, WireCall, WireRequest, read_http
from awp_publish.http.calling import CallEndpoint
from awp_publish.http.request import DoorRequest
from awp_publish.model import Action, Catalog, Paths
from awp_publish.plugin import (
    Ask,
    Command,
    Context,
    Document,
    Door,
    Endpoints,
    Facts,
    Finding,
    Gate,
    GateCheck,
    Plugin,
    Problem,
    Protocol,
    Setup,
    Store,
)
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import Count, Counted, Seen


@dataclass(frozen=True)
class Queue:
    """Options: how many calls a caller may make of actions with a `quota`, in how many seconds."""

    seconds: int = 3600


class QuotaExceeded(Problem):
    """There were more calls than an action's quota allows."""

    slug = "quota-exceeded"
    title = "The caller's quota is used up"
    default_status = 429
    default_recovery = "Wait for the seconds in retry_after, then retry."


class Quota(GateCheck[Ask]):
    """Counts the calls of one action for each caller."""

    def __init__(self, action: Action, most: int, seconds: int) -> None:
        self.action, self.most, self.seconds = action, most, seconds

    def ask(self, call: Any) -> Ask | None:
        ask = Ask()
        ask.counts = [
            Count(f"quota:{self.action.id}:{call.known_as or call.presented.address}", self.most, self.seconds)
        ]
        return ask

    def judge(self, call: Any, ask: Ask, seen: Sequence[Seen], failed: int | None) -> None:
        count = seen[0]
        assert isinstance(count, Counted)
        call.headers += ((b"x-quota-left", b"%d" % max(self.most - count.events, 0)),)
        if failed is not None:
            raise QuotaExceeded("No call is left.", members={"retry_after": int(count.seconds_left) + 1})


def gates(setup: Setup) -> Iterable[Gate]:
    def of(action: Action, facts: Facts) -> GateCheck[Ask] | None:
        most = action.options.get("quota")
        return Quota(action, most, setup.options.seconds) if most is not None else None

    yield Gate(name="quota", order=450, of=of, refuses=(QuotaExceeded,), options=("quota",))


class QueueDoor(CallEndpoint):
    """`POST /queue` with `{"do": "action", "with": {...}}`."""

    methods = "POST, OPTIONS"
    usage = "Send calls with POST"

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        sent, size = await self.read_object(request)
        await self.call(request, sent.get("do"), sent.get("with"), sent, size=size)


def open_door(context: Context) -> Endpoints:
    return Endpoints(exact={"/queue": QueueDoor("queue", context)})


def write(call: WireCall, path: str) -> WireRequest:
    return WireRequest("POST", path, body={"do": call.action, "with": call.inputs, **call.members()})


def doors(setup: Setup, paths: Paths) -> Iterator[Door]:
    yield Door(name="queue", path="/queue", version="1", title="Queue", open=open_door)


def render(catalog: Catalog) -> bytes:
    return orjson.dumps({"quotas": {action.id: action.options.get("quota") for action in catalog.actions}})


def check(setup: Setup, catalog: Catalog) -> Iterator[Finding]:
    if not any("quota" in action.options for action in catalog.actions):
        yield Finding("warning", "no-quota", "", "No action has a quota.", 'Write @site.action("x", quota=5).', "")


def open_store(url: str, namespace: str) -> Store:
    return MemoryStore()


def count_actions(console: Any, app: Any, options: Any) -> int:
    console.say(f"{len(app.site.plugins)} plug-ins, {options.times} times")
    return 0


def around(context: Context, app: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def call(scope: Any, receive: Any, send: Any) -> None:
        async def send_marked(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-queue", b"here")]
            await send(message)

        await app(scope, receive, send_marked)

    return call


PLUGIN = Plugin(
    name="queue",
    options=Queue,
    action_options={"quota": int},
    page_options={"queued": int},
    gates=gates,
    doors=doors,
    wires=(Wire(name="queue", title="Queue", path="/queue", write=write, read=read_http),),
    documents=(Protocol("queue", (Document("/queue.json", "application/json", render),)),),
    problems=(QuotaExceeded,),
    stores={"queue": open_store},
    check=check,
    around=around,
    commands={
        "count-plugins": Command(
            help="count the plug-ins of an application",
            run=count_actions,
            arguments=lambda parser: parser.add_argument("--times", type=int, default=1),
        )
    },
)
