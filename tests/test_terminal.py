"""Nothing that somebody else has written reaches the terminal as it is: every command, against a hostile site."""

import argparse
import io
import json
import sys
import unicodedata
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from awp_publish import cli
from awp_publish.cli import make_parser

EVIL = "\x1b]0;owned\x07\x1b[2J\r\x08\x7f\x9b31m\u202etxt\u2066\u2028\u200f"

APP = f"""
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from awp_publish import AgentPublisher, Site

EVIL = {EVIL!r}
site = Site("Shop " + EVIL, "Sells books. " + EVIL, "https://shop.example", approval=FILE, store=STORE, pages=True)

@site.agent("find", confirm="Find? " + EVIL, tags=["a" + EVIL], name="Find" + EVIL)
async def find(q: str = EVIL) -> str:
    return EVIL

find.__doc__ = "Find. " + EVIL

async def page(request):
    return HTMLResponse("<title>" + EVIL + "</title><main><h1>" + EVIL + "</h1></main>")

site.page("/page", title="A page " + EVIL)
app = AgentPublisher(Starlette(routes=[Route("/page", page)]), site=site)
"""


class Hostile(BaseHTTPRequestHandler):
    """Answers with escape sequences in every text, status line and header."""

    def do_GET(self) -> None:
        raw = EVIL.encode("latin-1", "replace").replace(b"\r", b"").decode("latin-1")
        if self.path.startswith("/moved"):
            self.wfile.write(f"HTTP/1.0 302 {raw}\r\nLocation: //{raw}/\r\n\r\n".encode("latin-1"))
            return
        if self.path.startswith("/status"):
            self.wfile.write(f"HTTP/1.0 {raw} {raw}\r\n\r\n".encode("latin-1"))
            return
        if self.path.startswith("/page") or self.path == "/":
            title = f"<title>{EVIL}</title><main><h1>{EVIL}</h1><a href='/page{EVIL}'>{EVIL}</a>"
            form = f"<form action='/x' method=post><input name='{EVIL}'><button>{EVIL}</button></form></main>"
            self._answer(200, "text/html; charset=utf-8", (title + form).encode())
        else:
            known = {
                "specVersion": EVIL,
                "version": EVIL,
                "site": {"name": EVIL, EVIL: EVIL},
                "actions": [{EVIL: EVIL}],
            }
            self._answer(200, "application/json", json.dumps(known, ensure_ascii=False).encode())

    def do_POST(self) -> None:
        question = {"token": "t", "summary": EVIL}
        problem = {"code": EVIL, "status": 428, "detail": EVIL, "recovery": EVIL, "confirmation": question}
        problem["errors"] = [{"pointer": EVIL, "detail": EVIL}]
        if "text" in self.path:
            self._answer(200, "text/plain", EVIL.encode())
        elif "bytes" in self.path:
            self._answer(200, "application/octet-stream", EVIL.encode())
        elif "json" in self.path:
            self._answer(200, "application/json", json.dumps({EVIL: EVIL}, ensure_ascii=False).encode())
        else:
            self._answer(428, "application/problem+json", json.dumps(problem, ensure_ascii=False).encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


LINES = {
    "check": ["{url}/agent.json", "{url}/moved", "{url}/status", "{app}", "{app} --as-model"],
    "show": ["{app}", "{app} /agent.json", "{app} /page", "{app} /nothing", "{app} --included", "{app} --tokens"],
    "call": [
        "{url} find",
        "{url} text",
        "{url} json",
        "{url} bytes",
        "{url} find --door plain",
        "{url} find --door mcp",
        "{url}/moved find",
        "{url}/status find",
        "{app} find",
        "{app} find --yes",
    ],
    "export": ["{app} {folder}/out"],
    "som": ["{url}/page", "{url}/moved", "{url}/status"],
    "markdown": ["{url}/page", "{url}/moved", "{url}/status"],
    "synthesize": ["{url} --allow-private --anyway", "{url}/moved --allow-private"],
    "init": ["fastapi {folder}/main.py", "fastapi {folder}/main.py"],
    "dns": ["{app}"],
    "approve": ["{app}", "{app} nothing"],
    "robots": ["{app}"],
    "traffic": ["{app}"],
    "worker": [],  # runs until it is stopped, and prints nothing
}


def test_every_command_is_tried():
    parser = make_parser(["check"])
    (commands,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    assert set(commands.choices) == set(LINES)


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(("command", "line"), [(name, line) for name, lines in LINES.items() for line in lines])
def test_a_command_prints_nothing_that_a_terminal_interprets(
    hostile, command, line, as_json, tmp_path, monkeypatch, capsys
):
    file, store = tmp_path / "approved.json", f"sqlite:///{tmp_path}/agents.db"
    (tmp_path / "evil_shop.py").write_text(APP.replace("FILE", repr(str(file))).replace("STORE", repr(store)))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("NO_COLOR", "1")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", Terminal("no\nno\nno\n"))
    words = [part.format(url=hostile, app="evil_shop:app", folder=tmp_path) for part in line.split()]
    assert cli.main([*(["--json"] if as_json else []), command, *words]) in (0, 1, 2)
    sys.modules.pop("evil_shop", None)
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        signs = set(text) - set("\n\t")
        assert [ascii(sign) for sign in signs if unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp")] == []
    assert captured.out or captured.err or (command, as_json) == ("traffic", True)  # of which there is none


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_an_output_as_it_is(hostile, capsysbinary, monkeypatch):
    for name in ("text", "bytes"):
        assert cli.main(["call", hostile, name]) == 0
        assert capsysbinary.readouterr().out.removesuffix(b"\n") == EVIL.encode()


def test_a_line_of_somebody_else_stays_one_line(hostile, tmp_path, monkeypatch, capsys):
    assert Path(__file__).exists()
    cli.console.warn("one\ntwo")
    assert capsys.readouterr().err == "one\\u000atwo\n"
