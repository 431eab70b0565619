"""Calls the route of an action with one in-process ASGI request through the wrapped application.

The request is derived from the caller's own, so that the application's dependencies, authentication and middleware
apply. If no middleware of the site runs outside of us, `state`, `session` and `user` carry over. Otherwise the request
enters through the outermost middleware, which sets them anew.

It arrives at the action's own route or is refused: the value of a path parameter may lead to another action's route,
which would bypass that action's gates.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Final, cast

import orjson

from awp_publish.browsing.addresses import REDIRECTS
from awp_publish.calls.call import Call, Outcome, Result
from awp_publish.calls.hooks import Routes
from awp_publish.declare.discover import find_arrival
from awp_publish.http.arrivals import ELSEWHERE, GuardedScope, arrival_refusal, compare_arrivals
from awp_publish.http.encoding import Encoder
from awp_publish.http.exchange import Headers, Scope, read_fields
from awp_publish.http.page_request import PageAnswer
from awp_publish.http.position import CalledApplication
from awp_publish.http.redirects import PAGE_SECONDS, Follower, location_of
from awp_publish.http.route_answers import check_credentials, read_answer
from awp_publish.http.route_exchange import Rehearsal, RouteExchange
from awp_publish.model import ROUTE_CALL, Catalog, JsonObject, Target
from awp_publish.problems import HandlerFailed, HandlerRedirected, Problem
from awp_publish.schema import media

ARRIVED: Final = "awp_publish.arrived"
"""The scope member in which an adapter keeps the action whose route the request arrives at, once that is found."""

PASSED: Final = "awp_publish.passed"
"""The scope member with the id of the action whose gates a workflow has passed before it submits the action's form."""

logger: Final = logging.getLogger("awp_publish.calls")


