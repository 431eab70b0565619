"""Over HTTP: requests a second from one uvicorn worker, on a core of its own, under `wrk` on another core.

Every application has its own server process; they are loaded one after the other, in short interleaved rounds. Tool
calls stand beside the same route published by FastMCP, which is a rival of its own and not needed for the rest.
"""

import http.client
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import orjson

from benchmarks.documents import GZIP
from benchmarks.measure import Series
from benchmarks.serving import LOAD_CORE, SERVER_CORE
from benchmarks.shop import INVOCATION, JSON, ORDER, ORDER_INVOKE, ORDERS
from benchmarks.static_answers import DOCUMENT
from benchmarks.table import Limit, Row, at_least, compare
from benchmarks.tool_calls import CLASSIC, MODERN, PATH as MCP, tool_call

SLICE: Final = 1
"""Seconds that one application is loaded for in one round; `wrk` counts in whole ones."""

PATIENCE: Final = 30.0
"""Seconds that a server is given to start."""

_RATE: Final = re.compile(r"Requests/sec:\s+([\d.]+)")
_TROUBLE: Final = re.compile(r"Non-2xx or 3xx responses|Socket errors")


@dataclass(frozen=True, slots=True)
class Load:
    """A request for `wrk`: which application gets it, and what the answer must be.

    `told` is what of an answer's body has to be the same as of its rival's.
    """

    name: str
    server: str
    path: str = DOCUMENT
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    status: int = 200
    told: Callable[[bytes], object] = bytes

    @property
    def method(self) -> str:
        return "POST" if self.body else "GET"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row: the load, the load it stands beside, in words, and the limit."""

    what: str
    name: str
    rival: str
    beside: str
    limit: Limit


_BARE: Final = "bare ASGI application with the same answer"
_POST: Final = "direct POST without awp_publish"

COMPARISONS: Final = (
    Comparison("document 200, outermost, over HTTP", "200", "bare 200", _BARE, at_least(0.80)),
    Comparison("document gzip, outermost, over HTTP", "gzip", "bare gzip", _BARE, at_least(0.80)),
    Comparison("document 304, outermost, over HTTP", "304", "bare 304", _BARE, at_least(0.93)),
    Comparison("WoA invoke of a route, over HTTP", "invoke", "post", _POST, at_least(0.83)),
)

_FASTMCP: Final = "fastmcp.from_fastapi of the same route"

TOOL_CALLS: Final = (
    Comparison(f"MCP tools/call, {MODERN}, over HTTP", "mcp modern", "fastmcp modern", _FASTMCP, at_least(12.0)),
    Comparison(f"MCP tools/call, {CLASSIC}, over HTTP", "mcp classic", "fastmcp classic", _FASTMCP, at_least(2.0)),
)


def over_http(seconds: float) -> list[Row]:
    """Documents beside a bare application that gives the very same answer, calls beside a direct POST or FastMCP."""
    share = len(COMPARISONS) / (len(COMPARISONS) + len(TOOL_CALLS))
    no_rival = "" if find_spec("fastmcp") else "fastmcp is not installed"
    return [
        *_compare(COMPARISONS, _SERVERS, seconds * share, _why_not()),
        *_compare(TOOL_CALLS, ("mcp", "fastmcp"), seconds * (1 - share), _why_not() or no_rival),
    ]


def _compare(comparisons: Sequence[Comparison], servers: Sequence[str], seconds: float, why: str) -> list[Row]:
    if why:
        return [Row(c.what, c.beside, None, c.limit, why) for c in comparisons]
    with ExitStack() as stack, TemporaryDirectory() as folder:
        ports = {name: stack.enter_context(_serve(name)) for name in servers}
        loads = _loads(ports["outermost"]) if "outermost" in ports else _tool_calls()
        _assert_same(comparisons, loads, ports)
        found = _interleave(loads, ports, Path(folder), max(1, round(seconds / SLICE / len(loads))))
    return [compare(c.what, {"uvloop": found}, c.name, c.rival, c.beside, c.limit, "req/s") for c in comparisons]


def _why_not() -> str:
    """Why this machine cannot measure, "" if it can."""
    for program in ("wrk", "taskset"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if not {SERVER_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        return "needs two processor cores, one for the server and one for the load"
    return ""


# --- Servers -------------------------------------------------------------------------------------------------------

_SERVERS: Final = ("bare 200", "bare 304", "bare gzip", "nowhere", "inside", "outermost")


@contextmanager
def _serve(name: str) -> Iterator[int]:
    """The port on which an application is served."""
    port = _free_port()
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.serving", name, str(port)])
    try:
        _wait_for(port, server)
        yield port
    finally:
        server.terminate()
        server.wait(10)


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def _wait_for(port: int, server: "subprocess.Popen[bytes]") -> None:
    finish = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError as error:
            if server.poll() is not None or time.monotonic() > finish:
                raise RuntimeError("the server did not start") from error
            time.sleep(0.05)
        else:
            return


# --- Load ----------------------------------------------------------------------------------------------------------


def _loads(port: int) -> list[Load]:
    """What is sent; the 304 needs the ETag that the document has."""
    etag = _ask(port, Load("", "")).headers["etag"].encode()
    unchanged = ((b"if-none-match", etag),)
    return [
        Load("bare 200", "bare 200"),
        Load("200", "outermost"),
        Load("bare 304", "bare 304", headers=unchanged, status=304),
        Load("304", "outermost", headers=unchanged, status=304),
        Load("bare gzip", "bare gzip", headers=GZIP),
        Load("gzip", "outermost", headers=GZIP),
        Load("post", "nowhere", ORDERS, JSON, ORDER),
        Load("invoke", "inside", ORDER_INVOKE, JSON, INVOCATION),
    ]


def _tool_calls() -> list[Load]:
    host = (b"Host", b"books.example")
    return [
        Load(f"{server} {era}", server, MCP, (*headers, host), body, told=_structured)
        for era, (body, headers) in {"modern": tool_call(MODERN), "classic": tool_call(CLASSIC)}.items()
        for server in ("mcp", "fastmcp")
    ]


def _structured(body: bytes) -> object:
    return orjson.loads(body)["result"]["structuredContent"]


def _interleave(loads: list[Load], ports: dict[str, int], folder: Path, rounds: int) -> dict[str, Series]:
    found: dict[str, Series] = {load.name: [] for load in loads}
    for turn in range(rounds):
        for load in loads if turn % 2 else reversed(loads):
            found[load.name].append(_run(load, ports[load.server], folder))
    return found


def _assert_same(comparisons: Sequence[Comparison], loads: list[Load], ports: dict[str, int]) -> None:
    """Each load and its rival get the same answer."""
    values = {}
    for load in loads:
        answer = _ask(ports[load.server], load)
        body = answer.read()
        assert answer.status == load.status, (load, body)
        values[load.name] = load.told(body)
        assert "order" not in load.path or orjson.loads(body)["total"] == 22.5
    for comparison in comparisons:
        assert values[comparison.name] == values[comparison.rival], comparison


def _ask(port: int, load: Load) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {name.decode(): value.decode() for name, value in load.headers}
    connection.request(load.method, load.path, load.body or None, headers)
    return connection.getresponse()


def _run(load: Load, port: int, folder: Path) -> float:
    """Requests a second."""
    script = folder / "load.lua"
    script.write_text(_script(load))
    command = f"taskset -c {LOAD_CORE} wrk -t1 -c32 -d{SLICE}s -s {script} http://127.0.0.1:{port}"
    report = subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout
    rate = _RATE.search(report)
    assert rate, report
    assert not _TROUBLE.search(report), report
    return float(rate[1])


def _script(load: Load) -> str:
    lines = [f'wrk.method = "{load.method}"', f'wrk.path = "{load.path}"']
    lines += [f"wrk.headers[ [[{name.decode()}]] ] = [[{value.decode()}]]" for name, value in load.headers]
    if load.body:
        lines.append(f"wrk.body = [==[{load.body.decode()}]==]")
    return "\n".join(lines)
