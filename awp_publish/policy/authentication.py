"""The gate that knows who calls: authenticators are asked in order, and a caller without the scopes goes no further."""

import asyncio
import logging
import math
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from awp_publish.policy.challenges import Challenges, challenges_of
from awp_publish.policy.principal import Authenticator, Credentials, Principal, Scheme
from awp_publish.policy.session import Custom
from awp_publish.problems import (
    AuthenticationRequired,
    AuthExpired,
    DeclarationError,
    HandlerFailed,
    InsufficientScope,
    InvalidCredentials,
    Problem,
    RateLimited,
    StoreUnavailable,
    TemporarilyUnavailable,
)
from awp_publish.stores.store import Count, Counted, Store

logger: Final = logging.getLogger("awp_publish.calls")

PATIENCE: Final = 10.0
"""Seconds that all checks of one call's credentials may take together."""

RETRY_AFTER: Final = "10"
"""Seconds after which a caller may try again when checks take too long."""

MAX_WRONG: Final = 20
WRONG_WINDOW: Final = 60.0
"""So many wrong credentials are answered with 401 to one address in so many seconds, and further ones with 429."""

_REMEDY: Final = (
    'Give BearerToken(...), ApiKey(...), JwtBearer(...), SessionUser("user_id"), ApplicationUser(), '
    "SharedSecret(...), a function (Credentials) -> Principal | str | None, or a list of these."
)

MOST_WORDS: Final = 200
LONGEST_TRACEBACK: Final = 100_000
"""Words of a caller's headers that are taken out of a traceback, and characters of it in which they are looked for."""

_HARMLESS: Final = re.compile(r"accept.*|connection|content-.*|host|origin|sec-.*|user-agent|x-forwarded-.*")
"""Headers that hold no secrets but words that a log may well need."""

_SCHEMES: Final = {"Basic", "Bearer", "Digest", "bearer"}


@dataclass(frozen=True, slots=True)
class AuthenticationGate:
    """Tells who makes a call of one action, and refuses the call if that is not enough.

    A caller is needed where one is `required` and where there are `scopes`. `realm` is the site's name, `metadata_url`
    the address of its RFC 9728 document; both stand in challenges. `patience` is in seconds. `trusts_route` says that
    the route behind the action knows callers in a way of its own: credentials that are wrong to us may be right to it.
    Wrong credentials are counted in the `store` against the address they come from. Only they are: right ones cost no
    step of the store, and pass whatever their neighbours behind the same address have sent.
    """

    authenticators: tuple[Authenticator, ...]
    required: bool
    scopes: tuple[str, ...]
    realm: str
    metadata_url: str | None = None
    patience: float = PATIENCE
    trusts_route: bool = False
    store: Store | None = None
    _challenges: Challenges = field(init=False, repr=False)
    _is_instant: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # A timer costs a quick call more than its check, so what never waits for anything goes without one.
        is_instant = all(getattr(one, "is_instant", False) for one in self.authenticators)
        object.__setattr__(self, "_is_instant", is_instant)
        challenges = challenges_of(self.authenticators, self.realm, self.scopes, self.metadata_url)
        object.__setattr__(self, "_challenges", challenges)

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Who calls, None for nobody known.

        Raises AuthenticationRequired, InvalidCredentials, AuthExpired and InsufficientScope with WWW-Authenticate,
        RateLimited for too many wrong credentials, TemporarilyUnavailable if the checks take too long, HandlerFailed if
        one of them fails.
        """
        try:
            principal = await self._ask_in_time(credentials)
        except (InvalidCredentials, AuthExpired) as refusal:
            if self.trusts_route:
                return None
            if isinstance(refusal, InvalidCredentials):  # nobody guesses what has only expired
                await self._count_wrong(credentials.address)
            raise
        if principal is None:
            if self.required or self.scopes:
                raise self._challenges.put_on(AuthenticationRequired("The action needs to know who calls."))
            return None
        missing = [scope for scope in self.scopes if scope not in principal.scopes]
        if missing:
            detail = f"The credentials lack the scopes {', '.join(missing)}."
            raise self._challenges.put_on(InsufficientScope(detail, members={"missing_scopes": missing}))
        return principal

    async def _count_wrong(self, address: str) -> None:
        if self.store is None:
            return
        try:
            ran = await self.store.run((Count(f"wrong-credentials:{address}", MAX_WRONG, WRONG_WINDOW),))
        except StoreUnavailable:
            return  # the refusal that is counted stands
        if ran.failed is None:
            return
        seconds = max(1, math.ceil(cast(Counted, ran.seen[0]).seconds_left))
        raise RateLimited(
            "Too many wrong credentials came from this address, these among them.",
            recovery="Wait for the seconds in Retry-After, then retry with credentials that you were given, or none.",
            headers=[("Retry-After", str(seconds))],
            members={"retry_after": seconds},
        )

    async def _ask_in_time(self, credentials: Credentials) -> Principal | None:
        """A check that fails must neither let the call pass nor show its exception, which may hold a secret."""
        limit: asyncio.Timeout | None = None
        try:
            if self._is_instant:
                return await self._ask_all(credentials)
            async with asyncio.timeout(self.patience) as limit:
                return await self._ask_all(credentials)
        except Problem:
            raise
        except Exception as error:
            if limit is not None and limit.expired():
                logger.error("checking credentials took longer than %g seconds", self.patience)
                raise _too_slow() from None
            logger.error("checking credentials failed:\n%s", _without_secrets(error, credentials))
            raise HandlerFailed("The site could not check the credentials.") from None

    async def _ask_all(self, credentials: Credentials) -> Principal | None:
        """The first who knows the caller wins.

        After a refusal only those are asked who take credentials of the same kind: somebody who sends a wrong token is
        not taken for the user of a session that their browser sends along.
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
                return principal
        if refusal is None:
            return None
        raise self._challenges.put_on(refusal, refused)


