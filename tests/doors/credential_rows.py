"""Credentials of every kind, right and wrong, each as what goes with a request: the rows of the matrix.

A row says who its caller is for the site, `None` for nobody, and with which problems it may be refused.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, Final, TypeAlias

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from itsdangerous import TimestampSigner
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from awp_publish import ApiKey, JwtBearer, Principal, SessionUser, WebBotAuth
from awp_publish.http.exchange import Scope
from tests.direct_client import Line
from tests.rsa_keys import rsa_key

ISSUER: Final = "https://login.example"
SECOND_ISSUER: Final = "https://second.example"
"""Another issuer that the site trusts, for people of its own."""

SHOP: Final = "https://shop.example"
COOKIE_SECRET: Final = "the-secret-of-the-cookies"
KIMS_KEY: Final = "the-api-key-of-kim"

ISSUER_KEY: Final = rsa_key("first")
SECOND_ISSUER_KEY: Final = rsa_key("second")
OTHER_ISSUER_KEY: Final = rsa_key("stranger")
KEY: Final = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY: Final = ec.generate_private_key(ec.SECP256R1())

SCOPES: Final[Mapping[str, frozenset[str]]] = {
    "ann": frozenset({"buy", "stock", "operator"}),
    "ben": frozenset({"sell"}),
    "dan": frozenset({"sell"}),
    "cat": frozenset(),
    "kim": frozenset({"buy", "stock", "operator"}),
    "https://signer.example": frozenset(),
    "ann of the second issuer": frozenset({"buy", "stock", "operator"}),
}
"""The scopes of those whom the site knows: ann, ben and dan by tokens, cat by a cookie, kim by a key, an agent by its
signature, and another ann by the tokens of another issuer.
"""


def name_of(principal: Principal) -> str:
    """The name of a caller in SCOPES."""
    return f"{principal.id} of the second issuer" if principal.issuer == SECOND_ISSUER else principal.id


def authenticators() -> list[Any]:
    """How the site knows its callers."""
    return [
        JwtBearer(issuer=ISSUER, audience=SHOP, jwks={"keys": [jwk() | {"kid": "one"}]}),
        JwtBearer(issuer=SECOND_ISSUER, audience=SHOP, jwks={"keys": [jwk(SECOND_ISSUER_KEY) | {"kid": "two"}]}),
        ApiKey({KIMS_KEY: Principal("kim", SCOPES["kim"])}),
        SessionUser("user"),
        WebBotAuth(keys={SIGNER: {"keys": [public(KEY)]}}, signers=[SIGNER]),
    ]


SIGNER: Final = "https://signer.example"


def jwk(key: rsa.RSAPrivateKey = ISSUER_KEY) -> dict[str, Any]:
    return RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)


def public(key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    whole = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {name: whole[name] for name in ("crv", "kty", "x", "y")}


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def thumbprint(key: ec.EllipticCurvePrivateKey) -> str:
    return digest(json.dumps(public(key), separators=(",", ":"), sort_keys=True))


# --- Tokens ---


@cache
def token(sub: str = "ann", *, scope: str | None = None, is_bound: bool = False, **changes: Any) -> str:
    """A token of the site's issuer. A change to None leaves a claim out."""
    claims: dict[str, Any] = {"iss": ISSUER, "aud": SHOP, "sub": sub, "exp": int(time.time()) + 36_000}
    claims["scope"] = " ".join(sorted(SCOPES[sub])) if scope is None else scope
    claims |= {"cnf": {"jkt": thumbprint(KEY)}} if is_bound else {}
    kept = {name: value for name, value in (claims | changes).items() if value is not None}
    return jwt.encode(kept, ISSUER_KEY, "RS256", {"kid": "one"})


def token_of_the_second_issuer(key: rsa.RSAPrivateKey = SECOND_ISSUER_KEY, kid: str = "two") -> str:
    """A token for somebody who is called ann there."""
    claims = {"iss": SECOND_ISSUER, "aud": SHOP, "sub": "ann", "exp": int(time.time()) + 36_000}
    claims["scope"] = " ".join(sorted(SCOPES["ann of the second issuer"]))
    return jwt.encode(claims, key, "RS256", {"kid": kid})


def bound_to(**confirmation: object) -> str:
    """A token that is bound to what only some servers could check (RFC 7800 section 3, RFC 8705 section 3.1)."""
    claims = jwt.decode(token(), options={"verify_signature": False})
    return jwt.encode(claims | {"cnf": confirmation}, ISSUER_KEY, "RS256", {"kid": "one"})


