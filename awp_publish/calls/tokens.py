"""Signed tokens: confirmations, receipts, sessions. Each purpose has a salt of its own, and keys can be rotated."""

import hmac
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b, sha256
from typing import Final

from itsdangerous import BadData, URLSafeSerializer
from itsdangerous.encoding import base64_decode, base64_encode

from awp_publish.model import JsonObject

EXPIRES: Final = "e"
"""Unix seconds. Not the serializer's own timestamp, which rejects what was signed by a clock ahead of ours."""


class NotOurs(Exception):
    """A token that was not signed with the site's keys, or was modified."""


class Expired(Exception):
    """A token that has expired."""


class Tokens:
    """Writes and reads tokens for one purpose. `keys` are newest first: the first signs, all verify."""

    def __init__(
        self, keys: Sequence[str], purpose: str, lifetime: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.lifetime = lifetime
        self._clock = clock
        named = f"awp_publish.{purpose}.digest".encode()
        self._digest_keys = [hmac.digest(key.encode(), named, "sha256") for key in keys]
        self._serializer = URLSafeSerializer(
            list(reversed(keys)),  # itsdangerous signs with the last key
            salt=f"awp_publish.{purpose}",
            signer_kwargs={"digest_method": sha256, "key_derivation": "hmac"},
        )

    def digests(self, text: str | bytes) -> tuple[str, ...]:
        """Return keyed digests of a text, one a key, newest first: for what a token is bound to but must not reveal.

        With plain hashes, readers of the token or the store could guess passwords or short numbers. BLAKE2 takes a key
        itself (RFC 7693 section 2.9), in half the time of an HMAC.
        """
        encoded = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return tuple([blake2b(encoded, key=key, digest_size=32).hexdigest() for key in self._digest_keys])

    def write(self, facts: JsonObject) -> tuple[str, float]:
        """Return a token for these facts, and when it expires, in Unix seconds."""
        expires = int(self._clock() + self.lifetime)
        token = self._serializer.dumps({**facts, EXPIRES: expires})
        return (token if isinstance(token, str) else token.decode("ascii")), expires

    def read(self, token: str) -> JsonObject:
        """Return the facts of a token. Raises NotOurs, Expired."""
        try:
            facts: object = self._serializer.loads(token)
            signature = token.rpartition(".")[2].encode("ascii")
            if base64_encode(base64_decode(signature)) != signature:  # Base64 can encode it in several ways
                raise NotOurs
        except (BadData, ValueError) as error:
            raise NotOurs from error
        if not isinstance(facts, dict) or not isinstance(facts.get(EXPIRES), int):
            raise NotOurs
        if facts[EXPIRES] <= self._clock():
            raise Expired
        return facts
