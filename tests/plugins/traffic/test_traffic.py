"""Traffic: what is kept of calls, how workers add up, and who is told."""

import asyncio
import json
import sys
import time
from datetime import UTC, datetime

import httpx
import orjson
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute, Mount, Route

from awp_publish import AgentPublisher, BearerToken, Principal, Refused, Site, Traffic
from awp_publish.cli import main
from awp_publish.plugins.traffic.record import MAX_CELLS, SHARDS, TrafficRecord
from awp_publish.plugins.traffic.report import OTHERS
from tests.client import TestClient
from tests.conftest import run_command
from tests.guarded import Caller

SHOP = "https://shop.example"
TOKENS = BearerToken({"token-of-ann": Principal("ann"), "token-of-olga": Principal("olga", frozenset({"operator"}))})
ANN, OLGA = ({"authorization": f"Bearer token-of-{name}"} for name in ("ann", "olga"))
READERS = BearerToken(
    {
        "token-of-rita": Principal("rita", frozenset({"reader"})),
        "token-of-olga": Principal("olga", frozenset({"reader", "operator"})),
    }
)
RITA = {"authorization": "Bearer token-of-rita"}
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _noon(monkeypatch):
    """No test begins before midnight and ends after it."""
    monkeypatch.setattr(TrafficRecord.__init__, "__defaults__", (90, NOON.timestamp))


def make_site(**options):
    site = Site("Shop", "Sells things.", **{"url": SHOP, "authenticate": TOKENS, **options})

    @site.agent("word")
    async def word(how: str = "") -> str:
        """Say a word."""
        if how == "refuse":
            raise Refused("No.", code="NO_WORDS")
        if how == "fail":
            raise RuntimeError("a bug")
        return how

    @site.agent("later", execution="async")
    async def later() -> str:
        """Do it later."""
        return "done"

    return site


def make_app(site):
    async def page(request):
        return HTMLResponse("<title>Books</title><h1>Books</h1>", 404 if request.url.path == "/none" else 200)

    return AgentPublisher(Starlette(routes=[Route("/{path:path}", page)]), site=site)


async def call(app, agent="word", given=None, headers=None):
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=SHOP) as client:
        return await client.post(f"/agents/{agent}/invoke", json={"input": given or {}}, headers=headers)


async def test_calls_are_counted_by_door_action_caller_and_outcome():
    site = make_site()
    app = make_app(site)
    for _ in range(2):
        await call(app, headers=ANN)
    await call(app, given={"how": "refuse"})
    await call(app, given={"how": "fail"})
    await call(app, given={"how": 5})
    await call(app, "nobody")
    await call(app, headers={"authorization": "Bearer wrong"})
    report = await site.ask("traffic").read()
    assert {row[1:] for row in report.rows} == {
        ("woa", "word", "ann", "unknown", "ok", 2),
        ("woa", "word", "", "unknown", "NO_WORDS", 1),
        ("woa", "word", "", "unknown", "HANDLER_FAILED", 1),
        ("woa", "word", "", "unknown", "INVALID_INPUT", 1),
        ("woa", "word", "", "unknown", "INVALID_CREDENTIALS", 1),
        ("woa", "", "", "unknown", "UNKNOWN_AGENT", 1),
    }
    assert {row.day for row in report.rows} == {"2026-11-22"}
    assert sum(report.latencies["2026-11-22", "woa", "word"]) == 6
    assert set(report.quantiles(action="word")) == {"p50", "p90", "p99"}


async def test_every_http_door_is_counted_under_its_name():
    site = make_site(plugins=["mcp"])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(make_app(site)), base_url=SHOP) as client:
        await client.post("/agents/actions/word", json={})
        params = {"name": "word", "arguments": {}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
        await client.post("/mcp", json=body, headers=accept)
    report = await site.ask("traffic").read()
    assert {(row.door, row.action, row.outcome) for row in report.rows} >= {("mcp", "word", "ok")}
    assert sum(row.calls for row in report.rows if row.action == "word") == 2


async def test_a_call_whose_caller_disconnects_is_counted_as_unanswered():
    site, begun = make_site(), asyncio.Event()

    @site.agent("slow")
    async def slow() -> str:
        """Take one's time."""
        begun.set()
        await asyncio.sleep(30)
        return ""

    caller = Caller(make_app(site), "slow", {})
    task = asyncio.create_task(caller.call())
    await asyncio.wait_for(begun.wait(), 20)
    caller.hang_up()
    await task
    assert (await site.ask("traffic").read()).sum_by("action", "outcome") == {("slow", "UNANSWERED"): 1}


async def test_pages_are_counted_where_they_are_read_as_markdown_or_som():
    site = make_site()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(make_app(site)), base_url=SHOP) as client:
        for accept in ("text/markdown", "application/som+json", "text/html"):
            await client.get("/books", headers={"accept": accept})
        await client.get("/none", headers={"accept": "text/markdown"})
        await client.get("/agents/som", params={"url": f"{SHOP}/books"})
    rows = {row[1:] for row in (await site.ask("traffic").read()).rows}
    assert rows == {
        ("markdown", "/{path}", "", "unknown", "ok", 1),
        ("markdown", "", "", "unknown", "404", 1),
        ("som", "/{path}", "", "unknown", "ok", 2),
    }


