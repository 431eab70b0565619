"""Directories of the keys with which agents sign (draft-meunier-http-message-signatures-directory)."""

import hashlib
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from awp_publish.http.outgoing import Deadline
from awp_publish.plugins.identity.fetching import FETCH_TIMEOUT, MIN_RSA_BITS, FetchedKeys, fetch_json, signature_keys
from awp_publish.problems import TemporarilyUnavailable
from awp_publish.schema.origins import Origin

WELL_KNOWN: Final = "/.well-known/http-message-signatures-directory"
MEDIA_TYPE: Final = "application/http-message-signatures-directory+json"

MAX_DIRECTORY_BYTES: Final = 65_536
MAX_KEYS: Final = 100
"""Keys of one directory that are read."""

MAX_DIRECTORIES: Final = 256
MAX_NEW: Final = 30
NEW_WINDOW: Final = 60.0
"""Directories that are cached; how many unlisted ones may be new within so many seconds."""

MAX_FETCHES: Final = 8
"""Unlisted directories that are fetched at the same time."""

KINDS: Final = ("directory", "jwks_uri", "cimd")
_NAME: Final = re.compile(r"[a-z0-9.-]+(:[0-9]+)?")


class AgentKey(NamedTuple):
    """A public key, its algorithm, and the times between which it is valid (seconds)."""

    algorithm: type[Any]
    key: object
    not_before: float
    expires: float


class KeyDirectory:
    """The keys of one directory by their RFC 7638 thumbprints."""

    def __init__(self, keys: Mapping[str, AgentKey]) -> None:
        self._keys = keys

    def find(self, key_id: str | None, algorithm: str) -> AgentKey | None:
        return self._keys.get(key_id or "")


class KeyDirectories:
    """The keys of directories, by kind and address, fetched when first needed."""

    def __init__(self, fixed: Mapping[str, KeyDirectory], listed: frozenset[str], allow_private: bool) -> None:
        self.fixed = fixed
        self._listed = listed
        self._allow_private = allow_private
        self._kept: OrderedDict[tuple[str, str], FetchedKeys[AgentKey]] = OrderedDict()
        self._lock = Lock()
        self._new: list[float] = []
        self._fetching = 0

    async def find(self, directory: str, kind: str, address: str, key_id: str) -> AgentKey | None:
        """Return a key of a directory, None if it has none of this id. Raises TemporarilyUnavailable."""
        if directory in self.fixed:
            return self.fixed[directory].find(key_id, "")
        with self._lock:
            source = self._kept.get((kind, address))
            if source is None:
                now = time.monotonic()
                if directory not in self._listed:
                    self._new = [start for start in self._new if now - start < NEW_WINDOW]
                    if len(self._new) >= MAX_NEW or self._fetching >= MAX_FETCHES:
                        raise TemporarilyUnavailable("Too many new directories.")
                    self._new.append(now)
                source = self._kept[kind, address] = FetchedKeys(address, partial(self._load, kind))
                while len(self._kept) > MAX_DIRECTORIES:
                    self._kept.popitem(last=False)
            self._kept.move_to_end((kind, address))
        return await source.find(key_id, "")

    def _load(self, kind: str, address: str) -> KeyDirectory:
        """Fetch a directory, or the keys of a client id metadata document: its own, or those at its `jwks_uri`."""
        deadline = Deadline(FETCH_TIMEOUT)
        document = self._fetch(address, deadline)
        if kind != "cimd":
            return read_directory(document)
        if not isinstance(document, Mapping) or document.get("client_id") != address:
            raise ValueError("it is not the client id metadata document of its own address")
        if "jwks" in document:
            return read_directory(document["jwks"])
        keys = document.get("jwks_uri")
        if directory_of(keys, self._allow_private, "jwks_uri") is None:
            raise ValueError("it has neither jwks nor a jwks_uri with an https address")
        return read_directory(self._fetch(str(keys), deadline))

    def _fetch(self, address: str, deadline: Deadline) -> object:
        self._fetching += 1
        try:
            kinds = (MEDIA_TYPE, "application/jwk-set+json", "application/json")
            accept, is_public = ", ".join(kinds), not self._allow_private
            return fetch_json(
                address,
                is_public=is_public,
                deadline=deadline,
                media_types=kinds,
                most_bytes=MAX_DIRECTORY_BYTES,
                accept=accept,
            )
        finally:
            self._fetching -= 1


