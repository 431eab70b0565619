"""`Tab`: one page of a session, as its methods see it: navigate, act, go back, observe, extract."""

from collections.abc import Generator, Mapping
from typing import Final

from awp_publish.browsing.acting import ACTIONS, FORM_WIDE, RESERVED, SCROLL, VERBS, Act, Effect, plain_name
from awp_publish.browsing.addresses import Address
from awp_publish.browsing.browser import Browser, Entry, History, Loading, Visit, load
from awp_publish.browsing.errors import AwpError, read_number, read_text, refuse, require_object
from awp_publish.browsing.observing import extract, observe, show, write_cursor
from awp_publish.browsing.page import Fetch, Fetched, Page, Steps
from awp_publish.browsing.state import Overlay
from awp_publish.browsing.targets import Target, require_target, resolve_target
from awp_publish.model import JsonObject
from awp_publish.pages.som import Budget

# --- The action `scroll` ---

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


class Tab:
    """One page: its history, what it shows, and what was done to it. Methods that fetch are generators."""

    __slots__ = ("_browser", "_busy", "history", "id")

    def __init__(self, page_id: str, browser: Browser) -> None:
        self.id = page_id
        self.history = History(browser.limits)
        self._browser = browser
        self._busy = False

    @property
    def url(self) -> str | None:
        """The address that is shown, or would be."""
        current = self.history.current
        return None if current is None else str(current.address)

    @property
    def title(self) -> str:
        """The title of what is shown."""
        current = self.history.current
        return "" if current is None else current.title

    def navigate(self, url: str) -> Steps:
        """Open an address, relative to the page that is shown."""
        current = self.history.current
        address = self._browser.resolve(url, None if current is None else current.address)
        return self._alone(self._navigate(Visit(address)))

    def reload(self) -> Steps:
        """Fetch the shown address again. What was typed is gone."""
        return self.go(0)

    def go(self, delta: int) -> Steps:
        """So many steps back (below zero) or forward; kept pages come back as they were left, without a fetch."""
        entry = self.history.at(delta)
        if entry is None:
            raise AwpError("NOT_FOUND", "There is no page in that direction", {"delta": delta})
        return self._alone(self._go(entry, again=delta == 0))

    def act(self, params: Mapping[str, object]) -> Steps:
        """Do what `intent` says. The checks are in the order of the reference server's."""
        intent = require_object(params, "intent")
        action = plain_name(read_text(intent, "action", "intent.") or "")
        if action == SCROLL and intent.get("target") is None:
            entry, _ = self._shown()
            return _at_once(scroll(entry, intent, None))
        target = require_target(intent)
        entry, page = self._shown()
        compiled = self._browser.cache.compiled(page)
        found = resolve_target(target, compiled, self._browser.limits.fallbacks, forms=action in FORM_WIDE)
        if action == SCROLL:
            return _at_once(scroll(entry, intent, found))
        if action.startswith(RESERVED):
            raise AwpError(
                "UNSUPPORTED", f"Not supported: {action[:100]}", {"action": action[:100], "actions": ACTIONS}
            )
        if action not in VERBS:
            refuse(f"Unknown action: {read_text(intent, 'action') or ''}", actions=ACTIONS)
        act = Act(action, found, intent, page, compiled, entry.overlay, self._browser)
        return self._alone(self._act(act))

    def observe(self, params: Mapping[str, object]) -> JsonObject:
        """The page's SOM, or what changed in it since a cursor."""
        self._shown()
        return observe(self.history, self._browser.cache, params)

    def extract(self, params: Mapping[str, object]) -> JsonObject:
        """Values out of the page's full SOM."""
        entry, page = self._shown()
        return extract(self._document(page, entry.overlay, Budget.FULL), params, self._browser.limits)

    def list_history(self) -> JsonObject:
        """The addresses back and forward, and which of them is shown."""
        entries = [{"url": str(entry.address), "title": entry.title} for entry in self.history.entries]
        return {"entries": entries, "index": self.history.position}

    def _shown(self) -> tuple[Entry, Page]:
        entry = self.history.current
        if entry is None or entry.page is None:
            raise AwpError("NOT_FOUND", "No page loaded yet", {"page_id": self.id})
        return entry, entry.page

    def _alone(self, steps: Steps) -> Steps:
        """One thing at a time: what comes while an answer is awaited is refused, not queued."""
        if self._busy:
            raise AwpError("CONFLICT", "The page is busy with another request", {"page_id": self.id})
        self._busy = True
        try:
            return (yield from steps)
        finally:
            self._busy = False

    def _navigate(self, visit: Visit) -> Steps:
        loading = yield from self._visit(visit)
        return self._describe(loading)

    def _visit(self, visit: Visit) -> Generator[Fetch, Fetched, Loading]:
        """Load and show an address; another place in the shown document needs no fetch (HTML 7.4.2.3.3)."""
        current = self.history.current
        if current is not None and current.page is not None and _is_within(visit, current.page):
            entry = Entry(visit.address, current.method, current.title, current.page, current.overlay)
            self.history.push(entry)
            return Loading(current.page, current.page.status, current.page.content_type)
        loading = yield from load(visit, self._browser)
        if loading.page is not None:
            page, title = self._take(loading)
            self.history.push(Entry(page.address, page.method, title, page))
        return loading

    def _take(self, loading: Loading) -> tuple[Page, str]:
        assert loading.page is not None
        started_at = self._browser.clock()
        page = loading.page = self._browser.cache.share(loading.page)
        title = str(self._document(page, {}, Budget.DEFAULT)["title"])
        loading.compiling = max(0.0, self._browser.clock() - started_at)
        return page, title

    def _document(self, page: Page, overlay: Overlay, budget: Budget) -> JsonObject:
        return show(self._browser.cache.compiled(page), budget, overlay)

    def _go(self, entry: Entry, again: bool) -> Steps:
        if entry.page is not None and not again:
            self.history.show(entry)
            return self._describe(Loading(entry.page, entry.page.status, entry.page.content_type))
        if entry.method != "GET":
            raise AwpError(
                "CONFLICT",
                "The page is the answer to a form, which would have to be sent again",
                {"url": str(entry.address), "method": entry.method},
            )
        loading = yield from load(Visit(entry.address), self._browser)
        if loading.page is not None:
            page, title = self._take(loading)
            self.history.replace(entry, page, title)
        return self._describe(loading)

    def _describe(self, loading: Loading) -> JsonObject:
        """The answer to a navigation: what the MVP text says, and what the reference server adds."""
        page = loading.page
        waited, compiled = round(loading.seconds * 1000), round(loading.compiling * 1000)
        said = {
            "url": self.url,
            "status": loading.status,
            "content_type": loading.content_type if page is None else page.content_type,
            "html_bytes": 0 if page is None else page.html_bytes,
            "som_ready": page is not None,
            "load_ms": waited + compiled,
            "fetch_ms": waited,
            "pipeline_ms": compiled,
            "page_id": self.id,
            "cursor": self.history.cursor,
            "redirects": loading.redirects,
        }
        if page is None:
            return said
        document = self._document(page, {}, Budget.DEFAULT)
        meta = document["meta"]
        assert isinstance(meta, Mapping)
        return {**said, "title": document["title"], "som_bytes": meta["som_bytes"]}

    def _act(self, act: Act) -> Steps:
        effect = VERBS[act.action](act)
        changed = effect.overlay is not None and effect.overlay != act.overlay
        if changed and effect.overlay is not None:
            self.history.change(effect.overlay)
        effects: dict[str, object] = {"navigated": False, "som_changed": changed}
        if effect.visit is not None:
            effects |= yield from self._lead_on(effect.visit, effect, changed)
        cursor, target = self.history.cursor, act.target
        effects |= {"navigation": effects["navigated"], "som_cursor": cursor, "confidence": target.confidence}
        return {
            "status": "ok",
            "resolved": target.describe(),
            "effects": effects,
            "target_resolved": target.describe_certainty(),
            "artifacts": {"som_cursor": write_cursor(cursor)},
        }

    def _lead_on(self, visit: Visit, effect: Effect, changed: bool) -> Steps:
        try:
            loading = yield from self._visit(visit)
        except AwpError as error:
            if not effect.is_link or error.code != "NAVIGATION_FAILED":
                raise
            return {"navigated": False, "som_changed": changed, "error": error.describe()}
        said = self._describe(loading)
        navigated = loading.page is not None
        shown = {name: said[name] for name in ("url", "status", "title") if name in said}
        return {"navigated": navigated, "som_changed": changed or navigated, **shown}


def _is_within(visit: Visit, page: Page) -> bool:
    address: Address = visit.address
    return visit.method == "GET" and address.fragment is not None and address.document == page.url


def _at_once(result: JsonObject) -> Steps:
    """A method that fetches nothing, in the shape of one that does."""
    yield from ()
    return result
