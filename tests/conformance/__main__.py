"""`make conformance`: run the published MCP scenarios and the MCP inspector; fail when one fails that applies to us.

The scenarios expect tools, prompts and resources of certain names, and count their absence as failures. What a server
does not offer does not apply to it; as soon as the application has a tool of the name, its scenario counts.
"""

import json
import logging
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.conformance.application import make_application
from tests.conformance.inspector import inspect
from tests.conformance.server import ADDRESS, served

REVISIONS = ("2026-07-28", "2025-11-25")
SECONDS = 300

ABSENT = re.compile(
    r"Method not found|has no tool |has no resource |has no prompt |Not testable|Prerequisite failed|Expected InputReq"
)
"""How a check says that the server offers nothing to be checked."""

EXTENSIONS = ("server-tasks-",)
"""Scenarios of extensions that our server does not name among its capabilities."""

LEAST_PASSED = {"2026-07-28": 110, "2025-11-25": 45}
"""Checks that applied when this was written: fewer mean that the run itself went wrong."""


def main(node: str, conformance: str, inspector: str) -> int:
    """Run the scenarios of both generations, then the inspector. All three are paths of programs."""
    logging.disable()
    with served(make_application), tempfile.TemporaryDirectory() as folder:
        command = [node, conformance]
        failed = [_judge(revision, _run(command, revision, Path(folder) / revision)) for revision in REVISIONS]
    return max(*failed, inspect([node, inspector]))


def _run(command: Sequence[str], revision: str, folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Every check of every scenario. The program's own exit status counts what is absent."""
    options = ["server", "--url", f"{ADDRESS}/mcp", "--requirements", revision, "-o", str(folder)]
    subprocess.run([*command, *options], check=False, timeout=SECONDS, stdout=subprocess.DEVNULL)
    return [
        (file.parent.name, check)
        for file in sorted(folder.glob("*/checks.json"))
        for check in json.loads(file.read_text())
    ]


def _judge(revision: str, checks: Sequence[tuple[str, dict[str, Any]]]) -> int:
    passed = sum(check["status"] == "SUCCESS" for _, check in checks)
    failed = [(name, check) for name, check in checks if check["status"] == "FAILURE"]
    applicable = [(name, check) for name, check in failed if not name.startswith(EXTENSIONS)]
    wrong = [(name, check) for name, check in applicable if not ABSENT.search(_words(check))]
    for name, check in wrong:
        print(f"{name}: {check['id']}: {_words(check)}")
    print(f"{revision}: {passed} checks passed, {len(wrong)} failed, {len(failed) - len(wrong)} do not apply")
    return int(bool(wrong) or passed < LEAST_PASSED[revision])


def _words(check: dict[str, Any]) -> str:
    return f"{check.get('errorMessage')} {check.get('details')}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