def encoded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def pieces(of: str) -> list[str]:
    return of.split(".")


def unsigned() -> str:
    return f"{encoded({'alg': 'none', 'typ': 'JWT', 'kid': 'one'})}.{pieces(token())[1]}."


def signed_by_another() -> str:
    claims = jwt.decode(token(), options={"verify_signature": False})
    return jwt.encode(claims, OTHER_ISSUER_KEY, "RS256", {"kid": "one"})


def signed_by_the_second() -> str:
    claims = jwt.decode(token(), options={"verify_signature": False})
    return jwt.encode(claims, SECOND_ISSUER_KEY, "RS256", {"kid": "two"})


def signed_with_the_public_key() -> str:
    """HS256 with what everybody may read: RFC 8725 section 2.1."""
    start = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': 'one'})}.{pieces(token())[1]}"
    pem = ISSUER_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    mac = hmac.new(pem, start.encode(), hashlib.sha256).digest()
    return f"{start}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def with_anothers_claims() -> str:
    """The signature of ben's token below what ann's says."""
    head, _, signature = pieces(token("ben"))
    return f"{head}.{pieces(token())[1]}.{signature}"


# --- Proofs of keys and signatures, which are made for one request ---

_numbers: Final = count()


def proof(scope: Scope, of: str, *, key: ec.EllipticCurvePrivateKey = KEY, **changes: Any) -> str:
    """A proof for a request (RFC 9449 section 4.2)."""
    address = f"{SHOP}{scope['raw_path'].decode()}"
    claims = {"htm": scope["method"], "htu": address, "iat": int(time.time()), "jti": f"p{next(_numbers)}"}
    return jwt.encode(claims | {"ath": digest(of)} | changes, key, "ES256", {"typ": "dpop+jwt", "jwk": public(key)})


def dpop(scope: Scope, of: str, **changes: Any) -> list[Line]:
    return [(b"authorization", f"DPoP {of}".encode()), (b"dpop", proof(scope, of, **changes).encode())]


def dpop_twice(scope: Scope) -> list[Line]:
    of = token(is_bound=True)
    return [*dpop(scope, of), (b"dpop", proof(scope, of).encode())]


_spent: Final = dict[tuple[str, bytes], list[Line]]()


def proof_again(scope: Scope) -> list[Line]:
    """The same proof for each request of an address: right once, and then never again."""
    return _spent.setdefault((scope["method"], scope["raw_path"]), dpop(scope, token(is_bound=True)))


def signature(
    scope: Scope, key: ec.EllipticCurvePrivateKey = KEY, authority: str = "shop.example", created: int = 0
) -> list[Line]:
    """The signature of an agent (RFC 9421, Web Bot Auth)."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    begins = int(time.time()) + created
    covered = f'("@authority" "signature-agent";key="sig1");created={begins};expires={begins + 60}'
    covered += f';keyid="{thumbprint(KEY)}";nonce="n{next(_numbers)}";tag="web-bot-auth"'
    agent = f'sig1="{SIGNER}"'
    base = f'"@authority": {authority}\n"signature-agent";key="sig1": "{SIGNER}"\n"@signature-params": {covered}'
    first, second = decode_dss_signature(key.sign(base.encode(), ec.ECDSA(hashes.SHA256())))
    raw = base64.b64encode(first.to_bytes(32, "big") + second.to_bytes(32, "big")).decode()
    return [
        (b"signature-agent", agent.encode()),
        (b"signature-input", f"sig1={covered}".encode()),
        (b"signature", f"sig1=:{raw}:".encode()),
    ]


# --- Cookies of the application ---


def session_cookie(secret: str = COOKIE_SECRET, user: str = "cat") -> bytes:
    """The cookie of a visitor who has signed in, as Starlette's middleware writes it."""
    data = base64.b64encode(json.dumps({"user": user}).encode())
    return b"session=" + TimestampSigner(secret).sign(data)


# --- The rows ---

Lines: TypeAlias = Callable[[Scope], list[Line]]


@dataclass(frozen=True)
class Row:
    """Credentials. `caller` is who they are for the site, one of SCOPES, or None for nobody; `scopes` are then theirs.

    `codes` are the problems that refuse nobody. `signs` is whether an agent's signature is valid. `session` says which
    session goes with a call. With `borrows` the caller shows what somebody else was given: a confirmation, a receipt,
    an idempotency key. With `is_spent` the same credentials were used before.
    """

    name: str
    lines: Lines
    caller: str | None = None
    codes: frozenset[str] = frozenset({"AUTHENTICATION_REQUIRED"})
    scopes: frozenset[str] | None = None
    signs: bool = False
    session: str = ""
    borrows: bool = False
    is_spent: bool = False

    @property
    def granted(self) -> frozenset[str]:
        """The scopes of the caller."""
        return SCOPES[self.caller] if self.scopes is None and self.caller is not None else self.scopes or frozenset()


