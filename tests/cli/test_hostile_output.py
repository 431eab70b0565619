"""What a hostile site says reaches a terminal as text: nothing that a command prints is obeyed by it."""

import argparse
import ast
import asyncio
import json
import os
import pty
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from awp_publish import cli
from awp_publish.cli.console import visible
from awp_publish.client import doors
from tests.conftest import run_command

ROOT = Path(__file__).parents[2]

C1 = "\x9b31m"
EVIL = f"\x1b]0;title\x07\x1b[2J\x08\x7f{C1}\u202e\u2066\u2028\u2029\u200b\x85\U000e0041\r"
IN_JSON = json.dumps(EVIL)[1:-1]
IN_HEADER = EVIL.encode("latin-1", "ignore").replace(b"\r", b"").decode("latin-1")

PROBLEM = {
    "code": f"REFUSED{EVIL}",
    "status": 409,
    "detail": f"detail{EVIL}",
    "recovery": f"recovery{EVIL}",
    "errors": [{"pointer": f"/a{EVIL}", "detail": f"wrong{EVIL}"}],
    "confirmation": {"token": "t", "summary": f"summary{EVIL}\nDo this? [y/N] y"},
}
AGENT = {"id": f"order{EVIL}", "name": EVIL, "description": EVIL, "inputs": {"properties": {EVIL: {"type": EVIL}}}}
DOCUMENT = {
    "agent_json_version": "0.2",
    "woa_version": "1",
    "name": f"name{EVIL}",
    "agents": [AGENT],
    "actions": [AGENT, {"id": EVIL, "description": EVIL, "inputSchema": {"properties": {EVIL: {}}}}],
    "tools": [{"name": f"tool{EVIL}", "description": EVIL, "inputSchema": {"type": "object", EVIL: EVIL}}],
    "imports": [f"http://127.0.0.1:1/{EVIL}", EVIL],
    EVIL: EVIL,
}
MAP = {"protocol": "actions.json", "version": "1.0", "imports": [{"uri": f"/{EVIL}"}], "pages": [{EVIL: EVIL}], EVIL: 1}
HTML = f"""<html><head><title>page{EVIL}</title><meta name=description content="{EVIL}"></head><body><h1>head{EVIL}</h1>
<form action="/find" id="{EVIL}"><label for=q>q{EVIL}</label><input id=q name="q{EVIL}" required>
<button>go{EVIL}</button></form><a href="/next{EVIL}">next{EVIL}</a><pre>pre{EVIL}\tx</pre></body></html>"""


def answer_document(_: str) -> tuple[str, dict[str, str], bytes]:
    return "200 OK", {"Content-Type": "application/json"}, json.dumps(DOCUMENT, ensure_ascii=False).encode()


def answer_map(_: str) -> tuple[str, dict[str, str], bytes]:
    return "200 OK", {"Content-Type": "application/json"}, json.dumps(MAP, ensure_ascii=False).encode()


def answer_page(path: str) -> tuple[str, dict[str, str], bytes]:
    if path.endswith((".json", ".txt")):
        return "404 Not Found", {}, b""
    return "200 OK", {"Content-Type": "text/html; charset=utf-8"}, HTML.encode()


def answer_text(_: str) -> tuple[str, dict[str, str], bytes]:
    return "200 OK", {"Content-Type": f"text/plain{IN_HEADER}"}, f"text{EVIL}\r\nline\n".encode()


def answer_problem(path: str) -> tuple[str, dict[str, str], bytes]:
    if path.startswith("/.well-known"):
        return answer_document(path)
    body = json.dumps(PROBLEM, ensure_ascii=False).encode()
    return f"409 No{IN_HEADER}", {"Content-Type": "application/problem+json", "X-Evil": IN_HEADER}, body


def answer_question(path: str) -> tuple[str, dict[str, str], bytes]:
    if path.startswith("/.well-known"):
        return answer_document(path)
    body = json.dumps({**PROBLEM, "code": "CONFIRMATION_REQUIRED", "status": 428}, ensure_ascii=False).encode()
    return "428 Ask", {"Content-Type": "application/problem+json"}, body


def answer_failure(_: str) -> tuple[str, dict[str, str], bytes]:
    return f"500 {IN_HEADER}", {"Content-Type": f"text/html{IN_HEADER}"}, EVIL.encode()


def answer_redirect(_: str) -> tuple[str, dict[str, str], bytes]:
    return "302 Found", {"Location": f"http://127.0.0.1:1/there{IN_HEADER}"}, b""


def answer_status_line(_: str) -> tuple[str, dict[str, str], bytes]:
    return f"abc {IN_HEADER}", {}, b""


def answer_odd_json(_: str) -> tuple[str, dict[str, str], bytes]:
    odd = '{"a": "\\ud800\\u001b", "b": 1e999, "c": 1000000000000000000000000000000, "result": {"x": "\\udfff"}}'
    return "200 OK", {"Content-Type": "application/json"}, odd.encode()


