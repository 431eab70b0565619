"""Calls with a token: they are made as the person of its grant would have made them, wherever they come in.

Whether that person is still signed in is asked of the site in each call: where it can be, in the request that reaches
the route, which is passed through the site's middleware anyway; else before its gates.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, cast

from awp_publish.browsing.addresses import WebAddress
from awp_publish.calls.call import Call, CallCarrier, Credentials, Deliver, Result
from awp_publish.calls.challenges import BEARER, DPOP, Challenges, challenges_of
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Scope, read_fields
from awp_publish.http.reentry import Run
from awp_publish.model import Action
from awp_publish.plugin import Context
from awp_publish.plugins.sign_in.at import SignInAt
from awp_publish.plugins.sign_in.bearers import SIGNED_OUT, UNKNOWN, check_key, identify, read_token
from awp_publish.plugins.sign_in.grants import ACCESS, Access, Grant
from awp_publish.plugins.sign_in.people import with_set_cookies
from awp_publish.problems import HandlerFailed, InvalidCredentials, InvalidProof, Problem, StoreUnavailable

logger: Final = logging.getLogger("awp_publish.calls")

_Ask: TypeAlias = Callable[[Scope, Grant], Awaitable[bool]]
"""Asks whether the person of a grant sends the request with a scope."""


class SignedInCalls:
    """Runs the calls of one address in the place of the person whose token they show."""

    def __init__(self, context: Context) -> None:
        self.at: SignInAt = context.ask("sign_in")
        self._proxies = context.admission.trusted_proxies
        self._guards = context.guards
        self._addresses: dict[str, WebAddress] = {}
        # Only a confirmation, and gates that act, do anything before the route that somebody else would see.
        is_quiet = not any(gate.acts for gate in context.guards.gates)
        asks = self.at.people.asks_at_route and is_quiet and self.at.options.as_user is None
        self.asked_at_route = frozenset(
            action.id
            for action in self.at.catalog.actions
            if asks and action.target is not None and action.target.arrival is not None and action.is_public
            if not (action.needs_confirmation or action.is_background)
        )
        """Actions whose calls ask at the route who is signed in."""

    async def __call__(self, run: Run, call: Call, deliver: Deliver) -> None:
        """Run a call with the person's cookies or headers. Its gates refuse a token that does not hold."""
        try:
            access = await self._find(call)
        except InvalidCredentials as problem:
            await deliver(self.refused(call, problem, DPOP if isinstance(problem, InvalidProof) else BEARER))
        except StoreUnavailable as problem:
            await deliver(problem)
        else:
            if access is not None and access.grant.person is not None:
                await _PersonCall(self, call, deliver, access).run(run)
                return
            if access is not None:
                call.identified = self.at.state.principal_of(access)

            async def deliver_challenged(result: Result) -> None:
                await deliver(self.challenged(call, result))

            await run(call, deliver_challenged)

    async def _find(self, call: Call) -> Access | None:
        """Return what a call's token stands for; None without one, or for one that the gates refuse.

        Raises InvalidCredentials for one that neither they nor the route would refuse as such.
        """
        authorization = call.members.authorization
        if authorization is None:  # the call has no gates, which would have read it, or is refused
            authorization = read_fields(cast(Scope, call.context).get("headers", ())).get(b"authorization")
        token, is_proven = read_token(authorization) if authorization is not None else (None, False)
        access = await self.at.grants.find(token) if token is not None else None
        if access is not None and token is not None and (access.grant.key or is_proven):
            await check_key(self.at.state, access, self.reader_of(call)(), token)
        if access is None and call.action.route_authenticates and (token or "").startswith(ACCESS):
            raise InvalidCredentials(UNKNOWN)
        return access

    def reader_of(self, call: Call) -> Callable[[], Credentials]:
        """Return what reads the credentials that the caller itself has sent."""
        return call.credentials if call.has_credentials else lambda: self.credentials_of(cast(Scope, call.context))

    def credentials_of(self, scope: Scope) -> Credentials:
        return read_credentials(scope, read_fields(scope["headers"]), self._proxies)

    def address_of(self, action: Action) -> WebAddress:
        """Return the address for whose path a call sends cookies, and keeps those that are set."""
        if action.target is None:
            return self.at.home
        if action.id not in self._addresses:
            self._addresses[action.id] = self.at.address_of_cookies(action.target.path)
        return self._addresses[action.id]

    def challenged(self, call: Call, result: Result) -> Result:
        """Say where people sign in, if a route itself refuses somebody unknown: it cannot know that."""
        if not isinstance(result, Problem) or result.status != 401:
            return result
        challenges = [value for name, value in result.headers if name.lower() == "www-authenticate"]
        if not any("resource_metadata=" in challenge for challenge in challenges):
            ours = Challenges((BEARER,), self._guards.realm, call.action.scopes, self._guards.metadata_url)
            others = [challenge for challenge in challenges if challenge.partition(" ")[0].lower() != BEARER.lower()]
            ours.put_on(result)  # in place of all that were there
            result.headers = (*result.headers, *(("WWW-Authenticate", challenge) for challenge in others))
        return result

    def refused(self, call: Call, problem: InvalidCredentials, challenge: str) -> Problem:
        """Return the refusal of a call whose token does not hold, and whose caller need not know of the action."""
        if not call.action.is_public:
            return call.unknown()
        challenge_facts = self._guards.authenticators, self._guards.realm, call.action.scopes, self._guards.metadata_url
        return challenges_of(*challenge_facts).put_on(problem, challenge)