def _header(name: str, value: str | bytes) -> Lines:
    line = (name.encode(), value if isinstance(value, bytes) else value.encode("latin-1"))
    return lambda scope: [line]


def _bearer(text: str | bytes) -> Lines:
    return _header("authorization", b"Bearer " + (text if isinstance(text, bytes) else text.encode()))


INVALID: Final = frozenset({"INVALID_CREDENTIALS"})
EXPIRED: Final = frozenset({"AUTH_EXPIRED"})
NOBODY: Final = frozenset({"AUTHENTICATION_REQUIRED"})
FOREIGN: Final = frozenset({"CROSS_SITE_COOKIES", "FOREIGN_HOST"})
UNKNOWN_SESSION: Final = frozenset({"SESSION_UNKNOWN"})


def _right() -> Sequence[Row]:
    good = (b"authorization", f"Bearer {token()}".encode())
    return (
        Row("a token and a signature", lambda scope: [good, *signature(scope)], "ann", signs=True),
        Row("a token", _bearer(token()), "ann"),
        Row("a bound token with its proof", lambda scope: dpop(scope, token(is_bound=True)), "ann"),
        Row("a key", _header("x-api-key", KIMS_KEY), "kim"),
        Row("a cookie", _header("cookie", session_cookie()), "cat"),
        Row("a signature", signature, SIGNER, signs=True),
    )


def _nobody() -> Sequence[Row]:
    basic = base64.b64encode(f"ann:{token()}".encode()).decode()
    return (
        Row("nothing", lambda scope: []),
        Row("an empty header", _header("authorization", "")),
        Row("another scheme", _header("authorization", f"Basic {basic}")),
        Row("an unknown scheme", _header("authorization", f"Token {token()}")),
        Row("a token without a scheme", _header("authorization", token())),
        Row("the right token in Proxy-Authorization", _header("proxy-authorization", f"Bearer {token()}")),
        Row("the right token in X-Access-Token", _header("x-access-token", token())),
        Row("the right token in X-Forwarded-User", _header("x-forwarded-user", "ann")),
        Row("the right token in a cookie", _header("cookie", f"authorization=Bearer {token()}; token={token()}")),
        Row("a proof alone", lambda scope: [(b"dpop", proof(scope, token(is_bound=True)).encode())]),
        Row("a forged cookie", _header("cookie", session_cookie("another-secret"))),
        Row("a cookie that was written by hand", _header("cookie", "session=eyJ1c2VyIjogImFubiJ9; user=ann")),
    )


