"""`History`: the addresses of one page, back and forward, and the bodies it keeps of them."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from awp_publish.browsing.addresses import Address
from awp_publish.browsing.limits import Limits
from awp_publish.browsing.page import Page
from awp_publish.browsing.state import PRISTINE, Overlay


@dataclass(slots=True)
class Entry:
    """One visited address. `page` is None when its body is not kept any more; it can then be fetched again."""

    address: Address
    method: str = "GET"
    title: str = ""
    page: Page | None = None
    overlay: Overlay = field(default_factory=dict, repr=False)
    scroll_y: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """What a page was at one cursor; the SOM of then can be made of it again."""

    cursor: int
    page: Page
    overlay: Overlay = field(repr=False)


class History:
    """The entries, which one is shown, and the last moments. Cursors count navigations and changes of state."""

    __slots__ = ("_limits", "_moments", "cursor", "entries", "position")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._moments: deque[Moment] = deque(maxlen=max(1, limits.moments))
        self.entries: list[Entry] = []
        self.position = -1
        self.cursor = 0

    @property
    def current(self) -> Entry | None:
        """The entry that is shown, or would be when it is loaded again."""
        return self.entries[self.position] if self.entries else None

    def at(self, delta: int) -> Entry | None:
        """The entry so many steps forward (below zero: back)."""
        index = self.position + delta
        return self.entries[index] if 0 <= index < len(self.entries) else None

    def push(self, entry: Entry) -> None:
        """Show a new entry: what was forward is gone. The same document again takes the place of itself."""
        self._remember()
        current = self.current
        replaces = current is not None and str(current.address) == str(entry.address) and entry.method == "GET"
        del self.entries[self.position + (0 if replaces else 1) :]
        self.entries.append(entry)
        del self.entries[: -self._limits.history]
        self.position = len(self.entries) - 1
        self._forget()

    def show(self, entry: Entry) -> None:
        """Show an entry that is there already, as it is now."""
        self._remember()
        self.position = next(number for number, known in enumerate(self.entries) if known is entry)
        self._forget()

    def replace(self, entry: Entry, page: Page, title: str) -> None:
        """Show an entry with a page that was fetched again."""
        self.show(entry)
        entry.page, entry.address, entry.title, entry.overlay = page, page.address, title, PRISTINE
        self._forget()

    def change(self, overlay: Overlay) -> None:
        """The state of the shown page's controls is another one."""
        current = self.current
        if current is not None:
            self._remember()
            current.overlay = overlay
            self._forget()

    def since(self, cursor: int) -> Moment | None:
        """What the page was at an earlier cursor, None where that is not known any more."""
        return next((moment for moment in self._moments if moment.cursor == cursor), None)

    def _remember(self) -> None:
        current = self.current
        if current is not None and current.page is not None:
            self._moments.append(Moment(self.cursor, current.page, current.overlay))
        self.cursor += 1

    def _forget(self) -> None:
        """Keep the bodies nearest to the shown one, and the last moments, within the allowed bytes together."""
        shown = self.current
        room = self._limits.kept_bytes
        known = set() if shown is None or shown.page is None else {shown.page.digest}
        for holder in self._nearest_first():
            page = holder.page
            if page is None or page.digest in known:
                continue
            room -= len(page.html)
            known.add(page.digest)
            if room >= 0:
                continue
            if isinstance(holder, Moment):
                self._drop_until(holder)
                return
            holder.page, holder.overlay = None, PRISTINE

    def _nearest_first(self) -> Iterator[Entry | Moment]:
        around = sorted(range(len(self.entries)), key=lambda index: abs(index - self.position))
        yield from (self.entries[index] for index in around if index != self.position)
        yield from list(reversed(self._moments))

    def _drop_until(self, last: Moment) -> None:
        while self._moments and self._moments[0].cursor <= last.cursor:
            self._moments.popleft()
