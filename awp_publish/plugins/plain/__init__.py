"""The plain door: each action at an address of its own."""

from awp_publish.plugin import Door, Plugin
from awp_publish.plugins.plain.door import DOOR, open_plain
from awp_publish.plugins.plain.wire import WIRE

PLUGIN = Plugin(
    name="plain",
    is_default=True,
    doors=lambda setup, paths: [Door(name=DOOR, path=paths.actions, open=open_plain)],
    wires=(WIRE,),
)