def read_authenticators(given: object) -> tuple[Authenticator, ...]:
    """What a site gave as its way, or ways, to know callers. Raises DeclarationError."""
    if given is None:
        return ()
    several = given if isinstance(given, (list, tuple)) else (given,)
    return tuple(_read_authenticator(one) for one in several)


def published_facts(authenticators: Sequence[Authenticator]) -> tuple[Scheme | None, tuple[str, ...]]:
    """What manifests say: agent.json's auth.type (the first there is), and AWAS's methods, in order."""
    scheme = next((one.scheme for one in authenticators if one.scheme is not None), None)
    return scheme, tuple(dict.fromkeys(one.method for one in authenticators))


def _read_authenticator(given: object) -> Authenticator:
    if isinstance(given, type):
        raise DeclarationError("site", f"{given.__name__} is a class, not a way to know callers.", _REMEDY)
    if not callable(given):
        raise DeclarationError("site", f"A value of type {type(given).__name__} knows no callers.", _REMEDY)
    if all(hasattr(given, name) for name in ("scheme", "method", "challenge")):
        authenticator: Authenticator = given  # type: ignore[assignment]
        return authenticator
    return Custom(given)


def _too_slow() -> TemporarilyUnavailable:
    detail = "The site could not check the credentials in time."
    return TemporarilyUnavailable(detail, headers=[("Retry-After", RETRY_AFTER)])


def _without_secrets(error: Exception, credentials: Credentials) -> str:
    """A traceback without what the caller sent: `TOKENS[token]` fails with the token as its message.

    Who sends many words, or long ones, is not worth looking for them all: then it goes without any message.
    """
    told = [value for name, value in credentials.headers.items() if not _HARMLESS.fullmatch(name)]
    words = {word for value in told for word in re.split(r"[\s,;=\"']+", value) if len(word) >= 4} - _SCHEMES
    text = "".join(traceback.format_exception(error))
    if len(words) > MOST_WORDS or len(text) > LONGEST_TRACEBACK:
        return "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
    for word in sorted(words, key=len, reverse=True):
        for spelled in (word, repr(word)[1:-1]):
            text = text.replace(spelled, "[sent by the caller]")
    return text
