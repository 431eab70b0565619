"""The types of `<input>` (HTML 4.10.5)."""

from collections.abc import Mapping
from typing import Final

BUTTONS: Final = frozenset(("submit", "image", "reset", "button"))
UNSEEN: Final = BUTTONS | {"hidden"}
"""Types that have no value for a person to fill in."""

BOXES: Final = ("checkbox", "radio")
WRITTEN: Final = frozenset(
    {
        *("text", "search", "tel", "url", "email", "password", "number", "range", "color"),
        *("date", "month", "week", "time", "datetime-local"),
    }
)
"""Types whose value is a text that is typed or picked."""

INPUT_TYPES: Final = WRITTEN | UNSEEN | {"checkbox", "radio", "file"}


def input_type(attributes: Mapping[str, str]) -> str:
    """Return the `type` of an `<input>` in lower case; the default is "text"."""
    return attributes.get("type", "").strip().lower() or "text"
