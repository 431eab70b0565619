"""The command line, run as a person runs it."""

import argparse
import importlib
import json
import os
import pty
import re
import runpy
import subprocess
import sys
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from hatchling.builders.wheel import WheelBuilder

from awp_publish import __version__, cli
from tests.client import TestClient
from tests.conftest import run_command as run

ROOT = Path(__file__).parents[2]


def test_the_demo_site_has_no_errors():
    done = run("check", "demo_site.app:app")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 errors" in done.stdout


def test_a_wrong_document_is_told_with_its_place(tmp_path):
    document = tmp_path / "woa.json"
    document.write_text(json.dumps({"woa_version": 1, "agents": [], "transports": {}}))
    done = run("check", str(document))
    assert done.returncode == 1
    assert "/woa_version" in done.stdout
    piped = run("check", "-", "--kind", "woa", given=document.read_text())
    assert piped.returncode == 1


def test_documents_are_listed_and_printed():
    listed = run("show", "demo_site.app:app").stdout.split()
    assert "/.well-known/woa.json" in listed
    shown = run("show", "demo_site.app:app", "/.well-known/woa.json")
    assert json.loads(shown.stdout)["woa_version"] == "1"
    assert run("show", "demo_site.app:app", "/nowhere.json").returncode == 1


def test_what_cannot_be_read_is_told_in_one_line():
    for target in ("nowhere.json", "no_such_module:app", "demo_site.app:no_such_app"):
        done = run("check", target)
        assert done.returncode == 2
        assert done.stderr.startswith("awp-publish: ")
        assert done.stderr.count("\n") == 1


BOOKSHOP = """
from fastapi import FastAPI
from awp_publish import AgentPublisher, Site

site = Site(name="Shop", description="A shop.", url="https://shop.example")
inner = FastAPI()

@inner.get("/books")
async def list_books() -> list[str]:
    "List books."
    return []

@inner.post("/books")
async def add_book(title: str) -> str:
    return title

site.include()
app = AgentPublisher(inner, site=site)
word = "app"

async def endless(scope, receive, send):
    pass

endless.app = endless
"""


def run_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "bookshop.py").write_text(BOOKSHOP)
    return run(*arguments, cwd=folder)


def test_what_was_included_and_what_was_left_out_is_shown_with_the_reason(tmp_path):
    shown = run_in(tmp_path, "show", "--included", "bookshop:app")
    assert shown.returncode == 0, shown.stderr
    assert "action  GET /books  list_books" in shown.stdout
    assert 'left    POST /books  add_book: it writes; name it: operations=["add_book"]' in shown.stdout


def test_what_is_no_application_gets_a_sentence(tmp_path):
    for target, words in {
        "bookshop:site": "bookshop:site: is a Site, not an application. Name the application: bookshop:app.",
        "bookshop:word": "bookshop:word: is not an ASGI application: str. Name the application itself.",
        "bookshop:endless": "bookshop:endless: has no AgentPublisher. Name the application that it was added to.",
        "bookshop": "bookshop: names no application. Write module:app, such as bookshop:app.",
    }.items():
        done = run_in(tmp_path, "show", target)
        assert (done.returncode, done.stderr) == (2, f"awp-publish: {words}\n")


LIVING = """
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from awp_publish import AgentPublisher, Site

site = Site(name="Shop", description="A shop.", url="https://shop.example", store="sqlite:///{folder}/agents.db")
starts = []

@asynccontextmanager
async def lifespan(app):
    starts.append("started")
    {start}
    yield {{"books": ["Emma"]}}
    starts.append("ended")
    assert starts == ["started", "ended"], starts

def home(request):
    return PlainTextResponse(", ".join(request.state.books))

def broken(request):
    raise ValueError("the shelf\\nis empty")

@site.agent("stocktake", execution="async")
async def stocktake() -> str:
    "Count the books."
    return "counted"

app = Starlette(routes=[Route("/", home), Route("/broken", broken)], lifespan=lifespan)
app.add_middleware(AgentPublisher, site=site)
"""


