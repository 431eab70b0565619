"""What the pages say is so: their examples run, and nothing that exists is left out."""

import asyncio
import os
import re
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from contextlib import suppress
from inspect import signature
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from awp_publish import AgentPublisher, Site, cli
from awp_publish.problems import Problem
from tests.documents.known import PROBLEMS
from tests.live_server import serve
from tests.processes import run
from tests.redis_server import free_port

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

LINE = r"^(?:\$|- run:) awp-publish (.*(?<![\w.])(?:main|demo_site\.app):app\b.*)$"

PARTS = 6
"""Tests over which the examples are spread."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_example_runs(tmp_path, part):
    """Blocks of Python, and lines of our command: each in a process and a folder of its own."""
    scripts, lines = list[Path](), 0
    some_site = (ROOT / "docs" / "testing.md").read_text()
    for page in PAGES:
        for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)):
            script = tmp_path / f"{page.stem}-{number}" / "example.py"
            script.parent.mkdir()
            script.write_text(block)
            scripts.append(script)
        # Lines of our command that need no site elsewhere, with the application of the block before them.
        text = page.read_text()
        for line in re.finditer(LINE, text, re.MULTILINE):
            before = text[: line.start()] if "```python" in text[: line.start()] else some_site
            blocks = re.findall(r"```python\n(.*?)```", before, re.DOTALL)
            folder = tmp_path / f"{page.stem}-line-{line.start()}"
            folder.mkdir()
            if "main:app" in line[1]:
                (folder / "main.py").write_text(blocks[-1])
            words = shlex.split(re.split(" [>|] ", line[1])[0])
            script = folder / "example.py"
            is_refused = text[line.end() :].startswith("\nawp-publish: ")
            script.write_text(f"from awp_publish import cli\n\nassert cli.main({words!r}) == {int(is_refused)}\n")
            scripts.append(script)
            lines += 1
    assert len(scripts) > 30
    assert lines > 6
    for script in scripts[part::PARTS]:
        ended = run(script.name, cwd=script.parent, is_strict=True)
        assert ended.returncode == 0, (script, ended.stderr)


@pytest.mark.slow
def test_the_shop_of_the_tutorial_is_guarded_where_it_is_deployed(tmp_path):
    """Its second program with the site of its last step, served by two workers."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "tutorial.md").read_text(), re.DOTALL)
    shop, production = blocks[1], blocks[2]
    site = shop[shop.index("site = Site(") : shop.index("app = FastAPI()")]
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    (tmp_path / "main.py").write_text(production + shop.replace(site, ""))
    command = ["uvicorn", "main:app", "--workers", "2", "--log-level", "error", "--port", str(port)]
    variables = {**os.environ, "AWP_PUBLISH_URL": origin, "OPERATOR_TOKEN": "of-the-owner", "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen([sys.executable, "-m", *command], cwd=tmp_path, env=variables)
    try:
        wait_for(port)
        with httpx.Client(base_url=origin, timeout=60) as client:
            assert client.get("/agents/actions/search_books", params={"q": "emma"}).json() == {"emma": 950}
            order = {"input": {"slug": "emma"}, "idempotency_key": "order-1"}
            asked = client.post("/agents/order_book/invoke", json=order)
            assert (asked.status_code, asked.json()["confirmation"]["summary"]) == (428, 'Order 1 x "emma".')
            order["confirmation"] = asked.json()["confirmation"]["token"]
            answers = [client.post("/agents/order_book/invoke", json=order) for _ in range(3)]
            assert [answer.json() for answer in answers] == [{"left": 1}] * 3, "whichever worker has it"
            assert client.get("/agents").status_code == 401
            assert client.get("/agents", headers={"authorization": "Bearer of-the-owner"}).status_code == 200
    finally:
        server.terminate()
        server.wait(60)


def wait_for(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.1)
    raise TimeoutError(port)


@pytest.mark.slow
async def test_clients_connect_as_their_page_says():
    """Whatever of it runs here, with the address of a site that is there: blocks of Python, and lines of curl."""

    def make(url: str) -> FastAPI:
        site = Site("Bookshop", "Finds books.", url=url, plugins=["mcp", "a2a", "awp"])
        app = FastAPI()

        @app.get("/search")
        @site.action("search_books")
        async def search(q: str) -> list[str]:
            """Search books by title."""
            return [title for title in ("Emma", "Moby-Dick") if q in title.lower()]

        app.add_middleware(AgentPublisher, site=site)
        return app

    async def use(url: str, *command: str) -> None:
        words = [word.replace("https://books.example", url) for word in command]
        process = await asyncio.create_subprocess_exec(*words, stdout=PIPE, stderr=PIPE)
        answer, wrong = await process.communicate()
        assert process.returncode == 0, wrong.decode()
        assert b"Emma" in answer or b"search_books" in answer, (command, answer)

    text = (ROOT / "docs" / "clients.md").read_text()
    commands = [[sys.executable, "-c", block] for block in re.findall(r"```py\n(.*?)```", text, re.DOTALL)]
    if shutil.which("curl"):
        lines = re.findall(r"^\$ (curl .*(?:search_books|tools/list).*)$", text, re.MULTILINE)
        commands += [["sh", "-c", line.replace("curl ", "curl -sSf ")] for line in lines]
    assert len(commands) >= 2
    async with serve(make) as url:
        await asyncio.gather(*(use(url, *command) for command in commands))


def test_the_configurations_of_proxies_are_read_by_them(tmp_path):
    """By those of nginx and Caddy that are installed; what they do was tried by hand."""
    text = (ROOT / "docs" / "deployment.md").read_text()
    nginx, caddy = (re.findall(rf"```{name}\n(.*?)```", text, re.DOTALL) for name in ("nginx", "caddy"))
    assert (len(nginx), len(caddy)) == (2, 2)
    location = re.search(r"    location / \{.*\n", nginx[0])
    assert location is not None
    commands = []
    for number, servers in enumerate((nginx[0], nginx[0].replace(location[0], nginx[1]))):
        plain = re.sub(r"    ssl_.*\n", "", servers).replace("443 ssl", "18443").replace("listen 80", "listen 18080")
        paths = "".join(
            f"{item}_temp_path {tmp_path};" for item in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        file = tmp_path / f"{number}.conf"
        file.write_text(f"pid {tmp_path}/pid; events {{}}\nhttp {{ {paths} access_log off;\n{plain}\n}}\n")
        commands.append(["nginx", "-t", "-q", "-e", str(tmp_path / "errors"), "-c", str(file)])
    for number, site in enumerate(caddy):
        file = tmp_path / f"{number}.caddy"
        file.write_text(site)
        commands.append(["caddy", "adapt", "--config", str(file), "--adapter", "caddyfile"])
    there = [command for command in commands if shutil.which(command[0]) is not None]
    if not there:
        pytest.skip("neither nginx nor Caddy is installed")
    for command in there:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_every_link_leads_to_a_file():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), (page.name, target)


def test_the_navigation_names_every_page():
    text = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in PAGES[1:] if f": {page.name}\n" not in text] == []
    named = re.findall(r": ([\w-]+\.md)$", text, re.MULTILINE)
    assert sorted(named) == sorted([*(page.name for page in PAGES[1:]), "index.md", "reference.md"])


