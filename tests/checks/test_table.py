"""The table of checks, as the command explains it."""

import json
import re
from pathlib import Path

import pytest

from awp_publish.checks import all_checks
from awp_publish.cli import main
from awp_publish.maps.rules import MAX_STEPS

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"


def test_no_two_checks_share_an_id() -> None:
    ids = [check.id for check in all_checks()]
    assert sorted(ids) == sorted(set(ids))


def test_the_command_explains_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == [
        {"check": check.id, "level": check.level, "about": check.about, "source": check.source, "hint": check.hint}
        for check in all_checks()
    ]
    assert main(["check", "--explain", "woa-version"]) == 0
    assert 'Write "1", with quotation marks.' in capsys.readouterr().out
    assert main(["check", "--explain", "woa-versoin"]) == 2
    assert 'Did you mean "woa-version"?' in capsys.readouterr().err
    assert main(["check", "--explain", "codes", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {"unknown_action", "target_not_found", "workflow_step_failed"} <= {item["code"] for item in answer}
    assert all(item["means"].strip() for item in answer)
    assert main(["check", "--explain", "limits", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {"kind": "map", "name": "steps of a workflow", "bound": MAX_STEPS} in answer
    for group, rule in (("drift", "drift-missing"), ("model", "model-twins")):
        assert main(["check", "--explain", group, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert main(["check", "--explain", rule, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == [item for item in answer if item["rule"] == rule]
        assert all(item["about"] and item["hint"] for item in answer)
    assert main(["check", "--explain", "model-twin"]) == 2
    assert 'Did you mean "model-twins"?' in capsys.readouterr().err
    assert main(["check"]) == 2
    assert "needs a target" in capsys.readouterr().err


def test_the_examples_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})
    assert "woa-version" in capsys.readouterr().out