def run_living(folder: Path, *arguments: str, start: str = "pass") -> subprocess.CompletedProcess[str]:
    (folder / "living.py").write_text(LIVING.format(folder=folder, start=start))
    return run(*arguments, cwd=folder)


def test_check_opens_the_declared_pages_when_it_is_told_to(tmp_path):
    (tmp_path / "shop.py").write_text(SHOP + 'site.page("/books")\n')
    unopened, opened = (run("check", "shop:app", *options, cwd=tmp_path) for options in ((), ("--pages",)))
    assert "drift-page" not in unopened.stdout
    assert (opened.returncode, opened.stdout.count("drift-page")) == (1, 1)


@pytest.mark.parametrize(
    "arguments",
    [("show", "living:app"), ("check", "living:app"), ("export", "living:app", "out"), ("show", "living:app", "/")],
)
def test_commands_run_the_application_once_as_a_server_does(tmp_path, arguments):
    done = run_living(tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Emma\n" or arguments[-1] != "/"


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "living:app"),
        ("check", "living:app"),
        ("export", "living:app", "out"),
        ("robots", "living:app"),
        ("dns", "living:app"),
        ("worker", "living:app"),
        ("call", "living:app", "stocktake"),
    ],
)
def test_an_application_that_does_not_start_is_told_in_one_line(tmp_path, arguments):
    done = run_living(tmp_path, *arguments, start="raise KeyError('no key')")
    assert (done.returncode, done.stderr) == (
        2,
        "awp-publish: The application does not start: KeyError: 'no key'\n",
    )


def test_a_request_in_which_the_application_fails_is_told_in_one_line(tmp_path):
    done = run_living(tmp_path, "show", "living:app", "/broken")
    assert done.returncode == 2
    assert "living:app: fails at GET /broken: ValueError: the shelf is empty (" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "starlette.templating", raising=False)
    (tmp_path / "pages.py").write_text("from starlette.templating import Jinja2Templates")
    at_import = run("show", "pages:app", cwd=tmp_path)
    for done in (at_import, run_living(tmp_path, "export", "living:app", "out", start="import jinja2")):
        assert done.returncode == 2
        assert 'Run pip install "awp-publish[jinja]".' in done.stderr
        assert done.stderr.count("\n") == 1


SHOP = """
from enum import Enum
from typing import Annotated
from fastapi import FastAPI
from pydantic import Field
from awp_publish import AgentPublisher, Site

site = Site(name="Shop", description="A shop.", url="https://shop.example", plugins=["mcp", "a2a"])
app = FastAPI()

class Sort(Enum):
    new = "new"
    cheap = "cheap"

@app.get("/books")
@site.action("search_books", rate_limit="30/minute", examples=[{"q": "emma"}])
async def search(q: Annotated[str, Field(description="Words of the title.")], sort: Sort = Sort.new) -> list[str]:
    "Search books by title."
    return [q, sort.value]

@app.post("/data")
@site.action("process", confirm="Order {data}.")
async def process(data: str) -> str:
    "The endpoint."
    return f"ordered {data}"

@app.post("/notes")
@site.action("take_note")
async def take_note(book: str, note: str) -> str:
    "Take a note on a book."
    return f"{note} on {book}"

app.add_middleware(AgentPublisher, site=site)
"""


