"""Who sees what: an action is for its audience and at its doors, and to everybody else it is not there."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette

from awp_publish import AgentPublisher, BearerToken, DeclarationError, Principal, Site
from awp_publish.checks.urls import is_loopback
from awp_publish.documents.protocol import published
from awp_publish.problems import AuthExpired
from tests.client import TestClient
from tests.documents.known import ALL
from tests.doors.adapters import DOORS
from tests.guarded import KEYS
from tests.installed import installed, is_installed
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import VERSIONS, message, post

SCOPES: Mapping[str, frozenset[str]] = {
    "ann": frozenset(),
    "eve": frozenset({"stock:write"}),
    "olga": frozenset({"operator"}),
}
HIDDEN = {"mine": {"ann", "eve", "olga"}, "restock": {"eve"}, "close": {"olga"}}
"""Actions that are not for everybody, and the callers for whom they are."""

SPOKEN = ("woa", "plain", "mcp", "a2a", "awp", "bridge")
DOCUMENTS = {
    "woa": ["/.well-known/woa.json", "/llms.txt", "/llms-full.txt", "/agents/webmcp.tools.js"],
    "plain": ["/.well-known/ai-actions.json", "/agent.json"],
    "mcp": ["/.well-known/mcp.json", "/.well-known/mcp/server-card.json"],
    "a2a": ["/.well-known/agent-card.json", "/.well-known/agent.json"],
    "bridge": ["/.well-known/actions.json", "/actions.json"],
}


def check(token: str) -> Principal | None:
    if token == "old":
        raise AuthExpired("The token has expired.")
    return Principal(token, SCOPES[token]) if token in SCOPES else None


def make_site(**changes: Any) -> Site:
    options: dict[str, Any] = {
        "authenticate": BearerToken(check),
        "secret_keys": KEYS,
        **changes,
        "plugins": [*installed("mcp", "a2a", "awp", "bridge"), *changes.get("plugins", ())],
    }
    return Site("Shop", "Sells books.", url="https://shop.example", **options)


def only(plugin: str, **options: Any) -> dict[str, Any]:
    """Return options that a plug-in reads, none if it has been taken out."""
    return options if is_installed(plugin) else {}


@pytest.fixture(scope="module")
def shop() -> Iterator[TestClient]:
    app, site = FastAPI(), make_site()

    @app.get("/look")
    @site.action("look", tags=["reading"])
    async def look(q: str = "") -> str:
        """Look at the shelves."""
        return f"books {q}"

    @site.agent("mine", audience="known", **only("limits", rate_limit="500/day"))
    async def mine() -> str:
        """What is mine of the Zauberwort."""
        return "mine"

    @app.post("/restock")
    @site.action("restock", audience="stock:write", depends_on=["look"], **only("idempotency", idempotency="24h"))
    async def restock(copies: int = 1) -> str:
        """Put books of the Zauberwort on the shelves."""
        return "restocked"

    @site.agent("close", audience="operator", effect="delete", max_body_bytes=100, **only("jobs", execution="async"))
    async def close() -> str:
        """Close the Zauberwort."""
        return "closed"

    @site.agent("recount", expose=["woa", "plain", "mcp", "a2a", "awp", "bridge"], depends_on=["restock"])
    async def recount() -> str:
        """Count the books."""
        return "counted"

    app.add_middleware(AgentPublisher, site=site)
    with TestClient(app, base_url="https://shop.example") as client:
        yield client


def raw(client: TestClient, door: str, name: str, given: Any = None, token: str | None = None, **beside: Any) -> str:
    """The whole answer to a call, without what differs between any two requests and without the name."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    headers |= beside.pop("headers", {})
    given = {} if given is None else given
    if door == "awp":
        with AwpClient.open(client, {}) as opened:
            auth = {"method": "auth.bearer", "token": token} if token in SCOPES else None
            opened.ask("awp.hello", {"auth": auth})
            text, status = json.dumps(opened.ask("skills.invoke", {"skill": name, "args": given, **beside})), 0
    else:
        if door == "woa":
            answer = client.post(f"/agents/{name}/invoke", json={"input": given, **beside}, headers=headers)
        elif door == "plain":
            answer = client.post(f"/agents/actions/{name}", json={**given, **beside}, headers=headers)
        elif door == "mcp":
            answer = post(client, message("tools/call", {"name": name, "arguments": given}), headers=headers)
        else:
            part = {"data": {"skill": name, "input": given, **beside}}
            sent = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [part]}}
            body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": sent}
            answer = client.post("/a2a", json=body, headers={**headers, "a2a-version": "1.0"})
        kept = {key: value for key, value in answer.headers.items() if key not in ("x-request-id", "content-length")}
        text, status = json.dumps([answer.json(), kept], sort_keys=True), answer.status_code
    text = re.sub(r"\b[0-9a-f]{16,32}\b|[0-9a-f-]{36}|\d{4}-\d\d-\d\dT[\d:.]+Z", "*", text.replace(name, "NAME"))
    return f"{status} {re.sub(r' ?(Did you mean [^?]*[?]|Known agents: [^.]*[.])', '', text)}"


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("action", HIDDEN)
def test_a_hidden_action_is_answered_like_an_unknown_one(shop, door, action):
    missing = raw(shop, door, "nothing")
    assert "NAME" in missing
    for token in (None, *SCOPES):
        answer = raw(shop, door, action, token=token)
        if token in HIDDEN[action]:
            assert answer != missing, token
        else:
            assert answer == raw(shop, door, "nothing", token=token), token


