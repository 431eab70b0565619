"""JSON Web Tokens of an authorization server: RFC 7519, checked as RFC 8725 and RFC 9068 advise.

A token that is bound to a key (`cnf.jkt`) is only accepted with a proof of that key (`proofs`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn
from urllib.parse import quote

from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.callers import Scheme
from awp_publish.calls.challenges import BEARER, DPOP
from awp_publish.calls.sent_secrets import read_bearer_token, read_proven_token
from awp_publish.calls.verifiers import check_people, people_of
from awp_publish.plugins.identity.fetching import FetchedKeys
from awp_publish.plugins.identity.key_sets import (
    ALGORITHMS,
    ConfiguredKeys,
    KeySet,
    KeySource,
    check_keys_url,
    load_key_set,
    read_key_set,
)
from awp_publish.plugins.identity.proofs import Proofs
from awp_publish.problems import AuthExpired, DeclarationError, InvalidBinding, InvalidCredentials
from awp_publish.stores.store import Store

if TYPE_CHECKING:
    from jwt import PyJWK


LEEWAY: Final = 30.0
"""Seconds by which clocks may differ."""

SCOPE_CLAIMS: Final = ("scope", "scp")
"""The claim of RFC 9068 section 2.2.3, and a common alternative."""

REQUIRED: Final = ("exp", "iss", "aud", "sub")

ACCESS_TOKEN: Final = "at+jwt"
"""The type of an access token (RFC 9068 section 2.1). Many issuers write "JWT" or nothing."""

_REBIND: Final = (
    "Ask the authorization server for a token that is bound to a key of yours by cnf.jkt alone (DPoP, RFC 9449), or "
    "for one that is not bound, then retry with it."
)

_EXAMPLE: Final = (
    'Write JwtBearer(issuer="https://login.example", audience="https://shop.example", '
    'jwks_url="https://login.example/jwks.json").'
)

_WRONG: Final = {
    "InvalidSignatureError": "Its signature does not match its key.",
    "InvalidAudienceError": "It is for another audience (aud).",
    "InvalidIssuerError": "It is from another issuer (iss).",
    "ImmatureSignatureError": "It is not valid yet (nbf, iat).",
    "InvalidIssuedAtError": "Its time of issue (iat) is not a number.",
    "InvalidSubjectError": "Its subject (sub) is not a string.",
    "InvalidJTIError": "Its id (jti) is not a string.",
}
"""What is wrong with a token, by exception. The exceptions' own messages may quote the token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtBearer:
    """Callers with a signed token in `Authorization: Bearer`.

    Signature, `issuer`, `audience` (one or several), `exp` and `nbf` are checked, the times with `leeway` seconds. Keys
    come from `jwks_url` or are given as `jwks`. Only public-key algorithms are accepted, so that nobody can sign with a
    published key. `scope_claim` names the claim with the scopes ("scope", else "scp"), `principal_claim` the one with
    the caller's id. The issuer vouches for these ids, unless `people` names those whom it knows.

    A token that is bound to a key has to come as `Authorization: DPoP` with a proof of that key (RFC 9449); with
    `dpop_required` no other token is accepted. One that is bound in another way, to a certificate for example, is
    always refused. Needs the extra `jwt`. Raises DeclarationError.
    """

    scheme: ClassVar[Scheme] = "oauth2"
    method: ClassVar[str] = "jwt"

    issuer: str
    audience: str | Sequence[str]
    jwks_url: str | None = None
    jwks: InitVar[Mapping[str, object] | None] = None
    algorithms: Sequence[str] = tuple(ALGORITHMS)
    leeway: float = LEEWAY
    scope_claim: str | None = None
    principal_claim: str = "sub"
    dpop_required: bool = False
    clock: InitVar[Callable[[], float]] = time.monotonic
    people: str | None = None
    _keys: KeySource = field(init=False, repr=False, compare=False)
    _origins: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())
    _store: Store | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self, jwks: Mapping[str, object] | None, clock: Callable[[], float]) -> None:
        try:
            import cryptography  # noqa: F401
            import jwt  # noqa: F401
        except ImportError:
            _refuse("JwtBearer needs PyJWT, which is not installed.", 'Run pip install "awp-publish[jwt]".')
        check_people("JwtBearer", self.people)
        audience = _texts(self.audience)
        if not isinstance(self.issuer, str) or not self.issuer or not audience:
            _refuse("JwtBearer needs the issuer and the audience of its tokens.", _EXAMPLE)
        object.__setattr__(self, "audience", audience)
        algorithms = _texts(self.algorithms)
        if not algorithms or set(algorithms) - set(ALGORITHMS):
            remedy = f"Choose from {', '.join(ALGORITHMS)}."
            _refuse("JwtBearer's algorithms are not all supported public-key algorithms.", remedy)
        object.__setattr__(self, "algorithms", algorithms)
        if not self.leeway >= 0 or not self.principal_claim:
            _refuse("JwtBearer's leeway is negative or its principal_claim empty.", _EXAMPLE)
        url = self.jwks_url
        if (url is None) == (jwks is None):
            _refuse("JwtBearer needs either jwks_url or jwks.", _EXAMPLE)
        try:
            keys: KeySource = ConfiguredKeys(read_key_set(jwks)) if jwks is not None else ConfiguredKeys(KeySet({}))
            if url is not None:
                keys = FetchedKeys(check_keys_url(url), load_key_set, clock)
        except ValueError as error:
            option = "jwks" if url is None else "jwks_url"
            _refuse(f"JwtBearer's {option} cannot be used: {error}.", _EXAMPLE)
        object.__setattr__(self, "_keys", keys)

    @property
    def challenge(self) -> str:
        return DPOP if self.dpop_required else BEARER

    def bound_to(self, origins: Sequence[str], store: Store) -> "JwtBearer":
        """Return a copy for a site at these addresses, whose store remembers used proofs."""
        bound = object.__new__(JwtBearer)
        for name in self.__slots__:
            object.__setattr__(bound, name, getattr(self, name))
        object.__setattr__(bound, "_origins", tuple(origins))
        object.__setattr__(bound, "_store", store)
        return bound

    @property
    def kind(self) -> str:
        """The kind of caller: the issuer of the tokens, and the claim that names them, if it is not `sub`."""
        claim = "" if self.principal_claim == "sub" else f"#{quote(self.principal_claim, safe='')}"
        return quote(self.issuer, safe=":/?#[]@!$&'()*+,;=%~") + claim

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None without a token.

        Raises AuthExpired, InvalidCredentials, InvalidProof, and TemporarilyUnavailable if the keys cannot be fetched.
        """
        proven = read_proven_token(credentials)
        token = read_bearer_token(credentials) if proven is None else proven
        if token is None:
            return None
        key_id, algorithm = read_header(token, self.algorithms, ACCESS_TOKEN)
        key = await self._keys.find(key_id, algorithm)
        if key is None:
            raise invalid("Its issuer does not publish the key that signed it.")
        claims = read_claims(token, key, algorithm, REQUIRED, self.issuer, self.audience, self.leeway)
        name = claims.get(self.principal_claim)
        if not isinstance(name, str) or not name:
            raise invalid(f"Its {self.principal_claim} names nobody.")
        bound_to = _key_of(claims)
        if proven is not None:
            if bound_to is None:
                raise invalid("It is not bound to a key (cnf.jkt), so it takes no proof.")
            proofs = Proofs(self._origins, self._store)
            await proofs.check(credentials.request, credentials.headers.get("dpop"), token, bound_to)
        elif bound_to is not None:
            raise InvalidBinding(
                "The token is bound to a key (cnf.jkt) and was sent as a bearer token, without a proof."
            )
        elif self.dpop_required:
            raise InvalidBinding("The token is not bound to a key (cnf.jkt), which this site requires.")
        names = SCOPE_CLAIMS if self.scope_claim is None else (self.scope_claim,)
        claim = next((claims[name] for name in names if name in claims), None)
        scopes = frozenset(claim.split(" ")) - {""} if isinstance(claim, str) else frozenset(_texts(claim))
        return Principal(name, scopes, claims, issuer=people_of(self), scheme="oauth2")


def read_header(token: str, algorithms: Sequence[str], kind: str) -> tuple[str | None, str]:
    """Return the key id and algorithm in a token's header, which is not verified yet. Raises InvalidCredentials.

    `kind` is the type of the expected tokens.
    """
    from jwt import get_unverified_header
    from jwt.exceptions import PyJWTError

    try:
        header = get_unverified_header(token)
    except (PyJWTError, ValueError, TypeError, RecursionError):
        raise invalid("It is not a signed JSON Web Token.") from None
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        raise invalid(f"Its algorithm is not one of {', '.join(algorithms)}.")
    # A JWT that its issuer has made for another purpose says so by its type (RFC 8725 sections 3.11 and 3.12).
    own = str(header.get("typ")).lower().removeprefix("application/")
    if own.endswith("+jwt") and own != kind:
        raise invalid(f"It is a JWT for another purpose (typ), not {kind}.")
    if "crit" in header:
        raise invalid("It requires extensions (crit) that are not supported here.")
    return (key_id if isinstance(key_id, str) else None), algorithm


def read_claims(
    token: str,
    key: "PyJWK",
    algorithm: str,
    required: Sequence[str],
    issuer: str,
    audience: str | Sequence[str],
    leeway: float,
) -> Mapping[str, object]:
    """Return a token's claims. Raises AuthExpired and InvalidCredentials."""
    from jwt import decode
    from jwt.exceptions import ExpiredSignatureError, MissingRequiredClaimError

    try:
        return decode(
            token,
            key,
            algorithms=[algorithm],
            audience=audience,
            issuer=issuer,
            leeway=leeway,
            options={"require": [*required]},
        )
    except ExpiredSignatureError:
        raise AuthExpired("The token has expired (exp).") from None
    except MissingRequiredClaimError as error:
        raise invalid(f"It has no {error.claim}.") from None
    except Exception as error:  # a hostile token may make its decoder raise anything
        raise invalid(_WRONG.get(type(error).__name__, "It is not well formed.")) from None


