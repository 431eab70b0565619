"""The address that a request was sent to, as the site's own: what a signature or a proof has to be made for."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlsplit

from awp_publish.http.exchange import read_fields
from awp_publish.model import SAFE_IN_PATH
from awp_publish.schema.origins import DEFAULT_PORTS

_LOOPBACK: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?", re.IGNORECASE)


def address_of(request: Mapping[str, Any], origins: Sequence[str]) -> str:
    """Return the address of a request (an ASGI scope) at one of the site's origins, "" for another host.

    In development, when all origins are loopback addresses, every loopback name and port is the site's. Elsewhere they
    are another authority: who received a signature or proof for it could send it on with its `Host`.
    """
    host = read_fields(request["headers"]).get(b"host", b"").decode("latin-1").lower()
    for parts in map(urlsplit, origins):
        if host.removesuffix(f":{DEFAULT_PORTS[parts.scheme]}") == parts.netloc:
            base, prefix = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
            break
    else:
        if not (_LOOPBACK.fullmatch(host) and all(_LOOPBACK.fullmatch(urlsplit(url).netloc) for url in origins)):
            return ""
        scheme = {"ws": "http", "wss": "https"}.get(original := request.get("scheme", "http"), original)
        base, prefix = f"{scheme}://{host}", ""
    raw = request.get("raw_path") or quote(request.get("path", "/"), safe=SAFE_IN_PATH).encode()
    path = raw.decode("latin-1").partition("?")[0]
    if prefix and not (path == prefix or path.startswith(f"{prefix}/")):
        path = prefix + path
    query = request.get("query_string", b"").decode("latin-1")
    return base + (f"{path}?{query}" if query else path)
