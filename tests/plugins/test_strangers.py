"""What somebody else adds is one file outside of the package, and no edit of ours: each part of the interface."""

import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from awp_publish import (
    About,
    AgentPublisher,
    Awp,
    BearerToken,
    Bridge,
    DeclarationError,
    Jobs,
    Overview,
    Principal,
    Site,
    Traffic,
    cli,
    plugin,
)
from awp_publish.announced import scan
from awp_publish.client import AgentClient, CallFailed
from awp_publish.http.running import StartFailed
from awp_publish.model import Catalog
from awp_publish.plugin import Ask, Gate, GateCheck, Problem
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import Add, Count, Reserve
from tests.client import TestClient
from tests.plugins import queue_plugin

APP = '''
from starlette.applications import Starlette
from awp_publish import AgentPublisher, Site
from queue_of_strangers import Queue

site = Site("Shop", "Sells books.", "https://shop.example", plugins=[Queue()])


@site.agent("find")
async def find(q: str) -> str:
    """Find a book."""
    return q


app = AgentPublisher(Starlette(), site=site)
'''


def read_packages_again() -> None:
    scan.cache_clear()
    plugin.installed.cache_clear()


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Iterator[Path]:
    """A folder with the plug-in and its entry point, as pip would leave it."""
    shutil.copy(queue_plugin.__file__, tmp_path / "queue_of_strangers.py")
    (tmp_path / "shop_of_strangers.py").write_text(APP)
    about = tmp_path / "queue_of_strangers-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: queue-of-strangers\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[awp_publish.plugins]\nqueue = queue_of_strangers:PLUGIN\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    read_packages_again()
    yield tmp_path
    for name in ("queue_of_strangers", "shop_of_strangers"):
        sys.modules.pop(name, None)
    read_packages_again()


def make_client(chosen: object, *, plugins: Sequence[str] = ("mcp",), **options: Any) -> TestClient:
    site: Any = Site("Shop", "Sells books.", "https://shop.example", plugins=[*plugins, chosen], **options)

    @site.agent("find", quota=2)
    async def find(q: str) -> str:
        """Find a book."""
        return q

    @site.agent("hidden", audience="known", quota=1)
    async def hidden() -> str:
        """Known callers only."""
        return "hidden"

    @site.agent("elsewhere", expose=["mcp"])
    async def elsewhere() -> str:
        """Not at the queue."""
        return "elsewhere"

    @site.agent("burn", confirm=True, idempotency="1h", expose=["queue", "woa"])
    async def burn(title: str) -> str:
        """Burn a book."""
        return title

    async def page(request):
        return PlainTextResponse("a page")

    app = AgentPublisher(Starlette(routes=[Route("/page", page)]), site=site)
    return TestClient(app, base_url="https://shop.example")


@pytest.fixture(params=["entry point", "value", "plug-in"])
def client(request, installed) -> Iterator[TestClient]:
    module = import_module("queue_of_strangers")
    chosen = {"entry point": "queue", "value": module.Queue(seconds=60), "plug-in": module.PLUGIN}[request.param]
    with make_client(chosen, authenticate=BearerToken({"t-1": "ann"})) as client:
        yield client


def test_a_gate_counts_and_refuses_at_every_door(client):
    answers = [client.post("/agents/find/invoke", json={"input": {"q": "Emma"}}) for _ in range(2)]
    assert [answer.headers["x-quota-left"] for answer in answers] == ["1", "0"]
    for path, body in (
        ("/agents/find/invoke", {"input": {"q": "Emma"}}),
        ("/agents/actions/find", {"q": "Emma"}),
        ("/queue", {"do": "find", "with": {"q": "Emma"}}),
    ):
        refused = client.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (429, "QUOTA_EXCEEDED")
        assert refused.json()["recovery"] == "Wait for the seconds in retry_after, then retry."
        assert refused.json()["retry_after"] > 0


