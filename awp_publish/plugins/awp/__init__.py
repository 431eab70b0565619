"""The Agent Web Protocol over WebSocket: agents browse the site's own pages, and call its actions."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final

from awp_publish.model import Catalog
from awp_publish.plugin import Context, Door, Endpoints, Finding, Plugin, Setup, refuse_unasked_lists
from awp_publish.plugins.awp.options import Awp
from awp_publish.plugins.awp.wire import WIRE

VERSION: Final = "0.1"


def _open(context: Context) -> Endpoints:
    from awp_publish.plugins.awp.door import open_door

    return open_door(context)


def _check(setup: Setup, catalog: Catalog) -> Iterator[Finding]:
    refuse_unasked_lists(setup, catalog)
    if not any(_is_installed(name) for name in ("websockets", "wsproto", "autobahn")):
        yield Finding(
            "warning",
            "start-websocket",
            "",
            'The door "awp" speaks WebSocket, and no library of it is installed: uvicorn answers 404 there.',
            'Install one: pip install "awp-publish[awp]", or "uvicorn[standard]".',
            "awp_publish",
        )


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # sys.modules has None in its place
        return False


PLUGIN = Plugin(
    name="awp",
    options=Awp,
    needs={"selectolax": "awp", "msgpack": "awp"},
    check=_check,
    doors=lambda setup, paths: [Door(name="awp", title="AWP", version=VERSION, path=paths.awp, open=_open)],
    wires=(WIRE,),
)
