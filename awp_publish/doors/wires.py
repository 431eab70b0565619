"""The client's side of the plain door, and of all doors by name."""

from collections.abc import Iterable
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
from awp_publish.plugin import Plugin

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


PLAIN: Final = Wire(
    name="plain",
    title="Plain HTTP",
    path=Paths().actions,
    write=_write_plain,
    read=_read_plain,
    find=lambda read: f"{root_in(read)}/actions" if actions_in(read) else None,
    path_in=lambda catalog: catalog.paths.actions,
)


def wires_of(plugins: Iterable[Plugin]) -> dict[str, Wire]:
    """Return the wires of these plug-ins and that of the plain door, by name. Who has the choice takes the first.

    Those of default plug-ins come first: most sites have their doors.
    """
    defaults, others = list[Wire](), list[Wire]()
    for plugin in plugins:
        (defaults if plugin.is_default else others).extend(plugin.wires)
    return {wire.name: wire for wire in (*defaults, PLAIN, *others)}
