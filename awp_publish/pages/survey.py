"""What the first pass over a page finds: the future elements and their regions.

Text is collected once, in `Survey.pieces`; a candidate has the range of its own text, so that no text is copied at
every level. Text outside of any element of the model becomes a paragraph, including inline markup in it (4.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from awp_publish.pages.flags import IN_FORM
from awp_publish.pages.landmarks import Landmark
from awp_publish.pages.roles import HIDDEN

_SEPARATORS: Final = " \t\r\n\f\xa0\u200b.,:;!?|/\\-_()[]{}<>\u2013\u2014\u2022\u00b7\u00ab\u00bb\u2039\u203a"
"""Characters that only separate links and fields visually. A text of nothing else is not a paragraph."""


@dataclass(slots=True, eq=False)
class Region:
    """A region, or the content of a shadow root: its element, and the numbers of its candidates.

    `hidden` are the hidden inputs of a form.
    """

    landmark: Landmark
    node: int
    candidates: list[int] = field(default_factory=list)
    shadows: int = 0
    start: int = 0
    hidden: Sequence[int] = ()


class Survey:
    """The regions in order, with a last one for everything outside of them; all text; and parts of elements.

    A candidate is a node that may become an element. It is identified by a number, the index in these lists:

        nodes         the node itself
        roles         its role, "" if it turned out to have none
        states        the flags that apply to it
        starts, ends  the range of its text in `pieces`

    `shadows` has the content of a candidate's shadow root, `parts` the candidate of an item, a cell, an option or a
    summary; `forms` has the form for each submit button of a form that is not a region.
    """

    __slots__ = (
        *("_texts", "ends", "forms", "nodes", "parts", "pieces", "regions", "roles", "shadows", "starts", "states"),
    )

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.pieces: list[str] = []
        self.nodes: list[int] = []
        self.roles: list[str] = []
        self.states: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.shadows: dict[int, Region] = {}
        self.parts: dict[int, int] = {}
        self.forms: dict[int, int] = {}
        self._texts: dict[int, str] = {}

    def add(self, node: int, role: str, state: int) -> int:
        """Add a candidate that begins here, and return its number."""
        number, start = len(self.nodes), len(self.pieces)
        self.nodes.append(node)
        self.roles.append(role)
        self.states.append(state)
        self.starts.append(start)
        self.ends.append(start)
        return number

    def end_run(self, run: int, region: Region) -> None:
        """End a run of text here: it becomes a paragraph of its region unless it consists of separators only."""
        start = self.starts[run]
        self.ends[run] = len(self.pieces)
        if self.pieces[start].strip(_SEPARATORS) or "".join(self.pieces[start:]).strip(_SEPARATORS):
            region.candidates.append(run)

    def drop_empty(self) -> None:
        """Leave out candidates without a role and regions without candidates, and add the hidden inputs of forms."""
        waiting = list(self.regions)
        while waiting:
            region = waiting.pop()
            region.candidates = [candidate for candidate in region.candidates if self.roles[candidate]]
            if region.candidates:
                region.candidates += [self.add(node, HIDDEN, IN_FORM) for node in region.hidden]
            if self.shadows:
                waiting += [self.shadows[candidate] for candidate in region.candidates if candidate in self.shadows]
        self.regions = [region for region in self.regions if region.candidates]

    def part_text(self, node: int) -> str | None:
        """Return the text of an item, a cell, an option or a summary, or None if it is not visible."""
        part = self.parts.get(node)
        return None if part is None else self.text(part)

    def text(self, candidate: int) -> str:
        """Return the visible text of a candidate, with white space collapsed (4.6)."""
        text = self._texts.get(candidate)
        if text is None:
            start, end = self.starts[candidate], self.ends[candidate]
            text = self.pieces[start] if end == start + 1 else "".join(self.pieces[start:end])
            text = self._texts[candidate] = " ".join(text.split())
        return text
