"""The client's side of the AWP door: `awp.hello`, then `skills.invoke`."""

from typing import Any, Final

from awp_publish.calls.wire import (
    Answer,
    CallFailed,
    Wire,
    WireCall,
    WireRequest,
    WireResponse,
    header_members,
    with_content,
)
from awp_publish.model import Paths

HELLO: Final = {"client_name": "awp_publish", "client_version": "1", "awp_version": "0.1"}


def _write(call: WireCall, path: str) -> WireRequest:
    beside = call.members()
    key = beside.pop("idempotency_key", None)
    params = {"skill": call.action, "args": call.inputs, **beside}
    invoke: dict[str, Any] = {"id": "2", "type": "request", "method": "skills.invoke", "params": params}
    if key is not None:
        invoke["meta"] = {"idempotency_key": key}
    hello = {"id": "1", "type": "request", "method": "awp.hello", "params": HELLO}
    return WireRequest("GET", path, frames=(hello, invoke))


def _read(call: WireCall, request: WireRequest, response: WireResponse) -> Answer:
    if response.status != 101:  # the connection was refused
        raise CallFailed(call.action, response.problem(), response.headers)
    message = response.json()
    if "error" in message:
        details = message["error"].get("details", {})
        problem = details if "detail" in details else {**details, "detail": message["error"].get("message", "")}
        raise CallFailed(call.action, problem, header_members(details.get("headers")))
    result = message["result"]
    return with_content(result["output"], header_members(result.get("headers")))


WIRE: Final = Wire(name="awp", title="AWP", path=Paths().awp, write=_write, read=_read)
