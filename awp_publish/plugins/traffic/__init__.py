"""Traffic: which callers make which calls, and how these end."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

from awp_publish.model import Paths
from awp_publish.plugin import Context, Door, Endpoints, Plugin, Serving, Setup
from awp_publish.plugins.traffic.record import TrafficRecord


def _start(setup: Setup) -> TrafficRecord:
    return TrafficRecord(lambda: setup.site.store, setup.site.settings.traffic.days)


def _doors(setup: Setup, paths: Paths) -> Iterator[Door]:
    if setup.site.settings.traffic.metrics:
        yield Door(name="metrics", path=paths.metrics, open=_open)


def _open(context: Context) -> Endpoints:
    from awp_publish.plugins.traffic.metrics import open_metrics

    return open_metrics(context)


def _running(serving: Serving) -> AbstractAsyncContextManager[object]:
    return serving.state.keeping()


PLUGIN = Plugin(
    name="traffic",
    is_default=True,
    start=_start,
    counter=lambda setup: setup.state,
    doors=_doors,
    running=_running,
)
