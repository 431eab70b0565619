"""MCP over Streamable HTTP: the site's actions as tools, its pages and skills as resources, its prompts."""

from collections.abc import Iterable

from awp_publish.model import Catalog
from awp_publish.plugin import Context, Door, Endpoints, Finding, Plugin, Setup, refuse_unasked_lists
from awp_publish.plugins.mcp.options import Mcp
from awp_publish.plugins.mcp.server_card import PROTOCOL, VERSIONS
from awp_publish.plugins.mcp.servers import MCP_SERVERS
from awp_publish.plugins.mcp.wire import WIRES


def _open(context: Context) -> Endpoints:
    if not (context.catalog.events or context.guards.store.is_shared):
        from awp_publish.plugins.mcp.late import LateDoor

        door = LateDoor(context)
        return Endpoints(exact={context.catalog.paths.mcp: door}, running=door.running)
    from awp_publish.plugins.mcp.door import open_door

    return open_door(context)


def _check(setup: Setup, catalog: Catalog) -> Iterable[Finding]:
    refuse_unasked_lists(setup, catalog)
    return ()


PLUGIN = Plugin(
    name="mcp",
    options=Mcp,
    needs={"mcp": "mcp"},
    check=_check,
    documents=(PROTOCOL, MCP_SERVERS),
    doors=lambda setup, paths: [Door(name="mcp", title="MCP", version=VERSIONS[-1], path=paths.mcp, open=_open)],
    wires=WIRES,
)
