"""The doors through which agents call, by their names. That of a plug-in has a module `door_caller` among its tests."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, TypeAlias

from tests.client import TestClient
from tests.doors.callers import DoorCaller
from tests.installed import FOLDERS, installed

Doors: TypeAlias = Mapping[str, Callable[[TestClient], DoorCaller]]


EVERY_DOOR: Final[Doors] = {
    name: import_module(f"tests.plugins.{FOLDERS.get(name, name)}.door_caller").CALLER
    for name in installed("woa", "mcp", "a2a", "awp", "bridge", "plain")
}
DOORS: Final[Doors] = {name: caller for name, caller in EVERY_DOOR.items() if name != "bridge"}
"""Doors of which one is asked for without the page of a browser."""
