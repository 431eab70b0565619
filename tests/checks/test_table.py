"""The table of checks is complete: every check is documented, triggered by a case, and has an id of its own."""

import re
from pathlib import Path

import pytest

from awp_publish.checks import ALL_CHECKS
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
    ids = [check.id for check in ALL_CHECKS]
    assert sorted(ids) == sorted(set(ids))


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.id)
def test_a_check_has_a_case_that_triggers_it(check: Check) -> None:
    assert check.id in TRIGGERED


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.id)
def test_a_check_is_described_completely(check: Check) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", check.id)
    assert check.level in LEVELS
    assert check.about.endswith(".")
    assert check.hint.endswith(".")
    assert check.source


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.id)
def test_a_check_stands_on_the_page_as_it_is(check: Check) -> None:
    assert row(check) in PAGE.read_text("utf-8").splitlines(), f"docs/checks.md needs the line: {row(check)}"


def test_the_page_describes_no_check_that_does_not_exist() -> None:
    described = [match["id"] for match in ROW.finditer(PAGE.read_text("utf-8"))]
    assert described == [check.id for check in ALL_CHECKS]


def test_the_examples_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})
    assert "woa-version" in capsys.readouterr().out
