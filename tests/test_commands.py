"""The command line, run as a person runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from awp_publish.cli import main; sys.exit(main())", *arguments]
    return subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=False)


def test_the_demo_site_has_no_errors():
    done = run("check", "demo_site.app:app")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of them errors" in done.stdout


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
"""


def run_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "bookshop.py").write_text(BOOKSHOP)
    command = [sys.executable, "-c", "import sys; from awp_publish.cli import main; sys.exit(main())", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


def test_what_was_included_and_what_was_left_out_is_shown_with_the_reason(tmp_path):
    shown = run_in(tmp_path, "show", "--included", "bookshop:app")
    assert shown.returncode == 0, shown.stderr
    assert "action  GET /books  list_books" in shown.stdout
    assert 'left    POST /books  add_book: it writes; name it: operations=["add_book"]' in shown.stdout


def test_what_is_no_application_gets_a_sentence(tmp_path):
    for target, words in {
        "bookshop:site": "bookshop:site: is a Site, and not an application. Name the application: bookshop:app.",
        "bookshop:word": "bookshop:word: is no ASGI application: str. Name the application itself.",
        "bookshop": "bookshop: names no application. Write module:app, bookshop:app for instance.",
    }.items():
        done = run_in(tmp_path, "show", target)
        assert (done.returncode, done.stderr) == (2, f"awp-publish: {words}\n")
