"""Traffic: which callers make which calls, and how these end."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec

from awp_publish.model import Catalog, Paths
from awp_publish.plugin import Context, Door, Endpoints, Finding, Plugin, Serving, Setup
from awp_publish.plugins.traffic.command import TRAFFIC
from awp_publish.plugins.traffic.options import Traffic
from awp_publish.plugins.traffic.record import TrafficRecord
from awp_publish.problems import DeclarationError


def _check(setup: Setup, catalog: Catalog) -> Iterator[Finding]:
    metrics = setup.options.metrics
    if isinstance(metrics, str) and not setup.site.authenticators:
        wrong = f'traffic: the site authenticates nobody, so no caller has the scope "{metrics}".'
        raise DeclarationError("site", wrong, "Give Site(authenticate=...), or metrics=True.")
    if metrics and find_spec("prometheus_client") is None:
        wrong = "traffic: metrics need prometheus-client, which is not installed."
        raise DeclarationError("site", wrong, 'Run pip install "awp-publish[metrics]".')
    yield from ()


def _doors(setup: Setup, paths: Paths) -> Iterator[Door]:
    if setup.options.metrics:
        yield Door(name="metrics", calls=False, path=paths.metrics, open=_open)


def _open(context: Context) -> Endpoints:
    from awp_publish.plugins.traffic.metrics import open_metrics

    return open_metrics(context)


def _running(serving: Serving) -> AbstractAsyncContextManager[object]:
    record: TrafficRecord = serving.state
    return record.keeping()


PLUGIN = Plugin(
    name="traffic",
    options=Traffic,
    is_default=True,
    start=lambda setup: TrafficRecord(lambda: setup.site.store, setup.options.days),
    check=_check,
    counter=lambda setup: setup.state,
    doors=_doors,
    running=_running,
    commands={"traffic": TRAFFIC},
)
