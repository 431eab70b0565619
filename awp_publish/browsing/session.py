"""`Session`: cookies, open pages and a user agent; its export; and the protocol's methods on sessions and pages."""

import re
import secrets
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NoReturn

from awp_publish.browsing.acting import (
    ACTIONS,
    CERTAIN,
    FORM_WIDE,
    NOTHING,
    RESERVED,
    SCROLL,
    VERBS,
    Act,
    ResolvedTarget,
    plain_name,
    resolve_target,
)
from awp_publish.browsing.addresses import Origins, Visit
from awp_publish.browsing.cookies import Cookie, CookieJar
from awp_publish.browsing.errors import (
    AwpError,
    missing,
    read_flag,
    read_number,
    read_object,
    read_text,
    refuse,
    require_text,
)
from awp_publish.browsing.observing import extract, observe, render_som
from awp_publish.browsing.page import (
    LOCALE,
    USER_AGENT,
    Browser,
    Fetch,
    Fetched,
    History,
    HistoryEntry,
    LoadedPage,
    Loading,
    PageCache,
    SessionLimits,
    Steps,
    decode,
    header_of,
    load,
    request_only,
    write_cursor,
)
from awp_publish.pages.selection import Budget
from awp_publish.schema import JsonObject

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
        shown = self._shown()[1].address
        with self._exclusively():
            visit = Visit(self._browser.resolve(url, shown), referrer=shown)
            fetched, address = yield from request_only(visit, self._browser)
        content_type = header_of(fetched.headers, "content-type")
        text = decode(fetched.body[: 4 * max_characters + 4], content_type)
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
        wanted = intent.get("target")
        if wanted is None and action == SCROLL:
            return _scroll(self._shown()[0], intent, None, self.history.cursor)
        if wanted is None:
            raise missing("intent.target")
        if not isinstance(wanted, Mapping):
            refuse("Invalid param: intent.target must be an object", param="intent.target")
        entry, page = self._shown()
        compiled = self._browser.cache.compiled(page)
        target = resolve_target(
            wanted, compiled, self._browser.limits.fallbacks, action=action, forms=action in FORM_WIDE
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
            shown = self._describe(done.visited)
            more = {name: shown[name] for name in ("url", "status", "title") if name in shown}
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
        entry, page = self._shown()
        with self._exclusively():
            act = Act(action, target, intent, page, self._browser.cache.compiled(page), entry.overlay, self._browser)
            effect = VERBS[action](act)
            known = target.element.get("actions")
            is_known = isinstance(known, list) and action in known
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
        self._shown()
        return observe(self.history, self._browser.cache, params)

    def extract(self, params: Mapping[str, object]) -> JsonObject:
        """Return values from the page's full SOM."""
        entry, page = self._shown()
        document = render_som(self._browser.cache.compiled(page), Budget.FULL, entry.overlay)
        return extract(document, params, self._browser.limits)

    def list_history(self) -> JsonObject:
        """Return the addresses in the history, and the index of the present one."""
        entries = [{"url": str(entry.address), "title": entry.title} for entry in self.history.entries]
        return {"entries": entries, "index": self.history.position}

    def _shown(self) -> tuple[HistoryEntry, LoadedPage]:
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
        document = self._browser.cache.compiled(page).som(Budget.DEFAULT).document
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


FORMAT: Final = "awp-session/1"
"""The format of an export."""
FIRST_PAGE: Final = "p_1"
_LOCALE: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4}")
_USER_AGENT: Final = re.compile(r"[\x20-\x7e]{1,500}")
_COOKIE_NAME: Final = re.compile(r"[\x21-\x3a\x3c\x3e-\x7e]*")
_COOKIE_VALUE: Final = re.compile(r"[\x20-\x3a\x3c-\x7e\x80-\xff]*")
_SAME_SITE: Final = ("", "Strict", "Lax", "None")
_MAX_TIME: Final = 1e15