@pytest.mark.parametrize("door", [name for name in DOORS if name != "awp"])
@pytest.mark.parametrize("token", ["wrong", "old"])
def test_wrong_credentials_find_nothing_out(shop, door, token):
    assert raw(shop, door, "mine", token=token) == raw(shop, door, "nothing")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "strange", [{"copies": "many"}, {"unknown": 1}, {"words": "x" * 500}], ids=["wrong", "unknown", "large"]
)
def test_a_strange_input_finds_nothing_out(shop, door, strange):
    assert raw(shop, door, "close", strange) == raw(shop, door, "nothing", strange)
    assert raw(shop, door, "restock", strange) == raw(shop, door, "nothing", strange)


@pytest.mark.parametrize("door", [name for name in DOORS if name != "mcp"])
def test_a_strange_envelope_finds_nothing_out(shop, door):
    for beside in ({"idempotency_key": 7}, {"session": "made-up"}, {"receipts": "none", "confirmation": 1}):
        told = raw(shop, door, "restock", **beside), raw(shop, door, "nothing", **beside)
        assert told[0] == told[1]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_no_method_finds_nothing_out(shop, method):
    answers = [
        shop.request(method, f"/agents/actions/{name}", content=b"{", headers={"origin": "https://shop.example"})
        for name in ("close", "nothing")
    ]
    statuses, allowed = {answer.status_code for answer in answers}, {answer.headers.get("allow") for answer in answers}
    assert len(statuses) == len(allowed) == 1
    assert len({answer.headers.get("access-control-allow-methods") for answer in answers}) == 1


@pytest.mark.needs("a2a")
def test_a_stream_finds_nothing_out(shop):
    def stream(name: str) -> list[str]:
        part = {"data": {"skill": name, "input": {}}}
        sent = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [part]}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": sent}
        text = shop.post("/a2a", json=body, headers={"a2a-version": "1.0"}).text
        return re.findall(r"TASK_STATE_\w+", text)

    assert stream("mine") == stream("close") == stream("nothing") == ["TASK_STATE_INPUT_REQUIRED"]


@pytest.mark.needs("woa")
@pytest.mark.needs("agent_json", "awas", "bridge")
@pytest.mark.needs("plain", "mcp", "a2a", "discovery")
def test_documents_that_everybody_reads_hold_what_is_public(shop):
    site = shop.app.user_middleware[0].kwargs["site"]
    paths = [item.path_in(site.catalog) for item in published(ALL, site.catalog)]
    assert {path for door in DOCUMENTS for path in DOCUMENTS[door]} <= set(paths)
    for path in [*paths, "/agents/status", "/agents/problems"]:
        text = shop.get(path, headers={"authorization": "Bearer olga"}).text
        assert "Zauberwort" not in text, path
        assert re.search(r"\b(mine|restock|close)\b", text) is None, path
    described = shop.get("/agent.json").json()
    assert [action["id"] if "id" in action else action["name"] for action in described["actions"]] == [
        "look",
        "recount",
        "actions_site",
    ]


