"""The audit of dependencies: an advisory fails the run only where a version that we admit mends it."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("name", "fixes", "words"),
    [
        ("starlette", ["1.999"], "FAILED starlette 1.0: X-1: install 1.999."),
        ("starlette", ["0.1", "1.999"], "FAILED starlette 1.0: X-1: install 1.999."),
        ("starlette", ["99.0"], "KNOWN starlette 1.0: X-1: no version that we admit mends it."),
        ("starlette", [], "KNOWN starlette 1.0: X-1: no version that we admit mends it."),
        ("Django", ["99.0"], "KNOWN Django 1.0: X-1: no version that we admit mends it."),
        ("needed-by-nobody", ["2.0"], "FAILED needed-by-nobody 1.0: X-1: install 2.0."),
    ],
)
def test_an_advisory_fails_the_run_where_something_can_be_done(tmp_path, name, fixes, words):
    advisory = {"id": "X-1", "fix_versions": fixes, "aliases": [], "description": "Bad."}
    ended = audit(tmp_path, {"name": name, "version": "1.0", "vulns": [advisory]})
    assert ended.stdout.splitlines() == [words, "2 of 3 distributions audited, 1 advisories"]
    assert ended.returncode == words.startswith("FAILED")


def test_a_source_that_knows_nothing_is_no_audit(tmp_path):
    ended = audit(tmp_path, audited=())
    assert (ended.returncode, ended.stdout[:8]) == (0, "NOT RUN:")


def audit(folder: Path, *found: object, audited: Sequence[object] = ({"name": "x", "version": "1", "vulns": []},)):
    skipped = {"name": "awp-publish", "skip_reason": "It is installed as editable."}
    report = folder / "report.json"
    report.write_text(json.dumps({"dependencies": [*found, *audited, skipped]}))
    command = [sys.executable, ".ci/audit.py", str(report)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
