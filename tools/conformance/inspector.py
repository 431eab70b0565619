"""The MCP inspector's command line: against the demo site, and against a shop for which it has to sign a person in."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Any, Final

from demo_site.app import create_app
from tests.plugins.sign_in.shop import make_shop
from tests.redis_server import free_port
from tools.conformance.authorization import back_from
from tools.conformance.server import ADDRESS, served

ERAS: Final = ("modern", "legacy")
SECONDS: Final = 300
NO_SUCH_TOOL: Final = 5
"""The inspector's exit status for a tool that fails or is not there."""


def inspect(command: Sequence[str]) -> int:
    """Ask in both generations of the protocol. `command` starts the inspector; 1 if anything is not as it should be."""
    with served(lambda address: create_app(address, doors=["mcp"])):
        wrong = max(_inspect(command, era) for era in ERAS)
    with served(make_shop):
        return max(wrong, *(_sign_in(command, era) for era in ERAS))


def _sign_in(command: Sequence[str], era: str) -> int:
    """Let the inspector sign a person in for a tool that needs one."""
    back = f"http://127.0.0.1:{free_port()}/oauth/callback"
    called = ["--method", "tools/call", "--tool-name", "read_profile", "--tool-args-json", "{}"]
    asked = [*command, "--cli", f"{ADDRESS}/mcp", "--transport", "http", "--protocol-era", era, "--format", "json"]
    with tempfile.TemporaryDirectory() as home:  # it keeps what it is given there
        own = {"HOME": home, "MCP_AUTO_OPEN_ENABLED": "true", "MCP_INSPECTOR_SECRET_STORE": "memory"}
        process = subprocess.Popen(
            [*asked, "--callback-url", back, *called],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **own},
        )
        said = ""
        with process, _killed_after(SECONDS, process):
            assert process.stdout is not None
            for line in process.stdout:
                said += line
                if (found := re.search(rf"{ADDRESS}/agents/sign-in/authorize\S+", line)) is not None:
                    back_from(found[0])
    is_right = process.returncode == 0 and '"text":"ann"' in said
    print(f"inspector, {era}: {'a person is signed in' if is_right else said}")
    return int(not is_right)


@contextmanager
def _killed_after(seconds: float, process: "subprocess.Popen[str]") -> Iterator[None]:
    timer = Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _inspect(command: Sequence[str], era: str) -> int:
    listed, complaints = _ask(command, era, "tools/list", "--strict")
    found, _ = _ask(command, era, "tools/call", "--tool-name", "search_books", "--tool-args-json", '{"q": "emma"}')
    refused, status = _ask(command, era, "tools/call", "--tool-name", "fly", "--tool-args-json", "{}")
    names = [tool["name"] for tool in listed.get("result", {}).get("tools", [])]
    books = found.get("result", {}).get("structuredContent", {}).get("books", [])
    is_right = {
        "tools are listed": "search_books" in names and complaints == 0,
        "a tool is called": [book["slug"] for book in books] == ["emma"],
        "an unknown tool is refused": not refused and status == NO_SUCH_TOOL,
    }
    wrong = [what for what, holds in is_right.items() if not holds]
    print(f"inspector, {era}: {len(names)} tools; {'wrong: ' + ', '.join(wrong) if wrong else 'all is right'}")
    return int(bool(wrong))


def _ask(command: Sequence[str], era: str, method: str, *options: str) -> tuple[dict[str, Any], int]:
    """What the inspector prints, and its exit status."""
    fixed = ["--cli", f"{ADDRESS}/mcp", "--transport", "http", "--protocol-era", era, "--format", "json", "-q"]
    asked = [*command, *fixed, "--method", method, *options]
    ran = subprocess.run(asked, check=False, timeout=SECONDS, capture_output=True, text=True)
    return json.loads(ran.stdout or "{}"), ran.returncode
