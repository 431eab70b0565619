"""Tolerant reading of a map: values of an unexpected type are skipped."""

from collections.abc import Mapping


def part(owner: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return a member that is an object, {} for anything else."""
    value = owner.get(name)
    return value if isinstance(value, Mapping) else {}


def objects(owner: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    """Return the objects of a member that is an array."""
    value = owner.get(name)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def texts(owner: Mapping[str, object], name: str) -> list[str]:
    """Return the texts of a member: those of an array, or the member itself."""
    value = owner.get(name)
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
