"""Errors of pydantic as violations of an input."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from awp_publish.problems import Violation
from awp_publish.schema.pointers import pointer_to

_OWN_CHECKS: Final = ("value_error", "assertion_error")
"""The types of errors that validators of the application raise."""


def read_errors(listed: Iterable[tuple[Sequence[str | int], str, str]], given: object) -> tuple[Violation, ...]:
    """Convert pydantic's errors (location, message, type) to violations of an input.

    A location contains alternatives of unions and functions, which are not members of the input. For a union only the
    errors of the most likely alternative are returned: the one that a validator of the application refuses, or else the
    one with the fewest errors.
    """
    candidates: list[tuple[tuple[str | int, ...], list[tuple[tuple[str | int, ...], object]], str, bool]] = []
    for location, words, kind in listed:
        path, labels, value = list[str | int](), list[tuple[tuple[str | int, ...], object]](), given
        for index, part in enumerate(location):
            is_last = index == len(location) - 1
            is_item = isinstance(value, list) and isinstance(part, int) and part < len(value)
            is_member = isinstance(value, Mapping) and part in value
            if is_item or is_member:
                value = cast(Any, value)[part]
            elif not (is_last and kind == "missing"):
                labels.append((tuple(path), part))
                continue
            path.append(part)
        detail = words.removeprefix("Value error, ").removeprefix("Assertion failed, ") or "is not valid"
        candidates.append((tuple(path), labels, detail, kind in _OWN_CHECKS))
    level = 0
    while any(len(labels) > level for _, labels, _, _ in candidates):
        unions: dict[tuple[str | int, ...], dict[object, list[bool]]] = {}
        for _, labels, _, is_own in candidates:
            if len(labels) > level:
                place, label = labels[level]
                unions.setdefault(place, {}).setdefault(label, []).append(is_own)
        meant = {
            place: min(errors, key=lambda label, errors=errors: (not any(errors[label]), len(errors[label])))  # type: ignore[misc]
            for place, errors in unions.items()
        }
        candidates = [
            error for error in candidates if len(error[1]) <= level or meant[error[1][level][0]] == error[1][level][1]
        ]
        level += 1
    return tuple(dict.fromkeys(Violation(pointer_to(path), words) for path, _, words, _ in candidates))