@pytest.mark.parametrize(
    ("claim", "refusal"),
    [
        (Add("once", b"1", 60.0), (409, "REFUSED")),
        (Count("once", 1, 60.0), (429, "RATE_LIMITED")),
        (Reserve("once", 1, 1, 60.0), (409, "REFUSED")),
    ],
)
def test_a_gate_that_only_claims_refuses_the_call_that_comes_second(claim, refusal):
    class Once(GateCheck[Ask]):
        def ask(self, call: Any) -> Ask:
            ask = Ask()
            ask.claims = [claim]
            return ask

    def gates(setup: Any) -> Iterator[Gate]:
        yield Gate(name="once", order=450, of=lambda action, facts: Once(), refuses=())

    site = Site("Shop", "Sells books.", "https://shop.example", plugins=[plugin.Plugin(name="once", gates=gates)])

    @site.agent("find")
    async def find(q: str) -> str:
        """Find a book."""
        return q

    with TestClient(AgentPublisher(Starlette(), site=site), base_url="https://shop.example") as client:
        answers = [client.post("/agents/find/invoke", json={"input": {"q": "Emma"}}) for _ in range(2)]
    assert answers[0].json() == "Emma"
    assert (answers[1].status_code, answers[1].json()["code"]) == refusal
    assert ("retry-after" in answers[1].headers) == (refusal[0] == 429)


def test_a_gate_is_asked_of_a_valid_input_and_an_invalid_one_alike(client):
    refused = client.post("/agents/find/invoke", json={"input": {}})
    assert (refused.status_code, refused.headers["x-quota-left"]) == (422, "1")


def test_a_door_has_the_refusals_of_all_doors(client):
    def send(body: object, **headers: str):
        return client.post("/queue", json=body, headers=headers)

    assert send({"do": "find", "with": {"q": "Emma"}}).json() == "Emma"
    codes = [
        (send({"do": "find", "with": {}}), 422, "INVALID_INPUT"),
        (send({"do": "fly", "with": {}}), 404, "UNKNOWN_ACTION"),
        (send({"do": "hidden", "with": {}}), 404, "UNKNOWN_ACTION"),
        (send({"do": "elsewhere", "with": {}}), 404, "UNKNOWN_ACTION"),
        (send({"do": "burn", "with": {"title": "Emma"}}), 428, "CONFIRMATION_REQUIRED"),
        (send({"do": "find", "with": {"q": "Emma"}}, authorization="Bearer wrong"), 401, "INVALID_CREDENTIALS"),
        (send({"do": "find", "with": {"q": "x" * 2_000_000}}), 413, "BODY_TOO_LARGE"),
        (send({"do": 7, "with": {}}), 404, "UNKNOWN_ACTION"),
        (send({"do": "find", "with": []}), 422, "INVALID_INPUT"),
        (send([]), 400, "ENVELOPE_NOT_AN_OBJECT"),
        (client.post("/queue", content=b"do=find"), 415, "UNSUPPORTED_MEDIA_TYPE"),
        (send({"do": "burn", "with": {"title": "Emma"}, "receipts": 7}), 400, "INVALID_ENVELOPE"),
        (client.get("/queue"), 405, "METHOD_NOT_ALLOWED"),
        (client.post("/queue", content=b"{", headers={"content-type": "application/json"}), 400, "NOT_JSON"),
    ]
    for answer, status, code in codes:
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert send({"do": "hidden", "with": {}}, authorization="Bearer t-1").json() == "hidden"


def test_a_door_takes_keys_and_confirmations_in_its_envelope(client):
    sent = {"do": "burn", "with": {"title": "Emma"}, "idempotency_key": "k-1"}
    asked = client.post("/queue", json=sent).json()
    sent["confirmation"] = asked["confirmation"]["token"]
    assert [client.post("/queue", json=sent).text for _ in range(2)] == ['"Emma"', '"Emma"']


def test_a_door_is_called_by_the_client_with_its_own_wire(client):
    with AgentClient(client.app, door="queue", token="t-1", confirm=True) as caller:
        assert caller.call("find", q="Emma") == "Emma"
        assert caller.call("burn", title="Emma") == "Emma"
        with pytest.raises(CallFailed) as refused:
            caller.call("elsewhere")
        assert refused.value.code == "UNKNOWN_ACTION"


def test_the_client_reads_the_address_of_a_door_in_the_documents(installed):
    wire = replace(import_module("queue_of_strangers").PLUGIN.wires[0], path="/elsewhere")
    with make_client("queue") as client, AgentClient(client.app, door=wire) as caller:
        assert caller.call("find", q="Emma") == "Emma"


@pytest.mark.parametrize("named", ["installed", "by the application"])
def test_a_door_is_one_of_the_command_line(installed, named, capsys):
    if named != "installed":
        (installed / "queue_of_strangers-1.dist-info" / "entry_points.txt").write_text("")
        read_packages_again()
    assert cli.main(["call", "shop_of_strangers:app", "find", "q=Emma", "--door", "queue"]) == 0
    assert capsys.readouterr().out == "Emma\n"


