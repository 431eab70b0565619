"""The client's side of the doors that every site has, and of all doors by name."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, urlencode

from awp_publish.calls.wire import (
    Answer,
    NotYet,
    ReadDocument,
    Wire,
    WireCall,
    WireRequest,
    WireResponse,
    actions_in,
    mapping,
    protocol_in,
    read_http,
    root_in,
)
from awp_publish.documents import woa
from awp_publish.documents.plain_request import query_fields
from awp_publish.model import DEFAULT_OPERATION, QUERY_METHODS, Paths
from awp_publish.plugin import Plugin

METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


def _write_woa(call: WireCall, path: str) -> WireRequest:
    agent, _, operation = call.action.partition(".")
    if (action := call.declared) is not None:
        agent, operation = action.agent_id, action.operation if action.operation != DEFAULT_OPERATION else ""
    agent_member = {} if "{agent_id}" in path else {"agent": agent}
    envelope = {**agent_member, **({"operation": operation} if operation else {}), "input": call.inputs}
    address = path.replace("{agent_id}", quote(agent, safe=""))
    return WireRequest("POST", address, call.headers(), envelope)


def _find_woa(read: ReadDocument) -> object:
    if endpoint := protocol_in(read, "woa").get("endpoint"):
        return endpoint
    rest = mapping(mapping(read(woa.PATH).get("transports")).get("rest"))
    return f"{str(rest.get('base') or '').rstrip('/')}{rest.get('invoke_path') or Paths().invoke}" if rest else None


def _write_plain(call: WireCall, path: str) -> WireRequest:
    address = f"{path}/{quote(call.action, safe='')}"
    return _plain_request(call, address, call.declared.method if call.declared is not None else "POST")


def _plain_request(call: WireCall, address: str, method: str) -> WireRequest:
    if call.declared is not None and method in QUERY_METHODS:
        query = urlencode(query_fields(call.inputs))
        return WireRequest(method, f"{address}?{query}" if query else address, call.headers())
    return WireRequest(method, address, call.headers(), call.inputs)


def _read_plain(call: WireCall, request: WireRequest, response: WireResponse) -> Answer | NotYet:
    method = response.headers.get("allow", "").partition(",")[0].strip()
    if response.status == 405 and request.method == "POST" != method in METHODS:  # it takes that of its route
        return NotYet(_plain_request(call, request.path, method))
    return read_http(call, request, response)


WIRES: Final = (
    Wire(name="woa", title="WoA", path=Paths().invoke, write=_write_woa, read=read_http, find=_find_woa),
    Wire(
        name="plain",
        title="Plain HTTP",
        path=Paths().actions,
        write=_write_plain,
        read=_read_plain,
        find=lambda read: f"{root_in(read)}/actions" if actions_in(read) else None,
        path_in=lambda catalog: catalog.paths.actions,
    ),
)


def wires_of(plugins: Iterable[Plugin]) -> dict[str, Wire]:
    """Return the wires of every site and of these plug-ins, by name."""
    return {wire.name: wire for wire in (*WIRES, *(wire for plugin in plugins for wire in plugin.wires))}