@pytest.mark.needs("mcp", "jobs")
@pytest.mark.parametrize("version", VERSIONS)
def test_mcp_lists_to_each_caller_their_own_tools(shop, version):
    for token in (None, *SCOPES):
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        result = post(shop, message("tools/list", version=version), version, headers).json()["result"]
        names = {tool["name"] for tool in result["tools"]} - {"actions_site", "get_job"}
        assert names == {"look", "recount", *(name for name in HIDDEN if token in HIDDEN[name])}
        assert result.get("cacheScope", "private") == "private"


@pytest.mark.needs("mcp", "jobs")
def test_a_tool_that_polls_jobs_is_listed_to_those_who_may_begin_one(shop):
    for token in (None, *SCOPES):
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        tools = post(shop, message("tools/list"), headers=headers).json()["result"]["tools"]
        assert ("get_job" in [tool["name"] for tool in tools]) == (token == "olga")


@pytest.mark.needs("awp")
def test_awp_lists_to_each_caller_their_own_skills(shop):
    for token in (None, *SCOPES):
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        with AwpClient.greeted(shop, headers) as caller:
            skills = caller.ask("skills.list")["result"]["skills"]
        names = {skill["name"] for skill in skills} - {"actions_site"}
        assert names == {"look", "recount", *(name for name in HIDDEN if token in HIDDEN[name])}


@pytest.mark.needs("mcp", "bridge")
def test_the_bridge_lists_to_each_caller_their_own_tools(shop):
    for token in (None, *SCOPES):
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        sent = message("tools/call", {"name": "actions_site", "arguments": {"mode": "list"}})
        response = post(shop, sent, headers=headers).json()["result"]
        text = json.dumps(response)
        for name in HIDDEN:
            assert (f'"{name}"' in text or f'\\"{name}\\"' in text) == (token in HIDDEN[name]), (token, name)
        called = {"mode": "call", "action": "mine", "arguments": {}}
        answer = post(shop, message("tools/call", {"name": "actions_site", "arguments": called}), headers=headers)
        assert answer.json()["result"]["isError"] == (token is None), answer.json()


