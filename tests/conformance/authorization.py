"""The published scenarios for authorization servers, and clients in TypeScript, against sign-in."""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from awp_publish import Client
from benchmarks.person import answer_in_browser, carry_out
from tests.conformance.server import ADDRESS, served
from tests.redis_server import free_port
from tests.sign_in.shop import LOGIN, make_shop

CHECKS = 3
"""Checks that all have to pass: two of the metadata, one of the grant."""

SECONDS = 120
TYPESCRIPT = Path(__file__).parent / "sign_in.mjs"


def judge_authorization(command: Sequence[str]) -> int:
    """Run the scenarios; return 1 if one has failed. `command` is the program of the published scenarios."""
    port = free_port()
    client = Client("conformance", "The published scenarios", redirects=[f"http://127.0.0.1:{port}/callback"])
    with served(lambda url: make_shop(url, clients=[client])), tempfile.TemporaryDirectory() as folder:
        options = ["--url", ADDRESS, "--client-id", client.id, "--resource", f"{ADDRESS}/mcp", "--port", str(port)]
        process = subprocess.Popen(
            [*command, "authorization", *options, "-o", folder], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(f"{ADDRESS}/agents/sign-in/authorize"):
                    httpx.get(back_from(line.strip()), timeout=30)
            process.wait(SECONDS)
        finally:
            process.kill()
            process.wait()
        files = sorted(Path(folder).glob("**/checks.json"))
        checks = [check for file in files for check in json.loads(file.read_text())]
    failed = [check for check in checks if check["status"] != "SUCCESS"]
    for check in failed:
        print(f"{check['id']}: {check.get('errorMessage')}")
    print(f"authorization server: {len(checks) - len(failed)} checks passed, {len(failed)} failed")
    return int(bool(failed) or len(checks) < CHECKS)


def back_from(address: str) -> str:
    """Sign in and allow what is asked, as somebody does whose browser is opened at an address.

    Returns the address to which the browser is sent in the end.
    """
    [back] = parse_qs(urlsplit(address).query)["redirect_uri"]

    def log_in(page: str, here: str) -> tuple[str, Mapping[str, Any]] | None:
        return (here, {"name": "ann"}) if page == LOGIN else None

    with httpx.Client(timeout=30) as browser:
        return carry_out(answer_in_browser(address, back, log_in), browser)


def judge_typescript(node: str, modules: Path) -> int:
    """Have each official TypeScript SDK sign its person in; return 1 if one cannot."""
    failed = 0
    with served(make_shop):
        for package in ("sdk", "client"):
            facts = {"address": f"{ADDRESS}/mcp", "modules": str(modules.resolve()), "package": package}
            facts |= {"redirect": f"http://127.0.0.1:{free_port()}/callback", "tool": "read_profile"}
            with subprocess.Popen(
                [node, str(TYPESCRIPT), json.dumps(facts)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                address = process.stdout.readline().strip()
                process.stdin.write(back_from(address) + "\n")
                process.stdin.close()
                answer = process.stdout.read().strip()
            is_known = answer == "ann"
            print(f"@modelcontextprotocol/{package} signs its person in: {'yes' if is_known else f'no: {answer}'}")
            failed |= not is_known
    return int(failed)
