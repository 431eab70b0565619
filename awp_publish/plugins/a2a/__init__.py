"""A2A: the site's actions as skills of an agent, with tasks."""

from collections.abc import Iterator
from typing import Final

from awp_publish.model import Catalog, Paths
from awp_publish.plugin import Context, Door, Endpoints, Finding, Plugin, Setup
from awp_publish.plugins.a2a.agent_card import PROTOCOL, PUSHES
from awp_publish.plugins.a2a.wire import WIRE
from awp_publish.problems import DeclarationError
from awp_publish.schema.options import listing

VERSION: Final = "1.0"
"""The version of A2A that the door speaks."""


def _check(setup: Setup, catalog: Catalog) -> Iterator[Finding]:
    if not catalog.actions and catalog.door("a2a") is not None:
        wrong = 'plugins: "a2a" has nothing to offer: an agent card lists at least one skill.'  # A2A 1.0, AgentCard
        remedy = "Declare an action, or leave a2a out."
        if left_out := [f"{route.method} {route.path} ({route.why})" for route in setup.site.left_out]:
            wrong = f"{wrong} site.include() made an action of no route: {listing(left_out)}."
            remedy = "Name the routes that agents may call: site.include(operations=[...]), or leave a2a out."
        raise DeclarationError("site", wrong, remedy)
    yield from ()


def _doors(setup: Setup, paths: Paths) -> Iterator[Door]:
    features = frozenset({PUSHES} if "events" in setup.site.plugins else ())
    yield Door(name="a2a", title="A2A", version=VERSION, path=paths.a2a, open=_open, features=features)


def _open(context: Context) -> Endpoints:
    from awp_publish.http.sdk_logs import keep_contents_out
    from awp_publish.plugins.a2a.handler import A2aHandler
    from awp_publish.plugins.a2a.jsonrpc import RpcDoor
    from awp_publish.plugins.a2a.rest import RestDoor

    path, handler = context.catalog.paths.a2a, A2aHandler(context)
    rpc, rest = RpcDoor(context, handler), RestDoor(context, handler)
    keep_contents_out()
    return Endpoints(exact={path: rpc, f"{path}/": rpc}, below={f"{path}/": rest}, running=handler.running)


PLUGIN = Plugin(
    name="a2a",
    needs={"a2a": "a2a"},
    documents=(PROTOCOL,),
    check=_check,
    keeps=lambda setup, catalog: "the tasks of the A2A door",
    doors=_doors,
    wires=(WIRE,),
)
