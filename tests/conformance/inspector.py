"""The MCP inspector's command line against the demo site: tools are listed without a complaint, and one is called."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any, Final

from demo_site.app import create_app
from tests.conformance.server import ADDRESS, served

ERAS: Final = ("modern", "legacy")
SECONDS: Final = 300
NO_SUCH_TOOL: Final = 5
"""The inspector's exit status for a tool that fails or is not there."""


def inspect(command: Sequence[str]) -> int:
    """Ask in both generations of the protocol. `command` starts the inspector; 1 if anything is not as it should be."""
    with served(lambda address: create_app(address, doors=["mcp"])):
        return max(_inspect(command, era) for era in ERAS)


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