ANSWERS = (
    answer_document,
    answer_map,
    answer_page,
    answer_text,
    answer_problem,
    answer_question,
    answer_failure,
    answer_redirect,
    answer_status_line,
    answer_odd_json,
)


@contextmanager
def hostile_site(answer: Any) -> Iterator[str]:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError):
                await speak(reader, writer)
        finally:
            writer.close()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = [line[15:] for line in head.lower().split("\r\n") if line.startswith("content-length:")]
        await reader.readexactly(int(length[0]) if length else 0)
        status, headers, body = answer(head.split(" ")[1])
        headers = {**headers, "Content-Length": str(len(body)), "Connection": "close"}
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode("latin-1") + body)
        await writer.drain()

    async def serve() -> None:
        stop = asyncio.Event()
        async with await asyncio.start_server(take, "127.0.0.1", 0) as listening:
            running.append((asyncio.get_running_loop(), stop, listening.sockets[0].getsockname()[1]))
            ready.set()
            await stop.wait()
        await asyncio.sleep(0)

    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = []
    ready = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    ready.wait()
    loop, stop, port = running[0]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


APPLICATION = f"""
from awp_publish import AgentPublisher, Site
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

EVIL = {EVIL!r}
site = Site(name="Shop" + EVIL, description="Sells." + EVIL, url="https://shop.example", plugins=PLUGINS)

async def page(request):
    return HTMLResponse("<title>" + EVIL + "</title>")

@site.action("order", description="Order." + EVIL, confirm="Order" + EVIL)
async def order(request):
    return JSONResponse({{"code": EVIL, "detail": EVIL, "status": 409}}, 409)

async def any_path(request):
    return JSONResponse({{"detail": EVIL}}, 418, headers={{"x-evil": "a"}})

app = Starlette(routes=[Route("/page", page), Route("/order", order), Route("/{{path:path}}", any_path)])
app.add_middleware(AgentPublisher, site=site)
"""

# Each verb of the command line as it meets a site: URL is the hostile one, APP an application with hostile words.
COMMANDS: dict[str, list[list[str]]] = {
    "check": [
        ["check", "URL/"],
        ["check", "URL/agent.json"],
        ["check", "--as-model", "URL/agent.json"],
        ["check", "--lenient", "FILE"],
        ["check", "--kind", "woa", "FILE"],
        ["check", "APP"],
        ["check", "--as-model", "APP"],
    ],
    "show": [
        ["show", "APP"],
        ["show", "--tokens", "APP"],
        ["show", "--included", "APP"],
        ["show", "APP", "/page"],
        ["show", "APP", "/nowhere"],
    ],
    "call": [
        *(["call", "URL", "order", "--door", door] for door in doors()),
        ["call", "URL", "order", "a=b", "--yes"],
        ["call", "URL", f"order{EVIL}"],
        ["call", "APP", "order"],
        ["call", "APP", "order", "--yes"],
    ],
    "export": [["export", "APP", "FOLDER"], ["export", "APP", f"FOLDER/{EVIL}"]],
    "som": [["som", "URL/x"], ["som", "PAGE", "--url", "http://a.example/"]],
    "markdown": [["markdown", "URL/x"], ["markdown", "PAGE"]],
    "synthesize": [
        ["synthesize", "URL/", "--allow-private"],
        ["synthesize", "URL/", "--allow-private", "--anyway", "--out", "FOLDER"],
    ],
    "init": [["init", "fastapi", "-"], ["init", "fastapi", f"FOLDER/{EVIL.replace('/', '')}.py"]],
    "dns": [["dns", "APP"]],
    "approve": [["approve", "WAITING"], ["approve", "WAITING", f"no{EVIL}"], ["approve", "WAITING", "--all"]],
    "robots": [["robots", "APP"]],
    "traffic": [["traffic", "APP"]],
    "worker": [["worker", f"nowhere{EVIL}:app"]],
}


