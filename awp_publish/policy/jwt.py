"""Callers who send a JSON Web Token of an authorization server: RFC 7519, checked as RFC 8725 and RFC 9068 advise."""

import logging
import threading
import time
import urllib.request
from asyncio import wrap_future
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import InitVar, dataclass, field
from http.client import HTTPResponse
from ipaddress import ip_address
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn, Protocol
from urllib.error import HTTPError
from urllib.parse import urlsplit

import orjson

from awp_publish.policy.authentication import BEARER, Scheme, read_bearer_token
from awp_publish.policy.call import Credentials, Principal
from awp_publish.problems import AuthExpired, DeclarationError, InvalidCredentials, TemporarilyUnavailable

if TYPE_CHECKING:
    from jwt import PyJWK


# --- The public keys of an authorization server (RFC 7517) ---

logger: Final = logging.getLogger("awp_publish.calls")

FETCH_TIMEOUT: Final = 5.0
"""Seconds in which a server has to answer."""

FRESH_FOR: Final = 600.0
"""Seconds after which keys are fetched anew."""

USABLE_FOR: Final = 3600.0
"""Seconds that keys are good for while they cannot be fetched anew: a key that was withdrawn must not live on."""

PAUSE: Final = 10.0
"""Seconds between two fetches for keys that are not known, and after a fetch that failed."""

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


class FetchedKeys:
    """Keys at an address, and nowhere else: redirects are not followed.

    They are fetched when the first token comes, by a thread of their own, one fetch at a time; whoever needs it waits
    for the same one. A key that is not known is looked for once in PAUSE: tokens with invented keys cost no more than
    that. Serves several event loops at once. `clock` tells monotonic seconds.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._known: KeySet | None = None
        self._known_since = 0.0
        self._next_try = 0.0
        self._failed = False
        self._lock = threading.Lock()
        self._under_way: Future[None] | None = None

    async def find(self, key_id: str | None, algorithm: str) -> "PyJWK | None":
        if self._is_stale():
            await self._fetch()
        key = self._usable().find(key_id, algorithm)
        if key is None and await self._fetch(for_unknown=True):
            key = self._usable().find(key_id, algorithm)
        if key is None and self._failed:
            raise _unreadable()
        return key

    def _is_stale(self) -> bool:
        return self._known is None or self._age() >= FRESH_FOR

    def _age(self) -> float:
        return self._clock() - self._known_since

    def _usable(self) -> KeySet:
        if self._known is None or self._age() >= USABLE_FOR:
            raise _unreadable()
        return self._known

    async def _fetch(self, for_unknown: bool = False) -> bool:
        """Wait for a fetch, one's own or one under way. False where it is too soon for another, or none is needed."""
        with self._lock:
            if self._under_way is None:
                if self._clock() < self._next_try or not (for_unknown or self._is_stale()):
                    return False
                if for_unknown:
                    self._next_try = self._clock() + PAUSE
                self._under_way = future = Future[None]()
                future.set_running_or_notify_cancel()  # nobody who stops waiting can cancel it for the others
                threading.Thread(target=self._run, args=(future,), name="awp-publish-keys", daemon=True).start()
            under_way = self._under_way
        await wrap_future(under_way)
        return True

    def _run(self, future: "Future[None]") -> None:
        try:
            self._known = read_key_set(_load(self._url))
            self._known_since, self._failed = self._clock(), False
        except Exception as error:
            self._failed = True
            self._next_try = self._clock() + PAUSE
            logger.error("the keys at %s could not be read: %s", self._url, error)
        finally:
            with self._lock:
                self._under_way = None
            future.set_result(None)


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


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _load(url: str) -> object:
    """Raises OSError, ValueError and what http.client raises."""
    opener = urllib.request.build_opener(_NoRedirects)
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    deadline = time.monotonic() + FETCH_TIMEOUT
    body = bytearray()
    try:
        response: HTTPResponse = opener.open(request, timeout=FETCH_TIMEOUT)
    except HTTPError as error:
        error.close()  # it holds the connection
        raise ValueError(f"the answer has the status {error.code}") from None
    with response:
        while piece := response.read1(65_536):
            body += piece
            if len(body) > LARGEST or time.monotonic() > deadline:
                raise ValueError("it is too large or too slow")
    return orjson.loads(body)


def _unreadable() -> TemporarilyUnavailable:
    detail = "The site cannot read the keys of its authorization server at the moment."
    return TemporarilyUnavailable(detail, headers=[("Retry-After", f"{PAUSE:g}")])


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
            keys = GivenKeys(read_key_set(jwks)) if url is None else FetchedKeys(check_keys_url(url), clock)
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
