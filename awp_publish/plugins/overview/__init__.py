"""The overview: pages on which people see what agents are offered, and try it."""

from collections.abc import Iterator

from awp_publish.model import Paths
from awp_publish.plugin import Context, Door, Endpoints, Plugin, Setup
from awp_publish.plugins.overview.options import Overview, is_switched_on


def _doors(setup: Setup, paths: Paths) -> Iterator[Door]:
    yield Door(name="overview", calls=False, path=paths.root, open=_open)


def _open(context: Context) -> Endpoints:
    from awp_publish.plugins.overview.door import open_door

    return open_door(context)


PLUGIN = Plugin(name="overview", options=Overview, is_default=is_switched_on, doors=_doors)
