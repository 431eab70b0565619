"""Signed tokens: confirmations and receipts, each with a salt of its own, under keys that can be rotated."""

import hmac
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final

from itsdangerous import BadData, URLSafeSerializer
from itsdangerous.encoding import base64_decode, base64_encode

from awp_publish.model import JsonObject

EXPIRES: Final = "e"
"""Unix seconds. Our own member and not the serializer's timestamp, which refuses what a clock ahead of ours signed."""


class NotOurs(Exception):
    """A token that none of the site's keys signed, or that was changed since."""


class Expired(Exception):
    """A token past its time."""


class Tokens:
    """Writes and reads tokens of one purpose. `keys` are the newest first: it signs, all verify."""

    def __init__(
        self, keys: Sequence[str], purpose: str, lifetime: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.lifetime = lifetime
        self._clock = clock
        named = f"awp_publish.{purpose}.digest".encode()
        # HMAC (RFC 2104) with both of its pads prepared, which is the half of its cost.
        blocks = [hmac.digest(key.encode(), named, "sha256").ljust(64, b"\0") for key in keys]
        self._keyed = [(sha256(one.translate(hmac.trans_36)), sha256(one.translate(hmac.trans_5C))) for one in blocks]
        self._serializer = URLSafeSerializer(
            list(reversed(keys)),  # itsdangerous signs with the last
            salt=f"awp_publish.{purpose}",
            signer_kwargs={"digest_method": sha256, "key_derivation": "hmac"},
        )

    def digests(self, text: str | bytes) -> tuple[str, ...]:
        """Return digests of a text, one for each key, the newest first: for what a token is bound to and must not show.

        A plain hash of a password or a number of a few digits could be guessed by whoever reads the token or the store.
        """
        given = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        found: list[str] = []
        for inner, outer in self._keyed:
            digest, whole = inner.copy(), outer.copy()
            digest.update(given)
            whole.update(digest.digest())
            found.append(whole.hexdigest())
        return tuple(found)

    def write(self, facts: JsonObject) -> tuple[str, float]:
        """A token for these facts, and when it expires, in Unix seconds."""
        expires = int(self._clock() + self.lifetime)
        token = self._serializer.dumps({**facts, EXPIRES: expires})
        return (token if isinstance(token, str) else token.decode("ascii")), expires

    def read(self, token: str) -> JsonObject:
        """The facts of a token. Raises NotOurs, Expired."""
        try:
            facts: object = self._serializer.loads(token)
            signature = token.rpartition(".")[2].encode("ascii")
            if base64_encode(base64_decode(signature)) != signature:  # Base64 can spell the same one in several ways
                raise NotOurs
        except (BadData, ValueError) as error:
            raise NotOurs from error
        if not isinstance(facts, dict) or not isinstance(facts.get(EXPIRES), int):
            raise NotOurs
        if facts[EXPIRES] <= self._clock():
            raise Expired
        return facts