def test_a_door_is_one_of_the_overview(installed):
    with make_client("queue", plugins=["mcp", "overview"]) as client:
        form = client.get("/agents/try/find?q=Emma&awp-door=queue").text
        assert "POST /queue HTTP/1.1" in form
        answer = client.post("/agents/try/find", data={"q": "Emma", "awp-door": "queue"}).text
        assert ("Received from Queue" in answer, "&quot;Emma&quot;" in answer) == (True, True)


def test_a_door_is_named_to_readers(client):
    assert "Queue /queue" in client.get("/llms.txt").text
    assert "- Queue: https://shop.example/queue" in client.get("/llms-full.txt").text


def test_a_document_is_served_with_a_tag_and_to_everybody(client):
    answer = client.get("/queue.json")
    assert answer.json() == {"quotas": {"find": 2, "elsewhere": None, "burn": None}}
    assert answer.headers["access-control-allow-origin"] == "*"
    again = client.get("/queue.json", headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304


def test_a_problem_has_a_page_and_is_one_of_the_errors_that_agents_are_told_of(client):
    page = client.get("/agents/problems/quota-exceeded")
    assert (page.status_code, "429" in page.text) == (200, True)
    assert client.get("/agent.json").json()["errors"]["QUOTA_EXCEEDED"] == {
        "recovery": "Wait for the seconds in retry_after, then retry."
    }


def test_a_task_that_a_gate_does_not_admit_is_rejected_and_not_failed(installed):
    call = {"data": {"skill": "find", "input": {"q": "Emma"}}}
    sent = {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [call]}}
    with make_client(import_module("queue_of_strangers").PLUGIN, plugins=["a2a"]) as client:
        answers = [client.post("/a2a/message:send", json=sent, headers={"A2A-Version": "1.0"}) for _ in range(3)]
    states = [answer.json()["task"]["status"]["state"] for answer in answers]
    assert states == ["TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED", "TASK_STATE_REJECTED"]


def test_the_application_is_wrapped(client):
    assert client.get("/page").headers["x-queue"] == "here"


def test_a_store_is_opened_by_its_url(installed):
    with make_client("queue", store="queue://anywhere") as client:
        assert isinstance(client.app, AgentPublisher)
        assert isinstance(client.app.site.store, MemoryStore)
        assert client.post("/agents/find/invoke", json={"input": {"q": "Emma"}}).json() == "Emma"


def test_a_check_finds_what_is_missing(installed):
    site = Site("Shop", "Sells books.", "https://shop.example", plugins=["queue"])
    site.freeze(())
    assert [finding.check for finding in site.findings] == ["no-quota"]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"quota": "many"}, "quota: "), ({"quotas": 2}, 'quotas: there is no such option; did you mean "quota"?')],
)
def test_an_option_of_actions_is_checked_where_it_is_written(installed, options, words):
    site = Site("Shop", "Sells books.", "https://shop.example", plugins=["queue"])
    with pytest.raises(DeclarationError, match=words.replace("?", r"\?")):
        site.action("find", **options)


def test_an_option_of_actions_is_unknown_without_its_plug_in():
    site: Any = Site("Shop", "Sells books.", "https://shop.example")
    with pytest.raises(DeclarationError, match="quota: there is no such option"):
        site.action("find", quota=2)


def test_a_door_that_is_not_there_cannot_be_named(installed):
    site = Site("Shop", "Sells books.", "https://shop.example", plugins=["queue"])

    @site.agent("find", expose=["queues"])
    async def find() -> str:
        """Find."""
        return ""

    with pytest.raises(DeclarationError, match=r'there is no door "queues" here\. Did you mean "queue"'):
        site.freeze(())