class Session:
    """One browsing session on this site.

    `clock` returns Unix time in seconds (for the expiry of cookies and the time of loading). A page runs one method at
    a time: a method that begins while another one of the same page waits for its response raises CONFLICT.

    Raises:
        AwpError: INVALID_REQUEST for a user agent or a locale that is not a valid header.
    """

    def __init__(
        self,
        origins: Origins,
        *,
        session_id: str | None = None,
        user_agent: str | None = None,
        locale: str | None = None,
        limits: SessionLimits = SessionLimits(),  # noqa: B008
        cache: PageCache | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.id = session_id or f"s_{secrets.token_hex(16)}"
        self.created = clock()
        self.browser = Browser(
            origins,
            limits,
            CookieJar(limits.cookies, limits.cookie_bytes),
            USER_AGENT if user_agent is None else user_agent.strip(),
            LOCALE if locale is None else locale,
            clock,
            PageCache() if cache is None else cache,
        )
        for name, value, pattern in (
            ("user_agent", self.browser.user_agent, _USER_AGENT),
            ("locale", self.browser.locale, _LOCALE),
        ):
            if pattern.fullmatch(value) is None:
                refuse(f"Invalid param: {name} cannot be sent in a header", param=name)
        self._tabs = {FIRST_PAGE: Tab(FIRST_PAGE, self.browser)}
        self._opened = 1

    @property
    def url(self) -> str | None:
        """The address of the first open page that has one (for session.list)."""
        return next((tab.url for tab in self._tabs.values() if tab.url), None)

    @property
    def tabs(self) -> Mapping[str, Tab]:
        """The open pages by id, oldest first."""
        return self._tabs

    def tab(self, page_id: str | None = None) -> Tab:
        """Return a page by its id, by default the oldest open one. Raises NOT_FOUND if there is none."""
        wanted = next(iter(self._tabs), None) if page_id is None else page_id
        if wanted is None or wanted not in self._tabs:
            raise AwpError("NOT_FOUND", f"Page not found: {page_id or 'all are closed'}", {"page_id": page_id})
        return self._tabs[wanted]

    def open_tab(self) -> Tab:
        """Open a new, empty page. Raises RATE_LIMITED if the maximum is reached."""
        if len(self._tabs) >= self.browser.limits.pages:
            most = self.browser.limits.pages
            raise AwpError("RATE_LIMITED", f"Maximum pages ({most}) reached", {"max_pages_per_session": most})
        self._opened += 1
        tab = Tab(f"p_{self._opened}", self.browser)
        self._tabs[tab.id] = tab
        return tab

    def close_tab(self, page_id: str) -> None:
        """Close a page."""
        del self._tabs[self.tab(page_id).id]

    def list_tabs(self) -> JsonObject:
        """Return the open pages."""
        pages = [{"page_id": tab.id, "url": tab.url, "title": tab.title} for tab in self._tabs.values()]
        return {"pages": pages, "count": len(pages)}

    def find_cookies(self, params: JsonObject) -> list[Cookie]:
        """Return the cookies with a name, with a domain, or for an address; by default all."""
        self.browser.jar.drop_expired(self.browser.clock())
        name, domain, url = (read_text(params, member) for member in ("name", "domain", "url"))
        address = None if url is None else self.browser.resolve(url, None)
        return [
            cookie
            for cookie in self.browser.jar
            if name in (None, cookie.name)
            and (domain is None or cookie.domain == domain.removeprefix(".").lower())
            and (address is None or cookie.is_for(address))
        ]

    def get_cookies(self, params: JsonObject) -> JsonObject:
        """Return cookies (`find_cookies`) in the form for agents."""
        found = [_describe_cookie(cookie) for cookie in self.find_cookies(params)]
        return {"cookies": found, "count": len(found)}

    def set_cookies(self, params: JsonObject) -> JsonObject:
        """Store every cookie of `cookies`, or none if one of them is invalid."""
        given = params.get("cookies")
        if not isinstance(given, list) or not all(isinstance(cookie, Mapping) for cookie in given):
            refuse("Missing or invalid 'cookies' array", param="cookies")
        cookies = [_read_cookie(cookie, self.browser) for cookie in given]
        return {"set": sum(self.browser.jar.store(cookie, self.browser.clock()) for cookie in cookies)}

    def export(self) -> JsonObject:
        """Return what can be transferred: cookies, names, the pages' addresses and histories. JSON, unsigned.

        Bodies and typed values are left out: after an import, `page.reload` fetches the pages again.
        """
        self.browser.jar.drop_expired(self.browser.clock())
        pages = []
        for tab in self._tabs.values():
            entries = [{"url": str(e.address), "method": e.method, "title": e.title} for e in tab.history.entries]
            pages.append({"entries": entries, "index": tab.history.position})
        return {
            "format": FORMAT,
            "user_agent": self.browser.user_agent,
            "locale": self.browser.locale,
            "cookies": [_describe_cookie(cookie) for cookie in self.browser.jar],
            "pages": pages,
        }

    @classmethod
    def restore(
        cls,
        exported: object,
        origins: Origins,
        *,
        limits: SessionLimits = SessionLimits(),  # noqa: B008
        cache: PageCache | None = None,
        clock: Callable[[], float] = time.time,
    ) -> "Session":
        """Return the session that `export` described, with a new id. Raises INVALID_REQUEST for anything else.

        The export is not trusted: every value is validated.
        """
        exported = _object(exported, "it")
        user_agent, locale = exported.get("user_agent"), exported.get("locale")
        for name, text in (("user_agent", user_agent), ("locale", locale)):
            if not isinstance(text, str):
                refuse(f"Invalid session: {name} must be a string", param=f"session.{name}")
        who = {"user_agent": str(user_agent), "locale": str(locale)}
        session = cls(origins, **who, limits=limits, cache=cache, clock=clock)
        if exported.get("format") != FORMAT:
            _refuse_session(f"format must be {FORMAT}")
        for cookie in _list(exported, "cookies", limits.cookies):
            session.browser.jar.store(_read_cookie(_object(cookie, "each of cookies"), session.browser), clock())
        histories = []
        for page in _list(exported, "pages", limits.pages):
            page = _object(page, "each of pages")
            history, index = History(limits), page.get("index")
            for text in _list(page, "entries", limits.history):
                entry = _object(text, "each of entries")
                url, method, title = entry.get("url"), entry.get("method"), entry.get("title")
                is_sound = isinstance(url, str) and isinstance(title, str) and method in ("GET", "POST")
                if not is_sound:
                    _refuse_session("an entry has a url, a method and a title")
                try:
                    address = session.browser.resolve(str(url), None)
                except AwpError as error:
                    raise AwpError("INVALID_REQUEST", f"Invalid session: {error.message}", error.details) from error
                history.entries.append(HistoryEntry(address, str(method), str(title)[: limits.url_length]))
            lowest, highest = 0 if history.entries else -1, max(0, len(history.entries) - 1)
            if not isinstance(index, int) or isinstance(index, bool) or not lowest <= index <= highest:
                _refuse_session("index must be the number of an entry")
            history.position = index if history.entries else -1
            histories.append(history)
        for number, history in enumerate(histories):
            tab = session.tab() if number == 0 else session.open_tab()
            tab.history = history
        return session


def _object(value: object, what: str) -> JsonObject:
    if not isinstance(value, Mapping):
        _refuse_session(f"{what} must be an object")
    return value


def _list(holder: JsonObject, name: str, limit: int) -> list[object]:
    items = holder.get(name)
    if not isinstance(items, list) or len(items) > limit:
        _refuse_session(f"{name} must be an array of at most {limit}")
    return items


def _refuse_session(problem: str) -> NoReturn:
    refuse(f"Invalid session: {problem}", param="session")


# --- Cookies in the form for agents: `session.cookies.get`, `.set` and `.clear` ---


def _describe_cookie(cookie: Cookie) -> JsonObject:
    """Return all properties of a cookie; `expires` is in Unix seconds, null for the end of the session."""
    return {
        "name": cookie.name,
        "value": cookie.value,
        "domain": cookie.domain,
        "path": cookie.path,
        "host_only": cookie.host_only,
        "expires": cookie.expires,
        "secure": cookie.secure,
        "http_only": cookie.http_only,
        "same_site": cookie.same_site,
        "size": len(cookie.name) + len(cookie.value),
    }


def _read_cookie(given: JsonObject, browser: Browser) -> Cookie:
    """Read a cookie that an agent sets: a name, a value, and optionally the other members of `_describe_cookie`.

    Raises:
        AwpError: INVALID_REQUEST for what no header can carry, and for a domain that is not this site's.
    """
    given = {**given, "http_only": given.get("http_only", given.get("httpOnly"))}
    given = {**given, "same_site": given.get("same_site", given.get("sameSite"))}
    url, expires = read_text(given, "url", "cookie."), given.get("expires")
    home = browser.origins.home if url is None else browser.resolve(url, None)
    if expires == -1:  # browsers' own tools write the end of the session like this
        expires = None
    is_time = isinstance(expires, int | float) and not isinstance(expires, bool) and abs(expires) < _MAX_TIME
    if expires is not None and not is_time:
        refuse("Invalid param: cookie.expires must be Unix seconds", param="cookie.expires")
    cookie = Cookie(
        name=require_text(given, "name", "cookie."),
        value=require_text(given, "value", "cookie."),
        domain=(read_text(given, "domain", "cookie.") or home.host).removeprefix(".").lower(),
        path=read_text(given, "path", "cookie.") or "/",
        host_only=read_flag(given, "host_only", "cookie.") if "host_only" in given else "domain" not in given,
        expires=float(expires) if isinstance(expires, int | float) else None,
        secure=read_flag(given, "secure", "cookie."),
        http_only=read_flag(given, "http_only", "cookie."),
        same_site=(read_text(given, "same_site", "cookie.") or "").capitalize(),
    )
    wrong = {
        "name": _COOKIE_NAME.fullmatch(cookie.name) is None,
        "value": _COOKIE_VALUE.fullmatch(cookie.value) is None or not (cookie.name or cookie.value),
        "path": _COOKIE_VALUE.fullmatch(cookie.path) is None or not cookie.path.startswith("/"),
        "same_site": cookie.same_site not in _SAME_SITE,
        "domain": not any(cookie.fits_host(host) for host in browser.origins.hosts),
        "size": len(cookie.name) + len(cookie.value) > browser.limits.cookie_bytes,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            refuse(f"Invalid param: cookie.{name} is not one that a browser would store", param=f"cookie.{name}")
    return cookie


# --- The protocol's methods on pages and cookies, by name ---
#     method = METHODS["page.navigate"]
#     method.check(params)                        # INVALID_REQUEST: before the session is looked up
#     steps = method.run(session, params)         # a generator for every method, whether it fetches or not
#     fetch = next(steps)                         # StopIteration.value is the result
#     fetch = steps.send(fetched)
#
# docs/awp.md has the parameters and results of each. The default of `page_id` is the session's oldest open page;
# every session begins with one, `p_1`. `params` are as orjson and msgpack decode them: valid Unicode, 64-bit integers.


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the protocol: the scope that a caller needs (paper, Table 3), and its required parameters."""

    name: str
    scope: str
    answer: Callable[[Session, JsonObject], Steps | JsonObject]
    required: tuple[str, ...] = ()

    def check(self, params: JsonObject) -> None:
        """Raise AwpError for missing parameters."""
        for name in self.required:
            require_text(params, name)
        read_text(params, "page_id")

    def run(self, session: Session, params: JsonObject) -> Steps:
        """Run the method. Raises AwpError while it is driven."""
        answer = self.answer(session, params)
        return (yield from answer) if isinstance(answer, Generator) else answer


def _tab(session: Session, params: JsonObject) -> Tab:
    return session.tab(read_text(params, "page_id"))


def _close_page(session: Session, params: JsonObject) -> JsonObject:
    session.close_tab(require_text(params, "page_id"))
    return {"closed": True}


_ALL: Final = (
    Method("page.navigate", "page:act", lambda s, p: _tab(s, p).navigate(require_text(p, "url")), ("url",)),
    Method("page.back", "page:act", lambda s, p: _tab(s, p).go(-1)),
    Method("page.forward", "page:act", lambda s, p: _tab(s, p).go(1)),
    Method("page.reload", "page:act", lambda s, p: _tab(s, p).go(0)),
    Method("page.history", "som:read", lambda s, p: _tab(s, p).list_history()),
    Method("page.observe", "som:read", lambda s, p: _tab(s, p).observe(p)),
    Method("page.act", "page:act", lambda s, p: _tab(s, p).act(p)),
    Method("page.extract", "som:read", lambda s, p: _tab(s, p).extract(p)),
    Method("page.create", "page:act", lambda s, p: {"page_id": s.open_tab().id}),
    Method("page.close", "page:act", _close_page, ("page_id",)),
    Method("page.list", "som:read", lambda s, _: s.list_tabs()),
    Method("session.cookies.get", "session:write", lambda s, p: s.get_cookies(p)),
    Method("session.cookies.set", "session:write", lambda s, p: s.set_cookies(p)),
    Method("session.cookies.clear", "session:write", lambda s, p: {"cleared": s.browser.jar.remove(s.find_cookies(p))}),
)
METHODS: Final[Mapping[str, Method]] = {method.name: method for method in _ALL}