def directory_of(address: object, allow_private: bool = False, kind: str = "directory") -> str | None:
    """Return the origin of a directory in lower case, or the address of a key set; None for anything else."""
    if not isinstance(address, str) or len(address) > 500 or not re.fullmatch(r"[!-\[\]-~]+", address):
        return None
    try:
        parts = urlsplit(address)
        origin = str(Origin.of(parts))
    except ValueError:
        return None
    host = parts.hostname or ""
    schemes = ("https", "http") if allow_private else ("https",)
    if parts.scheme not in schemes or not host or parts.username is not None or parts.password is not None:
        return None
    if parts.fragment or not _NAME.fullmatch(host):
        return None
    if kind != "directory":  # never the address of the directory of the same origin
        is_own = parts.path not in ("", "/", WELL_KNOWN)
        return origin + parts.path + (f"?{parts.query}" if parts.query else "") if is_own else None
    return origin if parts.path in ("", "/", WELL_KNOWN) and not parts.query else None


def read_directory(document: object) -> KeyDirectory:
    """Return the keys of a JWK set that verify signatures. Raises ValueError if there are none."""
    keys: dict[str, AgentKey] = {}
    for entry in islice(signature_keys(document), MAX_KEYS):
        try:
            key = _read_key(entry)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            continue
        if key is not None:
            keys.setdefault(*key)
    if not keys:
        raise ValueError("it has no public key that verifies signatures")
    return KeyDirectory(keys)


def _read_key(entry: Mapping[str, Any]) -> tuple[str, AgentKey] | None:
    """Return a key with its thumbprint (RFC 7638), None for an unsupported one. May raise for a malformed one."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from http_message_signatures import algorithms

    key: object
    members: tuple[str, ...]
    algorithm: type[algorithms.HTTPSignatureAlgorithm]
    match entry["kty"], entry.get("crv"):
        case "OKP", "Ed25519":
            members, algorithm = ("crv", "kty", "x"), algorithms.ED25519
            key = ed25519.Ed25519PublicKey.from_public_bytes(_decoded(entry["x"]))
        case "EC", ("P-256" | "P-384") as curve:
            members = ("crv", "kty", "x", "y")
            x, y = (int.from_bytes(_decoded(entry[name])) for name in ("x", "y"))
            numbers = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1() if curve == "P-256" else ec.SECP384R1())
            key = numbers.public_key()
            algorithm = algorithms.ECDSA_P256_SHA256 if curve == "P-256" else algorithms.ECDSA_P384_SHA384
        case "RSA", None:
            members, algorithm = ("e", "kty", "n"), algorithms.RSA_PSS_SHA512
            modulus = int.from_bytes(_decoded(entry["n"]))
            if not MIN_RSA_BITS <= modulus.bit_length() <= 8192:
                return None
            key = rsa.RSAPublicNumbers(int.from_bytes(_decoded(entry["e"])), modulus).public_key()
        case _:
            return None
    facts = orjson.dumps({name: entry[name] for name in members}, option=orjson.OPT_SORT_KEYS)
    thumbprint = urlsafe_b64encode(hashlib.sha256(facts).digest()).rstrip(b"=").decode()
    # Drafts differ about milliseconds and seconds; a time beyond the year 5000 must be in milliseconds.
    begins, ends = (float(entry.get(name, other)) for name, other in (("nbf", 0), ("exp", 1e11)))
    begins, ends = (seconds / 1000 if 1e11 < seconds < 1e15 else seconds for seconds in (begins, ends))
    return thumbprint, AgentKey(algorithm, key, begins, ends)


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
