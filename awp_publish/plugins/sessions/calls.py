"""Calls with a session."""

from dataclasses import replace
from typing import Final, cast

from awp_publish.browsing.addresses import WebAddress, parse_address
from awp_publish.calls.call import (
    SESSION_CHALLENGE,
    SESSION_HEADER,
    Call,
    CallCarrier,
    Deliver,
    Outcome,
    Result,
    key_of,
)
from awp_publish.http.client_address import TrustedProxies, client_address
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Fields, Scope, read_fields
from awp_publish.http.reentry import Reentry, Run
from awp_publish.plugin import Context
from awp_publish.plugins.sessions.cookies import CookieSessions, KeptSession, has_own_cookies, logger
from awp_publish.problems import Problem, SessionUnknown, StoreUnavailable, code_of
from awp_publish.stores.store import session_key

_NOT_KEPT: Final = "the cookies of action %s are not kept (request_id=%s)"


class SessionCalls:
    """Runs the calls of one catalog in their sessions."""

    def __init__(self, context: Context) -> None:
        self.sessions: CookieSessions = context.service
        self._catalog = catalog = context.catalog
        self._proxies: TrustedProxies = context.admission.trusted_proxies
        self._reentry = Reentry(context.application.called)
        guards = context.guards
        # The owner of a session is never identified by the session itself.
        others = tuple(authenticator for authenticator in guards.authenticators if authenticator.method != "session")
        self._identify = replace(guards.identify(), authenticators=others) if others else None
        self._identify_uncounted = replace(self._identify, store=None) if self._identify is not None else None
        self._addresses: dict[str, WebAddress] = {
            action.id: parse_address(catalog.absolute(action.target.path if action.target else catalog.paths.invoke))
            for action in catalog.actions
        }
        self._address = parse_address(catalog.absolute(catalog.paths.invoke))
        """The address of actions that do not exist."""
        self._recovery: str | None = None
        if (sign_in := catalog.sign_in) is not None and code_of(SessionUnknown.slug) not in catalog.site.errors:
            self._recovery = (
                f"Leave the session out and call {sign_in.id}, then send the {SESSION_CHALLENGE} of its answer: in the "
                f"header {SESSION_CHALLENGE}, or as session beside the input."
            )

    async def __call__(self, run: Run, call: Call, deliver: Deliver) -> None:
        """Run a call in its session. Delivers SessionUnknown if it is unknown or belongs to another caller."""
        if call.carrier is not None:  # what carries the call keeps them: it has a session of its own
            await run(call, deliver)
            return
        scope = cast(Scope, call.context)
        fields = read_fields(scope["headers"])
        at = self._addresses.get(call.action.id, self._address)
        if call.has_cookie_jar or has_own_cookies(fields.get(b"cookie", b"").decode("latin-1")):
            if SESSION_HEADER in fields:
                self._put_scope(call, with_cookies(scope, ""))
            await run(call, deliver)
            return
        try:
            session = await self._find(call)
        except Problem as problem:
            if call.action.is_public:
                await deliver(problem)
            else:
                call.objection = problem
                await run(call, deliver)
            return
        if session is None:
            await self._run_outside(run, call, deliver, fields, at)
        else:
            await self._run_in(session, run, call, deliver, at)

    async def _run_outside(self, run: Run, call: Call, deliver: Deliver, fields: Fields, at: WebAddress) -> None:
        """Run a call that has no session. One begins if the call sets cookies that are worth keeping."""
        scope, new_cookies, new_id = cast(Scope, call.context), list[str](), ""
        conversation = call.conversation
        # Others may know one that is shown, and who signs in gets an id that nobody else knows.
        if conversation is not None and not conversation.is_shown and self.sessions.is_own(conversation.id):
            new_id = conversation.id

        def take(set_cookies: list[bytes]) -> None:
            nonlocal new_id
            new_cookies.extend(cookie.decode("latin-1") for cookie in set_cookies)
            if new_cookies and self.sessions.are_worth_keeping(new_cookies, at):
                new_id = new_id or self.sessions.new_id()
                call.session_id = session_key(new_id)

        async def hand_out(result: Result) -> None:
            if call.session_id:
                address = client_address(scope, fields, self._proxies)
                try:  # without cookies, a caller with an id was identified by other credentials
                    if await self.sessions.begin(session_key(new_id), call.caller_key, address, new_cookies, at):
                        call.headers += ((SESSION_HEADER, new_id.encode()),)
                except StoreUnavailable:  # the caller gets the answer nevertheless
                    logger.exception(_NOT_KEPT, call.action.id, call.request_id)
            await deliver(result)

        call.carrier = CallCarrier(take, self._reentry.outside is not None)
        await run(call, hand_out)
        call.carrier = None  # refers back to the call: a reference cycle

    async def _run_in(self, session: KeptSession, run: Run, call: Call, deliver: Deliver, at: WebAddress) -> None:
        """Run a call with the cookies of its session, and keep those that it sets."""
        new_cookies: list[str] = []
        call.session_id = session.key
        call.carrier = CallCarrier(lambda lines: new_cookies.extend(line.decode("latin-1") for line in lines))

        async def keep(result: Result) -> None:
            # The cookies stay in the session: a client that stored them would send them instead of the session's id.
            if isinstance(result, Outcome):
                result.headers = tuple(pair for pair in result.headers if pair[0] != b"set-cookie")
            else:
                result.headers = tuple(pair for pair in result.headers if pair[0].lower() != "set-cookie")
            try:
                renewed = await self.sessions.update(session, new_cookies, at)
                if renewed is not None:
                    call.headers += ((SESSION_HEADER, renewed.encode()),)
            except StoreUnavailable:  # the caller gets the answer nevertheless
                logger.exception(_NOT_KEPT, call.action.id, call.request_id)
            await deliver(result)

        scope = with_cookies(cast(Scope, call.context), self.sessions.header_for(session, at))
        await self._reentry.run(run, call, keep, scope, self._put_scope, new_cookies)

    async def _find(self, call: Call) -> KeptSession | None:
        """Return the session of a call, None if it has none. Raises SessionUnknown, StoreUnavailable."""
        sent_id, conversation = call.members.session, call.conversation
        session_id = sent_id or (conversation.id if conversation is not None else "")
        if sent_id is None and not self.sessions.is_own(session_id):
            return None
        session = await self.sessions.find(session_id)
        if session is not None and session.owner != await self._own_id(call, session.owner):
            session = None
        if session is None and sent_id is not None:
            raise self._unknown()
        return session

    async def _own_id(self, call: Call, owner: str) -> str:
        """Return the id of a caller identified by credentials other than the session, "" for an anonymous one."""
        if self._identify is None or self._identify_uncounted is None:
            return ""
        # The call's own gate refuses wrong credentials, and counts them, unless the call ends here.
        ends_here = bool(owner) and not call.action.route_authenticates
        identify = self._identify if ends_here and call.action.is_public else self._identify_uncounted
        try:
            principal = await identify(call.credentials())
        except Problem:
            if ends_here:
                raise
            return ""
        return key_of(principal)

    def _put_scope(self, call: Call, scope: Scope) -> None:
        call.context, before = scope, call.credentials
        original, now = before(), read_credentials(scope, read_fields(scope["headers"]), self._proxies)
        credentials = now._replace(address=original.address, signed=original.signed)
        call.credentials = lambda: credentials

    async def visit(self, scope: Scope) -> Scope:
        """Return the scope of a request that is not a call, as the outer middleware sets it for the request's session.

        Raises SessionUnknown, StoreUnavailable.
        """
        fields = read_fields(scope["headers"])
        session_id = fields.get(SESSION_HEADER, b"").decode("latin-1").strip()
        if not session_id or has_own_cookies(fields.get(b"cookie", b"").decode("latin-1")):
            return scope
        session, own = await self.sessions.find(session_id), ""
        if self._identify is not None:
            principal = await self._identify(read_credentials(scope, fields, self._proxies))
            own = key_of(principal)
        if session is None or session.owner != own:
            raise self._unknown()
        cookies = self.sessions.header_for(session, parse_address(self._catalog.absolute("/")))
        changed = with_cookies(scope, cookies)
        return await self._reentry.see(changed)

    def _unknown(self) -> SessionUnknown:
        detail, challenge = "This session is unknown or has ended.", [("WWW-Authenticate", SESSION_CHALLENGE)]
        return SessionUnknown(detail, recovery=self._recovery, headers=challenge)


def with_cookies(scope: Scope, cookies: str) -> Scope:
    """Return a scope with additional cookies, and without the session's id, which the application must not see."""
    headers = [pair for pair in scope["headers"] if pair[0] != SESSION_HEADER]
    if cookies:
        headers.append((b"cookie", cookies.encode("latin-1", "replace")))
        joined = read_fields(headers)[b"cookie"]
        headers = [*(pair for pair in headers if pair[0] != b"cookie"), (b"cookie", joined)]
    return {**scope, "headers": headers}
