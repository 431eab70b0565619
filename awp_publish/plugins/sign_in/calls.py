"""Calls with a token: they are made as the person of its grant would have made them, wherever they come in."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar, Final, cast

from awp_publish.browsing.addresses import WebAddress, parse_address
from awp_publish.calls.authentication import BEARER, Challenges, Scheme, people_of, read_bearer_token
from awp_publish.calls.call import Call, Credentials, Deliver, Outcome, Principal
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Scope, read_fields
from awp_publish.http.reentry import Run
from awp_publish.model import Action
from awp_publish.plugin import Context
from awp_publish.plugins.sign_in.at import SignInAt, SignInSite
from awp_publish.plugins.sign_in.grants import Grant
from awp_publish.plugins.sign_in.people import PEOPLE, with_set_cookies
from awp_publish.problems import HandlerFailed, InvalidCredentials, Problem, StoreUnavailable

logger: Final = logging.getLogger("awp_publish.calls")

SIGNED_OUT: Final = "The person who allowed this has signed out and has to sign in again."
CLIENT: Final = "client:"
"""What stands before the id of a client that acts for itself."""

_KNOWN: Final[ContextVar[tuple[str, Grant | None] | None]] = ContextVar("awp_publish_sign_in_grant", default=None)
"""The token of the call that this task handles, with its grant; None in place of a grant that does not hold."""


class SignInTokens:
    """Identifies the callers with tokens of this site's sign-in (`calls.authentication.Authenticator`)."""

    scheme: ClassVar[Scheme] = "oauth2"
    method: ClassVar[str] = "oauth"
    challenge: ClassVar[str] = BEARER

    def __init__(self, state: SignInSite) -> None:
        self._state = state

    @property
    def kind(self) -> str:
        """Who vouches for people: the authenticator that knows them at consent."""
        user = self._state.options.user or self._state.framework.user()
        return people_of(user) if hasattr(user, "challenge") else PEOPLE

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None without a bearer token. Raises InvalidCredentials."""
        token = read_bearer_token(credentials)
        if token is None:
            return None
        known = _KNOWN.get()
        if known is not None and known[0] == token:
            if known[1] is None:
                raise InvalidCredentials(SIGNED_OUT)
            grant: Grant | None = known[1]
        else:
            grant = await self._state.grants.find(token)
        granted = grant.scopes_of(token, time.time()) if grant is not None else None
        if grant is None or granted is None:
            raise InvalidCredentials("The access token is unknown or has expired.")
        claims: dict[str, object] = {"client_id": grant.client, "exp": grant.end_of(token)}
        if grant.person is None:
            return Principal(CLIENT + grant.client, granted, claims, issuer=CLIENT)
        options = self._state.options
        granted |= self._state.permissions
        claims["scope"] = " ".join(sorted(granted))
        issuer, _, name = grant.person.partition(" ")
        scopes: frozenset[str] | None = granted
        if options.user is None:  # the framework knows the person by this name
            cookies = {one.name: one.value for one in grant.cookies} if options.as_user is None else None
            scopes = await self._state.framework.permitted(granted, name, credentials, cookies)
        if scopes is None:
            raise InvalidCredentials(SIGNED_OUT)
        return Principal(name, scopes, claims, issuer=issuer)


class SignedInCalls:
    """Runs the calls of one address in the place of the person whose token they show."""

    def __init__(self, context: Context) -> None:
        self._at: SignInAt = context.ask("sign_in")
        self._proxies = context.admission.trusted_proxies
        self._guards = context.guards
        self._addresses: dict[str, WebAddress] = {}

    async def __call__(self, run: Run, call: Call, deliver: Deliver) -> None:
        """Run a call with the person's cookies or headers. Its gates refuse a token that does not hold."""

        async def deliver_challenged(result: Outcome | Problem) -> None:
            if isinstance(result, Problem) and result.status == 401:
                self._challenge(result, call.action)
            await deliver(result)

        await self._run(run, call, deliver_challenged)

    def _challenge(self, problem: Problem, action: Action) -> None:
        """Say where people sign in, if a route itself refuses somebody unknown: it cannot know that."""
        shown = [value for name, value in problem.headers if name.lower() == "www-authenticate"]
        if any("resource_metadata=" in challenge for challenge in shown):
            return
        ours = Challenges((BEARER,), self._guards.realm, action.scopes, self._guards.metadata_url)
        others = [challenge for challenge in shown if challenge.partition(" ")[0].lower() != BEARER.lower()]
        ours.put_on(problem)  # in place of all that were there
        problem.headers = (*problem.headers, *(("WWW-Authenticate", challenge) for challenge in others))

    async def _run(self, run: Run, call: Call, deliver: Deliver) -> None:
        scope = cast(Scope, call.context)
        token = _token_of(scope)
        try:
            grant = await self._at.grants.find(token) if token is not None else None
        except StoreUnavailable as problem:
            await deliver(problem)
            return
        if token is None or grant is None:
            await run(call, deliver)
        elif grant.person is None:
            with _known(token, grant):
                await run(call, deliver)
        else:
            await self._run_as(run, call, deliver, scope, token, grant)

    def _address_of(self, action: Action) -> WebAddress:
        """Return the address for whose path a call sends cookies, and keeps those that are set."""
        if action.target is None:
            return self._at.home
        if action.id not in self._addresses:
            self._addresses[action.id] = parse_address(self._at.catalog.absolute(action.target.path))
        return self._addresses[action.id]

    def _failed(self, call: Call) -> HandlerFailed:
        logger.exception("the site could not tell who is signed in (request_id=%s)", call.request_id)
        return HandlerFailed("The site could not tell whether the person is still signed in.")

    async def _run_as(self, run: Run, call: Call, deliver: Deliver, scope: Scope, token: str, grant: Grant) -> None:
        at, taken, address = self._at, list[str](), self._address_of(call.action)
        try:
            own = await at.recognize(scope, grant, address)
        except Exception:
            await deliver(self._failed(call))
            return
        if own is None:
            with _known(token, None):
                await run(call, deliver)
            return
        shown = call.credentials()
        if not shown.headers:  # the call has no gates, which would have read them
            shown = read_credentials(scope, read_fields(scope["headers"]), self._proxies)

        def put(call: Call, inner: Scope) -> None:
            """Make the call the person's, and leave the caller's own token and address to the gates."""
            now = read_credentials(inner, read_fields(inner["headers"]), self._proxies)
            credentials = shown._replace(session=now.session, user=now.user, scopes=now.scopes)
            call.context, call.credentials = inner, lambda: credentials

        async def run_known(call: Call, deliver: Deliver) -> None:
            inner = cast(Scope, call.context)
            try:
                holds = await at.is_signed_in(inner, grant)
            except Exception:  # nobody is let in because the site cannot tell who it is
                await deliver(self._failed(call))
                return
            with _known(token, grant if holds else None):
                await run(call, deliver)

        async def keep(result: Outcome | Problem) -> None:
            if grant.cookies:  # they are the grant's, and nothing that the caller should keep
                result.headers = tuple(pair for pair in result.headers if _name(pair[0]) != "set-cookie")  # type: ignore[assignment]
            if taken:
                try:
                    await at.grants.keep_cookies(
                        grant, lambda cookies: with_set_cookies(cookies, taken, address, time.time())
                    )
                except StoreUnavailable:  # the caller gets the answer nevertheless
                    logger.exception("the cookies of a grant are not kept (request_id=%s)", call.request_id)
            await deliver(result)

        if grant.cookies:
            call.on_cookies = lambda lines: taken.extend(line.decode("latin-1") for line in lines)
            call.is_fresh = False
        await at.reentry.run(run_known, call, keep, own, put, taken)


@contextmanager
def _known(token: str, grant: Grant | None) -> Iterator[None]:
    """Tell the gates of one call what its token stands for: a connection may go on when the grant has ended."""
    before = _KNOWN.set((token, grant))
    try:
        yield
    finally:
        _KNOWN.reset(before)


def _token_of(scope: object) -> str | None:
    """Return the bearer token that a request shows, read as the gates read it; None for what they refuse."""
    if not isinstance(scope, dict) or "headers" not in scope:
        return None
    shown = read_fields(scope["headers"]).get(b"authorization")
    if shown is None:
        return None
    try:
        return read_bearer_token(Credentials({"authorization": shown.decode("latin-1")}))
    except InvalidCredentials:
        return None


def _name(name: bytes | str) -> str:
    return (name.decode("latin-1") if isinstance(name, bytes) else name).lower()
