"""The client's side of the plain door."""

from typing import Final
from urllib.parse import quote, urlencode

from awp_publish.calls.wire import (
    Answer,
    NotYet,
    Wire,
    WireCall,
    WireRequest,
    WireResponse,
    actions_in,
    read_http,
    root_in,
)
from awp_publish.documents.plain_request import query_fields
from awp_publish.model import QUERY_METHODS, Paths

METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


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


WIRE: Final = Wire(
    name="plain",
    title="Plain HTTP",
    order=1,
    path=Paths().actions,
    write=_write_plain,
    read=_read_plain,
    find=lambda read: f"{root_in(read)}/actions" if actions_in(read) else None,
    path_in=lambda catalog: catalog.paths.actions if catalog.has_door("plain") else None,
)
