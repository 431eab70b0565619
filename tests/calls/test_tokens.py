"""Digests of what a token is bound to."""

import hmac
from hashlib import blake2b

from awp_publish.calls.tokens import Tokens


def test_digests_are_keyed_by_each_of_the_keys_the_newest_first():
    tokens = Tokens(["new", "old"], "receipt:shop.example", 60)
    named = b"awp_publish.receipt:shop.example.digest"
    own = [hmac.digest(key, named, "sha256") for key in (b"new", b"old")]
    for text in ("", "Emma", "x" * 1000, "\ud800"):
        given = text.encode("utf-8", "surrogatepass")
        assert (
            tokens.digests(text)
            == tokens.digests(given)
            == tuple(blake2b(given, key=key, digest_size=32).hexdigest() for key in own)
        )
