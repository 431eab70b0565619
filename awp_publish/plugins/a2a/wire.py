"""The client's side of the A2A door: `SendMessage` with a data part, and `GetTask` until the task has ended."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from awp_publish.calls.wire import (
    Answer,
    CallFailed,
    NotYet,
    ReadDocument,
    Wire,
    WireCall,
    WireRequest,
    WireResponse,
    header_members,
    mapping,
    protocol_in,
)
from awp_publish.documents.members import AGENT_CARD_PATHS
from awp_publish.model import Paths
from awp_publish.schema import media

RUNNING: Final = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")


def _message(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _write(call: WireCall, path: str) -> WireRequest:
    declared = call.declared.idempotency if call.declared is not None else None
    beside = call.members(declared.key_field) if declared is not None else call.members()
    data = {"skill": call.action, "input": call.inputs, **beside}
    message = {"messageId": call.message_id, "role": "ROLE_USER", "parts": [{"data": data}]}
    sent = _message("SendMessage", {"message": message})
    return WireRequest("POST", path, (("A2A-Version", "1.0"),), sent)


def _read(call: WireCall, request: WireRequest, response: WireResponse) -> Answer | NotYet:
    message = response.json()
    if not isinstance(message, dict) or message.keys().isdisjoint(("error", "result")):
        problem: Mapping[str, Any] = mapping(message)  # of a request that was refused before it was a message
        if "detail" not in problem:
            problem = {"status": response.status, "detail": f"The A2A door does not answer (HTTP {response.status})."}
        raise CallFailed(call.action, problem, response.headers)
    if "error" in message:
        data = message["error"].get("data")
        metadata = data[0].get("metadata") if isinstance(data, list) and data and isinstance(data[0], dict) else None
        problem = read_metadata(mapping(metadata)) or {"detail": message["error"].get("message", "")}
        raise CallFailed(call.action, problem, response.headers)
    task = message["result"].get("task", message["result"])  # the result of GetTask is the task itself
    state, headers = task["status"]["state"], header_members(mapping(task.get("metadata")).get("headers"))
    if state == "TASK_STATE_COMPLETED":
        part = task["artifacts"][0]["parts"][0]
        if "data" in part:
            return Answer(part["data"], headers)
        kind, name = str(part.get("mediaType", "")), str(part.get("filename", ""))
        if "raw" in part:
            return Answer(base64.b64decode(part["raw"]), headers, kind, name)
        if kind == "application/json" and not name:  # which a data part cannot represent
            return Answer(json.loads(part["text"]), headers)
        return Answer(part.get("text"), headers, kind if name or kind != media.TEXT else "", name)
    parts = mapping(task["status"].get("message")).get("parts", [])
    data_parts: list[Any] = [part["data"] for part in parts if isinstance(part.get("data"), dict)]
    if state in RUNNING:
        poll = replace(request, body=_message("GetTask", {"id": str(task["id"])}))
        return NotYet(poll, is_running=True, output=data_parts[0] if data_parts else task)
    raise CallFailed(call.action, data_parts[0] if data_parts else {"detail": state}, headers)


def write_metadata(problem: Mapping[str, object]) -> dict[str, str]:
    """Return a problem as metadata of an `ErrorInfo` (google.rpc), which are strings: other values become JSON."""
    return {name: _write_text(value) for name, value in problem.items()}


def write_error_info(reason: str, problem: Mapping[str, object]) -> dict[str, object]:
    """Return the detail of an error that programs read, with the members of a problem."""
    info: dict[str, object] = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}
    return {**info, "domain": "a2a-protocol.org", "metadata": write_metadata(problem)}


def _write_text(value: object) -> str:
    return value if isinstance(value, str) and _read_text(value) == value else orjson.dumps(value).decode()


def read_metadata(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return the members that `write_metadata` has written."""
    return {name: _read_text(value) if isinstance(value, str) else value for name, value in metadata.items()}


def _read_text(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _find(read: ReadDocument) -> object:
    if endpoint := protocol_in(read, "a2a").get("endpoint"):
        return endpoint
    offered = read(AGENT_CARD_PATHS[0]).get("supportedInterfaces")
    spoken = [mapping(interface) for interface in offered] if isinstance(offered, list) else []
    return next((interface.get("url") for interface in spoken if interface.get("protocolBinding") == "JSONRPC"), None)


WIRE: Final = Wire(name="a2a", title="A2A", path=Paths().a2a, write=_write, read=_read, find=_find)
