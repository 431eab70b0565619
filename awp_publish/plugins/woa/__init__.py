"""WoA, the Web of Agents: woa.json, and the door that it describes."""

from awp_publish.plugin import Door, Plugin
from awp_publish.plugins.woa.document import PROTOCOL, VERSION
from awp_publish.plugins.woa.door import DOOR, open_woa
from awp_publish.plugins.woa.problems import AgentMismatch, MissingInput, NotAcceptable
from awp_publish.plugins.woa.wire import WIRE

PLUGIN = Plugin(
    name="woa",
    is_default=True,
    documents=(PROTOCOL,),
    problems=(MissingInput, AgentMismatch, NotAcceptable),
    doors=lambda setup, paths: [Door(name=DOOR, version=VERSION, path=paths.invoke, open=open_woa)],
    wires=(WIRE,),
)
