"""The client's side of the WoA door."""

from typing import Final
from urllib.parse import quote

from awp_publish.calls.wire import ReadDocument, Wire, WireCall, WireRequest, mapping, protocol_in, read_http
from awp_publish.documents.members import WOA_PATH
from awp_publish.model import DEFAULT_OPERATION, Paths


def _write(call: WireCall, path: str) -> WireRequest:
    agent, _, operation = call.action.partition(".")
    if (action := call.declared) is not None:
        agent, operation = action.agent_id, action.operation if action.operation != DEFAULT_OPERATION else ""
    agent_member = {} if "{agent_id}" in path else {"agent": agent}
    envelope = {**agent_member, **({"operation": operation} if operation else {}), "input": call.inputs}
    address = path.replace("{agent_id}", quote(agent, safe=""))
    return WireRequest("POST", address, call.headers(), envelope)


def _find(read: ReadDocument) -> object:
    if endpoint := protocol_in(read, "woa").get("endpoint"):
        return endpoint
    rest = mapping(mapping(read(WOA_PATH).get("transports")).get("rest"))
    return f"{str(rest.get('base') or '').rstrip('/')}{rest.get('invoke_path') or Paths().invoke}" if rest else None


WIRE: Final = Wire(name="woa", title="WoA", path=Paths().invoke, write=_write, read=read_http, find=_find, order=0)