@pytest.mark.needs("mcp", "a2a")
def test_jobs_and_tasks_are_theirs_who_may_know_of_the_action(open_client):
    site, scopes = make_site(authenticate=BearerToken(lambda token: Principal(token, scopes))), frozenset({"operator"})

    @site.agent("close", audience="operator", execution="async")
    async def close() -> str:
        """Close the shop."""
        return "closed"

    @site.agent("tidy", audience="operator")
    async def tidy() -> str:
        """Tidy the shop."""
        return "tidy"

    client, headers = open_client(AgentPublisher(Starlette(), site=site)), {"authorization": "Bearer olga"}
    job = client.post("/agents/close/invoke", json={"input": {}}, headers=headers).headers["location"]

    def a2a(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return client.post("/a2a", json=body, headers={**headers, "a2a-version": "1.0"}).json()

    part = {"data": {"skill": "tidy", "input": {}}}
    sent = a2a("SendMessage", message={"messageId": "m-1", "role": "ROLE_USER", "parts": [part]})
    task = sent["result"]["task"]["id"]
    assert client.get(job, headers=headers).status_code == 200
    assert a2a("GetTask", id=task)["result"]["id"] == task
    assert [task["id"] for task in a2a("ListTasks")["result"]["tasks"]] == [task]
    scopes = frozenset()  # they are no operator any more
    assert client.get(job, headers=headers).json()["code"] == "UNKNOWN_JOB"
    assert client.delete(job, headers=headers).json()["code"] == "UNKNOWN_JOB"
    polled = message("tools/call", {"name": "get_job", "arguments": {"job_id": job.rpartition("/")[2]}})
    problem = post(client, polled, headers=headers).json()["result"]["_meta"]["awp/problem"]
    assert problem["code"] == "UNKNOWN_JOB"
    assert a2a("GetTask", id=task)["error"] == a2a("GetTask", id="0" * 8)["error"]
    assert a2a("ListTasks")["result"].get("tasks", []) == []


def test_a_refusal_by_audience_counts_as_no_call(open_client):
    site = make_site()

    @site.agent("mine", audience="known", rate_limit="1/day in total")
    async def mine() -> str:
        """What is mine."""
        return "mine"

    client = open_client(AgentPublisher(Starlette(), site=site))
    for _ in range(3):
        assert client.post("/agents/actions/mine").json()["code"] == "UNKNOWN_ACTION"
    known = {"authorization": "Bearer ann"}
    assert client.post("/agents/actions/mine", headers=known).json() == "mine"
    again = client.post("/agents/actions/mine", headers=known)
    assert again.json()["code"] == "RATE_LIMITED"
    assert client.post("/agents/actions/mine").json()["code"] == "UNKNOWN_ACTION"


def test_a_caller_who_may_know_of_an_action_is_told_what_else_it_needs(open_client):
    site = make_site()

    @site.agent("pay", audience="known", scopes=["pay"])
    async def pay() -> str:
        """Pay."""
        return "paid"

    client = open_client(AgentPublisher(Starlette(), site=site))
    known = {"authorization": "Bearer ann"}
    assert client.post("/agents/actions/pay", headers=known).json()["code"] == "INSUFFICIENT_SCOPE"
    assert client.post("/agents/actions/pay").json()["code"] == "UNKNOWN_ACTION"


def test_one_operation_of_an_agent_may_be_for_others(open_client):
    site = make_site()
    desk = site.agent("desk", description="Lends books.")

    @desk.operation("lend")
    async def lend() -> str:
        """Lend a book."""
        return "lent"

    @desk.operation("burn", audience="operator")
    async def burn() -> str:
        """Burn a book."""
        return "burnt"

    client = open_client(AgentPublisher(Starlette(), site=site))
    assert "burn" not in client.get("/.well-known/woa.json").text

    def call(operation: str, **headers: str) -> Any:
        return client.post("/agents/desk/invoke", json={"operation": operation, "input": {}}, headers=headers).json()

    hidden, missing = call("burn"), call("bern")
    assert hidden["code"] == missing["code"] == "UNKNOWN_OPERATION"
    assert hidden["detail"].replace("burn", "*") == missing["detail"].replace("bern", "*")
    assert call("burn", authorization="Bearer olga") == "burnt"
    assert call("lend") == "lent"


@pytest.mark.needs("overview")
def test_the_overview_shows_what_its_reader_may_see(open_client):
    site = make_site(plugins=installed("overview"))

    @site.agent("look")
    async def look() -> str:
        """Look at books."""
        return "books"

    @site.agent("close", audience="operator")
    async def close() -> str:
        """Close the Zauberwort."""
        return "closed"

    client = open_client(AgentPublisher(Starlette(), site=site))
    assert "Look at books" in client.get("/agents").text
    assert "Zauberwort" not in client.get("/agents").text
    assert client.get("/agents/try/close").status_code == client.get("/agents/try/nothing").status_code == 404
    operator = {"authorization": "Bearer olga"}
    assert "Zauberwort" in client.get("/agents", headers=operator).text
    assert client.get("/agents/try/close", headers=operator).status_code == 200


@pytest.fixture(scope="module")
def zoo() -> Iterator[TestClient]:
    from awp_publish import Traffic

    """Actions for everybody and for known callers that come after one of the operator's, with much to find in it."""
    app, site = FastAPI(openapi_url=None), make_site(plugins=["overview", Traffic(metrics=True)], guard_routes=True)

    @app.post("/striped/{name}")
    @site.action("zebra", audience="operator", execution="async", awas={"preview_url": "/nowhere"})
    async def zebra(name: str) -> str:
        """Wash it."""
        return name

    @app.post("/feed")
    @site.action("feed", depends_on=["zebra"], idempotency="1h")
    async def feed(hay: int = 1) -> str:
        """Feed them."""
        return "fed"

    @app.post("/count")
    @site.action("count", audience="known", depends_on=["zebra", "feed"], requires=["feed"], confirm=True)
    async def count(hay: int = 1) -> str:
        """Count them."""
        return "counted"

    @app.post("/leave")
    @site.action("leave", requires=["feed"])
    async def leave() -> str:
        """Go home."""
        return "left"

    keeper = site.agent("keeper", description="Looks after them.")
    keeper.operation("greet", description="Greet them.", depends_on=["keeper_zebra"])(lambda: "hello")
    keeper.operation("zebra", description="Brush it.", audience="operator")(lambda: "brushed")
    app.add_middleware(AgentPublisher, site=site)
    with TestClient(app, base_url="https://shop.example") as client:
        assert client.post("/agents/zebra/invoke", json={"input": {"name": "a"}}, headers=OPERATOR).status_code == 202
        yield client


OPERATOR = {"authorization": "Bearer olga"}


@pytest.mark.needs("awas", "awp")
@pytest.mark.parametrize("token", [None, "ann"])
def test_nothing_that_a_caller_reads_names_an_action_that_they_may_not_know_of(zoo, token):
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    listed = json.loads(zoo.get("/.well-known/woa.json").text)
    assert {agent["id"] for agent in listed["agents"]} >= {"feed", "keeper"}
    site_map = {path for paths in DOCUMENTS.values() for path in paths} | {"/robots.txt", "/agents/status"}
    overview = {"/agents", "/agents?sees=scope:operator", "/agents/metrics"}
    overview |= {f"/agents/try/{name}" for name in ("feed", "count", "leave", "keeper_greet")}
    values = {path: zoo.get(path, headers=headers).text for path in sorted(site_map | overview)}
    form = headers | {"content-type": "application/x-www-form-urlencoded"}
    values |= {
        f"POST {path}": zoo.post(path, headers=form, content=b"hay=1").text for path in overview if "try" in path
    }
    for name in ("feed", "leave", "keeper_greet"):
        assert "<form" in values[f"/agents/try/{name}"]
    for method in ("tools/list", "prompts/list", "resources/list", "server/discover"):
        values[method] = post(zoo, message(method), headers=headers).text
    for mode in ("list", "get"):
        arguments = {"mode": mode, "action": "feed"}
        sent = message("tools/call", {"name": "actions_site", "arguments": arguments})
        values[f"actions_site {mode}"] = post(zoo, sent, headers=headers).text
    with AwpClient.greeted(zoo, headers) as caller:
        values["skills.list"] = json.dumps(caller.ask("skills.list"))
        for name in ("feed", "count", "leave"):
            values[f"skills.describe {name}"] = json.dumps(caller.ask("skills.describe", {"skill": name}))
    for door in DOORS:
        for name in ("feed", "count", "leave", "keeper", "zebr"):
            for given in ({}, {"hay": "much"}, {"hay": 1}):
                values[f"{door} {name} {given}"] = raw(zoo, door, name, given, token).replace("zebr ", "")
    for path in ("/feed", "/count", "/leave"):
        values[f"route {path}"] = zoo.post(path, headers=headers).text
    assert [name for name, text in values.items() if re.search("zebra|striped|Wash it|Brush it", text)] == []


@pytest.mark.needs("awas")
def test_findings_name_no_action_that_a_reader_may_not_know_of(zoo):
    assert "/nowhere" not in zoo.get("/agents").text
    assert "zebra" in zoo.get("/agents", headers=OPERATOR).text


def test_actions_awaiting_approval_name_none_that_is_hidden_or_gone(open_client, tmp_path):
    from awp_publish import Approval

    def shop(*names: str) -> tuple[Site, TestClient]:
        site = make_site(plugins=["overview", Approval(str(tmp_path / "approved.json"))])
        for name in names:
            audience, after = ("operator", []) if name == "zebra" else ("public", [*{"zebra"} & {*names}])
            site.agent(name, description="Does it.", audience=audience, depends_on=after)(lambda: None)
        return site, open_client(AgentPublisher(Starlette(), site=site))

    site, _ = shop("yak")
    site.approve("yak")
    _, client = shop("zebra", "feed")
    page = client.get("/agents").text
    assert "waiting-feed" in page
    assert re.search("zebra|yak", page) is None
    page = client.get("/agents", headers=OPERATOR).text
    assert {"waiting-zebra", "comes after zebra"} <= set(re.findall("waiting-zebra|comes after zebra", page))
    assert "yak" in page


@pytest.mark.needs("awas", "mcp")
def test_readers_of_the_overview_at_the_same_time_see_their_own_actions(zoo, monkeypatch):
    waiting = [True]

    def read_meanwhile(domain: str) -> bool:  # asked while a page is made, after its actions were rendered
        if waiting and waiting.pop():
            assert "Wash it" in zoo.get("/agents", headers=OPERATOR).text
        return is_loopback(domain)

    monkeypatch.setattr("awp_publish.plugins.overview.connect.is_loopback", read_meanwhile)
    assert "Wash it" not in zoo.get("/agents").text
    assert waiting == []


def test_metrics_that_everybody_reads_tell_of_what_is_public(open_client):
    from awp_publish import Traffic

    site = make_site(plugins=[Traffic(metrics=True)])
    for name, audience in {"look": "public", "close": "operator"}.items():
        site.agent(name, description="Does it.", audience=audience)(lambda: None)
    client = open_client(AgentPublisher(Starlette(), site=site))
    operator = {"authorization": "Bearer olga"}
    for name in ("look", "close"):
        assert client.post(f"/agents/{name}/invoke", json={"input": {}}, headers=operator).status_code == 200
    text = client.get("/agents/metrics").text
    assert 'action="look"' in text
    assert "close" not in text


# --- The doors at which an action is offered ---


@pytest.fixture(scope="module")
def doors() -> Iterator[TestClient]:
    """A shop with an action for each door, called only_woa and so on."""
    app, site = Starlette(), make_site()

    def declare(door: Any) -> None:
        @site.agent(f"only_{door}", description="Counts the books.", expose=[door])
        async def count() -> str:
            return "counted"

    for door in SPOKEN:
        declare(door)

    @site.agent("everywhere")
    async def everywhere() -> str:
        """Sell books everywhere."""
        return "sold"

    with TestClient(AgentPublisher(app, site=site), base_url="https://shop.example") as client:
        yield client


@pytest.mark.needs("plain", "woa", "awas", "agent_json", "mcp", "a2a", "bridge", "discovery")
@pytest.mark.parametrize("door", DOCUMENTS)
def test_a_document_holds_what_is_offered_at_its_door(doors, door):
    others = {f"only_{item}" for item in SPOKEN} - {f"only_{door}"}
    for path in DOCUMENTS[door]:
        text = doors.get(path).text
        assert f"only_{door}" in text, path
        assert "everywhere" in text, path
        assert [name for name in others if re.search(rf"\b{name}\b", text)] == [], path
    agents = {agent["id"]: agent["transports"] for agent in doors.get("/.well-known/woa.json").json()["agents"]}
    assert (agents["only_woa"], agents["everywhere"]) == (["rest"], ["rest", "mcp"])
    skill = doors.get("/.well-known/agent-skills/shop/SKILL.md").text
    assert "only_woa" in skill
    assert "only_mcp" not in skill


@pytest.mark.needs("discovery", "mcp", "a2a")
def test_the_catalogue_names_an_action_by_the_interface_that_offers_it(doors):
    entries = {
        entry["identifier"].rpartition(":")[2]: entry for entry in doors.get("/.well-known/ard.json").json()["entries"]
    }
    assert "mcp" in entries["only_mcp"]["type"]
    assert "a2a" in entries["only_a2a"]["type"]
    assert "markdown" in entries["only_woa"]["type"]
    assert entries.keys().isdisjoint({"only_awp", "only_plain", "only_bridge"})


@pytest.mark.parametrize("door", DOORS)
def test_a_door_answers_only_for_what_is_offered_there(doors, door):
    told = DOORS[door](doors)
    assert told.call(f"only_{door}").code is None
    assert told.call("everywhere").code is None
    for other in SPOKEN:
        if other != door:
            assert raw(doors, door, f"only_{other}") == raw(doors, door, "only_nothing"), other


@pytest.mark.needs("mcp", "awp", "bridge")
def test_lists_hold_what_is_offered_at_their_door(doors):
    tools = post(doors, message("tools/list")).json()["result"]["tools"]
    assert {tool["name"] for tool in tools} == {"only_mcp", "everywhere", "actions_site"}
    with AwpClient.greeted(doors) as caller:
        skills = caller.ask("skills.list")["result"]["skills"]
    assert {skill["name"] for skill in skills} == {"only_awp", "everywhere", "actions_site"}
    sent = message("tools/call", {"name": "actions_site", "arguments": {"mode": "list"}})
    listed = json.dumps(post(doors, sent).json())
    assert set(re.findall(r"only_\w+", listed)) == {"only_bridge"}


# --- Categories ---


@pytest.mark.needs("discovery", "agent_json", "bridge")
@pytest.mark.needs("plain", "mcp", "a2a", "awp")
def test_tags_group_actions_wherever_a_document_can_say_so(open_client):
    site = make_site()
    for name, tags in {"find": ["books", "reading"], "sign_in": ["account"], "help": [], "read": ["books"]}.items():
        site.agent(name, description=f"Does {name}.", tags=tags)(lambda: None)
    client = open_client(AgentPublisher(Starlette(), site=site))
    lists = ("/llms.txt", "/.well-known/agent-skills/shop/SKILL.md")
    for text in (client.get(path).text for path in lists):
        named = [line for line in text.splitlines() if line.endswith(":") or line.startswith("- ")]
        marked = [line.removeprefix("- ").split(" ")[0] for line in named]
        start = marked.index("help")
        order = ["help", "actions_site", "books:", "find", "read", "account:", "sign_in"]
        assert marked[start : start + 7] == order
    tags_of = {"find": ["books", "reading"], "read": ["books"], "sign_in": ["account"]}
    actions = {action["id"]: action for action in client.get("/agent.json").json()["actions"]}
    assert {name: one["x-tags"] for name, one in actions.items() if "x-tags" in one} == tags_of
    actions = {action["id"]: action for action in client.get("/.well-known/ai-actions.json").json()["actions"]}
    assert {name: one["x-tags"] for name, one in actions.items() if "x-tags" in one} == tags_of
    skills = {skill["id"]: skill["tags"] for skill in client.get("/.well-known/agent-card.json").json()["skills"]}
    assert tags_of.items() <= skills.items()
    tools = post(client, message("tools/list")).json()["result"]["tools"]
    assert {tool["name"]: tool["_meta"]["awp/tags"] for tool in tools if "_meta" in tool} == tags_of
    with AwpClient.greeted(client) as caller:
        listed = {skill["name"]: skill["tags"] for skill in caller.ask("skills.list")["result"]["skills"]}
    assert tags_of.items() <= listed.items()


# --- Declaring ---


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"audience": "Public"}, "audience: 'Public' would be a scope of that name; did you mean \"public\"?"),
        ({"audience": "operators"}, "audience: 'operators' would be a scope of that name; did you mean \"operator\"?"),
        ({"audience": "two words"}, "audience: 'two words' is not an audience"),
        ({"audience": ""}, "audience: '' is not an audience"),
        ({"audience": None}, "audience: must be text"),
        ({"expose": "mcp"}, "expose: must be a list, not one string"),
    ],
)
def test_a_wrong_audience_is_refused_where_it_is_written(options, words):
    with pytest.raises(DeclarationError) as refused:
        Site("Shop", "Sells books.", url="https://shop.example").agent("mine", **options)
    assert str(refused.value).startswith(f'agent "mine": {words}')


