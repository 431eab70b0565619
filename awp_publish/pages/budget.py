"""How much of a page a SOM document says: the choice of the caller (SOM 1.0, sections 8 and 12.1).

`FULL` leaves nothing out. The others are a number of bytes. A page that fits loses nothing; of a larger one

1. every heading and every control is kept, with what they need to be operated;
2. links that lead where an earlier one of the page leads are left out (8.2.1);
3. the rest of the bytes is shared: seventeen parts for text, three for links; what one does not need the other gets;
4. texts, items of lists and rows of tables are shortened to one common length, the largest that fits: short ones stay
   whole;
5. links are kept in the order of the page, with an equal share for each region: small regions keep all of theirs.

What was left out is said at the end of its region, in a paragraph (8.2.4).
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

TEXT_SHARE: Final = 0.85
MOST_WHOLE: Final = 68_000
"""Bytes that the document of an ordinary page does not exceed."""

LEAST_LENGTH: Final = 200
"""Characters below which texts are not shortened; beyond that, whole ones are left out."""


class Budget(Enum):
    """How many bytes a document may take, about; what cannot be left out may take more. FULL has no limit."""

    FULL = None
    DEFAULT = MOST_WHOLE
    TIGHT = 24_000


def share_evenly(needs: Sequence[int], room: int) -> int:
    """The largest share that each may have, so that all together fit: the smaller needs are met whole."""
    left, count = room, len(needs)
    for need in sorted(needs):
        if need * count > left:
            return max(left // count, 0)
        left -= need
        count -= 1
    return max(needs, default=0)