def make_library(**options):
    """A site whose pages have secrets in their addresses, and actions that not everybody may know of."""
    site = make_site(**{"plugins": ["mcp", "overview", Traffic(metrics=True)], **options})
    site.page("/books/{slug}", title="A book")
    site.page("/café", title="Café")

    async def page(request):
        return HTMLResponse("<title>Books</title><h1>Books</h1>")

    async def zebra(request):
        return HTMLResponse("<title>Zebra</title><h1>Zebra</h1>")

    async def answer_all(scope, receive, send):
        await HTMLResponse("<title>Mounted</title><h1>Mounted</h1>")(scope, receive, send)

    site.declare("hidden_zebra", method="GET", path="/zebra/{name}", description="A zebra.", audience="operator")
    paths = ("/", "/about", "/reset/{token}", "/books/{slug}", "/café", "/{a}-{b}.html")
    routes: list[BaseRoute] = [Route(path, page) for path in paths]
    routes += [Route("/zebra/{name}", zebra), Mount("/mounted", answer_all)]
    return AgentPublisher(Starlette(routes=routes), site=site), site


@pytest.mark.parametrize("kind", ["text/markdown", "application/som+json"])
@pytest.mark.parametrize("url", [SHOP, f"{SHOP}/under/this"])
def test_pages_are_counted_by_the_templates_of_routes_and_nothing_of_a_path_is_kept(open_client, tmp_path, kind, url):
    store = f"sqlite:///{tmp_path}/agents.db"
    app, site = make_library(store=store, url=url, secret_keys=["a secret of this test alone"])
    client = open_client(app)
    paths = ["/", "/about", "/reset/SECRET-1", "/reset/SECRET-2?next=SECRET-3", "/books/SECRET-4", "/caf%C3%A9"]
    paths += ["/SECRET-5-SECRET-6.html", "/zebra/SECRET-7", "/mounted/SECRET-8", "/mounted/a/%2e%2e/SECRET-9%0A"]
    paths += [f"/reset/{'SECRET' * 200}", "/agents/try/hidden_zebra", "/agents/try/SECRET-10"]
    for path in paths:
        client.get(path, headers={"accept": kind})
    report = asyncio.run(site.ask("traffic").read())
    assert {row.action for row in report.rows if row.outcome == "ok"} == {
        "/",
        "/about",
        "/reset/{token}",
        "/books/{slug}",
        "/caf%C3%A9",
        "/{a}-{b}.html",
        "/mounted{anything}",
        OTHERS,
    }
    for path in ("/agents", "/agents/metrics"):
        shown = client.get(path).text
        assert "/reset/{token}" in shown
        assert "SECRET" not in shown
        assert "zebra" not in shown
    assert b"SECRET" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_a_thousand_readers_of_pages_leave_the_names_of_what_is_called(open_client):
    app, site = make_library()
    client = open_client(app)
    for number in range(MAX_CELLS * SHARDS + 100):
        client.get(f"/reset/{number}", headers={"accept": "text/markdown"})
    client.post("/agents/word/invoke", json={"input": {}})
    report = asyncio.run(site.ask("traffic").read())
    assert report.sum_by("action") == {("/reset/{token}",): MAX_CELLS * SHARDS + 100, ("word",): 1}


async def test_hidden_and_former_actions_are_in_the_tables_of_those_alone_who_may_know_of_them(open_client):
    app, site = make_library(plugins=["mcp", "overview", Traffic(metrics="reader")], authenticate=READERS)
    client = open_client(app)
    for headers in (RITA, OLGA, {}):
        assert client.get("/agents/actions/hidden_zebra?name=a", headers=headers).status_code in (200, 404)
        client.post("/agents/word/invoke", json={"input": {}}, headers=headers)
    site.ask("traffic").add("woa", "former_yak", "", "unknown", "ok", 1.0)
    assert {row.action for row in (await site.ask("traffic").read()).rows} == {"hidden_zebra", "word", "former_yak"}
    for path in ("/agents", "/agents/metrics"):
        for headers, knows in ((RITA, False), (OLGA, True)):
            shown = client.get(path, headers=headers).text
            assert "word" in shown
            assert "former_yak" not in shown
            assert ("hidden_zebra" in shown) is knows, path
    assert "hidden_zebra" not in client.get("/agents").text