def test_check_reports_what_a_server_logs_when_it_starts(tmp_path, caplog):
    (tmp_path / "shop.py").write_text(SHOP)
    checked = run("check", "shop:app", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
    with pytest.MonkeyPatch.context() as patch, caplog.at_level("WARNING", "awp_publish.checks"):
        patch.syspath_prepend(str(tmp_path))
        with TestClient(importlib.import_module("shop").app):
            pass
        del sys.modules["shop"]
    logged = {record.getMessage() for record in caplog.records if "[start-" in record.getMessage()}
    assert logged == {line for line in checked.stdout.splitlines() if "[start-" in line}
    assert any("[start-memory; awp_publish]" in line for line in logged)


def run_shop(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "shop.py").write_text(SHOP)
    return run(*arguments, cwd=folder)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--version"], 0),
        (["show", "demo_site.app:app"], 0),
        (["show", "demo_site.app:app", "/llms.txt"], 0),
        (["show", "--tokens", "demo_site.app:app"], 0),
        (["show", "--included", "demo_site.app:app"], 0),
        (["robots", "demo_site.app:app"], 0),
        (["show", "demo_site.app:app", "/nowhere.json"], 1),
        (["call", "demo_site.app:app", "fly"], 1),
        (["check", "nowhere.json"], 2),
        (["check", "nowhere"], 2),
        (["check", "README.md", "--kind", "novel"], 2),
        (["check", "--pages", "README.md"], 2),
        (["check", "--explain", "limits"], 0),
        (["show", "no_such_module:app"], 2),
        (["show", "demo_site.app:no_such_app"], 2),
        (["call", "demo_site.app:app", "search_books", "q"], 2),
        (["call", "demo_site.app:app", "search_books", "--input", "{"], 2),
        (["call", "demo_site.app:app", "search_books", "q=emma", "--door", "a2a"], 2),
        (["call", "demo_site.app:app", "search_books", "q=emma", "--door", "phone"], 2),
        (["call", "http://127.0.0.1:1", "search_books"], 2),
        (["export", "demo_site.app:app", "README.md"], 2),
        (["som", "nowhere.html"], 2),
        (["markdown", "http://127.0.0.1:1/"], 2),
        (["synthesize", "http://127.0.0.1:1/"], 2),
        (["dns", "demo_site.app:app"], 2),
        (["approve", "demo_site.app:app"], 2),
        (["worker", "no_such_module:app"], 2),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, list) else None,
)
def test_each_command_gives_one_json_value_and_a_status(capsys, monkeypatch, arguments, status):
    monkeypatch.chdir(ROOT)
    assert cli.main([*arguments, "--json"]) == status
    told = capsys.readouterr()
    value = json.loads(told.out)
    if status == 2:
        assert told.err == f"awp-publish: {value['error']}\n"
        assert "Errno 2" not in told.err