@pytest.mark.parametrize("named", ["installed", "by the application"])
def test_a_command_is_a_verb_of_the_command_line(installed, named, capsys, monkeypatch):
    if named != "installed":
        (installed / "queue_of_strangers-1.dist-info" / "entry_points.txt").write_text("")
        read_packages_again()
    assert cli.main(["count-plugins", "shop_of_strangers:app", "--times", "3"]) == 0
    assert capsys.readouterr().out.endswith("plug-ins, 3 times\n")


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("return 0", ""),
        ("pass", 'the command "tell" of the plug-in "queue": returned None, which is not a status.'),
        ("raise KeyError(7)", "shop_of_strangers:app: has failed: KeyError: 7 ("),
        (
            "return 0\n\ndef tell(console, app): pass",
            'the command "tell" of the plug-in "queue": takes other arguments than the console,',
        ),
    ],
)
def test_a_command_with_a_mistake_is_named_with_its_plug_in(installed, written, wrong, capsys):
    own = f"\n\ndef tell(console, app, options):\n    {written}\n\n"
    with (installed / "queue_of_strangers.py").open("a") as module:
        module.write(f'{own}\nPLUGIN.commands["tell"] = Command(help="tell", run=tell)\n')
    assert cli.main(["tell", "shop_of_strangers:app"]) == (2 if wrong else 0)
    assert capsys.readouterr().err.startswith(f"awp-publish: {wrong}" if wrong else "")


@pytest.mark.parametrize(
    ("added", "wrong"),
    [
        ('"check": Command(help="check", run=count_actions)', 'The command "check" of the plug-in "queue" is left out'),
        ('"dns": Command(help="dns", run=count_actions)', 'The command "dns" of the plug-in "queue" is left out'),
        (
            '"tell": Command(help="tell", run=count_actions, arguments=lambda: None)',
            'the plug-in "queue": the arguments of "tell" have failed: TypeError',
        ),
    ],
)
def test_a_command_that_cannot_be_one_of_the_command_line_is_named(installed, added, wrong, capsys):
    with (installed / "queue_of_strangers.py").open("a") as module:
        module.write(f"\nPLUGIN.commands.update({{{added}}})\n")
    cli.main(["--version"])
    assert capsys.readouterr().err.startswith(f"awp-publish: {wrong}")


def test_no_plug_in_may_have_a_command_of_ours():
    named = {name for installed in plugin.installed().values() for name in installed.commands}
    [commands] = [action.choices for action in cli.make_parser()._actions if isinstance(action.choices, dict)]
    assert {*plugin.OWN_COMMANDS} == commands.keys() - named


def test_two_plug_ins_may_not_read_the_same_option(installed):
    for other, wrong in (
        (plugin.Plugin(name="other", action_options={"quota": str}), '"quota" of actions, and so has "queue"'),
        (plugin.Plugin(name="other", page_options={"queued": str}), '"queued" of pages, and so has "queue"'),
        (plugin.Plugin(name="other", page_options={"guide": str}), '"guide" of pages, and so has the core'),
    ):
        with pytest.raises(DeclarationError, match=f'"other" has the option {wrong}'):
            Site("Shop", "Sells books.", "https://shop.example", plugins=["queue", other])


class Broken(GateCheck[Ask]):
    """A gate with a mistake."""

    def __init__(self, place: str) -> None:
        self._place = place

    def enter(self, call: Any) -> None:
        if self._place == "enter":
            raise ValueError("secret")

    def ask(self, call: Any) -> Ask:
        if self._place == "ask":
            raise ValueError("secret")
        return Ask()

    async def ended(self, call: Any, ask: Any, result: Any) -> None:
        raise ValueError("secret")


@pytest.mark.parametrize(("place", "status", "runs"), [("enter", 500, 0), ("ask", 500, 0), ("ended", 200, 1)])
def test_a_gate_that_fails_admits_no_call_and_loses_no_answer(place, status, runs, caplog):
    gate = Gate(name="broken", order=450, of=lambda action, facts: Broken(place), refuses=())
    broken = plugin.Plugin(name="broken", gates=lambda setup: [gate])
    site, ran = Site("Shop", "Sells books.", "https://shop.example", plugins=[broken]), []

    @site.agent("sell")
    async def sell() -> str:
        """Sell."""
        ran.append(1)
        return "sold"

    with TestClient(AgentPublisher(Starlette(), site=site, check=False), base_url="https://shop.example") as client:
        answer = client.post("/agents/actions/sell", json={})
    assert (answer.status_code, len(ran)) == (status, runs)
    assert answer.json() == "sold" if runs else answer.json()["code"] == "HANDLER_FAILED"
    assert "secret" in caplog.text
    assert "secret" not in answer.text


def document(path: str, body: Any = b"{}") -> plugin.Protocol:
    return plugin.Protocol("hours", (plugin.Document(path, "application/json", lambda catalog: body),))


def gate(check: Any) -> plugin.Gate:
    return plugin.Gate(name="other", order=450, refuses=(), of=lambda action, facts: check)