def _invalid() -> Sequence[Row]:
    bound = token(is_bound=True)
    good, other = f"Bearer {token()}", "Bearer wrong"
    cases: Mapping[str, Lines] = {
        "a scheme without a token": _header("authorization", "Bearer"),
        "garbage": _bearer("garbage"),
        "bytes that are no text": _bearer(b"\xff\xfe\x80"),
        "a token that is cut off": _bearer(token()[:-7]),
        "a token with more behind it": _bearer(f"{token()} x"),
        "two tokens in one line": _header("authorization", f"{good}, {good}"),
        "the right line twice": lambda scope: [(b"authorization", good.encode())] * 2,
        "a wrong line before the right one": lambda scope: [
            (b"authorization", other.encode()),
            (b"authorization", good.encode()),
        ],
        "the right line before a wrong one": lambda scope: [
            (b"authorization", good.encode()),
            (b"authorization", other.encode()),
        ],
        "another issuer": _bearer(token(iss="https://evil.example")),
        "another audience": _bearer(token(aud="https://other.example")),
        "no audience": _bearer(token(aud=None)),
        "no end": _bearer(token(exp=None)),
        "not valid yet": _bearer(token(nbf=int(time.time()) + 3_600)),
        "no subject": _bearer(_without_subject()),
        "a wrong signature": _bearer(signed_by_another()),
        "another's signature": _bearer(with_anothers_claims()),
        "no signature": _bearer(unsigned()),
        "a signature with the public key": _bearer(signed_with_the_public_key()),
        "a bound token without its proof": _bearer(bound),
        "a bound token as DPoP without its proof": _header("authorization", f"DPoP {bound}"),
        "a bound token as a bearer token, with its proof": lambda scope: [
            (b"authorization", f"Bearer {bound}".encode()),
            (b"dpop", proof(scope, bound).encode()),
        ],
        "a proof for another address": lambda scope: dpop(scope, bound, htu=f"{SHOP}/elsewhere"),
        "a proof for another site": lambda scope: dpop(scope, bound, htu="https://evil.example/"),
        "a proof for another method": lambda scope: dpop(scope, bound, htm="PROPFIND"),
        "a proof for another token": lambda scope: dpop(scope, bound, ath=digest("another")),
        "a proof of another key": lambda scope: dpop(scope, bound, key=OTHER_KEY),
        "an old proof": lambda scope: dpop(scope, bound, iat=int(time.time()) - 3_600),
        "two proofs": dpop_twice,
        "a token that is bound to a certificate": _bearer(bound_to(**{"x5t#S256": digest("a certificate")})),
        "a token that is bound to the id of a key": _bearer(bound_to(kid="one")),
        "a token that is bound to a whole key, with a proof": lambda scope: dpop(scope, bound_to(jwk=public(KEY))),
        "a token that is bound in two ways, with a proof": lambda scope: dpop(
            scope, bound_to(jkt=thumbprint(KEY), **{"x5t#S256": digest("a certificate")})
        ),
        "a token that is bound in a way that nobody knows": _bearer(bound_to(moon="full")),
        "a token of the second issuer, signed by the first": _bearer(token_of_the_second_issuer(ISSUER_KEY, "one")),
        "a token of the first issuer, signed by the second": _bearer(signed_by_the_second()),
        "a free token with a proof": lambda scope: dpop(scope, token()),
        "a wrong key": _header("x-api-key", "wrong"),
        "the right token as a key": _header("x-api-key", token()),
        "the right key as a token": _bearer(KIMS_KEY),
        "two keys": lambda scope: [(b"x-api-key", KIMS_KEY.encode()), (b"x-api-key", b"wrong")],
        "a signature of another key": lambda scope: signature(scope, OTHER_KEY),
        "a signature for another host": lambda scope: signature(scope, authority="other.example"),
        "an old signature": lambda scope: signature(scope, created=-3_600),
    }
    rows = [Row(name, lines, codes=INVALID) for name, lines in cases.items()]
    return (*rows, Row("a proof that was used", proof_again, codes=INVALID, is_spent=True))


def _without_subject() -> str:
    claims = jwt.decode(token(), options={"verify_signature": False})
    del claims["sub"]
    return jwt.encode(claims, ISSUER_KEY, "RS256", {"kid": "one"})


def _others() -> Sequence[Row]:
    """Rows of callers who are known, but not as those who may."""
    evil = [(b"origin", b"https://evil.example"), (b"sec-fetch-site", b"cross-site")]
    rebound = [(b"host", b"evil.example"), (b"origin", b"https://evil.example")]
    good = (b"authorization", f"Bearer {token()}".encode())
    return (
        Row("expired", _bearer(token(exp=int(time.time()) - 3_600)), codes=EXPIRED),
        Row("another caller", _bearer(token("ben")), "ben"),
        Row("another caller with what ann was given", _bearer(token("dan")), "dan", borrows=True),
        Row(
            "the same name from the second issuer",
            _bearer(token_of_the_second_issuer()),
            "ann of the second issuer",
            borrows=True,
        ),
        Row("the right caller without a scope", _bearer(token(scope="")), "ann", scopes=frozenset()),
        Row("the right caller with another scope", _bearer(token(scope="Buy buy2 sell")), "ann", scopes=frozenset()),
        Row("the cookie, from another site", lambda scope: [(b"cookie", session_cookie()), *evil], codes=FOREIGN),
        Row("the right token, under another name of the host", lambda scope: [good, *rebound], codes=FOREIGN),
        Row("another's session", _bearer(token("ben")), codes=UNKNOWN_SESSION, session="another's"),
        Row("a session without its caller", lambda scope: [], codes=UNKNOWN_SESSION | NOBODY, session="another's"),
        Row(
            "a session of the same name from the first issuer",
            _bearer(token_of_the_second_issuer()),
            codes=UNKNOWN_SESSION,
            session="another's",
        ),
        Row("a session by the id before its caller signed in", _bearer(token()), codes=UNKNOWN_SESSION, session="old"),
        Row("a session that has ended", _bearer(token()), codes=UNKNOWN_SESSION, session="ended"),
        Row("a session that nobody has begun", _bearer(token()), codes=UNKNOWN_SESSION, session="garbage"),
    )


RIGHT: Final = _right()
ROWS: Final = (*RIGHT, *_nobody(), *_invalid(), *_others())