def test_jobs_are_counted_when_they_run():
    site = make_site()
    with TestClient(make_app(site), base_url=SHOP) as client:
        accepted = client.post("/agents/later/invoke", json={"input": {}})
        assert accepted.status_code == 202
        until = time.monotonic() + 30
        while client.get(accepted.headers["location"]).json()["status"] in ("accepted", "running"):
            assert time.monotonic() < until
    report = asyncio.run(site.ask("traffic").read())
    assert report.sum_by("door", "action", "outcome")["job", "later", "ok"] == 1
    assert report.sum_by("door", "action")["woa", "later"] == 1


def test_nothing_that_a_caller_sent_is_kept(tmp_path):
    site = make_site(store=f"sqlite:///{tmp_path}/agents.db", secret_keys=["a secret of this test alone"])
    with TestClient(make_app(site), base_url=SHOP) as client:
        client.post("/agents/word/invoke", json={"input": {"how": "private-input"}}, headers=ANN)
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b'"word",[["ann","unknown","ok",1]]' in data
    assert b"private-input" not in data
    assert b"token-of-ann" not in data


async def test_a_site_may_keep_nothing():
    site = make_site(plugins=["no:traffic"])
    assert (await call(make_app(site))).status_code == 200
    assert site.ask("traffic") is None


async def get(app, path, headers=None):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=SHOP) as client:
        return await client.get(path, headers=headers)


async def test_metrics_are_openmetrics_without_callers():
    app = make_app(make_site(plugins=[Traffic(metrics=True)]))
    await call(app, headers=ANN)
    await call(app, given={"how": "refuse"})
    answer = await get(app, "/agents/metrics")
    assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    # a parser for OpenMetrics itself is stricter: it wants the end
    assert answer.text.endswith("# EOF\n")
    calls = {
        (sample.labels["action"], sample.labels["outcome"]): sample.value
        for sample in families["awp_publish_calls"].samples
    }
    assert calls == {("word", "ok"): 1, ("word", "NO_WORDS"): 1}
    timed = {sample.name: sample.value for sample in families["awp_publish_call_duration_seconds"].samples}
    assert timed["awp_publish_call_duration_seconds_count"] == 2
    assert "ann" not in answer.text


@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("sqlite:////nowhere/agents.db", "It is /nowhere/agents.db: run the command in the directory of the server"),
        ("redis://ann:word@127.0.0.1:1/0", "It is redis://127.0.0.1:1/0: run the command where that host can be"),
    ],
)
def test_a_store_that_cannot_be_opened_says_what_to_give_the_command(tmp_path, store, words):
    (tmp_path / "far_shop.py").write_text(APP.replace("sqlite:///{path}/agents.db", store))
    done = run_command("traffic", "far_shop:app", cwd=tmp_path)
    assert (done.returncode, words in done.stderr, "word@" in done.stderr) == (2, True, False), done.stderr


APP = """
from starlette.applications import Starlette
from awp_publish import AgentPublisher, Site

site = Site("Shop", "Sells things.", url="https://shop.example", store="sqlite:///{path}/agents.db",
            secret_keys=["a secret of this test alone"])

@site.agent("word")
async def word() -> str:
    "Say a word."
    return "word"

app = AgentPublisher(Starlette(), site=site)
"""


def test_the_command_line_prints_what_other_processes_have_kept(tmp_path, monkeypatch, capsys):
    (tmp_path / "traffic_shop.py").write_text(APP.replace("{path}", str(tmp_path)))
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    shop = importlib.import_module("traffic_shop")
    with TestClient(shop.app, base_url=SHOP) as client:
        client.post("/agents/word/invoke", json={"input": {}})
    del sys.modules["traffic_shop"]
    assert main(["traffic", "traffic_shop:app"]) == 0
    assert "1  word" in capsys.readouterr().out
    assert main(["traffic", "traffic_shop:app", "--json", "--days", "7"]) == 0
    calls, latency = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert calls == {
        "type": "calls",
        "day": "2026-11-22",
        "door": "woa",
        "action": "word",
        "caller": "",
        "label": "unknown",
        "outcome": "ok",
        "calls": 1,
    }
    assert latency["type"] == "latency"
    assert orjson.dumps(latency["milliseconds"])
    with pytest.raises(SystemExit):
        main(["traffic", "traffic_shop:app", "--days", "none"])
