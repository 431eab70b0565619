"""`Tab`: one page of a session, with its history, and the methods that navigate, act, observe and extract."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from awp_publish.browsing.act import NOTHING, Act
from awp_publish.browsing.acting import ACTIONS, FORM_WIDE, RESERVED, SCROLL, VERBS, plain_name
from awp_publish.browsing.addresses import Visit
from awp_publish.browsing.browser import Browser
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.extracting import extract
from awp_publish.browsing.history import History, HistoryEntry, write_cursor
from awp_publish.browsing.loading import Loading, load, request_only
from awp_publish.browsing.observing import observe, render_som
from awp_publish.browsing.page import Fetch, Fetched, LoadedPage, Steps, header_of
from awp_publish.browsing.parameters import read_number, read_object, read_text
from awp_publish.browsing.targets import CERTAIN, ResolvedTarget, resolve_target
from awp_publish.pages.selection import Budget
from awp_publish.schema import JsonObject, media

_SCREEN: Final = 300
_BOTTOM: Final = 1_000_000
_STEPS: Final = {"up": -_SCREEN, "down": _SCREEN}
_ENDS: Final = {"top": 0, "bottom": _BOTTOM}


@dataclass(frozen=True, slots=True)
class Performed:
    """The result of an action: whether controls changed, the visit that it caused, and why a link's visit failed."""

    changed: bool
    visited: Loading | None = None
    failed: AwpError | None = None


