"""Notes in the scope of a signed request, so that its signature and body are checked once."""

import hashlib
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from awp_publish.http.exchange import Receive

SIGNED: Final = "awp_publish.signed"
"""The key in an ASGI scope under which the result of checking a signature or proof is kept: it is checked once."""

DIGESTS: Final = {"sha-256": hashlib.sha256, "sha-512": hashlib.sha512}
"""Supported algorithms of Content-Digest (RFC 9530 section 5); the others are insecure."""


def note_signature(scope: MutableMapping[str, Any], fields: Mapping[bytes, bytes], receive: Receive) -> Receive:
    """Prepare a scope for the result of checking a signature, and return a `receive` that hashes the body.

    Must be called before the scope is copied, because a signature is checked once. Without Content-Digest nothing is
    hashed.
    """
    noted: MutableMapping[str, object] = scope.setdefault(SIGNED, {})
    if b"content-digest" not in fields:
        return receive
    hashes = {name: make() for name, make in DIGESTS.items()}

    async def receive_noted() -> MutableMapping[str, Any]:
        message = await receive()
        if message["type"] == "http.request" and "digests" not in noted:
            for digest in hashes.values():
                digest.update(message.get("body", b""))
            if not message.get("more_body", False):
                noted["digests"] = {name: digest.digest() for name, digest in hashes.items()}
        return message

    return receive_noted