class NeverAsked(plugin.GateCheck[plugin.Ask]):
    def judge(self, call: Any, ask: Any, seen: Any, failed: Any) -> None:
        raise AssertionError


COUNT: Any = plugin.Command(help="count", run=lambda console, app, options: 0)
ORDERLESS: Any = plugin.Gate(name="other", order="last", of=lambda action, facts: None, refuses=())  # type: ignore[arg-type]
UNTYPED: Any = plugin.Protocol("hours", (plugin.Document("/hours.json", 5, lambda catalog: b"{}"),))  # type: ignore[arg-type]
closed: Any = plugin.Door(name="closed", path="/closed", open=lambda context: None)  # type: ignore[arg-type, return-value]


def door(name: str, path: str) -> plugin.Plugin:
    opened = plugin.Door(name=name, path=path, open=lambda context: plugin.Endpoints())
    return plugin.Plugin(name="other", doors=lambda setup, paths: [opened])


@pytest.mark.parametrize(
    ("other", "wrong"),
    [
        (plugin.Plugin(name="other", documents=document("/x")), '"other": documents must be a list.'),  # type: ignore[arg-type]
        (
            plugin.Plugin(name="other", documents=[plugin.Protocol("hours", document("/x").documents[0])]),  # type: ignore[arg-type]
            "documents of item 0 of documents must be a list.",
        ),
        (plugin.Plugin(name="other", documents=[document("hours.json")]), "document hours.json: its path has no slash"),
        (plugin.Plugin(name="other", documents=[document("/llms.txt")]), "document /llms.txt: two would be served"),
        (plugin.Plugin(name="other", documents=[document("/x", "{}")]), "document /x: what renders it returned str"),
        (plugin.Plugin(name="other", declares={"agent": print}), 'has the method "agent", and so has the core'),
        (plugin.Plugin(name="other", declares={"skill": print}), 'has the method "skill", and so has "skills"'),
        (plugin.Plugin(name="other", watcher=lambda setup: None), 'has the hook "watcher", and so has "telemetry"'),
        (plugin.Plugin(name="other", counter=lambda setup: None), 'has the hook "counter", and so has "traffic"'),
        (plugin.Plugin(name="other", gates=[]), '"other": gates must be a function'),  # type: ignore[arg-type]
        (
            plugin.Plugin(name="other", gates=lambda setup: [ORDERLESS]),
            "order of item 0 of what gates returns must be of type int",
        ),
        (plugin.Plugin(name="other", declares={"holiday": 5}), "item 'holiday' of declares must be a function"),  # type: ignore[dict-item]
        (plugin.Plugin(name="other", panel=5), '"other": panel must be of type Panel'),  # type: ignore[arg-type]
        (
            plugin.Plugin(name="other", documents=[UNTYPED]),
            "media_type of item 0 of documents of item 0 of documents must be",
        ),
        (plugin.Plugin(name="other", options=dict), '"other": options must be a dataclass'),
        (
            plugin.Plugin(name="other", options=type(document("/x"))),
            "without its settings: Protocol.__init__() missing",
        ),
        (plugin.Plugin(name="other", needs=["x"]), '"other": needs must be a dictionary'),  # type: ignore[arg-type]
        (plugin.Plugin(name="other", commands={"x": print}), "item 'x' of commands must be of type Command"),  # type: ignore[dict-item]
        (
            plugin.Plugin(name="other", problems=[type("Odd", (Problem,), {})]),
            "the slug of the problem Odd is 'problem'",
        ),
        (plugin.Plugin(name="other", gates=lambda setup: gate(None)), "what gates returns must be a list."),  # type: ignore[arg-type, return-value]
        (
            plugin.Plugin(name="other", gates=lambda setup: [gate(5)]),
            'gate "other": what is returned for action "greet" is',
        ),
        (plugin.Plugin(name="other", gates=lambda setup: [gate(NeverAsked())]), "NeverAsked has judge but no ask"),
        (plugin.Plugin(name="other", commands={"check": COUNT}), 'has the command "check", and so has the core'),
        (plugin.Plugin(name="other", commands={"dns": COUNT}), 'has the command "dns", and so has "discovery"'),
        (
            plugin.Plugin(name="other", authenticators=lambda setup: None),  # type: ignore[arg-type, return-value]
            "what authenticators returns must be a list.",
        ),
        (
            plugin.Plugin(name="other", authenticators=lambda setup: [print]),
            "item 0 of what authenticators returns must be of type Authenticator",
        ),
        (plugin.Plugin(name="other", problems=[ValueError]), "the slug of the problem ValueError is ''"),  # type: ignore[list-item]
        (
            plugin.Plugin(name="other", derive=lambda setup, catalog: None),  # type: ignore[arg-type, return-value]
            "what derive returns must be of type Catalog",
        ),
        (
            plugin.Plugin(name="other", calls=lambda context: None),  # type: ignore[arg-type, return-value]
            "what calls returns must be of type CallHooks",
        ),
        (
            plugin.Plugin(name="other", around=lambda context, app: None),  # type: ignore[arg-type, return-value]
            "what around returns must be a function",
        ),
        (
            plugin.Plugin(name="other", doors=lambda setup, paths: [closed]),
            'what open of the door "closed" returns must be of type Endpoints',
        ),
        (door("plain", "/other"), 'has the door "plain", and so has'),
        (door("other", "other"), "the path of the door \"other\" is 'other'"),
    ],
)
def test_a_plug_in_that_cannot_stand_beside_the_others_is_refused_at_the_start(other, wrong):
    def start() -> None:
        site = Site("Shop", "Sells books.", "https://shop.example", plugins=["discovery", "skills", other])
        site.agent("greet", description="Greet.")(lambda: "hello")
        AgentPublisher(Starlette(), site=site, check=False).open()

    with pytest.raises(DeclarationError) as refused:
        start()
    assert wrong in str(refused.value)


