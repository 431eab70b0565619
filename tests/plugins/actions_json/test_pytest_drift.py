"""The plugin of pytest that holds an application's pages to its map."""

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests import processes

ROOT = Path(__file__).parents[3]
APP = """
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from awp_publish import AgentPublisher, Site

site = Site(name="Shop", description="Sells books.", url="https://shop.example")
def shows(css):
    return [{"id": "there", "assertions": [{"target": {"selector": css}, "visible": True}]}]

never = {"name": "never", "diagnostics": [{"name": "x", "target": {"selector": "#x"}}]}
site.page("/", map={"checks": shows("h1")})
site.page("/broken", map={"checks": shows("form"), "states": [never]})
html = lambda request: HTMLResponse("<h1>Shop</h1>")
app = Starlette(routes=[Route("/", html), Route("/broken", html)])
app.add_middleware(AgentPublisher, site=site)
"""


def run(folder: Path, *arguments: str) -> CompletedProcess[str]:
    (folder / "shop.py").write_text(APP)
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'contrib'}:{folder}", "PATH": "", "NO_COLOR": "1"}
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "awp_publish_pytest", "-W"]
    words = (*options, "ignore:Module already imported", *arguments)
    return processes.run("pytest", *words, cwd=folder, env=environment)


@pytest.mark.slow
def test_every_declared_page_is_a_test_and_a_page_that_has_drifted_fails(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nagents_app = shop:app\n")
    answer = run(tmp_path, "--agents-drift")
    assert answer.returncode == 1, answer.stderr
    assert "1 failed, 1 passed, 1 warning" in answer.stdout
    assert "[drift-check]" in answer.stdout
    assert "evidence: " in answer.stdout
    assert "drift-state" in answer.stdout


@pytest.mark.slow
def test_an_application_that_is_not_named_or_not_there_is_a_mistake_of_the_command(tmp_path):
    for arguments in (["--agents-drift"], ["--agents-drift=none:app"]):
        answer = run(tmp_path, *arguments)
        assert answer.returncode == 4
        assert "--agents-drift" in answer.stderr
    assert "no tests ran" in run(tmp_path).stdout
