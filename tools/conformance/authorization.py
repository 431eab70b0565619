"""The published scenarios for authorization servers, and clients in TypeScript, against sign-in."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import sync_playwright

from awp_publish import Client
from tests.django.servers import ACCOUNTS, PASSWORD, serve_accounts
from tests.plugins.sign_in.people import CHROMIUM
from tests.plugins.sign_in.shop import make_shop, make_starlette_shop
from tests.redis_server import free_port
from tools.conformance.server import ADDRESS, served

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
                    back_from(line.strip())
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
    """Open an address in Chromium, sign in there, and allow what is asked.

    Returns the address to which the browser is sent in the end, and which it has opened.
    """
    [back] = parse_qs(urlsplit(address).query)["redirect_uri"]
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        sync_playwright() as driver,
        closing(driver.chromium.launch(executable_path=CHROMIUM, args=sandbox)) as browser,
    ):
        page = browser.new_page()
        page.goto(address)
        page.fill("input[name=name], input[name=login]", "ann")
        if (password := page.locator("input[name=password]")).count():
            password.fill(PASSWORD)
        page.keyboard.press("Enter")
        with page.expect_request(lambda request: request.url.startswith(back)) as sent:
            page.click("button.allow")
        sent.value.response()  # None where nobody listens, who takes the address from us
        return sent.value.url


def judge_typescript(node: str, modules: Path) -> int:
    """Have each official TypeScript SDK sign its person in and buy, from every framework; return 1 if one cannot."""
    failed = False
    for name, make in (("FastAPI", make_shop), ("Starlette", make_starlette_shop)):
        with served(make):
            failed |= _buy(node, modules, name, ADDRESS)
    for kind in ACCOUNTS:
        with tempfile.TemporaryDirectory() as folder, serve_accounts(kind, Path(folder)) as address:
            failed |= _buy(node, modules, f"Django, {kind}", address)
    return int(failed)


def _buy(node: str, modules: Path, shop: str, address: str) -> bool:
    """Buy from a shop by each SDK, and return True if one has failed."""
    failed = False
    for package in ("sdk", "client"):
        facts = {"address": f"{address}/mcp", "modules": str(modules.resolve()), "package": package}
        facts |= {"redirect": f"http://127.0.0.1:{free_port()}/callback"}
        with subprocess.Popen(
            [node, str(TYPESCRIPT), json.dumps(facts)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            asked = process.stdout.readline().strip()
            process.stdin.write(back_from(asked) + "\n")
            process.stdin.close()
            answer = process.stdout.read().strip()
        is_bought = "Emma for ann" in answer
        print(f"@modelcontextprotocol/{package}, {shop}: {'a person has bought' if is_bought else answer}")
        failed |= not is_bought
    return failed
