"""Callers who send a JSON Web Token of an authorization server: RFC 7519, checked as RFC 8725 and RFC 9068 advise."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn, Protocol
from urllib.parse import urlsplit

from awp_publish.policy.authentication import BEARER, Scheme, read_bearer_token
from awp_publish.policy.call import Credentials, Principal
from awp_publish.policy.fetching import FetchedKeys, fetch_json
from awp_publish.problems import AuthExpired, DeclarationError, InvalidCredentials

if TYPE_CHECKING:
    from jwt import PyJWK


# --- The public keys of an authorization server (RFC 7517) ---

logger: Final = logging.getLogger("awp_publish.calls")

LARGEST: Final = 1_048_576
"""Bytes of a key set."""

SMALLEST_RSA: Final = 2048
"""Bits (RFC 7518 section 3.3)."""

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
"""The signatures that can be checked with a public key alone, with the `kty` and `crv` of their keys (RFC 7518)."""

_PUBLIC: Final = ("kty", "crv", "n", "e", "x", "y", "alg")

KeyName = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class KeySet:
    """Keys by the names that tokens give them (`kid`) and by algorithm."""

    keys: Mapping[KeyName, "PyJWK"]

    def find(self, key_id: str | None, algorithm: str) -> "PyJWK | None":
        """The key of this name. A token that names none means the only key of its algorithm, if there is only one."""
        if key_id is not None:
            return self.keys.get((key_id, algorithm))
        fitting = [key for (_, used_with), key in self.keys.items() if used_with == algorithm]
        return fitting[0] if len(fitting) == 1 else None


def read_key_set(document: object) -> KeySet:
    """The keys of a JWK set that check signatures; others are passed over. Raises ValueError if there are none."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    listed = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(listed, (list, tuple)):
        raise ValueError("it is not a JWK set: it has no list of keys")
    keys: dict[KeyName, PyJWK] = {}
    for number, entry in enumerate(listed):
        if not isinstance(entry, Mapping) or entry.get("use", "sig") != "sig":
            continue
        key_id = entry.get("kid")
        name = key_id if isinstance(key_id, str) else f"\0{number}"  # not a name that a token could give
        public = {member: entry[member] for member in _PUBLIC if member in entry}
        for algorithm, (kind, curve) in ALGORITHMS.items():  # a key may name the one that it is for
            if entry.get("kty") != kind or curve not in (None, entry.get("crv")):
                continue
            if entry.get("alg", algorithm) != algorithm:
                continue
            try:
                key = PyJWK(public, algorithm)
            except (PyJWTError, ValueError, TypeError):
                continue
            if kind != "RSA" or key.key.key_size >= SMALLEST_RSA:
                keys.setdefault((name, algorithm), key)
    if not keys:
        raise ValueError("it has no public key that checks signatures")
    return KeySet(keys)


# --- Where keys come from ---


class KeySource(Protocol):
    """Where the keys of an issuer come from."""

    async def find(self, key_id: str | None, algorithm: str) -> "PyJWK | None":
        """The key that a token names. Raises TemporarilyUnavailable while the keys cannot be read."""


@dataclass(frozen=True, slots=True)
class GivenKeys:
    """Keys that stand in the site's own configuration."""

    known: KeySet

    async def find(self, key_id: str | None, algorithm: str) -> "PyJWK | None":
        return self.known.find(key_id, algorithm)


def load_key_set(url: str) -> KeySet:
    """The keys of the JWK set at an address that the site names. Raises what `fetch_json` does."""
    return read_key_set(fetch_json(url, most_bytes=LARGEST))


def check_keys_url(url: str) -> str:
    """An https address; http is for a server on this machine. Raises ValueError."""
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


LEEWAY: Final = 30.0
"""Seconds by which clocks may differ."""

SCOPE_CLAIMS: Final = ("scope", "scp")
"""RFC 9068 section 2.2.3, and what others write instead."""

REQUIRED: Final = ("exp", "iss", "aud", "sub")

_EXAMPLE: Final = (
    'Write JwtBearer(issuer="https://login.example", audience="https://shop.example", '
    'jwks_url="https://login.example/jwks.json").'
)

