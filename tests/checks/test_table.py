"""The table of checks is complete: every check is documented, triggered by a case, and has an id of its own."""

import re
from pathlib import Path

import pytest

from awp_publish.checks import all_checks
from awp_publish.checks.engine import LEVELS, Check

from .cases import CASES
from .test_site import SITE_CASES
from .test_text import TEXT_CASES

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"
ROW = re.compile(r"^\| `(?P<id>[a-z0-9-]+)` \| (?P<level>\w+) \| (?P<about>.+?) \| (?P<source>.+?) \|$", re.MULTILINE)
ELSEWHERE = {"agent-json-other-standard", "actions-size", "actions-no-engine", "actions-import"}
"""What these find is no valid document with a small change, so they have tests of their own."""

TRIGGERED = {case.check for case in CASES} | {case[0] for case in (*TEXT_CASES, *SITE_CASES)} | ELSEWHERE


def escaped(text: str) -> str:
    return text.replace("|", "\\|")


def row(check: Check) -> str:
    return f"| `{check.id}` | {check.level} | {escaped(check.about)} | {escaped(check.source)} |"


def test_no_two_checks_share_an_id() -> None:
    ids = [check.id for check in all_checks()]
    assert sorted(ids) == sorted(set(ids))


def test_every_check_has_a_case_that_triggers_it() -> None:
    assert [check.id for check in all_checks() if check.id not in TRIGGERED] == []


def test_every_check_is_described_completely() -> None:
    for check in all_checks():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", check.id), check
        assert check.level in LEVELS, check
        assert check.about.endswith("."), check
        assert check.hint.endswith("."), check
        assert check.source, check


def test_every_check_stands_on_the_page_as_it_is() -> None:
    """What is missing here are the lines that docs/checks.md needs."""
    lines = set(PAGE.read_text("utf-8").splitlines())
    assert [row(check) for check in all_checks() if row(check) not in lines] == []


def test_the_page_describes_no_check_that_does_not_exist() -> None:
    described = [match["id"] for match in ROW.finditer(PAGE.read_text("utf-8"))]
    assert described == [check.id for check in all_checks()]


def test_the_examples_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})
    assert "woa-version" in capsys.readouterr().out
