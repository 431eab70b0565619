"""The totals of traffic as OpenMetrics 1.0, if enabled by `Traffic(metrics=True)`.

Counters are the totals of all workers, kept in the site's store, and never decrease. They do not contain callers. Needs
the extra `metrics`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from awp_publish.calls.authentication import AuthenticationGate
from awp_publish.calls.call import Principal, scopes_of
from awp_publish.http.cors import Cors
from awp_publish.http.credentials import read_credentials
from awp_publish.http.endpoint import Endpoint
from awp_publish.http.exchange import NO_SNIFFING, Reply
from awp_publish.http.origins import refuse_foreign_host
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.plugin import Context, Endpoints
from awp_publish.plugins.traffic.record import TrafficRecord
from awp_publish.plugins.traffic.report import BOUNDS, PAGES, TrafficReport

if TYPE_CHECKING:
    from prometheus_client.core import Metric

MEDIA_TYPE: Final = b"application/openmetrics-text; version=1.0.0; charset=utf-8"


def open_metrics(context: Context) -> Endpoints:
    """Open the address of the totals. Raises DeclarationError without the package, or if nobody is authenticated."""
    who, guards = context.options.metrics, context.guards
    gate = None
    if isinstance(who, str):
        gate = guards.identify(required=True, scopes=(who,))
    door = MetricsDoor(context, context.state, gate)
    return Endpoints(exact={context.catalog.paths.metrics: door})


class MetricsDoor(Endpoint):
    """Answers GET with the totals, for everybody, or for callers that `gate` admits."""

    methods = "GET, HEAD, OPTIONS"
    usage = "Metrics are read with GET"
    refuse_foreign = staticmethod(refuse_foreign_host)

    def __init__(self, door: Context, traffic: TrafficRecord, gate: AuthenticationGate | None) -> None:
        super().__init__(ProblemRenderer(door.catalog), Cors(()), door.admission.own_origins)
        self._door = door
        self._traffic = traffic
        self._gate = gate

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer with the totals of the actions that the caller may know of."""
        caller: Principal | None = None
        if self._gate is not None:
            proxies = self._door.admission.trusted_proxies
            caller = await self._gate(read_credentials(request.scope, request.fields, proxies))
        catalog = self._door.published().visible_to(scopes_of(caller))
        report = await self._traffic.read_totals()
        body = write_metrics(report.of_actions({action.id for action in catalog.actions}))
        headers = (
            (b"content-type", MEDIA_TYPE),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            NO_SNIFFING,
        )
        await request.reply(Reply(200, headers, body))


def write_metrics(report: TrafficReport) -> bytes:
    from prometheus_client.openmetrics.exposition import generate_latest
    from prometheus_client.registry import Collector, CollectorRegistry

    class Totals(Collector):
        def collect(self) -> "Iterator[Metric]":
            return collect(report)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Totals())
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


def collect(report: TrafficReport) -> "Iterator[Metric]":
    """Yield the metrics of a report: calls, page readings, latencies."""
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

    labels = ("door", "action", "label", "outcome")
    calls = CounterMetricFamily("awp_publish_calls", "Calls of actions.", labels=labels)
    pages = CounterMetricFamily("awp_publish_page_readings", "Pages read as Markdown or SOM.", labels=labels)
    for key, count in report.sum_by(*labels).items():
        (pages if key[0] in PAGES else calls).add_metric(key, count)
    yield calls
    yield pages
    latency = HistogramMetricFamily(
        "awp_publish_call_duration_seconds", "How long calls take.", labels=("door", "action"), unit="seconds"
    )
    for (day, door, action), buckets in report.latencies.items():
        if any(buckets):
            sums, seen = list[tuple[str, float]](), 0
            for bound, count in zip(
                [*(f"{milliseconds / 1000:g}" for milliseconds in BOUNDS), "+Inf"], buckets, strict=True
            ):
                seen += count
                sums.append((bound, seen))
            spent = report.milliseconds[day, door, action] / 1000
            latency.add_metric((door, action), sums, sum_value=spent)
    yield latency
