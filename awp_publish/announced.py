"""What installed packages announce to us as entry points."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

scan = cache(entry_points)
"""All entry points. A scan opens a file of every installed package, so one serves all groups."""


def announced(group: str) -> list[EntryPoint]:
    return sorted(scan().select(group=group), key=lambda point: point.name)
