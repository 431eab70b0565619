"""`make conformance`: run the published MCP scenarios, and fail when one fails that applies to our server.

The scenarios expect tools, prompts and resources of certain names, and count their absence as failures. What a server
does not offer does not apply to it; as soon as the application has a tool of the name, its scenario counts.
"""

import json
import logging
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from tests.conformance.application import make_application

REVISIONS = ("2026-07-28", "2025-11-25")
PORT = 8765
ADDRESS = f"http://127.0.0.1:{PORT}"
SECONDS = 300

ABSENT = re.compile(
    r"Method not found|has no tool |has no resource |has no prompt |Not testable|Prerequisite failed|Expected InputReq"
)
"""How a check says that the server offers nothing to be checked."""

EXTENSIONS = ("server-tasks-",)
"""Scenarios of extensions that our server does not name among its capabilities."""

LEAST_PASSED = {"2026-07-28": 80, "2025-11-25": 35}
"""Checks that applied when this was written: fewer mean that the run itself went wrong."""


def main(command: Sequence[str]) -> int:
    """Run the scenarios of both generations. `command` starts the published program."""
    logging.disable()
    with _served(), tempfile.TemporaryDirectory() as folder:
        return max(_judge(revision, _run(command, revision, Path(folder) / revision)) for revision in REVISIONS)


@contextmanager
def _served() -> Iterator[None]:
    config = uvicorn.Config(make_application(ADDRESS), port=PORT, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.05)
        yield
    finally:
        server.should_exit = True
        thread.join()


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
    sys.exit(main(sys.argv[1:]))
