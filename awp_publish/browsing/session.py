"""`Session`: cookies, open pages and a user agent, and its export."""

import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.agent_cookies import describe_cookie, read_cookie
from awp_publish.browsing.browser import LOCALE, USER_AGENT, Browser, SessionLimits
from awp_publish.browsing.compiled import PageCache
from awp_publish.browsing.cookies import Cookie, CookieJar
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.history import History, HistoryEntry
from awp_publish.browsing.parameters import read_text
from awp_publish.browsing.tab import Tab
from awp_publish.schema import JsonObject

FORMAT: Final = "awp-session/1"
"""The format of an export."""
FIRST_PAGE: Final = "p_1"
_LOCALE: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4}")
_USER_AGENT: Final = re.compile(r"[\x20-\x7e]{1,500}")


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
        tab_id = next(iter(self._tabs), None) if page_id is None else page_id
        if tab_id is None or tab_id not in self._tabs:
            raise AwpError("NOT_FOUND", f"Page not found: {page_id or 'all are closed'}", {"page_id": page_id})
        return self._tabs[tab_id]

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
        cookies = [describe_cookie(cookie) for cookie in self.find_cookies(params)]
        return {"cookies": cookies, "count": len(cookies)}

    def set_cookies(self, params: JsonObject) -> JsonObject:
        """Store every cookie of `cookies`, or none if one of them is invalid."""
        values = params.get("cookies")
        if not isinstance(values, list) or not all(isinstance(cookie, Mapping) for cookie in values):
            refuse("Missing or invalid 'cookies' array", param="cookies")
        cookies = [read_cookie(cookie, self.browser) for cookie in values]
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
            "cookies": [describe_cookie(cookie) for cookie in self.browser.jar],
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
            session.browser.jar.store(read_cookie(_object(cookie, "each cookie"), session.browser), clock())
        histories = []
        for page in _list(exported, "pages", limits.pages):
            page = _object(page, "each page")
            history, index = History(limits), page.get("index")
            for text in _list(page, "entries", limits.history):
                entry = _object(text, "each entry")
                url, method, title = entry.get("url"), entry.get("method"), entry.get("title")
                is_sound = isinstance(url, str) and isinstance(title, str) and method in ("GET", "POST")
                if not is_sound:
                    _refuse_session("each entry must have a url, a method and a title")
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
