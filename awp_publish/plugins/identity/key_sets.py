"""The public keys of an authorization server (RFC 7517), and where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from awp_publish.plugins.identity.fetching import MIN_RSA_BITS, fetch_json, signature_keys
from awp_publish.plugins.identity.proofs import PUBLIC_MEMBERS

if TYPE_CHECKING:
    from jwt import PyJWK

MAX_KEY_SET_BYTES: Final = 1_048_576
MAX_PUBLIC_KEY_SET_BYTES: Final = 65_536
"""Bytes of a key set at an address that the site has configured, and of one that somebody else has chosen."""

ALGORITHMS: Final[Mapping[str, tuple[str, str | None]]] = {
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
    "PS256": ("RSA", None),
    "PS384": ("RSA", None),
    "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""Signature algorithms that need only a public key, with the `kty` and `crv` of their keys (RFC 7518)."""

KeyName = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class KeySet:
    """Keys by key id (`kid`) and algorithm."""

    keys: Mapping[KeyName, "PyJWK"]

    def find(self, key_id: str | None, algorithm: str) -> "PyJWK | None":
        """Return the key of this id. Without an id, return the key of this algorithm if there is exactly one."""
        if key_id is not None:
            return self.keys.get((key_id, algorithm))
        fitting = [key for (_, used_with), key in self.keys.items() if used_with == algorithm]
        return fitting[0] if len(fitting) == 1 else None


def read_key_set(document: object) -> KeySet:
    """Return the keys of a JWK set that verify signatures. Raises ValueError if there are none."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    keys: dict[KeyName, PyJWK] = {}
    for number, entry in enumerate(signature_keys(document)):
        key_id = entry.get("kid")
        name = key_id if isinstance(key_id, str) else f"\0{number}"  # not an id that a token could have
        public = {member: entry[member] for member in PUBLIC_MEMBERS if member in entry}
        for algorithm, (kind, curve) in ALGORITHMS.items():  # a key may name its algorithm
            if entry.get("kty") != kind or curve not in (None, entry.get("crv")):
                continue
            if entry.get("alg", algorithm) != algorithm:
                continue
            try:
                key = PyJWK(public, algorithm)
            except (PyJWTError, ValueError, TypeError):
                continue
            if kind != "RSA" or key.key.key_size >= MIN_RSA_BITS:
                keys.setdefault((name, algorithm), key)
    if not keys:
        raise ValueError("it has no public key that verifies signatures")
    return KeySet(keys)


class KeySource(Protocol):
    """The source of an issuer's keys."""

    async def find(self, key_id: str | None, algorithm: str) -> "PyJWK | None":
        """Return the key that a token names. Raises TemporarilyUnavailable while the keys cannot be read."""


@dataclass(frozen=True, slots=True)
class ConfiguredKeys:
    """Keys from the site's own configuration."""

    key_set: KeySet

    async def find(self, key_id: str | None, algorithm: str) -> "PyJWK | None":
        return self.key_set.find(key_id, algorithm)


def load_key_set(url: str, *, is_public: bool = False) -> KeySet:
    """Fetch the JWK set at an address. Raises what `fetch_json` raises."""
    most = MAX_PUBLIC_KEY_SET_BYTES if is_public else MAX_KEY_SET_BYTES
    return read_key_set(fetch_json(url, most_bytes=most, is_public=is_public))


def check_keys_url(url: str) -> str:
    """Return an https address, or an http address on this machine. Raises ValueError for any other."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        is_local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_local = False
    schemes = ("https", "http") if is_local else ("https",)
    if not parts.hostname or parts.username or parts.scheme not in schemes:
        raise ValueError("it is not an https address")
    return url
