"""MCP over Streamable HTTP: the site's actions as tools, its pages and skills as resources, its prompts."""

from collections.abc import Iterator

from awp_publish.model import Paths
from awp_publish.plugin import Context, Door, Endpoints, Plugin, Setup
from awp_publish.plugins.mcp.server_card import PROTOCOL, VERSIONS
from awp_publish.plugins.mcp.servers import MCP_SERVERS


def _doors(setup: Setup, paths: Paths) -> Iterator[Door]:
    yield Door(name="mcp", title="MCP", version=VERSIONS[-1], path=paths.mcp, open=_open)


def _open(context: Context) -> Endpoints:
    if not (context.catalog.events or context.guards.store.is_shared):
        from awp_publish.plugins.mcp.late import LateDoor

        door = LateDoor(context)
        return Endpoints(exact={context.catalog.paths.mcp: door}, running=door.running)
    from awp_publish.plugins.mcp.door import open_door

    return open_door(context)


PLUGIN = Plugin(name="mcp", needs={"mcp": "mcp"}, documents=(PROTOCOL, MCP_SERVERS), doors=_doors)
