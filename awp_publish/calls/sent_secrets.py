"""Callers who send a secret: a bearer token, or a key in a header of its own."""

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from hashlib import sha256
from typing import Any, ClassVar, Final, TypeAlias

from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.callers import Scheme
from awp_publish.calls.challenges import BEARER
from awp_publish.calls.verifiers import Verify, check_people, people_of, read_verdict, read_verifier, vouched
from awp_publish.problems import DeclarationError, InvalidCredentials

KnownSecrets: TypeAlias = Mapping[str, Principal | str]
"""Secrets, each with its caller or the caller's id."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750 section 2.1, b64token."""

_BEARER: Final = re.compile(r"bearer(?:[ \t]+(.*))?", re.IGNORECASE | re.DOTALL)
_SECOND_BEARER: Final = re.compile(r",[ \t]*bearer(?:[ \t]|$)", re.IGNORECASE)
_PROVEN: Final = re.compile(r"dpop[ \t]+([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_KEY: Final = re.compile(r"[!-~]+")
_FIELD_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""RFC 9110 section 5.6.2, token."""

_NO_BARE_KEY: Final = frozenset({"authorization", "proxy-authorization", "cookie", "host"})
"""Headers with a syntax of their own, which cannot hold a bare key."""

_REMEDY: Final = (
    'Give a function (secret) -> Principal | str | None, or the secrets themselves: {example}({{"...": "partner"}}).'
)

Check: TypeAlias = Callable[[Any], Any]
"""Finds the caller of a secret: synchronously, by its bytes, if secrets are given; else awaitable, by its text."""


@dataclass(frozen=True, slots=True)
class BearerToken:
    """Callers with `Authorization: Bearer <token>` (RFC 6750 section 2.1).

    `verify` is a function of the token, plain (it runs in a thread) or async, that returns a Principal, the caller's
    id, or None for an unknown token; or a mapping of tokens to callers. `people` names those whom it knows, as the
    issuer of their ids: authenticators with the same `people` know the same ones. Raises DeclarationError.
    """

    scheme: ClassVar[Scheme] = "bearer"
    method: ClassVar[str] = "bearer"
    challenge: ClassVar[str] = BEARER
    kind: ClassVar[str] = "bearer-token"

    verify: InitVar[Verify[str] | KnownSecrets]
    people: str | None = None
    is_instant: bool = field(init=False, repr=False)
    _check: "Check" = field(init=False, repr=False)

    def __post_init__(self, verify: Verify[str] | KnownSecrets) -> None:
        check_people("BearerToken", self.people)
        object.__setattr__(self, "_check", _read_check(verify, _TOKEN, "BearerToken", people_of(self), b"Bearer "))
        object.__setattr__(self, "is_instant", isinstance(verify, Mapping))

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None without a bearer token. Raises InvalidCredentials."""
        token = read_bearer_token(credentials)
        if token is None:
            return None
        if self.is_instant:
            principal: Principal | None = self._check(b"Bearer " + token.encode())
        else:
            principal = await self._check(token)
        if principal is None:
            raise InvalidCredentials("The bearer token is not known.")
        return principal

    @property
    def find_at_once(self) -> Callable[[bytes], Principal | None] | None:
        """Finds the caller of an Authorization header, None if that needs a closer look.

        None unless secrets are given.
        """
        return self._check if self.is_instant else None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Callers with a key in a header of its own.

    `verify` and `people` are the same as for BearerToken. There is no registered authentication scheme for such keys,
    so the challenge is our own and names the header: `ApiKey header="X-API-Key"`. Raises DeclarationError.
    """

    scheme: ClassVar[Scheme] = "api_key"
    method: ClassVar[str] = "api_key"

    verify: InitVar[Verify[str] | KnownSecrets]
    header: str = "X-API-Key"
    people: str | None = None
    is_instant: bool = field(init=False, repr=False)
    _check: "Check" = field(init=False, repr=False)

    def __post_init__(self, verify: Verify[str] | KnownSecrets) -> None:
        if not isinstance(self.header, str) or not _FIELD_NAME.fullmatch(self.header):
            raise DeclarationError("site", "ApiKey: header is not a valid header name.", 'Write header="X-API-Key".')
        if self.header.lower() in _NO_BARE_KEY:
            remedy = "Use BearerToken for Authorization, SessionUser for cookies, or a header of its own."
            raise DeclarationError("site", f"ApiKey: {self.header} cannot hold a bare API key.", remedy)
        check_people("ApiKey", self.people)
        object.__setattr__(self, "_check", _read_check(verify, _KEY, "ApiKey", people_of(self)))
        object.__setattr__(self, "is_instant", isinstance(verify, Mapping))

    @property
    def kind(self) -> str:
        return f"api-key:{self.header.lower()}"

    @property
    def challenge(self) -> str:
        return f'ApiKey header="{self.header}"'

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None without the header. Raises InvalidCredentials."""
        value = credentials.headers.get(self.header.lower())
        if value is None:
            return None
        key = value.strip(" \t")
        if not _KEY.fullmatch(key):
            raise InvalidCredentials(f"{self.header} must hold one key: visible ASCII characters without spaces.")
        principal: Principal | None = self._check(key.encode()) if self.is_instant else await self._check(key)
        if principal is None:
            raise InvalidCredentials(f"The key in {self.header} is not known.")
        return principal


def read_bearer_token(credentials: Credentials) -> str | None:
    """Return the token of `Authorization: Bearer`, None without that header or scheme. Raises InvalidCredentials."""
    value = credentials.headers.get("authorization", "").strip(" \t")
    if value.startswith("Bearer ") and _TOKEN.fullmatch(value, 7):
        return value[7:]
    if _SECOND_BEARER.search(value):
        raise InvalidCredentials("There is more than one Authorization header; send one.")
    bearer = _BEARER.fullmatch(value)
    if bearer is None:
        return None
    token: str | None = bearer[1]
    if not token:
        raise InvalidCredentials("Authorization has the scheme Bearer but no token.")
    if not _TOKEN.fullmatch(token):
        raise InvalidCredentials("The bearer token has characters that are not allowed (RFC 6750 section 2.1).")
    return token


def read_proven_token(credentials: Credentials) -> str | None:
    """Return the token of `Authorization: DPoP` (RFC 9449 section 7.1), None without that header or scheme."""
    proven = _PROVEN.fullmatch(credentials.headers.get("authorization", "").strip(" \t"))
    return proven[1] if proven is not None else None


def _read_check(
    verify: Verify[str] | KnownSecrets, grammar: re.Pattern[str], name: str, issuer: str, prefix: bytes = b""
) -> Check:
    """Read a check, or secrets, which are sent after `prefix`. Only salted hashes of secrets are kept.

    `issuer` vouches for callers without one.

    Without knowing the salt of this process nobody can produce hashes that share a part, so the time of a lookup
    reveals nothing about a secret.
    """
    remedy = _REMEDY.format(example=name)
    if not isinstance(verify, Mapping):
        return read_verifier(verify, remedy, issuer)
    salt, callers = secrets.token_bytes(16), dict[bytes, Principal]()
    for secret, caller in verify.items():  # messages never contain the secret: they end up in start-up logs
        if not isinstance(secret, str) or not grammar.fullmatch(secret):
            detail = f"{name}: a secret has characters that cannot be sent in a header."
            raise DeclarationError("site", detail, "Use letters, digits, and . _ ~ + / - without spaces.")
        principal = vouched(read_verdict(caller) if isinstance(caller, (str, Principal)) else None, issuer)
        if principal is None:
            raise DeclarationError("site", f"{name}: a secret has no caller.", remedy)
        callers[sha256(salt + prefix + secret.encode()).digest()] = principal
    if not callers:
        raise DeclarationError("site", f"{name}: there are no secrets.", remedy)
    return lambda secret: callers.get(sha256(salt + secret).digest())
