"""The audit of dependencies: an advisory fails the run only where a version that we admit mends it."""

import json
import runpy
from collections.abc import Sequence
from pathlib import Path

import pytest

AUDIT = runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "audit.py"))


MENDED = {
    "starlette 1.0: X-1: install 1.999.": ["1.999"],
    "starlette 1.0: X-2: install 1.999.": ["0.1", "1.999"],
    "needed-by-nobody 1.0: X-1: install 2.0.": ["2.0"],
}
KNOWN = {
    "starlette 1.0: X-1: no version that we admit mends it.": ["99.0"],
    "starlette 1.0: X-2: no version that we admit mends it.": [],
    "Django 1.0: X-1: no version that we admit mends it.": ["99.0"],
}


@pytest.mark.parametrize(("verdict", "advisories", "status"), [("FAILED", MENDED, 1), ("KNOWN", KNOWN, 0)])
def test_an_advisory_fails_the_run_where_something_can_be_done(tmp_path, capsys, verdict, advisories, status):
    found = []
    for words, fixes in advisories.items():
        name, version, identifier = words.split()[:3]
        advisory = {"id": identifier.strip(":"), "fix_versions": fixes, "aliases": [], "description": "Bad."}
        found.append({"name": name, "version": version.strip(":"), "vulns": [advisory]})
    assert audit(tmp_path, *found) == status
    lines = [f"{verdict} {words}" for words in advisories]
    assert capsys.readouterr().out.splitlines() == [*lines, "4 of 5 distributions audited, 3 advisories"]


def test_a_source_that_knows_nothing_is_no_audit(tmp_path, capsys):
    assert audit(tmp_path, audited=()) == 0
    assert capsys.readouterr().out.startswith("NOT RUN:")


def audit(folder: Path, *found: object, audited: Sequence[object] = ({"name": "x", "version": "1", "vulns": []},)):
    skipped = {"name": "awp-publish", "skip_reason": "It is installed as editable."}
    report = folder / "report.json"
    report.write_text(json.dumps({"dependencies": [*found, *audited, skipped]}))
    return AUDIT["main"](str(report))
