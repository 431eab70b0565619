"""The present status of a site (agent.json section 13): what works is said by its owner, and found out by probes."""

from contextlib import nullcontext
from dataclasses import replace

from awp_publish.model import Catalog
from awp_publish.plugin import Context, Door, Endpoints, Plugin, Setup
from awp_publish.plugins.status.liveness import Liveness

NAME = "status"


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    liveness: Liveness = setup.state
    liveness.check(catalog.actions)
    return replace(catalog, status=liveness.status)


def _open(context: Context) -> Endpoints:
    from awp_publish.plugins.status.door import StatusDoor

    return Endpoints(exact={context.catalog.paths.status: StatusDoor(context)})


PLUGIN = Plugin(
    name=NAME,
    is_default=True,
    start=lambda setup: Liveness(setup.site),
    declares={
        "set_status": Liveness.set_status,
        "status": Liveness.declare,
        "probe": Liveness.probe,
        "refresh": Liveness.publish,
    },
    derive=_derive,
    running=lambda serving: serving.state.keeping() if serving.state.probes else nullcontext(),
    doors=lambda setup, paths: [Door(name=NAME, calls=False, path=paths.status, open=_open)],
)
