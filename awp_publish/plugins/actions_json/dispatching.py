"""Where a call goes: to the one runtime that it is for, behind the gates of its action."""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import cast

from awp_publish.calls.call import Outcome, Result
from awp_publish.calls.hooks import CallHooks, Routes
from awp_publish.calls.invoke import Invoker
from awp_publish.calls.workers import count_workers
from awp_publish.http.inner_calls import InnerCall, InnerCalls
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.site_client import SiteClient
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.live_page import PrimitiveError
from awp_publish.maps.trace import ToolResult
from awp_publish.model import JsonObject
from awp_publish.plugin import Context
from awp_publish.plugins.actions_json.document import SITE_TOOL
from awp_publish.plugins.actions_json.items import Selectors, invalid, refusal_of
from awp_publish.plugins.actions_json.offers import Offers
from awp_publish.plugins.actions_json.pairing import PairedRuntimes
from awp_publish.plugins.actions_json.runtimes import (
    BridgeCall,
    Owner,
    PairedRuntime,
    Peer,
    ReachableRuntime,
    SiteRuntime,
)
from awp_publish.plugins.actions_json.visits import Visits
from awp_publish.problems import HandlerFailed, Problem


class Dispatcher:
    """Sends calls to the runtimes of one public address of a site."""

    def __init__(
        self,
        door: Context,
        offers: Offers,
        paired: PairedRuntimes,
        visits: Visits,
        inner: InnerCalls,
        renderer: ProblemRenderer,
    ) -> None:
        self._door, self._offers, self._paired, self._visits = door, offers, paired, visits
        self._inner, self._renderer = inner, renderer
        catalog = door.catalog
        # A workflow runs in place of the handler, behind the same gates. Its result is not validated as their output.
        actions = tuple(replace(action, outputs={}, function=None, execution="sync") for action in catalog.actions)
        self._gated: dict[str, Callable[[], Awaitable[Result]]] = {}
        self._gates = Invoker(
            replace(catalog, actions=actions),
            Routes(lambda call: self._gated[call.request_id]()),
            door.guards,
            hooks=[CallHooks(carry=door.ask("sessions"))],
        )
        guards_by_site = door.settings.guard_routes
        self._actions = {action.id: action for action in actions}
        self._guarded_routes = {
            action.id for action in actions if (guards_by_site if action.guards_route is None else action.guards_route)
        }

    def find(self, owner: Owner, selectors: Selectors, address: str, peer: Peer | None = None) -> ReachableRuntime:
        """Return the one runtime that a call is for. Raises RuntimeFailure."""
        reachable: dict[int, PairedRuntime] = {id(runtime): runtime for runtime in owner.runtimes.values()}
        for runtime_id in (selectors.authorization_id, selectors.runtime_id):
            if runtime_id is not None and (paired := self._paired.authorized(runtime_id)) is not None:
                reachable = {id(paired): paired}
                if peer is not None:
                    paired.listeners.add(peer)
        if selectors.authorization_id is not None and self._paired.authorized(selectors.authorization_id) is None:
            reachable = {}
        fitting = [runtime for runtime in reachable.values() if selectors.fit(runtime)]
        present = [runtime for runtime in fitting if not runtime.is_away] or fitting
        if len(present) > 1:
            candidates = [runtime.describe() for runtime in present]
            words = "The call matches several runtimes. Name one by its runtime_id."
            raise RuntimeFailure("ambiguous_runtime", words, {"candidates": candidates})
        if present:
            if not present[0].is_ready:
                words = "The runtime has no usable map."
                raise RuntimeFailure("runtime_not_ready", words, {"runtime_id": present[0].id})
            return present[0]
        by_page = selectors.url_contains is not None or selectors.title_contains is not None
        if selectors.authorization_id is None and selectors.runtime_key is None:
            is_named = selectors.runtime_id is not None
            visit = (
                owner.visit if by_page and not is_named else self._visits.visit(owner, selectors.runtime_id, address)
            )
            if visit is not None and selectors.fit(visit):
                return visit
        evidence: dict[str, object] = {"runtimes": [runtime.describe() for runtime in owner.runtimes.values()]}
        if count_workers() > 1:
            evidence["hint"] = (
                "A runtime is known only to the worker that holds its connection. Reconnect, or try again."
            )
        raise RuntimeFailure("runtime_not_found", "The call names no runtime of yours.", evidence)

    async def dispatch(
        self, owner: Owner, call: BridgeCall, selectors: Selectors, site: SiteClient
    ) -> tuple[ReachableRuntime, ToolResult]:
        """Run a call at the one runtime that it is for. Raises RuntimeFailure."""
        target_id = call.arguments.get("target_runtime_id") if call.name == SITE_TOOL else None
        if target_id is not None:
            self._offers.check_site_inputs(call.arguments)
            if selectors.runtime_id not in (None, target_id):
                raise invalid("runtime_id and target_runtime_id name different runtimes.", member="runtime_id")
            selectors = replace(selectors, runtime_id=str(target_id))
        runtime = self.find(owner, selectors, site.address, call.peer)
        if call.name == SITE_TOOL:
            self._offers.check_site_inputs(call.arguments)
        is_relayed = isinstance(runtime, PairedRuntime) and runtime.runtime is None
        if is_relayed:
            effective = call.effective
            self._offers.check(owner, cast(PairedRuntime, runtime), effective)
            result = await runtime.run(call, lambda active: self._behind_gates(runtime, active, effective, site))
            self._offers.check_result(effective, result, is_wrapped=call.name == SITE_TOOL)
            return runtime, result
        mode, work = call.arguments.get("mode") if call.name == SITE_TOOL else None, call.effective
        if isinstance(runtime, SiteRuntime):
            self._visits.note_use(runtime)

        async def carry_out(active: BridgeCall) -> ToolResult:
            if not isinstance(runtime, SiteRuntime):
                return await self._behind_gates(runtime, active, active, site)
            runtime.site = site
            async with self._visits.in_session(runtime.session, owner, active):
                if not runtime.session.url and runtime.runtime is not None:
                    home = self._door.catalog.absolute("/")
                    with suppress(PrimitiveError):  # a site need not have a page there
                        await runtime.runtime.page.perform("browser.navigate", {"url": home})
                return await self._behind_gates(runtime, active, active, site)

        result = await runtime.run(work, carry_out)
        if mode is None:
            return runtime, result
        output = cast(JsonObject, result.output)
        if mode == "call":
            output = {"ok": True, "action": work.name, "result": result.output, "steps": list(result.steps)}
        elif mode == "list":
            others = [runtime.describe() for runtime in owner.runtimes.values()]
            output = {"ok": True, "url": runtime.url, **output, "runtimes": others}
            if isinstance(runtime, PairedRuntime):
                output["dropped"] = runtime.dropped
        return runtime, ToolResult({**output, "runtime_id": runtime.id}, result.steps if mode != "call" else ())

    async def _behind_gates(
        self, runtime: ReachableRuntime, call: BridgeCall, effective: BridgeCall, site: SiteClient
    ) -> ToolResult:
        """Run a call behind the gates of its action if a workflow takes the place of the action's handler.

        Calls of the handler `agents.invoke` pass the gates anyway, and so does a form that a visitor's page submits to
        a guarded route. No gate is passed twice.
        """
        tool, action = self._offers.tools.get(effective.name), self._actions.get(effective.name)
        is_paired = isinstance(runtime, PairedRuntime)
        if (
            tool is None
            or action is None
            or "workflow" not in tool
            or (is_paired and action.id in self._guarded_routes)
            or action.id not in self._gates.guarded
        ):
            return await runtime.carry_out(call)
        self._gates.set_status(self._door.published().status)
        done: ToolResult | RuntimeFailure | None = None

        async def work() -> Result:
            nonlocal done
            try:
                done = await runtime.carry_out(call)
            except RuntimeFailure as failure:
                done = failure
                return HandlerFailed(failure.message)
            return Outcome(b"{}", {})

        trace = secrets.token_hex(16)
        self._gated[trace] = work
        inner = InnerCall(action, effective.arguments, call.members, trace, invoker=self._gates)
        session = runtime.session if isinstance(runtime, SiteRuntime) else None
        try:
            result, _ = await self._inner.send(inner, site, None, session)
        finally:
            del self._gated[trace]
        if isinstance(done, RuntimeFailure):
            raise done
        if isinstance(result, Problem):
            raise refusal_of(result, self._renderer, trace, is_repeatable=action.is_repeatable) from result
        return done or ToolResult(result.output)
