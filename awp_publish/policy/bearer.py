"""Callers who send a secret: a bearer token (RFC 6750 section 2.1), or an API key in a header of its own."""

import hmac
import re
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from hashlib import sha256
from typing import Final, TypeAlias

from awp_publish.policy.principal import Credentials, Principal, Scheme
from awp_publish.policy.verifier import Ask, Verify, read_verdict, read_verifier
from awp_publish.problems import DeclarationError, InvalidCredentials

BEARER: Final = "Bearer"

KnownSecrets: TypeAlias = Mapping[str, Principal | str]
"""Secrets to the callers who have them, or to their ids."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750 section 2.1, b64token."""

_BEARER: Final = re.compile(r"bearer(?:[ \t]+(.*))?", re.IGNORECASE | re.DOTALL)
_SECOND_BEARER: Final = re.compile(r",[ \t]*bearer(?:[ \t]|$)", re.IGNORECASE)
_KEY: Final = re.compile(r"[!-~]+")
_FIELD_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""RFC 9110 section 5.6.2, token."""

_TAKEN: Final = frozenset({"authorization", "proxy-authorization", "cookie", "host"})
"""Headers with a grammar of their own, in which no bare key stands."""

_REMEDY: Final = (
    'Give a function (secret) -> Principal | str | None, or the secrets themselves: {example}({{"...": "partner"}}).'
)


@dataclass(frozen=True, slots=True)
class BearerToken:
    """Callers known by `Authorization: Bearer <token>` (RFC 6750 section 2.1).

    `verify` is a function of the token, plain (it runs in a thread) or async, that answers a Principal, the caller's
    id, or None for a token it does not know; or a mapping of tokens to callers. Raises DeclarationError.
    """

    verify: InitVar[Verify[str] | KnownSecrets]
    is_instant: bool = field(init=False, repr=False)
    _ask: Ask[str] = field(init=False, repr=False)

    def __post_init__(self, verify: Verify[str] | KnownSecrets) -> None:
        object.__setattr__(self, "_ask", _read_check(verify, _TOKEN, "BearerToken"))
        object.__setattr__(self, "is_instant", isinstance(verify, Mapping))

    @property
    def scheme(self) -> Scheme:
        return "bearer"

    @property
    def method(self) -> str:
        return "bearer"

    @property
    def challenge(self) -> str:
        return BEARER

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """The caller, None without a bearer token. Raises InvalidCredentials."""
        token = read_bearer_token(credentials)
        if token is None:
            return None
        principal = await self._ask(token)
        if principal is None:
            raise InvalidCredentials("The bearer token is not known here.")
        return principal


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Callers known by a key in a header of its own.

    `verify` is what it is for BearerToken. No authentication scheme is registered for such keys, so the challenge is
    one of ours that names the header: `ApiKey header="X-API-Key"`. Raises DeclarationError.
    """

    verify: InitVar[Verify[str] | KnownSecrets]
    header: str = "X-API-Key"
    is_instant: bool = field(init=False, repr=False)
    _ask: Ask[str] = field(init=False, repr=False)

    def __post_init__(self, verify: Verify[str] | KnownSecrets) -> None:
        if not isinstance(self.header, str) or not _FIELD_NAME.fullmatch(self.header):
            raise DeclarationError("site", "ApiKey's header is not a header's name.", 'Write header="X-API-Key".')
        if self.header.lower() in _TAKEN:
            remedy = "Use BearerToken for Authorization, SessionUser for cookies, or a header of its own."
            raise DeclarationError("site", f"{self.header} carries no bare API key.", remedy)
        object.__setattr__(self, "_ask", _read_check(verify, _KEY, "ApiKey"))
        object.__setattr__(self, "is_instant", isinstance(verify, Mapping))

    @property
    def scheme(self) -> Scheme:
        return "api_key"

    @property
    def method(self) -> str:
        return "api_key"

    @property
    def challenge(self) -> str:
        return f'ApiKey header="{self.header}"'

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """The caller, None without the header. Raises InvalidCredentials."""
        given = credentials.headers.get(self.header.lower())
        if given is None:
            return None
        key = given.strip(" \t")
        if not _KEY.fullmatch(key):
            raise InvalidCredentials(f"{self.header} must hold one key: visible ASCII characters without spaces.")
        principal = await self._ask(key)
        if principal is None:
            raise InvalidCredentials(f"The key in {self.header} is not known here.")
        return principal


def read_bearer_token(credentials: Credentials) -> str | None:
    """The token of `Authorization: Bearer`, None without that header or scheme. Raises InvalidCredentials."""
    value = credentials.headers.get("authorization", "").strip(" \t")
    if _SECOND_BEARER.search(value):
        raise InvalidCredentials("There is more than one Authorization; send one.")
    bearer = _BEARER.fullmatch(value)
    if bearer is None:
        return None
    token: str | None = bearer[1]
    if not token:
        raise InvalidCredentials("Authorization has the scheme Bearer but no token.")
    if not _TOKEN.fullmatch(token):
        raise InvalidCredentials("The bearer token has characters that no token has (RFC 6750 section 2.1).")
    return token


# --- What knows the secrets ---


def _read_check(verify: Verify[str] | KnownSecrets, grammar: re.Pattern[str], name: str) -> Ask[str]:
    if isinstance(verify, Mapping):
        return _compare(verify, grammar, name)
    return read_verifier(verify, _REMEDY.format(example=name))


def _compare(known: KnownSecrets, grammar: re.Pattern[str], name: str) -> Ask[str]:
    """Look a secret up in constant time, whichever it is: every hash is compared. No secret is kept."""
    callers = tuple((_digest(secret), _read_caller(secret, known[secret], grammar, name)) for secret in known)
    if not callers:
        raise DeclarationError("site", f"{name} was given no secrets at all.", _REMEDY.format(example=name))

    async def ask(secret: str) -> Principal | None:
        given, found = _digest(secret), None
        for digest, caller in callers:
            if hmac.compare_digest(digest, given):
                found = caller
        return found

    return ask


def _digest(secret: object) -> bytes:
    return sha256(str(secret).encode("utf-8", "surrogatepass")).digest()


def _read_caller(secret: object, caller: object, grammar: re.Pattern[str], name: str) -> Principal:
    """Messages never hold the secret: they end up in start-up logs."""
    if not isinstance(secret, str) or not grammar.fullmatch(secret):
        detail = f"A secret given to {name} cannot be sent in a header."
        raise DeclarationError("site", detail, "Use letters, digits, and . _ ~ + / - without spaces.")
    principal = read_verdict(caller) if isinstance(caller, (str, Principal)) else None
    if principal is None:
        raise DeclarationError("site", f"A secret given to {name} has no caller.", _REMEDY.format(example=name))
    return principal