_WRONG: Final = {
    "InvalidSignatureError": "Its signature does not match its key.",
    "InvalidAudienceError": "It is for another audience (aud).",
    "InvalidIssuerError": "It is by another issuer (iss).",
    "ImmatureSignatureError": "It is not valid yet (nbf, iat).",
    "InvalidIssuedAtError": "Its time of issue (iat) is not a number.",
    "InvalidSubjectError": "Its subject (sub) is not a text.",
    "InvalidJTIError": "Its id (jti) is not a text.",
}
"""What is wrong with a token, by the exception that says so. The exceptions' own messages may quote the token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtBearer:
    """Callers known by `Authorization: Bearer` with a signed token.

    Signature, `issuer`, `audience` (one of several), `exp` and `nbf` are checked, the latter with `leeway` seconds.
    Keys come from `jwks_url` or are given as `jwks`. Only signatures that public keys check are known, so that nobody
    can sign with what everybody knows. `scope_claim` names the claim with the scopes ("scope", else "scp"),
    `principal_claim` the one with the caller's id. Needs the extra `jwt`. Raises DeclarationError.
    """

    scheme: ClassVar[Scheme] = "oauth2"
    method: ClassVar[str] = "jwt"
    challenge: ClassVar[str] = BEARER

    issuer: str
    audience: str | Sequence[str]
    jwks_url: str | None = None
    jwks: InitVar[Mapping[str, object] | None] = None
    algorithms: Sequence[str] = tuple(ALGORITHMS)
    leeway: float = LEEWAY
    scope_claim: str | None = None
    principal_claim: str = "sub"
    clock: InitVar[Callable[[], float]] = time.monotonic
    _keys: KeySource = field(init=False, repr=False, compare=False)

    def __post_init__(self, jwks: Mapping[str, object] | None, clock: Callable[[], float]) -> None:
        try:
            import cryptography  # noqa: F401
            import jwt  # noqa: F401
        except ImportError:
            _refuse("JwtBearer needs PyJWT, which is not installed.", 'Run pip install "awp-publish[jwt]".')
        audience = _texts(self.audience)
        if not isinstance(self.issuer, str) or not self.issuer or not audience:
            _refuse("JwtBearer needs the issuer and the audience of its tokens.", _EXAMPLE)
        object.__setattr__(self, "audience", audience)
        algorithms = _texts(self.algorithms)
        if not algorithms or set(algorithms) - set(ALGORITHMS):
            remedy = f"Choose of {', '.join(ALGORITHMS)}: signatures that public keys check."
            _refuse("JwtBearer's algorithms are not all usable here.", remedy)
        object.__setattr__(self, "algorithms", algorithms)
        if not self.leeway >= 0 or not self.principal_claim:
            _refuse("JwtBearer's leeway is negative or its principal_claim empty.", _EXAMPLE)
        url = self.jwks_url
        if (url is None) == (jwks is None):
            _refuse("JwtBearer needs either jwks_url or jwks.", _EXAMPLE)
        try:
            keys: KeySource = GivenKeys(read_key_set(jwks)) if jwks is not None else GivenKeys(KeySet({}))
            if url is not None:
                keys = FetchedKeys(check_keys_url(url), load_key_set, clock)
        except ValueError as error:
            named = "jwks" if url is None else "jwks_url"
            _refuse(f"JwtBearer's {named} cannot be used: {error}.", _EXAMPLE)
        object.__setattr__(self, "_keys", keys)

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """The caller, None without a bearer token.

        Raises AuthExpired, InvalidCredentials, and TemporarilyUnavailable while the keys cannot be read.
        """
        token = read_bearer_token(credentials)
        if token is None:
            return None
        key_id, algorithm = self._read_header(token)
        key = await self._keys.find(key_id, algorithm)
        if key is None:
            raise _invalid("It is signed with a key that its issuer does not publish.")
        claims = self._decode(token, key, algorithm)
        name = claims.get(self.principal_claim)
        if not isinstance(name, str) or not name:
            raise _invalid(f"Its {self.principal_claim} does not name anybody.")
        names = SCOPE_CLAIMS if self.scope_claim is None else (self.scope_claim,)
        given = next((claims[one] for one in names if one in claims), None)
        scopes = frozenset(given.split(" ")) - {""} if isinstance(given, str) else frozenset(_texts(given))
        return Principal(name, scopes, claims)

    def _read_header(self, token: str) -> tuple[str | None, str]:
        """The key and the algorithm that a token names. Nothing of it is believed yet."""
        from jwt import get_unverified_header
        from jwt.exceptions import PyJWTError

        try:
            header = get_unverified_header(token)
        except (PyJWTError, ValueError, TypeError, RecursionError):
            raise _invalid("It is not a signed JSON Web Token.") from None
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self.algorithms:
            raise _invalid(f"Its algorithm is none of {', '.join(self.algorithms)}.")
        if "crit" in header:
            raise _invalid("It demands extensions (crit) that are not known here.")
        return (key_id if isinstance(key_id, str) else None), algorithm

    def _decode(self, token: str, key: "PyJWK", algorithm: str) -> Mapping[str, object]:
        from jwt import decode
        from jwt.exceptions import ExpiredSignatureError, MissingRequiredClaimError

        try:
            return decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self.audience,
                issuer=self.issuer,
                leeway=self.leeway,
                options={"require": [*REQUIRED]},
            )
        except ExpiredSignatureError:
            raise AuthExpired("The token has expired (exp).") from None
        except MissingRequiredClaimError as error:
            raise _invalid(f"It has no {error.claim}.") from None
        except Exception as error:  # whatever a hostile token makes of its decoder, it is the token that is wrong
            raise _invalid(_WRONG.get(type(error).__name__, "It is not well formed.")) from None


def _invalid(detail: str) -> InvalidCredentials:
    return InvalidCredentials(f"The token is not valid. {detail}")


# --- Declaring ---


def _refuse(detail: str, remedy: str) -> NoReturn:
    raise DeclarationError("site", detail, remedy)


def _texts(given: object) -> tuple[str, ...]:
    """One text or several; what is no text is not there."""
    several = (given,) if isinstance(given, str) else given if isinstance(given, Sequence) else ()
    return tuple(one for one in several if isinstance(one, str) and one)