def test_a_plug_in_that_does_not_run_keeps_the_application_from_starting():
    async def running(serving: Any) -> AsyncIterator[None]:
        yield

    other = plugin.Plugin(name="other", running=running)  # type: ignore[arg-type]
    site = Site("Shop", "Sells books.", "https://shop.example", plugins=[other])
    with pytest.raises(StartFailed, match='"other": what running returns must be of type AbstractAsyncContext'):
        AgentClient(AgentPublisher(Starlette(), site=site, check=False)).document("/agent.json")


@pytest.mark.parametrize(
    "hook", ["start", "prepare", "publish", "derive", "check", "gates", "doors", "calls", "around"]
)
def test_an_error_in_a_hook_names_hook_and_plug_in_in_a_note(hook):
    def fail(*_: Any) -> Any:
        raise KeyError("a bug")

    other = plugin.Plugin(name="other", **{hook: fail})  # type: ignore[arg-type]

    def start() -> None:
        site = Site("Shop", "Sells books.", "https://shop.example", plugins=[other])
        AgentPublisher(Starlette(), site=site, check=False).open()

    with pytest.raises(KeyError) as raised:
        start()
    assert raised.value.__notes__ == [f'Raised in {hook} of the plug-in "other".']


@pytest.mark.parametrize("hook", ["serve", "at"])
def test_an_error_in_what_a_plug_in_gives_to_others_names_its_hook_in_a_note(hook):
    def fail(*_: Any) -> Any:
        raise KeyError("a bug")

    other = plugin.Plugin(name="other", **{hook: fail})  # type: ignore[arg-type]
    asking = plugin.Plugin(name="asking", calls=lambda context: context.ask("other"))
    site = Site("Shop", "Sells books.", "https://shop.example", plugins=[other, asking])
    with pytest.raises(KeyError) as raised:
        AgentPublisher(Starlette(), site=site, check=False).open()
    assert raised.value.__notes__[0] == f'Raised in {hook} of the plug-in "other".'


def test_an_error_in_a_renderer_names_its_document_in_a_note():
    def fail(_: Catalog) -> bytes:
        raise KeyError("a bug")

    hours = plugin.Document("/hours.json", "application/json", fail)
    other = plugin.Plugin(name="other", documents=[plugin.Protocol("hours", (hours,))])
    site = Site("Shop", "Sells books.", "https://shop.example", plugins=[other])
    with pytest.raises(KeyError) as raised:
        AgentPublisher(Starlette(), site=site, check=False).open()
    assert raised.value.__notes__ == ["Raised in render of the document /hours.json."]


@pytest.mark.parametrize(
    ("opened", "why"),
    [(None, "it has no is_shared, run, take, close"), (MemoryStore, "it is a class"), ([], "it has no is_shared")],
)
def test_a_store_of_a_plug_in_is_refused_if_it_is_none(opened, why):
    other = plugin.Plugin(name="other", stores={"other": lambda url, namespace: opened})
    with pytest.raises(DeclarationError, match=f'what the plug-in "other" opens for other: is not a store: {why}'):
        Site("Shop", "Sells books.", "https://shop.example", plugins=[other], store="other://ann:secret@host")


