"""Authentication: authenticators are asked in order, and a caller without the required scopes is refused."""

import asyncio
import logging
import math
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.callers import Authenticator
from awp_publish.calls.challenges import BEARER, DPOP, Challenges, challenges_of
from awp_publish.calls.sent_secrets import BearerToken
from awp_publish.problems import (
    AuthenticationRequired,
    AuthExpired,
    HandlerFailed,
    InsufficientPermissions,
    InsufficientScope,
    InvalidCredentials,
    InvalidProof,
    Problem,
    RateLimited,
    StoreUnavailable,
    TemporarilyUnavailable,
    in_seconds,
)
from awp_publish.stores.store import Count, Counted, Store

logger: Final = logging.getLogger("awp_publish.calls")

CHECK_TIMEOUT: Final = 10.0
"""Seconds that all checks of one call's credentials may take together."""

RETRY_AFTER: Final = "10"
"""Seconds after which a caller may try again if checks take too long."""

MAX_WRONG: Final = 20
WRONG_WINDOW: Final = 60.0
"""Wrong credentials that one address may send within so many seconds: these get 401, further ones 429."""

MAX_REDACTED_WORDS: Final = 200
MAX_TRACEBACK: Final = 100_000
"""Words of a caller's headers that are removed from a traceback, and characters of one that is searched."""

_HARMLESS: Final = re.compile(r"accept.*|connection|content-.*|host|origin|sec-.*|user-agent|x-forwarded-.*")
"""Headers that hold no secrets, but words that a log may need."""

_SCHEMES: Final = {"Basic", "Bearer", "Digest", "bearer"}


