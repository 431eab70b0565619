"""The bounds of the bridge, as `check --explain limits` prints them."""

from typing import Final

from awp_publish.http import sockets
from awp_publish.plugins.actions_json import items, runtimes

BRIDGE_LIMITS: Final = (
    ("characters of an id or a code", items.MAX_ID),
    ("characters of an address", items.MAX_URL),
    ("characters of a visitor's code, at least", runtimes.CODE_LENGTH),
    ("runtimes of one caller", items.MAX_RUNTIMES),
    ("calls of one connection under way", sockets.MAX_PENDING),
    ("calls that wait for one runtime", runtimes.MAX_QUEUED),
    ("answers of a caller that are remembered", runtimes.MAX_ANSWERS),
    ("bytes of these answers together", runtimes.MAX_ANSWER_BYTES),
    ("seconds in which a tab comes back", runtimes.GRACE),
)
"""Each is a maximum, unless it says otherwise."""
