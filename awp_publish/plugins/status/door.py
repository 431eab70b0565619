"""The status for monitors, at one address."""

import orjson

from awp_publish.calls.call import Outcome
from awp_publish.http.cors import ANY_ORIGIN, Cors, preflight
from awp_publish.http.endpoint import Endpoint
from awp_publish.http.exchange import Fields, RawHeaders, Reply
from awp_publish.http.origins import refuse_foreign_host
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.plugin import Context
from awp_publish.plugins.status.liveness import Liveness


class StatusDoor(Endpoint):
    """Answers GET with the status of the site and of each action."""

    methods = "GET, HEAD, OPTIONS"
    usage = "Read the status with GET"
    refuse_foreign = staticmethod(refuse_foreign_host)  # cookies have no effect here

    def __init__(self, context: Context) -> None:
        super().__init__(ProblemRenderer(context.catalog), PublicCors(), context.admission.own_origins)
        self._actions = context.catalog.public.actions
        self._liveness: Liveness = context.state

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer with the status, after running the probes if their results are out of date."""
        await self._liveness.look_again()
        status = self._liveness.status
        # If the site is not operational, no action is.
        degraded = status.degraded_actions if status.operational else {action.id for action in self._actions}
        works = {action.id: "degraded" if action.id in degraded else "operational" for action in self._actions}
        described = {
            "operational": status.operational,
            "degraded_actions": sorted(degraded.intersection(works)),
            "actions": works,
            "checked_at": self._liveness.checked_at,
        }
        await request.deliver(Outcome(orjson.dumps(described), None))


class PublicCors(Cors):
    """CORS for public content: any page may read it."""

    def __init__(self) -> None:
        super().__init__("*")

    def headers(self, fields: Fields) -> RawHeaders:
        return (ANY_ORIGIN,)

    def preflight(self, fields: Fields, methods: str) -> Reply:
        return preflight(methods)