def test_what_may_be_left_out_may_stand_behind_an_option(tmp_path, capsys):
    for arguments in (["init", "--force", "starlette"], ["init", "starlette", "--force"]):
        assert cli.main([*arguments, str(tmp_path / "main.py"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"file": str(tmp_path / "main.py")}
    for arguments in (["init", "starlette", "--force", "a.py", "b.py"], ["nonsense"], [], ["dns", "a:b", "c"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        assert ended.value.code == 2


def test_every_command_and_option_says_what_it_is_for():
    parsers = [cli.make_parser()]
    silent = []
    for parser in parsers:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
                silent += sorted({*action.choices} - {each.dest for each in action._choices_actions if each.help})
            elif not action.help:
                silent.append(f"{parser.prog} {action.dest}")
    assert len(parsers) > 10
    assert silent == []


def test_the_version_is_told():
    command = [sys.executable, "-m", "awp_publish", "--version"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout == f"awp-publish {__version__}\n"


def test_documents_actions_and_their_policy_are_listed_for_programs(tmp_path):
    told = json.loads(run_shop(tmp_path, "show", "shop:app", "--json").stdout)
    actions = {one["id"]: one for one in told["actions"]}
    assert actions["search_books"]["policy"] == "at most 30/minute"
    assert actions["process"]["policy"] == "a person confirms"
    assert "/.well-known/agent-card.json" in [one["path"] for one in told["documents"]]
    plain = run_shop(tmp_path, "show", "shop:app").stdout
    assert "/.well-known/woa.json\n" in plain
    assert "search_books" in plain


def test_each_document_has_its_price_and_copies_are_counted_once(tmp_path):
    told = json.loads(run_shop(tmp_path, "show", "shop:app", "--tokens", "--json").stdout)
    woa = next(one for one in told["documents"] if one["path"] == "/.well-known/woa.json")
    assert woa["tokens"] == -(-woa["bytes"] // told["bytes_per_token"])
    awas = next(one for one in told["documents"] if one["path"] == "/.well-known/ai-actions.json")
    assert awas["also_at"] == ["/.well-known/awas.json"]


def test_descriptions_are_judged_as_a_model_reads_them_each_with_a_fix(tmp_path):
    done = run_shop(tmp_path, "check", "--as-model", "shop:app", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    found = {(one["subject"].split('"')[1], one["check"]) for one in told["findings"]}
    assert ("search_books", "model-enum-words") in found
    bad = {"description", "verb-first", "examples", "input-words", "ambiguous-name"}
    assert {("process", f"model-{rule}") for rule in bad} <= found
    assert all(one["hint"] for one in told["findings"])
    scores = told["scores"]["shop:app"]["actions"]
    assert scores["search_books"] > scores["process"]
    assert run_shop(tmp_path, "check", "--as-model", "shop:app", "--json").stdout == done.stdout


def test_a_manifest_of_anybody_is_judged_as_a_model_reads_it(tmp_path):
    good = {"name": "search_books", "description": "Search books by their title.", "inputSchema": {"type": "object"}}
    listed = tmp_path / "tools.json"
    listed.write_text(json.dumps({"tools": [good]}))
    assert run("check", "--as-model", str(listed)).returncode == 0
    listed.write_text(json.dumps({"tools": [{**good, "name": f"search_{n}"} for n in range(41)]}))
    many = run("check", "--as-model", str(listed))
    assert "41 actions" in many.stdout
    assert "model-twins" in many.stdout
    listed.write_text("[]")
    assert run("check", "--as-model", str(listed)).returncode == 2


def test_all_documents_of_a_site_are_checked_at_once(tmp_path):
    (tmp_path / ".well-known").mkdir()
    (tmp_path / ".well-known/woa.json").write_text('{"woa_version": 1, "agents": [], "transports": {}}')
    (tmp_path / "agent.json").write_text('{"awp_version": "0.2"}')
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        done = run("check", address, "--json")
        nothing = run("check", f"{address}/nowhere/")
        server.shutdown()
    assert done.returncode == 1
    assert {one["document"] for one in json.loads(done.stdout)["findings"]} == {"/.well-known/woa.json", "/agent.json"}
    assert (nothing.returncode, "404" in nothing.stderr) == (2, True)


@pytest.mark.parametrize("door", ["woa", "plain", "mcp", "a2a"])
def test_an_action_is_called_through_any_door(tmp_path, door):
    done = run_shop(tmp_path, "call", "shop:app", "search_books", "--door", door, "q=emma", "sort=cheap")
    assert (done.returncode, json.loads(done.stdout)) == (0, ["emma", "cheap"]), done.stderr


def test_a_refused_call_says_why_and_what_to_do(tmp_path):
    wrong = run_shop(tmp_path, "call", "shop:app", "search_books", "sort=new")
    assert wrong.returncode == 1
    assert "INVALID_INPUT" in wrong.stderr
    as_json = run_shop(tmp_path, "call", "shop:app", "search_books", "--json")
    assert json.loads(as_json.stdout)["code"] == "INVALID_INPUT"
    unknown = run_shop(tmp_path, "call", "shop:app", "nothing")
    assert (unknown.returncode, "UNKNOWN" in unknown.stderr) == (1, True)
    assert run_shop(tmp_path, "call", "shop:app", "search_books", "emma").returncode == 2
    assert run_shop(tmp_path, "call", "http://127.0.0.1:1", "search_books", "q=1").returncode == 2


def test_an_input_that_is_a_text_stays_one_whatever_it_looks_like(tmp_path):
    done = run_shop(tmp_path, "call", "shop:app", "take_note", "book=1984", "note=true")
    assert (done.returncode, done.stdout) == (0, "true on 1984\n"), done.stderr


def test_headers_are_sent_and_a_file_is_printed_as_it_is(tmp_path):
    (tmp_path / "prices.py").write_text(
        """
from fastapi import FastAPI, Request, Response
from awp_publish import AgentPublisher, Site

site = Site(name="Shop", description="A shop.", url="https://shop.example")
app = FastAPI()

@app.get("/prices", response_class=Response, responses={200: {"content": {"application/pdf": {}}}})
@site.action("print_prices")
async def print_prices(request: Request) -> Response:
    "Print the prices."
    return Response(f"%PDF {request.headers['x-shop']} {request.headers['x-unit']}", media_type="application/pdf")

app.add_middleware(AgentPublisher, site=site)
"""
    )
    named = ("--header", "X-Shop: north", "--header", "X-Unit:cm")
    done = run("call", "prices:app", "print_prices", *named, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "%PDF north cm", "")


def test_a_confirmation_is_not_given_by_itself(tmp_path):
    asked = run_shop(tmp_path, "call", "shop:app", "process", "data=tea")
    assert asked.returncode == 1
    assert 'Order "tea".' in asked.stderr
    assert run_shop(tmp_path, "call", "shop:app", "process", "data=tea", "--yes").stdout == "ordered tea\n"


@pytest.mark.slow
def test_at_a_terminal_what_is_given_already_is_not_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("awp_publish.cli.call.is_asking", lambda: True)
    (tmp_path / "shop.py").write_text(SHOP)
    done = run("call", "shop:app", "take_note", "book=emma", cwd=tmp_path, given="good\n")
    assert (done.stdout.strip(), done.stderr.count("?"), "book (string)" in done.stderr) == ("good on emma", 0, False)


def test_at_a_terminal_missing_inputs_and_consent_are_asked_for(tmp_path):
    (tmp_path / "shop.py").write_text(SHOP)
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "awp_publish", "call", "shop:app", "process"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=follower, stdout=follower, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        shown = b""
        for awaited, answer in ((b"data (string)", b"tea\n"), (b"[y/N]", b"y\n"), (b"ordered tea", b"")):
            while awaited not in shown:
                shown += os.read(leader, 1000)
            os.write(leader, answer)
        process.wait(30)
        os.close(leader)
    assert b'Order "tea".' in shown
    assert process.returncode == 0


def test_documents_are_exported_with_their_headers(tmp_path):
    done = run_shop(tmp_path, "export", "shop:app", "out")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / ".well-known" / "woa.json").read_text())["woa_version"] == "1"
    blocks = dict(
        block.split("\n", 1) for block in (tmp_path / "out" / "_headers").read_text().split("\n\n") if "\n" in block
    )
    assert "  Content-Type: application/woa+json" in blocks["/.well-known/woa.json"]
    assert "  Access-Control-Allow-Origin: *" in blocks["/agent.json"]
    assert "Content-Length" not in blocks["/agent.json"]


PAGE = "<html><head><title>Tea</title></head><body><h1>Green tea</h1><p>Hot <a href='/x'>water</a>.</p></body></html>"


def test_any_page_is_shown_as_som_and_as_markdown(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    som = json.loads(run("som", str(page), "--url", "https://tea.example/green").stdout)
    assert (som["title"], som["url"]) == ("Tea", "https://tea.example/green")
    text = run("markdown", "-", "--url", "https://tea.example/green", given=PAGE).stdout
    assert text.startswith("# Green tea\n")
    assert "https://tea.example/x" in text or "](/x)" in text
    assert json.loads(run("som", "-", given=PAGE).stdout)["url"] == "https://page.invalid/"
    assert json.loads(run("markdown", str(page), "--json").stdout)["markdown"].startswith("# Green tea")
    assert run("som", str(tmp_path / "none.html")).returncode == 2


@pytest.mark.parametrize("framework", ["fastapi", "starlette"])
def test_the_file_to_begin_with_runs_and_has_nothing_to_correct(tmp_path, framework):
    at = partial(run, cwd=tmp_path)
    assert at("init", framework).returncode == 0
    assert at("check", "main:app").returncode == 0
    judged = at("check", "--as-model", "main:app")
    assert judged.returncode == 0, judged.stdout
    assert "Emma" in at("call", "main:app", "search_books", "q=emma").stdout
    again = at("init", framework)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)


@pytest.mark.slow
def test_the_file_to_begin_with_runs_in_a_project_of_django(tmp_path):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'contrib'}"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)  # of other tests

    def at(*arguments: str) -> str:
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    at(sys.executable, "-m", "django", "startproject", "shop", ".")
    assert cli.main(["init", "django", str(tmp_path)]) == 0
    # What its first lines say is pasted as it stands.
    lines = (tmp_path / "agents.py").read_text().partition("settings.py:\n")[2].partition('"""')[0]
    with (tmp_path / "shop" / "settings.py").open("a") as settings:
        settings.write(lines)
    assert at(sys.executable, "manage.py", "agents", "call", "recommend_book", "mood=sunny").strip() == '"Emma"'
    assert " 0 errors" in at(sys.executable, "manage.py", "agents", "check")


def test_the_records_to_paste_into_the_zone_are_printed(tmp_path):
    told = run_shop(tmp_path, "dns", "shop:app").stdout
    # One agent protocol for each record, each with the document that describes it.
    service = '3600 IN SVCB 1 shop.example. mandatory="alpn,port"'
    for line in (
        f'_index._agents.shop.example. {service} alpn="h2" port="443" key65409="ard.json"',
        f'_mcp._agents.shop.example. {service} alpn="mcp,h2" port="443" key65400="https://shop.example/mcp/server-card"',
        f'_a2a._agents.shop.example. {service} alpn="a2a,h2" port="443"',
    ):
        assert line in told, told
    assert '_agent.shop.example. 3600 IN TXT "v=aid2;u=https://shop.example/mcp;p=mcp;s=Shop"' in told
    assert told.count(" TXT ") == 1  # two of a version are ambiguous
    assert run("dns", "demo_site.app:app").returncode == 2  # its address is no https address


def test_the_skill_for_coding_assistants_is_in_the_wheel_and_its_samples_run(tmp_path):
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("awp_publish/.agents/skills/awp-publish/SKILL.md").decode()
    front = text.split("---\n")[1]
    assert "name: awp-publish\n" in front
    assert re.search(r"^description: .{50,1024}$", front, re.MULTILINE)
    for sample in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(sample, {})
    for command in re.findall(r"`awp-publish ([a-z]+)", text):
        assert run(command, "--help").returncode == 0


def test_the_reference_of_the_documentation_has_every_public_name():
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    text = build["write_reference"]()
    for name in ("AgentPublisher", "Site", "Refused", "client.AgentClient"):
        assert f"## {name}\n" in text
    assert "### Site.include\n" in text


@pytest.mark.parametrize("command", ["show", "check", "robots"])
def test_an_application_that_fails_when_imported_is_named_in_one_line(tmp_path, command):
    (tmp_path / "broken.py").write_text('settings = {}\nurl = settings["URL"]\n')
    done = run(command, "broken:app", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "broken:app: cannot be imported: KeyError: 'URL'" in done.stderr
    assert "broken.py, line 2" in done.stderr


def test_a_route_that_takes_precedence_over_a_document_is_no_finding_of_check(tmp_path, capsys, monkeypatch):
    (tmp_path / "own_sitemap.py").write_text(
        "from fastapi import FastAPI\n"
        "from awp_publish import AgentPublisher, Site\n"
        'site = Site("Tea", "Sells tea.", "https://tea.example", plugins=["discovery"])\n'
        "app = FastAPI()\n"
        'site.page("/")\n'
        'app.add_api_route("/", lambda: "tea")\n'
        'app.add_api_route("/sitemap.xml", lambda: "<urlset/>")\n'
        "app.add_middleware(AgentPublisher, site=site)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.main(["check", "own_sitemap:app"]) == 0
    assert "start-shadowed" not in capsys.readouterr().out
