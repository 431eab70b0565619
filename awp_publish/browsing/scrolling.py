"""The action `scroll`: there is nothing to see, but a position to keep (MVP 4.6, and the reference server's pixels)."""

from typing import Final

from awp_publish.browsing.errors import refuse
from awp_publish.browsing.history import Entry
from awp_publish.browsing.reading import read_number, read_text
from awp_publish.browsing.targets import Target
from awp_publish.model import JsonObject

SCREEN: Final = 300
BOTTOM: Final = 1_000_000
_STEPS: Final = {"up": -SCREEN, "down": SCREEN}
_ENDS: Final = {"top": 0, "bottom": BOTTOM}


def scroll(entry: Entry, intent: JsonObject, target: Target | None) -> JsonObject:
    """Move by `amount` screens in a direction (`value` or `direction`: up, down), or to the top or bottom."""
    direction = read_text(intent, "direction", "intent.") or read_text(intent, "value", "intent.") or "down"
    amount = read_number(intent, "amount", "intent.")
    if direction in _ENDS:
        entry.scroll_y = _ENDS[direction]
    elif direction in _STEPS:
        steps = max(-BOTTOM, min(1 if amount is None else amount, BOTTOM))
        entry.scroll_y = max(0, min(entry.scroll_y + _STEPS[direction] * steps, BOTTOM))
    else:
        refuse("Invalid param: intent.value must be up, down, top or bottom", param="intent.value")
    return {
        "status": "ok",
        "resolved": None if target is None else target.describe(),
        "effects": {"navigated": False, "som_changed": False, "scroll_y": entry.scroll_y},
    }