class Tab:
    """One page: its history, the present page and its state. Methods that fetch are generators."""

    __slots__ = ("_browser", "_busy", "history", "id")

    def __init__(self, page_id: str, browser: Browser) -> None:
        self.id = page_id
        self.history = History(browser.limits)
        self._browser = browser
        self._busy = False

    @property
    def url(self) -> str | None:
        """The present address, whether its page is loaded or not."""
        current = self.history.current
        return None if current is None else str(current.address)

    @property
    def title(self) -> str:
        """The title of the present page."""
        current = self.history.current
        return "" if current is None else current.title

    def navigate(self, url: str) -> Steps:
        """Open an address, relative to the present page."""
        current = self.history.current
        address = self._browser.resolve(url, None if current is None else current.address)
        with self._exclusively():
            loading = yield from self._visit(Visit(address))
            return self._describe(loading)

    def fetch(self, url: str, max_characters: int) -> Steps:
        """Request an address of the site as a script of the present page would, without showing it: status, body."""
        current = self._current_page()[1].address
        with self._exclusively():
            visit = Visit(self._browser.resolve(url, current), referrer=current)
            fetched, address = yield from request_only(visit, self._browser)
        content_type = header_of(fetched.headers, "content-type")
        text, _ = media.decode(fetched.body[: 4 * max_characters + 4], content_type)
        answer = {"url": str(address), "status": fetched.status, "content_type": content_type}
        return {**answer, "body": text[:max_characters], "truncated": len(text) > max_characters}

    def go(self, delta: int) -> Steps:
        """Go so many steps back (negative) or forward, or fetch the present address again (0).

        Kept pages come back as they were left, without a request. A page that is fetched again loses what was typed.
        """
        entry = self.history.at(delta)
        if entry is None:
            raise AwpError("NOT_FOUND", "There is no page in that direction", {"delta": delta})
        with self._exclusively():
            if entry.page is not None and delta != 0:
                self.history.show(entry)
                return self._describe(Loading(entry.page, entry.page.status, entry.page.content_type))
            if entry.method != "GET":
                raise AwpError(
                    "CONFLICT",
                    "The page is the answer to a form, which would have to be submitted again",
                    {"url": str(entry.address), "method": entry.method},
                )
            loading = yield from load(Visit(entry.address), self._browser)
            if loading.page is not None:
                page, title = self._take(loading)
                self.history.replace(entry, page, title)
            return self._describe(loading)

    def act(self, params: Mapping[str, object]) -> Steps:
        """Carry out `intent`. The checks are in the order of the reference server's."""
        intent = read_object(params, "intent")
        if intent is None:
            raise missing("intent")
        action = plain_name(read_text(intent, "action", "intent.") or "")
        target_members = intent.get("target")
        if target_members is None and action == SCROLL:
            return _scroll(self._current_page()[0], intent, None, self.history.cursor)
        if target_members is None:
            raise missing("intent.target")
        if not isinstance(target_members, Mapping):
            refuse("Invalid param: intent.target must be an object", param="intent.target")
        entry, page = self._current_page()
        compiled = self._browser.cache.compiled(page)
        target = resolve_target(
            target_members, compiled, self._browser.limits.fallbacks, action=action, forms=action in FORM_WIDE
        )
        if action == SCROLL:
            return _scroll(entry, intent, target, self.history.cursor)
        if action.startswith(RESERVED):
            details = {"action": action[:100], "actions": ACTIONS}
            raise AwpError("UNSUPPORTED", f"Not supported: {action[:100]}", details)
        if action not in VERBS:
            refuse(f"Unknown action: {read_text(intent, 'action') or ''}", actions=ACTIONS)
        done = yield from self.perform(action, target, intent, refuse_idle=True)
        more: dict[str, object] = {}
        if done.failed is not None and done.visited is None:
            more = {"error": done.failed.describe()}
        elif done.visited is not None:
            description = self._describe(done.visited)
            more = {name: description[name] for name in ("url", "status", "title") if name in description}
        navigated = done.visited is not None and done.visited.page is not None
        cursor = self.history.cursor
        return {
            "status": "ok",
            "resolved": target.describe(),
            "effects": {
                "navigated": navigated,
                "som_changed": done.changed or navigated,
                **more,
                "navigation": navigated,
                "som_cursor": cursor,
                "confidence": target.confidence,
            },
            "target_resolved": target.describe_certainty(),
            "artifacts": {"som_cursor": write_cursor(cursor)},
        }

    def perform(
        self, action: str, target: ResolvedTarget, intent: JsonObject, *, refuse_idle: bool = False
    ) -> Generator[Fetch, Fetched, Performed]:
        """Run one of `VERBS` on an element of the present page. Raises AwpError.

        `refuse_idle` refuses an action without effect on an element that is not a control and does not support it.
        """
        entry, page = self._current_page()
        with self._exclusively():
            act = Act(action, target, intent, page, self._browser.cache.compiled(page), entry.overlay, self._browser)
            effect = VERBS[action](act)
            actions = target.element.get("actions")
            is_known = isinstance(actions, list) and action in actions
            if refuse_idle and effect is NOTHING and not is_known and act.own_control() is None:
                raise act.refusal()
            changed = effect.overlay is not None and effect.overlay != act.overlay
            if changed and effect.overlay is not None:
                self.history.change(effect.overlay)
            if effect.visit is None:
                return Performed(changed)
            try:
                visited = yield from self._visit(effect.visit)
            except AwpError as error:
                if not effect.is_link or error.code != "NAVIGATION_FAILED":
                    raise
                return Performed(changed, failed=error)
            if effect.is_link and visited.status >= 400:
                details = {"url": self.url, "status": visited.status}
                failed = AwpError("NAVIGATION_FAILED", f"The link leads to an error: {visited.status}", details)
                return Performed(changed, visited, failed)
            return Performed(changed, visited)

    def observe(self, params: Mapping[str, object]) -> JsonObject:
        """Return the page's SOM, or its changes since a cursor."""
        self._current_page()
        return observe(self.history, self._browser.cache, params)

    def extract(self, params: Mapping[str, object]) -> JsonObject:
        """Return values from the page's full SOM."""
        entry, page = self._current_page()
        document = render_som(self._browser.cache.compiled(page), Budget.FULL, entry.overlay)
        return extract(document, params, self._browser.limits)

    def list_history(self) -> JsonObject:
        """Return the addresses in the history, and the index of the present one."""
        entries = [{"url": str(entry.address), "title": entry.title} for entry in self.history.entries]
        return {"entries": entries, "index": self.history.position}

    def _current_page(self) -> tuple[HistoryEntry, LoadedPage]:
        entry = self.history.current
        if entry is None or entry.page is None:
            raise AwpError("NOT_FOUND", "No page loaded yet", {"page_id": self.id})
        return entry, entry.page

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Run one method at a time: a request that comes while another waits is refused, not queued."""
        if self._busy:
            raise AwpError("CONFLICT", "The page is busy with another request", {"page_id": self.id})
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _visit(self, visit: Visit) -> Generator[Fetch, Fetched, Loading]:
        """Load and show an address. Another fragment of the present document needs no request (HTML 7.4.2.3.3)."""
        current, address = self.history.current, visit.address
        is_place = visit.method == "GET" and address.fragment is not None
        if is_place and current is not None and current.page is not None and address.document == current.page.url:
            self.history.push(HistoryEntry(address, current.method, current.title, current.page, current.overlay))
            return Loading(current.page, current.page.status, current.page.content_type)
        loading = yield from load(visit, self._browser)
        if loading.page is not None:
            page, title = self._take(loading)
            self.history.push(HistoryEntry(page.address, page.method, title, page))
        return loading

    def _take(self, loading: Loading) -> tuple[LoadedPage, str]:
        """Return the loaded page, with the HTML object in the cache, and its title."""
        assert loading.page is not None
        started_at = self._browser.clock()
        page = loading.page = self._browser.cache.share(loading.page)
        title = str(self._browser.cache.compiled(page).som(Budget.DEFAULT).document["title"])
        loading.compiling = max(0.0, self._browser.clock() - started_at)
        return page, title

    def _describe(self, loading: Loading) -> JsonObject:
        """Return the answer to a navigation: the members of the MVP text, and those that the reference server adds."""
        page = loading.page
        waited, compiled = round(loading.seconds * 1000), round(loading.compiling * 1000)
        answer = {
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
            return answer
        document = self._browser.cache.compiled(page).observed(Budget.DEFAULT).document
        return {**answer, "title": document["title"], "som_bytes": document["meta"]["som_bytes"]}


def _scroll(entry: HistoryEntry, intent: JsonObject, target: ResolvedTarget | None, cursor: int) -> JsonObject:
    """Scroll by `amount` screens in a direction (`value` or `direction`: up, down), or to the top or bottom."""
    direction = read_text(intent, "direction", "intent.") or read_text(intent, "value", "intent.") or "down"
    amount = read_number(intent, "amount", "intent.")
    if direction in _ENDS:
        entry.scroll_y = _ENDS[direction]
    elif direction in _STEPS:
        steps = max(-_BOTTOM, min(1 if amount is None else amount, _BOTTOM))
        entry.scroll_y = max(0, min(entry.scroll_y + _STEPS[direction] * steps, _BOTTOM))
    else:
        refuse("Invalid param: intent.value must be up, down, top or bottom", param="intent.value")
    sure = CERTAIN if target is None else target.confidence
    effects = {
        "navigated": False,
        "som_changed": False,
        "scroll_y": entry.scroll_y,
        "navigation": False,
        "som_cursor": cursor,
        "confidence": sure,
    }
    answer = {
        "status": "ok",
        "resolved": None if target is None else target.describe(),
        "effects": effects,
        "artifacts": {"som_cursor": write_cursor(cursor)},
    }
    return answer if target is None else answer | {"target_resolved": target.describe_certainty()}
