"""The command line, run as a person runs it."""

import argparse
import importlib
import json
import os
import re
import runpy
import subprocess
import sys
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copyfile
from threading import Thread

import pytest
from hatchling.builders.wheel import WheelBuilder

from awp_publish import __version__, cli
from tests import processes
from tests.client import TestClient
from tests.conftest import run_command as run

ROOT = Path(__file__).parents[2]


def test_the_demo_site_has_no_errors():
    done = run("check", "demo_site.app:app")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 errors" in done.stdout


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

@site.agent("stocktake", execution="async")
async def stocktake() -> str:
    "Count the books."
    return "counted"

app = Starlette(routes=[Route("/", home)], lifespan=lifespan)
app.add_middleware(AgentPublisher, site=site)
"""


def run_living(folder: Path, *arguments: str, start: str = "pass") -> subprocess.CompletedProcess[str]:
    (folder / "living.py").write_text(LIVING.format(folder=folder, start=start))
    return run(*arguments, cwd=folder)


def test_commands_run_the_application_once_as_a_server_does(tmp_path):
    for arguments in (["show", "living:app"], ["check", "living:app"], ["export", "living:app", "out"]):
        done = run_living(tmp_path, *arguments)
        assert (done.returncode, done.stderr) == (0, ""), arguments
    assert run_living(tmp_path, "show", "living:app", "/").stdout == "Emma\n"


def test_an_application_that_does_not_start_is_told_in_one_line(tmp_path):
    for command in ("show", "check", "export", "robots", "dns", "worker", "call"):
        further = {"export": ["out"], "call": ["stocktake"]}.get(command, [])
        done = run_living(tmp_path, command, "living:app", *further, start="raise KeyError('no key')")
        words = "awp-publish: The application does not start: KeyError: 'no key'\n"
        assert (done.returncode, done.stderr) == (2, words), command


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "starlette.templating", raising=False)
    (tmp_path / "pages.py").write_text("from starlette.templating import Jinja2Templates")
    at_import = run("show", "pages:app", cwd=tmp_path)
    for done in (at_import, run_living(tmp_path, "export", "living:app", "out", start="import jinja2")):
        assert done.returncode == 2
        assert 'Run pip install "awp-publish[jinja]".' in done.stderr
        assert done.stderr.count("\n") == 1


def test_check_reports_what_a_server_logs_when_it_starts(tmp_path, caplog):
    copyfile(ROOT / "tests" / "cli" / "project" / "shop.py", tmp_path / "shop.py")
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


def test_optional_arguments_may_follow_an_option(tmp_path, capsys):
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
    assert processes.run("awp_publish", "--version", cwd=ROOT).stdout == f"awp-publish {__version__}\n"


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
        done = processes.run(*arguments, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    at("django", "startproject", "shop", ".")
    assert cli.main(["init", "django", str(tmp_path)]) == 0
    # What its first lines say is pasted as it stands.
    lines = (tmp_path / "agents.py").read_text().partition("settings.py:\n")[2].partition('"""')[0]
    with (tmp_path / "shop" / "settings.py").open("a") as settings:
        settings.write(lines)
    assert at("manage.py", "agents", "call", "recommend_book", "mood=sunny").strip() == '"Emma"'
    assert " 0 errors" in at("manage.py", "agents", "check")


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


def test_a_repeated_input_is_a_list(tmp_path, monkeypatch, capsys):
    (tmp_path / "many.py").write_text(MANY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for pairs, output in ((["names=a", "names=b"], ["a", "b"]), (["names=a"], ["a"]), (['names=["a"]'], ["a"])):
        assert cli.main(["call", "many:app", "greet", *pairs, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["output"] == output
    assert cli.main(["call", "many:app", "greet", "names=a", "word=b", "word=c", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["errors"][0]["pointer"] == "/word"


def test_show_names_a_request_that_the_exposed_doors_take(tmp_path, monkeypatch, capsys):
    (tmp_path / "doors.py").write_text(MANY.replace('"greet"', '"greet", expose=["woa"]'))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.main(["show", "doors:app", "--json"]) == 0
    (action,) = json.loads(capsys.readouterr().out)["actions"]
    assert (action["method"], action["path"]) == ("POST", "/agents/greet/invoke")


def test_a_request_that_openapi_describes_is_not_that_of_a_form(tmp_path, capsys):
    (tmp_path / "index.html").write_text(
        "<title>Shop</title><form action=/search><input name=q><button>Go</button></form>"
    )
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("q", "sort")]
    described = {"openapi": "3.1.0", "paths": {"/search": {"get": {"parameters": parameters, "responses": {}}}}}
    (tmp_path / "openapi.json").write_text(json.dumps(described))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        assert cli.main(["synthesize", address, "--allow-private", "--json", "--out", str(tmp_path / "out")]) == 0
        server.shutdown()
    (action,) = json.loads((tmp_path / "out" / "agent.json").read_text())["actions"]
    assert (action["x-source"], sorted(action["inputs"])) == ("openapi", ["q", "sort"])


MANY = '''
from starlette.applications import Starlette
from awp_publish import AgentPublisher, Site

site = Site("Shop", "Sells books.", "https://shop.example")


@site.agent("greet")
async def greet(names: list[str], word: str = "Hello") -> list[str]:
    """Greet people."""
    return names


app = AgentPublisher(Starlette(), site=site)
'''
