"""How calls are written for the plain door, and how its answers are read: `wire.txt`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from awp_publish.calls.wire import Answer, CallFailed, WireCall, WireRequest, WireResponse
from awp_publish.plugin import Plugin, installed, wires_of
from awp_publish.plugins.plain.wire import METHODS, WIRE as PLAIN
from tests.function_transcripts import compare
from tests.guarded import make_shop


def _declared(method: Any) -> Any:
    site = make_shop()
    site.declare("buy", method=method, path="/buy", description="Buy a book.")
    site.freeze(Starlette(routes=[Route("/buy", lambda request: Response(), methods=[method])]))
    [action] = site.catalog.actions
    assert action.method == method
    return action


def _shown(request: WireRequest) -> list[Any]:
    return [request.method, request.path, dict(request.headers), request.body]


def _call(action: str, inputs: Mapping[str, Any], method: str = "", **members: Any) -> WireCall:
    return WireCall(action=action, inputs=inputs, declared=_declared(method) if method else None, **members)


def _write(action: str, inputs: Mapping[str, Any], method: str = "", members: Mapping[str, Any] | None = None) -> Any:
    return _shown(PLAIN.write(_call(action, inputs, method, **(members or {})), "/agents/actions"))


def _read(method: str, status: int, headers: Mapping[str, str], body: str = "", declared: str = "") -> Any:
    call = _call("buy", {"title": "Emma", "tags": [1, 2]}, declared, key="k")
    request = replace(PLAIN.write(call, "/agents/actions"), method=method)
    try:
        answer = PLAIN.decode(call, request, WireResponse(status, headers, body.encode("latin-1")))
    except CallFailed as failed:
        return [str(failed), failed.problem]
    if isinstance(answer, Answer):
        output = answer.output
        return [list(output) if isinstance(output, bytes) else output, answer.media_type, answer.filename]
    return ["not yet", *_shown(answer.request), answer.is_running, answer.output]


def _find(document: Mapping[str, Any]) -> object:
    return PLAIN.address_in(lambda path: document if path == "/agent.json" else {})


def _wires(*plugins: list[Any]) -> list[str]:
    made = [Plugin(name=names, wires=[_wire(name, order) for name in names.split()]) for names, order in plugins]
    return [f"{name}: {wire.title}" for name, wire in wires_of(made).items()]


def _wire(name: str, order: int) -> Any:
    return replace(PLAIN, name=name.rstrip("'"), title=f"Wire {name}", door="", order=order)


def _plain() -> list[Any]:
    site = make_shop()
    site.freeze()
    return [PLAIN.name, PLAIN.door, PLAIN.label, PLAIN.path, PLAIN.path_of(site.catalog), sorted(METHODS)]


def test_calls_of_the_plain_door(request):
    functions: dict[str, Callable[..., Any]] = {
        "plain": _plain,
        "write": _write,
        "read": _read,
        "find": _find,
        "wires": _wires,
    }
    compare(Path(__file__).parent / "wire.txt", functions, request)


@pytest.mark.needs("woa", "mcp", "a2a", "awp")
def test_the_doors_of_every_site_are_tried_first():
    assert list(wires_of(installed().values())) == ["woa", "plain", "a2a", "awp", "mcp", "mcp-2025-11-25"]
