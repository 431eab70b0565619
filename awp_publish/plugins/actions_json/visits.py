"""Pages of the site in this process: one for each caller who names no other runtime."""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import orjson

from awp_publish.browsing.addresses import Origins, parse_address
from awp_publish.browsing.browser import SessionLimits
from awp_publish.browsing.compiled import PageCache
from awp_publish.browsing.cookies import write_set_cookie
from awp_publish.browsing.session import Session
from awp_publish.calls.call import PART_OF_ANSWER, RECEIPT, SESSION_CHALLENGE, SESSION_HEADER, Outcome, share_of
from awp_publish.http.doors import session_ids_of
from awp_publish.http.handshake import own_urls
from awp_publish.http.inner_calls import InnerCall, InnerCalls
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.sockets import ADDRESS_SHARE, IDLE_SECONDS, room_for_unknown
from awp_publish.maps.runtime import HandlerCall, Runtime
from awp_publish.maps.site_page import SitePage
from awp_publish.plugin import Context
from awp_publish.plugins.actions_json.items import ANSWER_HEADERS, IN_PROCESS, PROTOCOL, refusal_of
from awp_publish.plugins.actions_json.offers import Offers
from awp_publish.plugins.actions_json.runtimes import BridgeCall, Owner, SiteRuntime, agent_of
from awp_publish.plugins.actions_json.tools import HANDLER
from awp_publish.problems import Problem, SessionUnknown, StoreUnavailable
from awp_publish.stores.store import session_key

logger: Final = logging.getLogger("awp_publish.calls")


