"""Keys of `keyboard.press`: a key, or a chord such as `Control+End`, for every kind of page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.maps.live_page import PrimitiveError

NAMES: Final[Mapping[str, str]] = {
    **{name.lower(): name for name in ("Enter", "Tab", "Escape", "Backspace", "Delete", "Home", "End", "Insert")},
    **{name.lower(): name for name in ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown")},
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
    "space": "Space",
    "shift": "Shift",
    "alt": "Alt",
    "option": "Alt",
    "meta": "Meta",
    "cmd": "Meta",
    "control": "Control",
    "ctrl": "Control",
    "command": "Meta",
}
"""The names of keys in lower case, and as browsers spell them."""
_MODIFIERS: Final = frozenset(("Alt", "Control", "Meta", "Shift"))


@dataclass(frozen=True, slots=True)
class Chord:
    """A key and the modifiers that are held: their names in NAMES' spelling, or one character."""

    key: str
    modifiers: Sequence[str]

    @property
    def commands(self) -> frozenset[str]:
        """The modifiers with which a key types nothing."""
        return frozenset(self.modifiers) - {"Shift"}


def read_chord(key: str, modifiers: object) -> Chord:
    """Read the arguments of `keyboard.press`. Raises PrimitiveError `invalid_key`."""
    *modifier_names, plain = key.split("+") if len(key) > 1 and not key.endswith("+") else [key]
    modifier_names += [str(modifier) for modifier in modifiers] if isinstance(modifiers, list) else []
    names = [NAMES.get(name.lower(), "") for name in modifier_names]
    pressed = "Space" if plain == " " else plain if len(plain) == 1 else NAMES.get(plain.lower(), "")
    if not pressed or not _MODIFIERS.issuperset(names):
        raise PrimitiveError("invalid_key", f"{key[:50]!r} is not a key.")
    return Chord(pressed, names)
