"""The doors that every site has: a plug-in which no site can leave out."""

from collections.abc import Iterator
from typing import Final

from awp_publish.doors.plain import DOOR, open_plain
from awp_publish.doors.woa import PROTOCOL, VERSION, open_woa
from awp_publish.model import Paths
from awp_publish.plugin import Door, Plugin, Setup


def _doors(setup: Setup, paths: Paths) -> Iterator[Door]:
    yield Door(name=PROTOCOL, version=VERSION, path=paths.invoke, open=open_woa)
    yield Door(name=DOOR, path=paths.actions, open=open_plain)


EVERY_SITE: Final = Plugin(name="every_site", doors=_doors)
