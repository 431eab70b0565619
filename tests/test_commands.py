"""The command line, run as a person runs it."""

import json
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
