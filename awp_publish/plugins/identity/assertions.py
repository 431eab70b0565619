"""Assertions by which OAuth clients authenticate with a key: `private_key_jwt` (RFC 7523 sections 2.2 and 3).

OpenID Connect Core section 9 has each used once (jti). The audience is one string, so that an assertion for another
authorization server is of no use here (draft-ietf-oauth-rfc7523bis).
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from awp_publish.plugins.identity.fetching import FetchedKeys
from awp_publish.plugins.identity.jwt import LEEWAY, invalid, read_claims, read_header
from awp_publish.plugins.identity.key_sets import (
    ALGORITHMS,
    ConfiguredKeys,
    KeySource,
    check_keys_url,
    load_key_set,
    read_key_set,
)
from awp_publish.plugins.identity.proofs import PRIVATE_MEMBERS, digest_of
from awp_publish.stores.store import Add, Store

MAX_SECONDS: Final = 3600.0
"""Seconds for which an assertion may be valid."""

ASSERTION: Final = "client-authentication+jwt"
"""The type of an assertion (draft-ietf-oauth-rfc7523bis). Most clients write "JWT" or nothing."""

REQUIRED: Final = ("exp", "iss", "aud", "sub", "jti")

Check: TypeAlias = Callable[[str, Sequence[str]], Awaitable[None]]
"""Raises InvalidCredentials unless an assertion is the client's and for one of these audiences."""


class Assertions:
    """Checks assertions. Needs PyJWT. The `store` remembers which were used."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def client_of(self, assertion: str) -> str | None:
        """Return the client that an assertion names, which is not verified yet."""
        from jwt import decode

        try:
            subject = decode(assertion, options={"verify_signature": False}).get("sub")
        except Exception:  # a hostile assertion may make its decoder raise anything
            return None
        return subject if isinstance(subject, str) else None

    def check_with(
        self, client_id: str, key: object, *, is_public: bool = False
    ) -> Callable[[str, Sequence[str]], Awaitable[None]]:
        """Return a client's check, by a public JWK or JWK set, PEM, or the address of a set. Raises ValueError."""
        return partial(self._check, client_id, _keys_of(key, is_public))

    async def _check(self, client_id: str, keys: KeySource, assertion: str, audiences: Sequence[str]) -> None:
        key_id, algorithm = read_header(assertion, tuple(ALGORITHMS), ASSERTION)
        key = await keys.find(key_id, algorithm) or await keys.find(None, algorithm)
        if key is None:
            raise invalid("The client has no such key.")
        claims = read_claims(assertion, key, algorithm, REQUIRED, client_id, audiences, LEEWAY)
        until, once, now = claims["exp"], claims["jti"], time.time()
        if claims["sub"] != client_id:
            raise invalid("Its subject (sub) is not its issuer (iss).")
        if isinstance(claims["aud"], list) and len(claims["aud"]) > 1:
            raise invalid("It is for more than one audience (aud).")
        if not isinstance(until, (int, float)) or until > now + MAX_SECONDS + LEEWAY:
            raise invalid(f"It is valid for more than {MAX_SECONDS:g} seconds (exp).")
        if not once:
            raise invalid("It has no jti.")
        used = Add(f"assertion:{digest_of(client_id)}:{digest_of(str(once))}", b"1", until - now + 2 * LEEWAY)
        if (await self._store.run((used,), durable=True)).failed is not None:
            raise invalid("It has already been used (jti).")


def _keys_of(key: object, is_public: bool) -> KeySource:
    if isinstance(key, str) and key.startswith(("https://", "http://")):
        return FetchedKeys(check_keys_url(key), partial(load_key_set, is_public=is_public))
    if isinstance(key, str):
        key = _read_pem(key)
    listed = key.get("keys", [key]) if isinstance(key, Mapping) else None
    if not isinstance(listed, (list, tuple)) or not all(isinstance(entry, Mapping) for entry in listed):
        raise ValueError("it is not a JWK or a JWK set")
    if not all(PRIVATE_MEMBERS.isdisjoint(entry) for entry in listed):
        raise ValueError("it is secret, and only the client may have it")
    return ConfiguredKeys(read_key_set({"keys": listed}))


def _read_pem(text: str) -> Mapping[str, Any]:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

    if "PRIVATE KEY" in text:
        raise ValueError("it is secret, and only the client may have it")
    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("it is not PEM, and no https address") from error
    if isinstance(key, RSAPublicKey):
        return RSAAlgorithm.to_jwk(key, as_dict=True)
    if isinstance(key, EllipticCurvePublicKey):
        return ECAlgorithm.to_jwk(key, as_dict=True)
    if isinstance(key, Ed25519PublicKey):
        return OKPAlgorithm.to_jwk(key, as_dict=True)
    raise ValueError("it is not an RSA, EC or Ed25519 key")
