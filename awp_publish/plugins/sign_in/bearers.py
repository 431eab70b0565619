"""Who shows a token of sign-in: for the gates of calls, and for requests that are no calls."""

import re
from dataclasses import replace
from typing import ClassVar, Final

from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.callers import Scheme
from awp_publish.calls.challenges import BEARER
from awp_publish.calls.sent_secrets import read_bearer_token, read_proven_token
from awp_publish.calls.verifiers import people_of
from awp_publish.plugins.sign_in.grants import ACCESS, Access
from awp_publish.plugins.sign_in.people import PEOPLE
from awp_publish.plugins.sign_in.site import SignInSite
from awp_publish.problems import InvalidBinding, InvalidCredentials, InvalidProof

_USUAL: Final = re.compile(rb"Bearer awp_at_[A-Za-z0-9_-]+")
UNKNOWN: Final = "The access token is unknown or has expired."
SIGNED_OUT: Final = "The person who allowed this has signed out and has to sign in again."


class SignInTokens:
    """Identifies the callers with tokens of this site's sign-in (`calls.callers.Authenticator`)."""

    scheme: ClassVar[Scheme] = "oauth2"
    method: ClassVar[str] = "oauth"
    challenge: ClassVar[str] = BEARER

    def __init__(self, state: SignInSite) -> None:
        self._state = state

    @property
    def kind(self) -> str:
        """The kind of caller: that of the authenticator that knows them at consent."""
        user = self._state.options.user or self._state.framework.user()
        return people_of(user) if hasattr(user, "challenge") else PEOPLE

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None without a bearer token. Raises InvalidCredentials."""
        token, is_proven = _read_token(credentials)
        if token is None or (is_proven and not token.startswith(ACCESS)):
            return None
        access = await self._state.grants.find(token)
        if access is None:
            raise InvalidCredentials(UNKNOWN)
        await check_key(self._state, access, credentials, token)
        # Asked for a request that is no call; a framework is asked by itself.
        grant, still_knows, principal = access.grant, self._state.still_knows, None
        asks = grant.person is not None and self._state.options.user is not None
        if not asks or (still_knows is not None and await still_knows(grant, credentials.address)):
            principal = await identify(self._state, access, credentials)
        if principal is None:
            raise InvalidCredentials(SIGNED_OUT)
        return principal


async def check_key(state: SignInSite, access: Access, credentials: Credentials, token: str) -> None:
    """Raise InvalidProof unless a request proves the key to which its token is bound (RFC 9449 section 7)."""
    is_proven, key = read_proven_token(credentials) is not None, access.grant.key
    if is_proven and not key:
        raise InvalidBinding("The token is not bound to a key, so it takes no proof: send it as Bearer.")
    if key and not is_proven:
        raise InvalidBinding("The token is bound to a key and was sent as a bearer token, without a proof.")
    if key and state.proofs is not None:
        await state.proofs.check(credentials.request, credentials.headers.get("dpop"), token, key)
    elif key:
        raise InvalidProof("This site cannot check proofs of keys at present.")


async def identify(state: SignInSite, access: Access, credentials: Credentials) -> Principal | None:
    """Return the caller with an access token; None if the framework knows its person no more.

    `credentials` are those of the request.
    """
    principal, options = state.principal_of(access), state.options
    if access.grant.person is None or options.user is not None:
        return principal
    cookies = {cookie.name: cookie.value for cookie in access.grant.cookies} if options.as_user is None else None
    scopes = await state.framework.permitted(principal.scopes, principal.id, credentials, cookies)
    return None if scopes is None else replace(principal, scopes=scopes)


def read_token(authorization: bytes) -> tuple[str | None, bool]:
    """Return the token of a header, and whether a proof is to belong to it; None for what the gates refuse too."""
    if _USUAL.fullmatch(authorization):
        return str(authorization[7:], "latin-1"), False
    try:
        return _read_token(Credentials({"authorization": authorization.decode("latin-1")}))
    except InvalidCredentials:
        return None, False


def _read_token(credentials: Credentials) -> tuple[str | None, bool]:
    """Return the same. Raises InvalidCredentials."""
    proven = read_proven_token(credentials)
    return (read_bearer_token(credentials), False) if proven is None else (proven, True)