def test_a_document_takes_the_place_of_one_that_is_left_out():
    mine = plugin.Plugin(name="other", documents=[document("/llms.txt", b"mine")])
    about = About(leave_out=["llms_txt"])
    site = Site("Shop", "Sells books.", "https://shop.example", about=about, plugins=[mine])
    with TestClient(AgentPublisher(Starlette(), site=site, check=False), base_url="https://shop.example") as client:
        assert client.get("/llms.txt").text == "mine"


def test_an_option_of_pages_is_checked_and_kept(installed):
    site = Site("Shop", "Sells books.", "https://shop.example", plugins=["queue"])
    with pytest.raises(DeclarationError, match='page "/": queued: must be'):
        site.page("/", queued="many")  # type: ignore[call-arg]
    site.page("/", queued=3)  # type: ignore[call-arg]
    [page] = site.freeze(Starlette(routes=[Route("/", lambda request: PlainTextResponse(""))])).pages
    assert page.options == {"queued": 3}


def test_features_are_chosen_by_values_of_their_options_in_one_list():
    callers = BearerToken({"t-1": Principal("ann", frozenset({"operator"})), "t-2": "ben"})
    site = Site(
        "Shop",
        "Sells books.",
        "https://shop.example",
        plugins=[
            "mcp",
            "a2a",
            Awp(sessions=200),
            Bridge(),
            Overview("operator"),
            Traffic(days=30),
            Jobs(concurrency=2),
        ],
        authenticate=callers,
    )
    with TestClient(AgentPublisher(Starlette(), site=site), base_url="https://shop.example") as client:
        answers = [client.get("/agents", headers={"authorization": f"Bearer {token}"}) for token in ("t-1", "t-2")]
        assert [answer.status_code for answer in answers] == [200, 403]
        assert {door.protocol for door in site.catalog.doors} >= {"mcp", "a2a", "awp", "bridge"}
    assert site.plugins["traffic"].options == Traffic(days=30)
    with pytest.raises(DeclarationError, match=r"plugins\.traffic\.days: "):
        Site("Shop", "Sells books.", "https://shop.example", plugins=[Traffic(days=0)])


FRAMEWORK = """
from starlette.applications import Starlette
from awp_publish.declare.discover.declared import describe_by_path
from awp_publish.declare.discover.framework import WebFramework
from awp_publish.declare.discover.routes import Route
from awp_publish.model import Arrival, OpenApi

class Shelves(Starlette):
    pass

def walk(app, prefix, walk, is_outermost):
    for route in app.routes:
        def describe(method, path=route.path):
            return describe_by_path(path, "What the framework says.")

        arrival = Arrival(prefix + route.path, route.endpoint)
        yield Route(arrival.path, ("GET",), (route.endpoint,), route.name, describe=describe, arrival=arrival)

FRAMEWORK = WebFramework(
    application=Shelves,
    walk=walk,
    in_order=lambda app: ((route, route) for route in app.routes),
    openapi=lambda app: OpenApi("/described.json", "3.1.0"),
    injector=lambda app: None,
)
"""


def test_a_framework_is_announced_by_a_package_of_its_own(installed, monkeypatch):
    (installed / "shelves_of_strangers.py").write_text(FRAMEWORK)
    points = "[awp_publish.frameworks]\nshelves_of_strangers = shelves_of_strangers:FRAMEWORK\n"
    (installed / "queue_of_strangers-1.dist-info" / "entry_points.txt").write_text(points)
    shelves = import_module("shelves_of_strangers")
    read_packages_again()
    site = Site("Shop", "Sells books.", "https://shop.example")

    @site.action("show_book")
    async def show(request):
        return PlainTextResponse("a book")

    with TestClient(AgentPublisher(shelves.Shelves(routes=[Route("/books/{slug}", show)]), site=site)) as client:
        assert site.catalog.action("show_book").description == "What the framework says."
        assert client.get("/agent.json").json()["protocols"]["openapi"]["endpoint"].endswith("/described.json")
        answer = client.post("/agents/show_book/invoke", json={"input": {"slug": "emma"}})
        assert (answer.status_code, answer.json()) == (200, "a book")
    sys.modules.pop("shelves_of_strangers")
    read_packages_again()