def _key_of(claims: Mapping[str, object]) -> str | None:
    """Return the thumbprint of the key that a token is bound to (cnf.jkt), None for one that is not bound.

    A token that is bound in any other way (RFC 7800 section 3, RFC 8705 section 3.1) is refused: nothing here checks
    that its caller has that key, and without this check it would be good for whoever has stolen it.
    """
    if "cnf" not in claims:
        return None
    confirmation = claims["cnf"]
    if not isinstance(confirmation, Mapping):
        raise InvalidBinding("The token's confirmation (cnf) is not an object.", recovery=_REBIND)
    if set(confirmation) != {"jkt"}:
        methods = ", ".join(sorted(map(str, confirmation)))[:100] or "nothing"
        raise InvalidBinding(
            f"The token is bound by {methods} (cnf), which is not checked here; cnf.jkt alone is.", recovery=_REBIND
        )
    thumbprint = confirmation["jkt"]
    if not isinstance(thumbprint, str):
        raise InvalidBinding("The token's confirmation (cnf.jkt) is not a string.", recovery=_REBIND)
    return thumbprint


def invalid(detail: str) -> InvalidCredentials:
    """Return the refusal of a token."""
    return InvalidCredentials(f"The token is not valid. {detail}")


def _refuse(detail: str, remedy: str) -> NoReturn:
    raise DeclarationError("site", detail, remedy)


def _texts(value: object) -> tuple[str, ...]:
    values = (value,) if isinstance(value, str) else value if isinstance(value, Sequence) else ()
    return tuple(text for text in values if isinstance(text, str) and text)