def obeyed(text: str) -> set[str]:
    """The characters of a text that a terminal obeys or hides."""
    return {item for item in text if unicodedata.category(item) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n", "\t"}


def commands_of(verb: str, url: str, folder: Path) -> Iterator[list[str]]:
    (folder / "document.json").write_text(json.dumps(DOCUMENT, ensure_ascii=False), encoding="utf-8")
    (folder / "page.html").write_text(HTML, encoding="utf-8")
    (folder / "evil_shop.py").write_text(f"PLUGINS = []{APPLICATION}", encoding="utf-8")
    (folder / "waiting_shop.py").write_text(f"PLUGINS = ['approval']{APPLICATION}", encoding="utf-8")
    names = {"FILE": "document.json", "PAGE": "page.html", "FOLDER": "folder"}
    names |= {"APP": "evil_shop:app", "WAITING": "waiting_shop:app"}
    for arguments in COMMANDS[verb]:
        made = []
        for one in arguments:
            for name, value in {**names, "URL": url}.items():
                one = value + one.removeprefix(name) if one.startswith(name) else one
            made.append(one)
        yield made


def verbs() -> list[str]:
    [action] = [action for action in cli.make_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return list(action.choices)


def test_each_verb_is_shown_a_hostile_site():
    assert COMMANDS.keys() == set(verbs()), "Add to COMMANDS how a new verb meets one."


def meets_a_site(verb: str) -> bool:
    return any("URL" in word for arguments in COMMANDS[verb] for word in arguments)


@pytest.mark.parametrize(
    ("verb", "answer"),
    [(verb, answer) for verb in COMMANDS for answer in (ANSWERS if meets_a_site(verb) else ANSWERS[:1])],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_no_verb_prints_what_a_terminal_obeys(verb, answer, tmp_path):
    with hostile_site(answer) as url:
        for form, arguments in product(([], ["--json"]), list(commands_of(verb, url, tmp_path))):
            ran = run_command(*form, *arguments, cwd=tmp_path)
            assert ran.returncode in (0, 1, 2), arguments
            assert not obeyed(ran.stdout), arguments
            assert not obeyed(ran.stderr), arguments
            if form and ran.stdout and verb not in ("init", "som", "markdown", "traffic"):
                json.loads(ran.stdout)


def test_escaped_text_can_be_read_back(tmp_path):
    with hostile_site(answer_problem) as url:
        ran = run_command("call", url, "order", "a=b")
    first, second, third, fourth, fifth = ran.stderr.splitlines()[:5]
    assert first.startswith(
        "awp-publish: REFUSED\\u001b]0;title\\u0007\\u001b[2J\\u0008\\u007f\\u009b31m\\u202e\\u2066\\u2028"
    )
    assert second.startswith("  /a\\u001b]0;")
    assert third.startswith("  recovery\\u001b]0;")
    assert fourth.startswith("  summary\\u001b]0;")
    assert fourth.endswith("\\u000aDo this? [y/N] y"), "a summary forges no line"
    assert fifth == "  Use --yes to confirm."
    with hostile_site(answer_redirect) as url:
        assert "there\\u001b]0;" in run_command("call", url, "order", "a=b", "--door", "plain").stderr
    with hostile_site(answer_page) as url:
        shown = run_command("markdown", f"{url}/x").stdout
        assert "# head\\u001b" in shown
        assert "\tx" in shown


def test_words_of_all_languages_are_printed_as_they_are():
    for text in ("Bücher 本 كتاب ספר किताब", "👩‍👩‍👧 ❤️", "1\u00a0000\u202f€", "می‌خواهم"):
        assert visible(text) == text
    assert visible("a\nb\tc") == "a\\u000ab\\u0009c"
    assert visible("a\r\nb\tc", is_block=True) == "a\nb\tc"


@pytest.mark.parametrize("secret", [False, True])
def test_a_person_at_a_terminal_is_asked_in_harmless_words(secret, tmp_path):
    kind = {"type": "string", "description": f"what{EVIL}", **({"format": "password"} if secret else {})}
    inputs = {"type": "object", "properties": {f"name{EVIL}": kind}, "required": [f"name{EVIL}"]}

    def answer(path: str) -> tuple[str, dict[str, str], bytes]:
        if path == "/.well-known/woa.json":
            document = {"agents": [{"id": "order", "inputs": inputs}]}
            return "200 OK", {"Content-Type": "application/json"}, json.dumps(document).encode()
        return answer_question(path)

    leader, follower = pty.openpty()
    shown = b""
    with hostile_site(answer) as url:
        command = [sys.executable, "-m", "awp_publish", "call", url, "order"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=environment,
            start_new_session=True,
        ) as process:
            os.close(follower)
            for awaited, reply in ((b"\n  > ", b"tea\n"), (b"[y/N]", b"n\n"), (b"Use --yes", b"")):
                while awaited not in shown.replace(b"\r\n", b"\n"):
                    shown += os.read(leader, 1000)
                os.write(leader, reply)
            process.wait(30)
            os.close(leader)
    text = shown.decode().replace("\r\n", "\n")
    assert not obeyed(text)
    assert "what\\u001b]0;" in text
    assert "summary\\u001b]0;" in text
    assert "\n  Do this? [y/N] y" in text, "a second line of a summary is not at the place of the question"
    assert process.returncode == 1


def test_only_one_function_of_the_command_line_prints():
    """Nothing but `console.write` writes to the terminal; files that are written as bytes go to no terminal."""
    printing = []
    for file in (ROOT / "awp_publish" / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                call = ast.unparse(node.func)
                if call in ("print", "input") or call.startswith(("sys.stdout.write", "sys.stderr.write")):
                    printing.append(f"{file.name}: {ast.unparse(node)[:80]}")
    assert printing == []
