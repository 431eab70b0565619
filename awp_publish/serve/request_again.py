"""What a job has to know of its caller's request, so that the route behind it can be reached later, by any process.

The headers are among it, credentials too: the route's own authentication and session hold for the job as they do for a
call. They are forgotten as soon as the job has ended.
"""

from collections.abc import Mapping
from typing import Final

from awp_publish.model import JsonObject
from awp_publish.serve.dispatch import NOT_CARRIED
from awp_publish.serve.reply import Scope

_PLAIN: Final = ("http_version", "scheme", "root_path", "path")
_ADDRESSES: Final = ("server", "client")


def pack_request(scope: Scope) -> JsonObject:
    """The part of an ASGI scope that is worth keeping, as JSON."""
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"] if name not in NOT_CARRIED
    ]
    kept = {name: scope[name] for name in (*_PLAIN, *_ADDRESSES) if scope.get(name) is not None}
    return {**kept, "headers": headers}


def unpack_request(packed: Mapping[str, object], state: Mapping[str, object]) -> Scope:
    """A scope from which the request can be made again; `state` is the application's own of this process."""
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
        "state": dict(state),
        "extensions": {},
    }


def _address(packed: object) -> tuple[object, ...] | None:
    return tuple(packed) if isinstance(packed, list) else None