class _PersonCall:
    """A call in the place of a person. No result is delivered before the site has said that it still knows them."""

    __slots__ = ("_access", "_address", "_at", "_call", "_calls", "_deliver", "_is_known", "_own", "_refusal", "_taken")
    _own: Scope

    def __init__(self, calls: SignedInCalls, call: Call, deliver: Deliver, access: Access) -> None:
        self._calls, self._at, self._call, self._deliver, self._access = calls, calls.at, call, deliver, access
        self._address = calls.address_of(call.action)
        self._is_known = False
        self._refusal: Problem | None = None
        self._taken: list[str] = []

    async def run(self, run: Run) -> None:
        """Run the call, asking the site on the way, or before."""
        call, at, access = self._call, self._at, self._access
        try:
            own = await at.recognize(cast(Scope, call.context), access.grant, self._address)
        except Exception:
            await self._deliver(self._failed())
            return
        if own is None:
            await self._deliver(self._signed_out())
            return
        read = self._calls.reader_of(call)
        carrier = call.carrier = CallCarrier(self._take)
        if call.action.id not in self._calls.asked_at_route:
            await self._run_asked_before(run, own, read())
        else:
            self._own = call.context = own
            call.credentials = lambda: read()._replace(session=None, user=None, scopes=frozenset())
            call.identified = at.state.principal_of(access)
            carrier.is_fresh = at.reentry.outside is not None
            carrier.on_arrival = self._arrive
            await run(call, self._deliver_known)
        call.carrier = None  # refers back to the call: a reference cycle

    async def _run_asked_before(self, run: Run, own: Scope, original: Credentials) -> None:
        """Ask who is signed in by a request of its own, and run the call in it."""
        at = self._at

        def put(call: Call, inner: Scope) -> None:
            """Make the call the person's, and leave the caller's own token and address to the gates."""
            now = self._calls.credentials_of(inner)
            credentials = original._replace(session=now.session, user=now.user, scopes=now.scopes)
            call.context, call.credentials = inner, lambda: credentials

        async def run_known(call: Call, deliver: Deliver) -> None:
            if await self._ask(at.is_signed_in, cast(Scope, call.context)):
                try:
                    call.identified = await identify(at.state, self._access, call.credentials())
                except Exception:  # nobody is let in because the site cannot tell who it is
                    self._refusal = self._failed()
                else:
                    self._refusal = None if call.identified is not None else self._signed_out()
            await (run(call, deliver) if self._refusal is None else deliver(self._refusal))

        await at.reentry.run(run_known, self._call, self._deliver_kept, own, put, self._taken)

    async def _ask(self, ask: _Ask, scope: Scope) -> bool:
        try:
            self._refusal = None if await ask(scope, self._access.grant) else self._signed_out()
        except Exception:
            self._refusal = self._failed()
        self._is_known = True
        return self._refusal is None

    async def _arrive(self, scope: Scope) -> bool:
        return await self._ask(self._at.is_person_of, scope)

    def _take(self, lines: list[bytes]) -> None:
        if lines:
            self._taken += [line.decode("latin-1") for line in lines]

    async def _deliver_known(self, result: Result) -> None:
        if not self._is_known and not (isinstance(result, Problem) and result.status >= 500):
            await self._ask(self._at.is_signed_in, await self._at.reentry.see(self._own))  # a gate has answered
        await self._deliver_kept(result if self._refusal is None else self._refusal)

    async def _deliver_kept(self, result: Result) -> None:
        """Deliver a result without its cookies: they are the grant's, and nothing that the caller should keep."""
        grant = self._access.grant
        if result.headers:
            result.headers = tuple(pair for pair in result.headers if not _sets_cookie(pair[0]))  # type: ignore[assignment]
        if self._taken:
            try:
                await self._at.grants.keep_cookies(
                    grant, lambda cookies: with_set_cookies(cookies, self._taken, self._address, time.time())
                )
            except StoreUnavailable:  # the caller gets the answer nevertheless
                logger.exception("the cookies of a grant are not kept (request_id=%s)", self._call.request_id)
        await self._deliver(self._calls.challenged(self._call, result))

    def _failed(self) -> HandlerFailed:
        logger.exception("the site could not tell who is signed in (request_id=%s)", self._call.request_id)
        return HandlerFailed("The site could not tell whether the person is still signed in.")

    def _signed_out(self) -> Problem:
        return self._calls.refused(self._call, InvalidCredentials(SIGNED_OUT), BEARER)


def _sets_cookie(name: bytes | str) -> bool:
    return name.lower() in (b"set-cookie", "set-cookie")