class Visits:
    """The pages of one public address of a site. `inner` sends the calls of their handlers."""

    def __init__(self, door: Context, offers: Offers, inner: InnerCalls, renderer: ProblemRenderer) -> None:
        self._door, self._offers, self._inner, self._renderer = door, offers, inner, renderer
        self._visits: OrderedDict[str, SiteRuntime] = OrderedDict()
        self._cache = PageCache()
        self._origins = Origins.of(*own_urls(door))

    def visit(self, owner: Owner, runtime_id: str | None, address: str) -> SiteRuntime | None:
        """Return a caller's page in this process, None if the id is that of another caller's.

        If no id is given and there is no page yet, open one.
        """
        if runtime_id not in (None, IN_PROCESS):
            visit = self._visits.get(runtime_id)
            # An anonymous caller proves ownership by the id, which cannot be guessed.
            is_known = visit is not None and visit.owner is not None and bool(visit.owner.key)
            return None if visit is None or (is_known and visit.owner is not owner) else visit
        if owner.visit is None or owner.visit.id not in self._visits:
            self._make_room(owner, address)
            limits = SessionLimits(pages=1)
            session = Session(self._origins, limits=limits, cache=self._cache)
            owner.visit = visit = SiteRuntime(f"{IN_PROCESS}.{secrets.token_urlsafe(18)}", owner, session, address)
            self._visits[visit.id] = visit

            async def invoke(handled: HandlerCall) -> object:
                return await self._invoke(visit, handled)

            page = SitePage(session, visit.drive)
            visit.runtime = Runtime(
                self._offers.map_of(owner), page, handlers={HANDLER: invoke}, seconds=self._door.settings.limits.timeout
            )
        return owner.visit

    def _make_room(self, owner: Owner, address: str) -> None:
        """End pages that nobody uses, and one too many: of the caller's share, of unknown callers, of all."""
        most, now = self._door.options.sessions, asyncio.get_running_loop().time()
        while self._visits:
            oldest = next(iter(self._visits.values()))
            if oldest.current is not None or now - oldest.last_used <= IDLE_SECONDS:
                break
            del self._visits[oldest.id]
        visits = [*self._visits.values()]
        groups = [(most, visits)]
        if not owner.principal:
            groups.insert(0, (room_for_unknown(most), [visit for visit in visits if not visit.principal]))
        if owner.principal or address:
            share = share_of(owner.principal, address)
            own = [visit for visit in visits if share_of(visit.principal, visit.address) == share]
            groups.insert(0, (max(most // ADDRESS_SHARE, 1), own))
        for limit, visits in groups:
            if len(visits) >= limit:
                idle = next((visit for visit in visits if visit.current is None), visits[0])
                self._visits.pop(idle.id, None)
                break

    async def _invoke(self, visit: SiteRuntime, handled: HandlerCall) -> object:
        """Call an action for a page in this process, with the page's cookies. Raises RuntimeFailure."""
        binding = agent_of(handled)
        agent, operation = str(binding["agent_id"]), binding.get("operation")
        assert visit.site is not None
        members = dict(visit.current.members) if visit.current is not None else {}
        receipts = members.get("receipts")
        listed = receipts if isinstance(receipts, list) else []
        members["receipts"] = [*listed, *visit.receipts.values()]
        trace, is_repeatable = secrets.token_hex(16), False
        try:
            action = self._door.invoker.offers.find(PROTOCOL, agent, operation if isinstance(operation, str) else None)
            is_repeatable = action.is_repeatable
            if not action.requires:
                del members["receipts"]
            self._door.admission.check_size(action, len(orjson.dumps(handled.arguments)))
            inner = InnerCall(action, handled.arguments, members, trace)
            # If the call has a session, the cookies of that session are used instead of the page's.
            session = visit.session if "session" not in members else None
            result, added = await self._inner.send(inner, visit.site, None, session)
        except Problem as problem:
            result, added = problem, ()
        own = result.headers if isinstance(result, Outcome) else ()
        names = PART_OF_ANSWER.union(ANSWER_HEADERS, action.answer_headers) if own else ANSWER_HEADERS
        for name, value in (*added, *own):
            if name in names and visit.current is not None:
                visit.current.headers[name.decode("latin-1")] = value.decode("latin-1")
            if name == RECEIPT:
                visit.receipts[handled.tool] = value.decode("latin-1")
        if isinstance(result, Problem):
            raise refusal_of(result, self._renderer, trace, is_repeatable=is_repeatable) from result
        return result.output

    def note_use(self, visit: SiteRuntime) -> None:
        """Record that a page is used, so that others are ended before it."""
        visit.last_used = asyncio.get_running_loop().time()
        self._visits.move_to_end(visit.id)

    def end(self, visit: SiteRuntime) -> None:
        self._visits.pop(visit.id, None)

    def end_all(self) -> None:
        self._visits.clear()

    @asynccontextmanager
    async def in_session(self, page: Session, owner: Owner, call: BridgeCall) -> AsyncIterator[None]:
        """Load the cookies of a call's session into a page, and save the page's changes to them afterwards.

        Raises RuntimeFailure if the session is unknown or belongs to another caller.
        """
        sessions, token = session_ids_of(self._door), call.members.get("session")
        if sessions is None or not (call.session_key or token):
            yield
            return
        try:
            # The owner of a session from a request's headers has been checked already.
            stored = await (sessions.find(str(token)) if token else sessions.load(call.session_key))
            if stored is None or (token and stored.owner and owner.principal != stored.owner):
                challenge = [("WWW-Authenticate", SESSION_CHALLENGE)]
                raise SessionUnknown("This session is unknown or has ended.", headers=challenge)
        except Problem as problem:
            raise refusal_of(problem, self._renderer) from problem
        jar, clock, before = page.browser.jar, page.browser.clock, {cookie.key: cookie for cookie in stored.jar}
        jar.remove(tuple(jar))
        for cookie in stored.jar:
            jar.store(cookie, clock())
        try:
            yield
        finally:
            jar.drop_expired(clock())
            after = {cookie.key: cookie for cookie in jar}
            gone = [replace(cookie, value="", expires=0.0) for key, cookie in before.items() if key not in after]
            changed = [cookie for key, cookie in after.items() if cookie != before.get(key)]
            if gone or changed:
                at = parse_address(self._door.catalog.absolute("/"))
                try:
                    cookies = [write_set_cookie(cookie, clock()) for cookie in (*gone, *changed)]
                    if (renewed := await sessions.update(stored, cookies, at)) is not None:
                        call.headers[SESSION_HEADER.decode()] = renewed
                        if call.peer is not None and not token:
                            call.peer.session_key = session_key(renewed)
                except StoreUnavailable:  # the caller gets the answer nevertheless
                    logger.exception("the cookies of a page were not kept in the session (call %s)", call.call_id)