@dataclass(frozen=True, slots=True)
class AuthenticationGate:
    """Identifies the caller of an action, and refuses calls without the required caller or scopes.

    A caller is needed if one is `required` or there are `scopes`. `realm` is the site's name, `metadata_url`
    the address of its RFC 9728 document; both stand in challenges. `timeout` is in seconds. `trusts_route` says that
    the route behind the action identifies callers itself: credentials that we do not know may be valid there, and it
    judges the `route_scopes` of its own schemes. Wrong credentials are counted in the `store` by address. Valid ones
    need no step of the store, and pass whatever others behind the same address have sent.
    """

    authenticators: tuple[Authenticator, ...]
    required: bool
    scopes: tuple[str, ...]
    realm: str
    metadata_url: str | None = None
    timeout: float = CHECK_TIMEOUT
    trusts_route: bool = False
    route_scopes: frozenset[str] = frozenset()
    store: Store | None = None
    _challenges: Challenges = field(init=False, repr=False)
    _is_instant: bool = field(init=False, repr=False)
    _sole: Authenticator | None = field(init=False, repr=False)
    find_at_once: Callable[[bytes], Principal | None] | None = field(init=False, repr=False)
    """Finds the caller by the Authorization header alone, if that is possible; if None, use `identify`."""

    def __post_init__(self) -> None:
        # A timer costs more than a quick check, so checks that never wait go without one.
        is_instant = all(getattr(each, "is_instant", False) for each in self.authenticators)
        object.__setattr__(self, "_is_instant", is_instant)
        sole = self.authenticators[0] if is_instant and len(self.authenticators) == 1 else None
        object.__setattr__(self, "_sole", sole)
        # Only of this very class: a subclass may check more.
        object.__setattr__(self, "find_at_once", sole.find_at_once if type(sole) is BearerToken else None)
        challenges = challenges_of(self.authenticators, self.realm, self.scopes, self.metadata_url)
        object.__setattr__(self, "_challenges", challenges)

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None if unknown. Raises what `identify` and `require` raise."""
        principal = await self.identify(credentials)
        self.require(principal)
        return principal

    async def identify(self, credentials: Credentials) -> Principal | None:
        """Return the caller, whether that is sufficient or not; None if unknown.

        Raises InvalidCredentials and AuthExpired with WWW-Authenticate, RateLimited for too many wrong credentials,
        TemporarilyUnavailable if the checks take too long, HandlerFailed if one of them fails.
        """
        limit: asyncio.Timeout | None = None
        try:
            if self._sole is not None:
                return _with_scheme(await self._sole(credentials), self._sole)
            if self._is_instant:
                return await self._ask_all(credentials)
            async with asyncio.timeout(self.timeout) as limit:
                return await self._ask_all(credentials)
        except (InvalidCredentials, AuthExpired) as refusal:
            if self.trusts_route:
                return None
            if self._sole is not None:
                self._challenges.put_on(refusal, self._sole.challenge)
            # An expired token, or a valid one without its proof, is not a guess.
            if isinstance(refusal, InvalidCredentials) and not isinstance(refusal, InvalidProof):
                await self._count_wrong(credentials.address)
            raise
        except Problem:
            raise
        except Exception as error:  # neither lets the call pass nor logs what may be a secret
            if limit is not None and limit.expired():
                logger.error("checking credentials took longer than %g seconds", self.timeout)
                detail = "The site could not check the credentials in time."
                raise TemporarilyUnavailable(detail, headers=[("Retry-After", RETRY_AFTER)]) from None
            logger.error("checking credentials failed:\n%s", _without_secrets(error, credentials))
            raise HandlerFailed("The site could not check the credentials.") from None

    def require(self, principal: Principal | None, authorization: bytes | None = None) -> None:
        """Raise AuthenticationRequired or InsufficientScope, with WWW-Authenticate, unless the caller is sufficient.

        Raises InsufficientPermissions for scopes that a token has (its claim `scope`), and its person has not.
        `authorization` is the header of a caller whom no authenticator knows, perhaps because of its scheme.
        """
        if principal is None:
            if self.required or (self.scopes and not self.trusts_route):
                detail = "The action requires authentication."
                if authorization:
                    detail += " The header Authorization identifies nobody: compare its scheme with WWW-Authenticate."
                if demand := [header for each in self.authenticators for header in getattr(each, "demands", ())]:
                    problem = AuthenticationRequired(detail, headers=demand)
                    if not self._challenges.kinds:  # a signature has no scheme, so it is asked for with a 403
                        problem.status = 403
                    raise self._challenges.put_on(problem)
                raise self._challenges.put_on(AuthenticationRequired(detail))
            return
        missing = [scope for scope in self.scopes if scope not in principal.scopes]
        if missing and self.trusts_route and principal.scheme != "oauth2":  # the route looks itself for its own scopes
            missing = [scope for scope in missing if scope not in self.route_scopes]
        if missing and set(missing) <= set(str(principal.claims.get("scope", "")).split()):  # no other token would help
            detail = f"The token allows {', '.join(missing)}, but the person it stands for may not do that here."
            raise InsufficientPermissions(detail, members={"missing_scopes": missing})
        if missing:
            detail = f"The credentials lack the scopes {', '.join(missing)}."
            lacking = InsufficientScope(detail, members={"missing_scopes": missing})
            # A caller with a token that is bound to a key (RFC 9449 section 6.1) needs another such token.
            bound = principal.claims.get("cnf")
            is_bound = isinstance(bound, Mapping) and "jkt" in bound and BEARER in self._challenges.kinds
            raise self._challenges.put_on(lacking, DPOP if is_bound else None)

    async def _count_wrong(self, address: str) -> None:
        if self.store is None:
            return
        try:
            ran = await self.store.run((Count(f"wrong-credentials:{address}", MAX_WRONG, WRONG_WINDOW),))
        except StoreUnavailable:
            return  # the call is refused all the same
        if ran.failed is None:
            return
        seconds = max(1, math.ceil(cast(Counted, ran.seen[0]).seconds_left))
        raise RateLimited(
            "Too many calls with wrong credentials came from this address, this one included.",
            recovery=f"Wait for {in_seconds(seconds)}, then retry with valid credentials, or without any.",
            headers=[("Retry-After", str(seconds))],
            members={"retry_after": seconds},
        )

    async def _ask_all(self, credentials: Credentials) -> Principal | None:
        """Return the caller that the first authenticator finds.

        After a refusal only authenticators for the same kind of credentials are asked: somebody with a wrong token must
        not be taken for the user of a session cookie that their browser also sends.
        """
        refusal: Problem | None = None
        refused: str | None = None
        for authenticator in self.authenticators:
            if refused is not None and authenticator.challenge != refused:
                continue
            try:
                principal = await authenticator(credentials)
            except (InvalidCredentials, AuthExpired) as problem:
                if refusal is None or isinstance(problem, AuthExpired):
                    refusal, refused = problem, authenticator.challenge
                continue
            if principal is not None:
                return _with_scheme(principal, authenticator)
        if refusal is None:
            return None
        if refused == BEARER and credentials.headers.get("authorization", "")[:5].lower() == "dpop ":
            refused = DPOP
        raise self._challenges.put_on(refusal, refused)


def _with_scheme(principal: Principal | None, authenticator: Authenticator) -> Principal | None:
    """Return a caller who is known by an access token where its authenticator says so, whoever has written that."""
    if principal is None or principal.scheme is not None or authenticator.scheme != "oauth2":
        return principal
    return replace(principal, scheme="oauth2")


def _without_secrets(error: Exception, credentials: Credentials) -> str:
    """Return a traceback without what the caller sent: `TOKENS[token]` fails with the token as its message.

    If there are too many words to remove, or the text is too long, the message is left out altogether.
    """
    values = [value for name, value in credentials.headers.items() if not _HARMLESS.fullmatch(name)]
    words = {word for value in values for word in re.split(r"[\s,;=\"']+", value) if len(word) >= 4} - _SCHEMES
    text = "".join(traceback.format_exception(error))
    if len(words) > MAX_REDACTED_WORDS or len(text) > MAX_TRACEBACK:
        return "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
    for word in sorted(words, key=len, reverse=True):
        for spelled in (word, repr(word)[1:-1]):
            text = text.replace(spelled, "[sent by the caller]")
    return text
