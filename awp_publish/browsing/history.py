"""The history of one page: its addresses, back and forward, and the bodies that are kept."""

from collections import deque
from dataclasses import dataclass, field

from awp_publish.browsing.addresses import WebAddress
from awp_publish.browsing.browser import SessionLimits
from awp_publish.browsing.overlay import PRISTINE, Overlay
from awp_publish.browsing.page import LoadedPage


@dataclass(slots=True)
class HistoryEntry:
    """One visited address. `page` is None if its body is no longer kept; it can be fetched again."""

    address: WebAddress
    method: str = "GET"
    title: str = ""
    page: LoadedPage | None = None
    overlay: Overlay = field(default_factory=dict, repr=False)
    scroll_y: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """The page at one cursor, from which its SOM at that time can be made again."""

    cursor: int
    page: LoadedPage
    overlay: Overlay = field(repr=False)


class History:
    """The entries, the index of the present one, and recent moments. Cursors count navigations and changes of state."""

    __slots__ = ("_limits", "_moments", "cursor", "entries", "position")

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._moments: deque[Moment] = deque(maxlen=max(1, limits.moments))
        self.entries: list[HistoryEntry] = []
        self.position = -1
        self.cursor = 0

    @property
    def current(self) -> HistoryEntry | None:
        """The present entry, whether its page is loaded or not."""
        return self.entries[self.position] if self.entries else None

    def at(self, delta: int) -> HistoryEntry | None:
        """Return the entry so many steps forward (negative: back)."""
        index = self.position + delta
        return self.entries[index] if 0 <= index < len(self.entries) else None

    def push(self, entry: HistoryEntry) -> None:
        """Add a new entry and show it; entries after the present one are dropped. The same document replaces itself."""
        self._remember()
        current = self.current
        replaces = current is not None and str(current.address) == str(entry.address) and entry.method == "GET"
        del self.entries[self.position + (0 if replaces else 1) :]
        self.entries.append(entry)
        del self.entries[: -self._limits.history]
        self.position = len(self.entries) - 1
        self._forget()

    def show(self, entry: HistoryEntry) -> None:
        """Show an existing entry."""
        self._remember()
        self.position = next(number for number, other in enumerate(self.entries) if other is entry)
        self._forget()

    def replace(self, entry: HistoryEntry, page: LoadedPage, title: str) -> None:
        """Show an entry with a page that was fetched again."""
        self.show(entry)
        entry.page, entry.address, entry.title, entry.overlay = page, page.address, title, PRISTINE
        self._forget()

    def change(self, overlay: Overlay) -> None:
        """Set the state of the present page's controls."""
        current = self.current
        if current is not None:
            self._remember()
            current.overlay = overlay
            self._forget()

    def since(self, cursor: int) -> Moment | None:
        """Return the page at an earlier cursor, or None if that is no longer known."""
        return next((moment for moment in self._moments if moment.cursor == cursor), None)

    def _remember(self) -> None:
        current = self.current
        if current is not None and current.page is not None:
            self._moments.append(Moment(self.cursor, current.page, current.overlay))
        self.cursor += 1

    def _forget(self) -> None:
        """Keep the bodies nearest to the present entry, and the latest moments, as far as the allowed bytes suffice."""
        current = self.current
        room = self._limits.kept_bytes
        digests = set() if current is None or current.page is None else {current.page.digest}
        nearest = sorted(range(len(self.entries)), key=lambda index: abs(index - self.position))
        around = (self.entries[index] for index in nearest if index != self.position)
        holders: list[HistoryEntry | Moment] = [*around, *reversed(self._moments)]
        for holder in holders:
            page = holder.page
            if page is None or page.digest in digests:
                continue
            room -= len(page.html)
            digests.add(page.digest)
            if room >= 0:
                continue
            if isinstance(holder, Moment):  # drop all earlier moments too
                while self._moments and self._moments[0].cursor <= holder.cursor:
                    self._moments.popleft()
                return
            holder.page, holder.overlay = None, PRISTINE


def write_cursor(cursor: int) -> str:
    """Format a cursor as in the paper and the draft, `c:12346`."""
    return f"c:{cursor}"
