"""Callers who send a JSON Web Token of an authorization server: RFC 7519, checked as RFC 8725 and RFC 9068 advise."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

from awp_publish.policy.bearer import BEARER, read_bearer_token
from awp_publish.policy.jwks import ALGORITHMS, FetchedKeys, GivenKeys, Keys, check_keys_url, read_key_set
from awp_publish.policy.principal import Credentials, Principal, Scheme
from awp_publish.problems import AuthExpired, DeclarationError, InvalidCredentials

if TYPE_CHECKING:
    from jwt import PyJWK

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

    issuer: str
    audience: str | Sequence[str]
    jwks_url: str | None = None
    jwks: InitVar[Mapping[str, object] | None] = None
    algorithms: Sequence[str] = tuple(ALGORITHMS)
    leeway: float = LEEWAY
    scope_claim: str | None = None
    principal_claim: str = "sub"
    clock: InitVar[Callable[[], float]] = time.monotonic
    _keys: Keys = field(init=False, repr=False, compare=False)

    def __post_init__(self, jwks: Mapping[str, object] | None, clock: Callable[[], float]) -> None:
        _check_installed()
        audience = _texts(self.audience)
        if not isinstance(self.issuer, str) or not self.issuer or not audience:
            _refuse("JwtBearer needs the issuer and the audience of its tokens.", _EXAMPLE)
        object.__setattr__(self, "audience", audience)
        object.__setattr__(self, "algorithms", _read_algorithms(self.algorithms))
        if not self.leeway >= 0 or not self.principal_claim:
            _refuse("JwtBearer's leeway is negative or its principal_claim empty.", _EXAMPLE)
        object.__setattr__(self, "_keys", _read_keys(self.jwks_url, jwks, clock))

    @property
    def scheme(self) -> Scheme:
        return "oauth2"

    @property
    def method(self) -> str:
        return "jwt"

    @property
    def challenge(self) -> str:
        return BEARER

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
        return self._principal_of(self._decode(token, key, algorithm))

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

    def _principal_of(self, claims: Mapping[str, object]) -> Principal:
        name = claims.get(self.principal_claim)
        if not isinstance(name, str) or not name:
            raise _invalid(f"Its {self.principal_claim} does not name anybody.")
        return Principal(name, self._scopes_of(claims), claims)

    def _scopes_of(self, claims: Mapping[str, object]) -> frozenset[str]:
        names = SCOPE_CLAIMS if self.scope_claim is None else (self.scope_claim,)
        given = next((claims[name] for name in names if name in claims), None)
        return frozenset(given.split(" ")) - {""} if isinstance(given, str) else frozenset(_texts(given))


def _invalid(detail: str) -> InvalidCredentials:
    return InvalidCredentials(f"The token is not valid. {detail}")


# --- Declaring ---


def _refuse(detail: str, remedy: str) -> NoReturn:
    raise DeclarationError("site", detail, remedy)


def _check_installed() -> None:
    try:
        import cryptography  # noqa: F401
        import jwt  # noqa: F401
    except ImportError:
        _refuse("JwtBearer needs PyJWT, which is not installed.", 'Run pip install "awp-publish[jwt]".')


def _texts(given: object) -> tuple[str, ...]:
    """One text or several; what is no text is not there."""
    several = (given,) if isinstance(given, str) else given if isinstance(given, Sequence) else ()
    return tuple(one for one in several if isinstance(one, str) and one)


def _read_algorithms(given: object) -> tuple[str, ...]:
    named = _texts(given)
    if not named or set(named) - set(ALGORITHMS):
        remedy = f"Choose of {', '.join(ALGORITHMS)}: signatures that public keys check."
        _refuse("JwtBearer's algorithms are not all usable here.", remedy)
    return named


def _read_keys(url: str | None, document: object, clock: Callable[[], float]) -> Keys:
    if (url is None) == (document is None):
        _refuse("JwtBearer needs either jwks_url or jwks.", _EXAMPLE)
    try:
        return GivenKeys(read_key_set(document)) if url is None else FetchedKeys(check_keys_url(url), clock)
    except ValueError as error:
        named = "jwks" if url is None else "jwks_url"
        _refuse(f"JwtBearer's {named} cannot be used: {error}.", _EXAMPLE)
