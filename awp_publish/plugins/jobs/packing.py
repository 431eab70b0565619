"""The caller's request, stored with a background job.

It includes the headers with their credentials, so that the route's authentication and session work for the job as they
do for a call. They are deleted when the job ends.
"""

from collections.abc import Mapping
from typing import Final

from awp_publish.http.encoding import NOT_CARRIED
from awp_publish.http.exchange import Scope
from awp_publish.model import JsonObject

_PLAIN: Final = ("http_version", "scheme", "root_path", "path")

_ADDRESSES: Final = ("server", "client")


def pack_request(scope: Scope) -> JsonObject:
    """Return the members of an ASGI scope that a job needs, as JSON."""
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"] if name not in NOT_CARRIED
    ]
    members = {name: scope[name] for name in (*_PLAIN, *_ADDRESSES) if scope.get(name) is not None}
    if scope.get("query_string"):
        members["query_string"] = scope["query_string"].decode("latin-1")
    return {**members, "headers": headers}


def unpack_request(packed: Mapping[str, object], state: Mapping[str, object]) -> Scope:
    """Return a scope made from a packed request. `state` is the application's lifespan state in this process."""
    listed = packed.get("headers")
    pairs = listed if isinstance(listed, list) else []
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "https",
        "root_path": "",
        "path": "/",
        **{name: packed[name] for name in _PLAIN if name in packed},
        **{name: _address(packed[name]) for name in _ADDRESSES if name in packed},
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs],
        "query_string": str(packed.get("query_string", "")).encode("latin-1"),
        "state": dict(state),
        "extensions": {},
    }


def _address(packed: object) -> tuple[object, ...] | None:
    return tuple(packed) if isinstance(packed, list) else None
