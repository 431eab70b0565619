"""The door that every site has: a plug-in which no site can leave out."""

from typing import Final

from awp_publish.doors.plain import DOOR, open_plain
from awp_publish.plugin import Door, Plugin

EVERY_SITE: Final = Plugin(
    name="every_site", doors=lambda setup, paths: [Door(name=DOOR, path=paths.actions, open=open_plain)]
)