class RouteCaller(Routes):
    """Sends calls to the routes of one ASGI application. If `catalog` is a part of a catalog, `among` is the whole.

    Raises DeclarationError for a route that another one hides.
    """

    def __init__(self, app: CalledApplication, catalog: Catalog, among: Catalog | None = None) -> None:
        self._app = app
        arrivals = compare_arrivals(app.routes, catalog, among or catalog)
        self._ways = {
            action.id: (Encoder(action, action.way), arrivals.get(action.id), _endpoint_of(action.entry))
            for action in catalog.actions
            if action.way is not None
        }
        self.codes = catalog.site.errors
        self._follower = Follower(catalog.url, app)

    def check(self, call: Call) -> None:
        action = call.action
        if action.way is not None:
            encoder, arrive, _ = self._ways[action.id]
            scope, _ = encoder.write(cast(Scope, call.context), call.input)
            if arrive is not None:
                arrive(scope)

    async def rehearse(self, call: Call) -> None:
        """Run only the route's security checks for a call. Raises the Problem of a 401 or 403.

        Any other answer, and any failure, is ignored: the call itself will run into it.
        """
        action = call.action
        check_credentials(call)
        if action.rehearsal is not None:
            await self._rehearse(call)
        if action.is_background:  # what the route's own code refuses would be a job that fails
            check_credentials(call, of_route=True)

    async def _rehearse(self, call: Call) -> None:
        app, action = self._app, call.action
        entrance = app.outside if call.carrier is not None and call.carrier.is_fresh else app.entrance
        scope, body = self._ways[action.id][0].write(cast(Scope, call.context), call.input)
        exchange = Rehearsal(call, body, self.codes, action.rehearsal)
        if entrance is not None:
            scope = app.from_outside(scope, call.request_id)
        scope[ROUTE_CALL] = exchange
        routed = find_arrival(app.routes, dict(scope))
        if routed is None or not routed.endpoints or routed.endpoints[-1] is not action.rehearsal:
            return
        scope = GuardedScope(scope, routed.endpoints, exchange)
        try:
            if entrance is None:
                await app.inside(scope, exchange.receive, exchange.send)
            else:
                await asyncio.ensure_future(entrance(scope, exchange.receive, exchange.send))
        except Exception:
            logger.exception("the security of action %s failed (request_id=%s)", action.id, call.request_id)
            return
        if exchange.status in (401, 403) and not exchange.is_closed:
            result = read_answer(call, exchange.status, exchange.headers, exchange.body, self.codes)
            if isinstance(result, Problem):
                raise result

    async def call(self, call: Call) -> Result:
        """Send a call to its route and return the answer. Raises a Problem, or whatever the application raises."""
        app = self._app
        if call.action.asker is not None and call.principal is None:  # callers have to sign in
            check_credentials(call)
        carrier = call.carrier
        entrance = app.outside if carrier is not None and carrier.is_fresh else app.entrance
        encoder, arrive, hidden = self._ways[call.action.id]
        scope, body = encoder.write(call.context, call.input)  # type: ignore[arg-type]
        exchange = RouteExchange(call, body, self.codes, hidden)
        if carrier is not None:
            exchange.on_headers = partial(self._take_cookies, call)
        if entrance is not None:
            exchange.outer_session = scope.get("session")
            exchange.session_cookies = app.session_cookies
            scope = app.from_outside(scope, call.request_id)
        # `way` has every endpoint that the routing may set in the scope on the way to the action's own.
        if arrive is not None and (way := arrive(scope)):
            scope = GuardedScope(scope, way, exchange)
        scope[ROUTE_CALL] = exchange
        try:
            if entrance is None:
                inside = app.inside
                await inside(scope, exchange.receive, exchange.send)
            else:  # in a task, so that context variables set by the middleware do not leak into the caller's
                await asyncio.ensure_future(entrance(scope, exchange.receive, exchange.send))
        except Exception:
            if exchange.is_closed:
                raise arrival_refusal(call.action, ELSEWHERE) from None
            if isinstance(call.answer, HandlerFailed):
                call.answer = None  # it was made from an exception that was then re-raised
            raise
        if exchange.is_closed:
            return arrival_refusal(call.action, ELSEWHERE)
        status = exchange.status
        if status >= 500 or status < 200:
            logger.error("action %s: its route answered %d (request_id=%s)", call.action.id, status, call.request_id)
        answer = call.answer
        if answer is None and exchange.is_streamed:
            return HandlerFailed(f"Action {call.action.id} ended in the middle of its answer.")
        if answer is None:
            answer = read_answer(call, status, exchange.headers, exchange.body, self.codes)
        if status in REDIRECTS and not call.run.is_delivered:
            call.answer = None  # what is at the address belongs to it
            answer = await self._follow(call, answer, exchange, scope)
        return answer

    async def _follow(self, call: Call, answer: Result, exchange: RouteExchange, sent: Scope) -> Result:
        """Return the answer to a call whose route redirects, with what is at that address."""
        follow = partial(self._follower.follow, call, sent, exchange.headers, exchange.kept)
        if isinstance(answer, HandlerRedirected) and not call.action.is_write:
            page = await follow(b"application/json")
            if page is None:
                return answer
            if isinstance(page, str):
                return Outcome(orjson.dumps({"location": page}), {"location": page}, redirect=page)
            self._take_cookies(call, page.headers)
            followed = read_answer(call, page.status, page.headers, page.body, self.codes)
            if isinstance(followed, Outcome):
                followed.redirect = location_of(exchange.headers)
            return followed
        if not isinstance(answer, Outcome) or not answer.redirect:
            return answer
        page = None
        seconds = min(PAGE_SECONDS, (call.run.deadline - perf_counter()) / 2)
        with suppress(TimeoutError):  # the call has succeeded already, and must not time out now
            async with asyncio.timeout(max(0.0, seconds)):
                page = await follow(b"application/json, text/markdown;q=0.9")
        if not isinstance(page, PageAnswer) or page.status != 200:
            return answer
        self._take_cookies(call, page.headers)
        kind = media.media_type_of(read_fields(page.headers).get(b"content-type", b""))
        content: object = page.body.decode("utf-8", "replace") if kind == "text/markdown" else None
        if media.is_json(kind):
            with suppress(orjson.JSONDecodeError):
                content = orjson.loads(page.body)
        if content is not None:
            members = answer.output if isinstance(answer.output, Mapping) else {}
            output: JsonObject = {**members, "location": answer.redirect, "page": content}
            cookies = tuple(pair for pair in page.headers if pair[0].lower() == b"set-cookie")
            others = tuple(pair for pair in answer.headers if pair[0] != b"set-cookie")
            answer = Outcome(orjson.dumps(output), output, 200, (*others, *cookies), redirect=answer.redirect)
        return answer

    @staticmethod
    def _take_cookies(call: Call, headers: Headers) -> None:
        if call.carrier is not None:
            call.carrier.on_cookies([value for name, value in headers if name.lower() == b"set-cookie"])


def _endpoint_of(entry: Target | None) -> object:
    return entry.arrival.endpoint if entry is not None and entry.arrival is not None else None