def test_every_problem_is_documented_as_it_is():
    """What is missing here is what docs/calls.md needs in the row of its status."""
    text = (ROOT / "docs" / "calls.md").read_text()
    rows = dict(re.findall(r"^\| (\d{3}) \| (.*) \|$", text, re.MULTILINE))
    assert [
        problem.slug for problem in PROBLEMS if f"`{problem.slug}`" not in rows.get(str(problem.default_status), "")
    ] == []


TABLES = runpy.run_path(str(ROOT / "docs" / "tables.py"))


PLACES = {
    "problems": "calls.md",
    "gates": "guards.md",
    "claims": "guards.md",
    "site options": "site.md",
    "about options": "site.md",
    "limits options": "site.md",
    "features": "site.md",
    "action options": "actions.md",
    "awas options": "actions.md",
    "agent options": "actions.md",
    "page options": "actions-json.md",
    **dict.fromkeys(("bridge items", "bridge codes"), "actions-bridge.md"),
}


@pytest.mark.parametrize(("name", "page"), PLACES.items())
def test_the_tables_of_the_pages_are_those_of_the_code(name, page):
    assert set(TABLES["MAKERS"]) == set(PLACES)
    text = (ROOT / "docs" / page).read_text()
    assert f"<!-- table: {name} -->\n{TABLES['MAKERS'][name]()}\n<!-- end -->" in text, "run: make docs"


def test_a_table_that_is_renewed_leaves_the_rest_of_its_page():
    page = "a\n<!-- table: gates -->\n<!-- end -->\nb\n<!-- table: claims -->\nstale row\n<!-- end -->\nc\n"
    renewed = TABLES["renew"](page)
    assert renewed.startswith("a\n<!-- table: gates -->\n| gate |")
    assert "\n<!-- end -->\nb\n<!-- table: claims -->\n| the first call |" in renewed
    assert renewed.endswith("<!-- end -->\nc\n")
    assert "stale row" not in renewed


def test_every_problem_is_listed_once():
    defined = {kind for kind in Problem.__subclasses__() if kind.__module__.startswith("awp_publish.")}
    assert defined <= set(PROBLEMS)
    assert len({kind.slug for kind in PROBLEMS}) == len(PROBLEMS)


def test_every_option_of_the_publisher_is_documented():
    text = (ROOT / "docs" / "documents.md").read_text()
    for name in signature(AgentPublisher).parameters:
        assert name == "app" or f"| `{name}` |" in text


def test_every_command_is_documented():
    text = (ROOT / "docs" / "commands.md").read_text()
    listed = re.search(r"{([\w,]+)}", cli.make_parser().format_help())
    assert listed is not None
    for command in listed[1].split(","):
        assert f"awp-publish {command} " in text


def test_make_demo_and_make_test_stand_at_the_top_of_the_readme():
    top = (ROOT / "README.md").read_text()[:3000]
    assert "make demo" in top
    assert "make test" in top
    assert "/agents/summarizer/invoke" in top


def test_a_model_understands_the_first_program_of_the_readme(tmp_path, monkeypatch, capsys):
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    (tmp_path / "first_program_of_readme.py").write_text(block[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.main(["check", "--as-model", "first_program_of_readme:app"]) == 0
    assert "100 of 100" in capsys.readouterr().out


def test_the_pages_have_the_words_that_somebody_reads():
    assert sum(len(page.read_text().split()) for page in PAGES[1:]) <= 32_000
    assert len(PAGES[0].read_text().split()) <= 1_060
