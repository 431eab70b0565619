"""`Session`: cookies, pages and a name of its own; its export; the methods of the protocol upon it."""

import re
import secrets
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.browser import LOCALE, USER_AGENT, Browser, History, HistoryEntry, SessionLimits
from awp_publish.browsing.cookies import Cookie, CookieJar
from awp_publish.browsing.errors import AwpError, read_flag, read_text, refuse, require_text
from awp_publish.browsing.page import PageCache, Steps
from awp_publish.browsing.tab import Tab
from awp_publish.model import JsonObject

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
    """One browsing session over this site.

    `clock` tells Unix time in seconds (cookies expire by it, loading is measured with it). A page does one thing at a
    time: a method that begins while another one of the same page waits for its answer raises CONFLICT.

    Raises:
        AwpError: INVALID_REQUEST for a user agent or a locale that no header could carry.
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
        for name, value, pattern in (("user_agent", self.user_agent, _USER_AGENT), ("locale", self.locale, _LOCALE)):
            if pattern.fullmatch(value) is None:
                refuse(f"Invalid param: {name} cannot be sent in a header", param=name)
        self._tabs = {FIRST_PAGE: Tab(FIRST_PAGE, self.browser)}
        self._opened = 1

    @property
    def user_agent(self) -> str:
        """The name that the session gives itself."""
        return self.browser.user_agent

    @property
    def locale(self) -> str:
        """The preferred language, as `en-US`."""
        return self.browser.locale

    @property
    def url(self) -> str | None:
        """The address of the first open page that has one (for session.list)."""
        return next((tab.url for tab in self._tabs.values() if tab.url), None)

    @property
    def tabs(self) -> Mapping[str, Tab]:
        """The open pages by id, oldest first."""
        return self._tabs

    @property
    def page_count(self) -> int:
        """The number of open pages."""
        return len(self._tabs)

    def tab(self, page_id: str | None = None) -> Tab:
        """Return a page by its id; without one the oldest that is open. NOT_FOUND where there is none."""
        wanted = next(iter(self._tabs), None) if page_id is None else page_id
        if wanted is None or wanted not in self._tabs:
            raise AwpError("NOT_FOUND", f"Page not found: {page_id or 'all are closed'}", {"page_id": page_id})
        return self._tabs[wanted]

    def open_tab(self) -> Tab:
        """Open one page more, empty. RATE_LIMITED where there are as many as there may be."""
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

    def export(self) -> JsonObject:
        """Return all that is worth carrying: cookies, names, the pages' addresses and histories. JSON, unsigned.

        Bodies and what was typed stay behind: pages are fetched again with `page.reload` after an import.
        """
        self.browser.jar.drop_expired(self.browser.clock())
        pages = []
        for tab in self._tabs.values():
            entries = [{"url": str(e.address), "method": e.method, "title": e.title} for e in tab.history.entries]
            pages.append({"entries": entries, "index": tab.history.position})
        return {
            "format": FORMAT,
            "user_agent": self.user_agent,
            "locale": self.locale,
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
        """Return the session that `export` described, under a new id. INVALID_REQUEST for anything else.

        What comes back is believed in nothing.
        """
        exported = _object(exported, "it")
        user_agent, locale = exported.get("user_agent"), exported.get("locale")
        for name, said in (("user_agent", user_agent), ("locale", locale)):
            if not isinstance(said, str):
                refuse(f"Invalid session: {name} must be a string", param=f"session.{name}")
        who = {"user_agent": str(user_agent), "locale": str(locale)}
        session = cls(origins, **who, limits=limits, cache=cache, clock=clock)
        if exported.get("format") != FORMAT:
            _complain(f"format must be {FORMAT}")
        for cookie in _list(exported, "cookies", limits.cookies):
            session.browser.jar.store(_read_cookie(_object(cookie, "each of cookies"), session.browser), clock())
        histories = []
        for page in _list(exported, "pages", limits.pages):
            page = _object(page, "each of pages")
            history, index = History(limits), page.get("index")
            for said in _list(page, "entries", limits.history):
                entry = _object(said, "each of entries")
                url, method, title = entry.get("url"), entry.get("method"), entry.get("title")
                is_sound = isinstance(url, str) and isinstance(title, str) and method in ("GET", "POST")
                if not is_sound:
                    _complain("an entry has a url, a method and a title")
                try:
                    address = session.browser.resolve(str(url), None)
                except AwpError as error:
                    raise AwpError("INVALID_REQUEST", f"Invalid session: {error.message}", error.details) from error
                history.entries.append(HistoryEntry(address, str(method), str(title)[: limits.url_length]))
            lowest, highest = 0 if history.entries else -1, max(0, len(history.entries) - 1)
            if not isinstance(index, int) or isinstance(index, bool) or not lowest <= index <= highest:
                _complain("index must be the number of an entry")
            history.position = index if history.entries else -1
            histories.append(history)
        for number, history in enumerate(histories):
            tab = session.tab() if number == 0 else session.open_tab()
            tab.history = history
        return session


def _object(value: object, what: str) -> JsonObject:
    if not isinstance(value, Mapping):
        _complain(f"{what} must be an object")
    return value


def _list(holder: JsonObject, name: str, limit: int) -> list[object]:
    items = holder.get(name)
    if not isinstance(items, list) or len(items) > limit:
        _complain(f"{name} must be an array of at most {limit}")
    return items


def _complain(problem: str) -> NoReturn:
    refuse(f"Invalid session: {problem}", param="session")


# --- Cookies as agents see and give them: `session.cookies.get`, `.set` and `.clear` ---


def _describe_cookie(cookie: Cookie) -> JsonObject:
    """Return one cookie with all that is known of it; `expires` is Unix seconds, null for the end of the session."""
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
    """Return a cookie that an agent gives: a name, a value, and for the rest the members of `_describe_cookie`.

    Raises:
        AwpError: INVALID_REQUEST for what no header could carry, and for a domain that is not this site's.
    """
    given = {**given, "http_only": given.get("http_only", given.get("httpOnly"))}
    given = {**given, "same_site": given.get("same_site", given.get("sameSite"))}
    url, expires = read_text(given, "url", "cookie."), given.get("expires")
    home = browser.origins.home if url is None else browser.resolve(url, None)
    if expires == -1:  # as browsers' own tools write the end of the session
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
            refuse(f"Invalid param: cookie.{name} is not one that a browser would keep", param=f"cookie.{name}")
    return cookie


def _get_cookies(session: Session, params: JsonObject) -> JsonObject:
    """The cookies of the session, of a name or for an address where one is given."""
    session.browser.jar.drop_expired(session.browser.clock())
    found = [_describe_cookie(cookie) for cookie in _chosen_cookies(session, params)]
    return {"cookies": found, "count": len(found)}


def _set_cookies(session: Session, params: JsonObject) -> JsonObject:
    """Keep every cookie of `cookies`, or none where one of them is not sound."""
    given, browser = params.get("cookies"), session.browser
    if not isinstance(given, list) or not all(isinstance(cookie, Mapping) for cookie in given):
        refuse("Missing or invalid 'cookies' array", param="cookies")
    cookies = [_read_cookie(cookie, browser) for cookie in given]
    return {"set": sum(browser.jar.store(cookie, browser.clock()) for cookie in cookies)}


def _chosen_cookies(session: Session, params: JsonObject) -> list[Cookie]:
    name, domain, url = (read_text(params, member) for member in ("name", "domain", "url"))
    address = None if url is None else session.browser.resolve(url, None)
    return [
        cookie
        for cookie in session.browser.jar
        if name in (None, cookie.name)
        and (domain is None or cookie.domain == domain.removeprefix(".").lower())
        and (address is None or cookie.is_for(address))
    ]


# --- The methods of the protocol that are about pages and cookies, by name ---
#     method = METHODS["page.navigate"]
#     method.check(params)                        # INVALID_REQUEST: before the session is looked up
#     steps = method.run(session, params)         # a generator for every method, whether it fetches or not
#     fetch = next(steps)                         # StopIteration.value is the result
#     fetch = steps.send(fetched)
#
# What each takes and answers is in docs/browsing.md. `page_id` left out means the session's oldest open page; every
# session is born with one, `p_1`. `params` are as orjson and msgpack give them: valid Unicode, integers of 64 bits.


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the protocol: the scope that a caller needs (paper, Table 3), and the parameters it must have."""

    name: str
    scope: str
    answer: Callable[[Session, JsonObject], Steps | JsonObject]
    required: tuple[str, ...] = ()

    def check(self, params: JsonObject) -> None:
        """Refuse parameters that are missing. Raises AwpError."""
        for name in self.required:
            require_text(params, name)
        read_text(params, "page_id")

    def run(self, session: Session, params: JsonObject) -> Steps:
        """Carry the method out. Raises AwpError, when it is driven."""
        answer = self.answer(session, params)
        return (yield from answer) if isinstance(answer, Generator) else answer


def _tab(session: Session, params: JsonObject) -> Tab:
    return session.tab(read_text(params, "page_id"))


def _close_page(session: Session, params: JsonObject) -> JsonObject:
    session.close_tab(require_text(params, "page_id"))
    return {"closed": True}


def _list_pages(session: Session, _params: JsonObject) -> JsonObject:
    pages = [{"page_id": tab.id, "url": tab.url, "title": tab.title} for tab in session.tabs.values()]
    return {"pages": pages, "count": len(pages)}


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
    Method("page.list", "som:read", _list_pages),
    Method("session.cookies.get", "session:write", _get_cookies),
    Method("session.cookies.set", "session:write", _set_cookies),
    Method(
        "session.cookies.clear", "session:write", lambda s, p: {"cleared": s.browser.jar.remove(_chosen_cookies(s, p))}
    ),
)
METHODS: Final[Mapping[str, Method]] = {method.name: method for method in _ALL}
