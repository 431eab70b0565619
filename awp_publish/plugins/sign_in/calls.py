"""Calls with a token: they are made as the person of its grant would have made them, wherever they come in."""

import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final, TypeAlias, cast

from awp_publish.browsing.addresses import WebAddress, parse_address
from awp_publish.calls.call import Call, Credentials, Deliver, Principal, Result
from awp_publish.calls.callers import Scheme
from awp_publish.calls.challenges import BEARER, DPOP, Challenges, challenges_of
from awp_publish.calls.sent_secrets import read_bearer_token, read_proven_token
from awp_publish.calls.verifiers import people_of
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Scope, read_fields
from awp_publish.http.reentry import Run
from awp_publish.model import Action
from awp_publish.plugin import Context
from awp_publish.plugins.sign_in.at import SignInAt, SignInSite
from awp_publish.plugins.sign_in.grants import ACCESS, Access, Grant
from awp_publish.plugins.sign_in.people import PEOPLE, with_set_cookies
from awp_publish.problems import (
    HandlerFailed,
    InvalidBinding,
    InvalidCredentials,
    InvalidProof,
    Problem,
    StoreUnavailable,
)

logger: Final = logging.getLogger("awp_publish.calls")

_Find: TypeAlias = Callable[[Scope, Grant], Awaitable[bool]]

_USUAL: Final = re.compile(rb"Bearer awp_at_[A-Za-z0-9_-]+")
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
        if access is not None:
            await check_key(self._state, access, credentials, token)
            if not await self._is_signed_in(access.grant, credentials.address):
                raise InvalidCredentials(SIGNED_OUT)
        principal = await identify(self._state, access, credentials) if access is not None else None
        if principal is None:
            raise InvalidCredentials("The access token is unknown or has expired." if access is None else SIGNED_OUT)
        return principal

    async def _is_signed_in(self, grant: Grant, address: str) -> bool:
        """Ask the site about the person of a grant, for a request that is no call; a framework is asked by itself."""
        if grant.person is None or self._state.options.user is None:
            return True
        return self._state.at is not None and await self._state.at.still_knows(grant, address)


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