def test_nobody_is_sent_to_an_action_that_they_may_not_know_of():
    site = make_site()
    site.agent("count", audience="operator", description="Count.")(lambda: None)
    site.agent("report", requires=["count"], description="Report.")(lambda: None)
    with pytest.raises(DeclarationError, match='action "report": requires: "count" is for the audience "operator"'):
        site.freeze()


def test_an_action_for_known_callers_may_be_required_of_any_that_are_not_for_everybody():
    site = make_site()
    site.agent("count", audience="known", description="Count.")(lambda: None)
    site.agent("report", requires=["count"], audience="operator", description="Report.")(lambda: None)
    site.freeze()
    site = make_site()
    site.agent("count", audience="known", description="Count.")(lambda: None)
    site.agent("report", requires=["count"], description="Report.")(lambda: None)
    with pytest.raises(DeclarationError, match='requires: "count" is for the audience "known"'):
        site.freeze()


@pytest.mark.needs("templating")
def test_templates_say_nothing_of_what_is_not_for_everybody(open_client):
    from awp_publish.plugins.templating import action_attributes, param_attributes, result_attributes

    site = make_site()

    @site.agent("close", audience="operator")
    async def close(why: str) -> str:
        """Close the shop."""
        return why

    open_client(AgentPublisher(Starlette(), site=site))
    catalog = site.catalog
    assert action_attributes(catalog, "close") == param_attributes(catalog, "close", "why") == ""
    assert result_attributes(catalog, "close") == ""