class SignedInCalls:
    """Runs the calls of one address in the place of the person whose token they show.

    Whether that person is still signed in is asked of the site in each call: where it can be, in the request that
    reaches the route, which is passed through the site's middleware anyway; else before its gates.
    """

    def __init__(self, context: Context) -> None:
        self._at: SignInAt = context.ask("sign_in")
        self._proxies = context.admission.trusted_proxies
        self._guards = context.guards
        self._addresses: dict[str, WebAddress] = {}
        # Only a confirmation, and gates of plug-ins, do anything before the route that somebody else would see.
        asks = self._at.people.asks_at_route and not context.guards.gates and self._at.options.as_user is None
        self._asks_at_route = frozenset(
            action.id
            for action in self._at.catalog.actions
            if asks and action.target is not None and action.target.arrival is not None and action.is_public
            if not (action.needs_confirmation or action.is_background)
        )

    async def __call__(self, run: Run, call: Call, deliver: Deliver) -> None:
        """Run a call with the person's cookies or headers. Its gates refuse a token that does not hold."""

        async def deliver_challenged(result: Result) -> None:
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
        token, is_proven = _token_of(cast(Scope, call.context))
        try:
            access = await self._at.grants.find(token) if token is not None else None
            if access is not None and token is not None and (access.grant.key or is_proven):
                await check_key(self._at.state, access, self._reader_of(call)(), token)
        except InvalidProof as problem:
            await deliver(self._refused(call, problem, DPOP))
            return
        except StoreUnavailable as problem:
            await deliver(problem)
            return
        if access is None:
            await run(call, deliver)
        elif access.grant.person is None:
            call.identified = self._at.state.principal_of(access)
            await run(call, deliver)
        else:
            await self._run_as(run, call, deliver, access)

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

    def _signed_out(self, call: Call) -> Problem:
        return self._refused(call, InvalidCredentials(SIGNED_OUT), BEARER)

    def _refused(self, call: Call, problem: InvalidCredentials, challenge: str) -> Problem:
        """Return the refusal of a call whose token does not hold, and whose caller need not know of the action."""
        if not call.action.is_public:
            return call.unknown()
        known = self._guards.authenticators, self._guards.realm, call.action.scopes, self._guards.metadata_url
        return challenges_of(*known).put_on(problem, challenge)

    async def _run_as(self, run: Run, call: Call, deliver: Deliver, access: Access) -> None:
        at, grant, taken, address = self._at, access.grant, list[str](), self._address_of(call.action)
        try:
            own = await at.recognize(cast(Scope, call.context), grant, address)
        except Exception:
            await deliver(self._failed(call))
            return
        if own is None:
            await deliver(self._signed_out(call))
            return

        async def keep(result: Result) -> None:
            if grant.cookies and result.headers:  # they are the grant's, and nothing that the caller should keep
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
        if call.action.id in self._asks_at_route:
            await self._run_asking_at_route(run, call, keep, own, access)
            return
        shown = self._reader_of(call)()

        def put(call: Call, inner: Scope) -> None:
            """Make the call the person's, and leave the caller's own token and address to the gates."""
            now = read_credentials(inner, read_fields(inner["headers"]), self._proxies)
            credentials = shown._replace(session=now.session, user=now.user, scopes=now.scopes)
            call.context, call.credentials = inner, lambda: credentials

        async def run_known(call: Call, deliver: Deliver) -> None:
            try:
                holds = await at.is_signed_in(cast(Scope, call.context), grant)
                call.identified = await identify(at.state, access, call.credentials()) if holds else None
            except Exception:  # nobody is let in because the site cannot tell who it is
                await deliver(self._failed(call))
                return
            await (run(call, deliver) if call.identified is not None else deliver(self._signed_out(call)))

        await at.reentry.run(run_known, call, keep, own, put, taken)

    def _reader_of(self, call: Call) -> Callable[[], Credentials]:
        """Return what reads the credentials that the caller itself has sent."""
        if call.has_credentials:
            return call.credentials
        scope = cast(Scope, call.context)  # the call has no gates, which would have read them
        return lambda: read_credentials(scope, read_fields(scope["headers"]), self._proxies)

    async def _run_asking_at_route(self, run: Run, call: Call, deliver: Deliver, own: Scope, access: Access) -> None:
        """Run a call whose request to the route asks who is signed in, on the way there.

        No result is delivered before that is known, wherever it comes from.
        """
        at, grant, read = self._at, access.grant, self._reader_of(call)
        refusal: Problem | None = None
        is_known = False

        async def ask(find: _Find, inner: Scope) -> bool:
            nonlocal refusal, is_known
            try:
                refusal = None if await find(inner, grant) else self._signed_out(call)
            except Exception:
                refusal = self._failed(call)
            is_known = True
            return refusal is None

        async def deliver_known(result: Result) -> None:
            is_failure = isinstance(result, Problem) and result.status >= 500
            if not is_known and not is_failure:  # a gate or middleware has answered
                await ask(at.is_signed_in, await at.reentry.see(own))
            await deliver(result if refusal is None else refusal)

        call.context = own
        call.credentials = lambda: read()._replace(session=None, user=None, scopes=frozenset())
        call.identified = at.state.principal_of(access)
        call.is_fresh = at.reentry.outside is not None
        call.on_arrival = partial(ask, at.is_person_of)
        await run(call, deliver_known)


def _read_token(credentials: Credentials) -> tuple[str | None, bool]:
    """Return the token that a request shows, and whether a proof is to belong to it. Raises InvalidCredentials."""
    proven = read_proven_token(credentials)
    return (read_bearer_token(credentials), False) if proven is None else (proven, True)


def _token_of(scope: Scope) -> tuple[str | None, bool]:
    """Return the same as `_read_token`, and None for what it refuses: the gates refuse it too."""
    shown = read_fields(scope.get("headers", ())).get(b"authorization", b"")
    if _USUAL.fullmatch(shown):
        return str(shown[7:], "latin-1"), False
    try:
        return _read_token(Credentials({"authorization": shown.decode("latin-1")}))
    except InvalidCredentials:
        return None, False


def _name(name: bytes | str) -> str:
    return (name.decode("latin-1") if isinstance(name, bytes) else name).lower()
