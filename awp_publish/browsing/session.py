"""`Session`: cookies, pages and who browses; the methods of the protocol are in `methods.py`."""

import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

from awp_publish.browsing.addresses import Address, Origins
from awp_publish.browsing.browser import LOCALE, USER_AGENT, Browser, Entry, History, Limits
from awp_publish.browsing.cookies import Cookie, CookieJar
from awp_publish.browsing.errors import AwpError, read_flag, read_text, refuse, require_text
from awp_publish.browsing.page import PageCache, Steps
from awp_publish.browsing.tab import Tab
from awp_publish.model import JsonObject

# --- Cookies as agents see and give them: `session.cookies.get`, `.set` and `.clear` ---

_NAME: Final = re.compile(r"[\x21-\x3a\x3c\x3e-\x7e]*")
_VALUE: Final = re.compile(r"[\x20-\x3a\x3c-\x7e\x80-\xff]*")
_LATEST: Final = 1e15
_SAME_SITE: Final = ("", "Strict", "Lax", "None")


def describe_cookie(cookie: Cookie) -> JsonObject:
    """One cookie with all that is known of it; `expires` is Unix seconds, null for the end of the session."""
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


def read_cookie(said: Mapping[str, object], browser: Browser) -> Cookie:
    """A cookie that an agent gives: a name, a value, and for the rest what `describe_cookie` says.

    Raises:
        AwpError: INVALID_REQUEST for what no header could carry, and for a domain that is not this site's.
    """
    said = {**said, "http_only": said.get("http_only", said.get("httpOnly"))}
    said = {**said, "same_site": said.get("same_site", said.get("sameSite"))}
    home = _home_of(said, browser)
    domain = (read_text(said, "domain", "cookie.") or home.host).removeprefix(".").lower()
    cookie = Cookie(
        name=require_text(said, "name", "cookie."),
        value=require_text(said, "value", "cookie."),
        domain=domain,
        path=read_text(said, "path", "cookie.") or "/",
        host_only=read_flag(said, "host_only", "cookie.") if "host_only" in said else "domain" not in said,
        expires=_read_expiry(said.get("expires")),
        secure=read_flag(said, "secure", "cookie."),
        http_only=read_flag(said, "http_only", "cookie."),
        same_site=(read_text(said, "same_site", "cookie.") or "").capitalize(),
    )
    _require_sound(cookie, browser)
    return cookie


def _home_of(said: Mapping[str, object], browser: Browser) -> Address:
    url = read_text(said, "url", "cookie.")
    return browser.origins.home if url is None else browser.resolve(url, None)


def _read_expiry(expires: object) -> float | None:
    """Unix seconds; nothing, or -1 as browsers' own tools write it, is the end of the session."""
    if expires is None or expires == -1:
        return None
    if not isinstance(expires, int | float) or isinstance(expires, bool) or not abs(expires) < _LATEST:
        refuse("Invalid param: cookie.expires must be Unix seconds", param="cookie.expires")
    return float(expires)


def _require_sound(cookie: Cookie, browser: Browser) -> None:
    wrong = {
        "name": _NAME.fullmatch(cookie.name) is None,
        "value": _VALUE.fullmatch(cookie.value) is None or not (cookie.name or cookie.value),
        "path": _VALUE.fullmatch(cookie.path) is None or not cookie.path.startswith("/"),
        "same_site": cookie.same_site not in _SAME_SITE,
        "domain": not any(cookie.fits_host(host) for host in browser.origins.hosts),
        "size": len(cookie.name) + len(cookie.value) > browser.limits.cookie_bytes,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            refuse(f"Invalid param: cookie.{name} is not one that a browser would keep", param=f"cookie.{name}")


def get_cookies(params: Mapping[str, object], browser: Browser) -> JsonObject:
    """The cookies of the session, of a name or for an address where one is given."""
    browser.jar.drop_expired(browser.clock())
    found = [describe_cookie(cookie) for cookie in _chosen(params, browser)]
    return {"cookies": found, "count": len(found)}


def set_cookies(params: Mapping[str, object], browser: Browser) -> JsonObject:
    """Keep every cookie of `cookies`, or none where one of them is not sound."""
    given = params.get("cookies")
    if not isinstance(given, list) or not all(isinstance(cookie, Mapping) for cookie in given):
        refuse("Missing or invalid 'cookies' array", param="cookies")
    cookies = [read_cookie(cookie, browser) for cookie in given]
    return {"set": sum(browser.jar.store(cookie, browser.clock()) for cookie in cookies)}


def clear_cookies(params: Mapping[str, object], browser: Browser) -> JsonObject:
    """Forget all cookies, or those of a name, a domain or an address where one is given."""
    return {"cleared": browser.jar.remove(_chosen(params, browser))}


def _chosen(params: Mapping[str, object], browser: Browser) -> list[Cookie]:
    name, domain, url = (read_text(params, member) for member in ("name", "domain", "url"))
    address = None if url is None else browser.resolve(url, None)
    return [
        cookie
        for cookie in browser.jar
        if name in (None, cookie.name)
        and (domain is None or cookie.domain == domain.removeprefix(".").lower())
        and (address is None or cookie.is_for(address))
    ]


# --- A session as JSON and back again. What comes back is believed in nothing ---

FORMAT: Final = "awp-session/1"
_METHODS: Final = ("GET", "POST")


def export_session(browser: Browser, histories: Sequence[History]) -> JsonObject:
    """The session as JSON."""
    browser.jar.drop_expired(browser.clock())
    return {
        "format": FORMAT,
        "user_agent": browser.user_agent,
        "locale": browser.locale,
        "cookies": [describe_cookie(cookie) for cookie in browser.jar],
        "pages": [
            {
                "entries": [
                    {"url": str(entry.address), "method": entry.method, "title": entry.title}
                    for entry in history.entries
                ],
                "index": history.position,
            }
            for history in histories
        ],
    }


def restore_into(browser: Browser, exported: Mapping[str, object]) -> list[History]:
    """Give a new session's browser the cookies, and return the histories of its pages."""
    if exported.get("format") != FORMAT:
        _complain(f"format must be {FORMAT}")
    for cookie in _list(exported, "cookies", browser.limits.cookies):
        if not isinstance(cookie, Mapping):
            _complain("each of cookies must be an object")
        browser.jar.store(read_cookie(cookie, browser), browser.clock())
    return [_read_history(page, browser) for page in _list(exported, "pages", browser.limits.pages)]


def _read_history(page: object, browser: Browser) -> History:
    if not isinstance(page, Mapping):
        _complain("each of pages must be an object")
    history = History(browser.limits)
    history.entries = [_read_entry(entry, browser) for entry in _list(page, "entries", browser.limits.history)]
    index = page.get("index")
    if not isinstance(index, int) or isinstance(index, bool) or not -1 <= index < max(1, len(history.entries)):
        _complain("index must be the number of an entry")
    history.position = index if history.entries else -1
    if history.entries and index == -1:
        _complain("index must be the number of an entry")
    return history


def _read_entry(entry: object, browser: Browser) -> Entry:
    if not isinstance(entry, Mapping):
        _complain("each of entries must be an object")
    url, method, title = entry.get("url"), entry.get("method"), entry.get("title")
    if not (isinstance(url, str) and isinstance(title, str) and isinstance(method, str) and method in _METHODS):
        _complain("an entry has a url, a method and a title")
    try:
        return Entry(browser.resolve(url, None), method, title[: browser.limits.url_length])
    except AwpError as error:
        raise AwpError("INVALID_REQUEST", f"Invalid session: {error.message}", error.details) from error


def _list(holder: Mapping[str, object], name: str, most: int) -> list[object]:
    items = holder.get(name)
    if not isinstance(items, list) or len(items) > most:
        _complain(f"{name} must be an array of at most {most}")
    return items


def _complain(what: str) -> NoReturn:
    refuse(f"Invalid session: {what}", param="session")


FIRST_PAGE: Final = "p_1"
_LOCALE: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4}")
_USER_AGENT: Final = re.compile(r"[\x20-\x7e]{1,500}")


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
        limits: Limits = Limits(),  # noqa: B008
        cache: PageCache | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.id = session_id or f"s_{secrets.token_hex(16)}"
        self.created = clock()
        self.browser = Browser(
            origins,
            limits,
            CookieJar(limits.cookies, limits.cookie_bytes),
            _check("user_agent", USER_AGENT if user_agent is None else user_agent.strip(), _USER_AGENT),
            _check("locale", LOCALE if locale is None else locale, _LOCALE),
            clock,
            PageCache() if cache is None else cache,
        )
        self._tabs = {FIRST_PAGE: Tab(FIRST_PAGE, self.browser)}
        self._opened = 1

    @property
    def user_agent(self) -> str:
        """What the session calls itself."""
        return self.browser.user_agent

    @property
    def locale(self) -> str:
        """The language it asks for, as `en-US`."""
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
        """How many pages are open."""
        return len(self._tabs)

    def tab(self, page_id: str | None = None) -> Tab:
        """A page by its id; without one the oldest that is open. NOT_FOUND where there is none."""
        wanted = next(iter(self._tabs), None) if page_id is None else page_id
        if wanted is None or wanted not in self._tabs:
            raise AwpError("NOT_FOUND", f"Page not found: {page_id or 'all are closed'}", {"page_id": page_id})
        return self._tabs[wanted]

    def open_tab(self) -> Tab:
        """One page more, empty. RATE_LIMITED where there are as many as there may be."""
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
        """All that is worth carrying: cookies, who browses, the pages' addresses and histories. JSON, unsigned.

        Bodies and what was typed stay behind: pages are fetched again with `page.reload` after an import.
        """
        return export_session(self.browser, [tab.history for tab in self._tabs.values()])

    @classmethod
    def restore(
        cls,
        exported: object,
        origins: Origins,
        *,
        limits: Limits = Limits(),  # noqa: B008
        cache: PageCache | None = None,
        clock: Callable[[], float] = time.time,
    ) -> "Session":
        """The session that `export` described, under a new id. INVALID_REQUEST for anything else."""
        if not isinstance(exported, Mapping):
            refuse("Invalid session: it must be an object", param="session")
        who = {name: exported.get(name) for name in ("user_agent", "locale")}
        for name, said in who.items():
            if not isinstance(said, str):
                refuse(f"Invalid session: {name} must be a string", param=f"session.{name}")
        session = cls(
            origins,
            user_agent=str(who["user_agent"]),
            locale=str(who["locale"]),
            limits=limits,
            cache=cache,
            clock=clock,
        )
        histories = restore_into(session.browser, exported)
        for number, history in enumerate(histories):
            tab = session.tab() if number == 0 else session.open_tab()
            tab.history = history
        return session


def _check(name: str, value: str, pattern: re.Pattern[str]) -> str:
    if pattern.fullmatch(value) is None:
        refuse(f"Invalid param: {name} cannot be sent in a header", param=name)
    return value


# --- The methods of the protocol that are about pages and cookies, as one table: name -> `Method` ---
#     method = METHODS["page.navigate"]
#     method.check(params)                        # INVALID_REQUEST: before the session is looked up
#     steps = method.run(session, params)         # a generator for every method, whether it fetches or not
#     fetch = next(steps)                         # StopIteration.value is the result
#     fetch = steps.send(fetched)
#
# `scope` is the permission that a caller needs (paper, Table 3). `run` raises every AwpError when it is driven.
# Strings in `params` must be valid Unicode, as orjson and msgpack see to.
#     page.navigate  {url, page_id?}                               page:act
#     page.back, page.forward, page.reload  {page_id?}             page:act; they answer as page.navigate does
#     page.history   {page_id?} -> {entries [{url, title}], index} som:read
#     page.observe   {mode?, cursor?, budget?, page_id?}           som:read
#     page.act       {intent, page_id?}                            page:act
#     page.extract   {fields | structured_data | interactive_elements, page_id?}   som:read
#     page.create    {} -> {page_id}                               page:act
#     page.close     {page_id} -> {closed}                         page:act
#     page.list      {} -> {pages [{page_id, url, title}], count}  som:read
#     session.cookies.get    {name?, domain?, url?} -> {cookies, count}    session:write
#     session.cookies.set    {cookies} -> {set}                            session:write
#     session.cookies.clear  {name?, domain?, url?} -> {cleared}           session:write
#
# `page_id` left out means the session's oldest open page; every session is born with one, `p_1`.

Params: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the protocol: the scope it needs, the check of its parameters, and its run."""

    name: str
    scope: str
    check: Callable[[Params], None]
    run: Callable[[Session, Params], Steps]


def _check_page(params: Params) -> None:
    read_text(params, "page_id")


def _check_navigation(params: Params) -> None:
    require_text(params, "url")
    _check_page(params)


def _check_close(params: Params) -> None:
    require_text(params, "page_id")


def _tab(session: Session, params: Params) -> Tab:
    return session.tab(read_text(params, "page_id"))


def _navigate(session: Session, params: Params) -> Steps:
    return (yield from _tab(session, params).navigate(require_text(params, "url")))


def _back(session: Session, params: Params) -> Steps:
    return (yield from _tab(session, params).go(-1))


def _forward(session: Session, params: Params) -> Steps:
    return (yield from _tab(session, params).go(1))


def _reload(session: Session, params: Params) -> Steps:
    return (yield from _tab(session, params).reload())


def _act(session: Session, params: Params) -> Steps:
    return (yield from _tab(session, params).act(params))


def _create(session: Session, _params: Params) -> JsonObject:
    return {"page_id": session.open_tab().id}


def _close(session: Session, params: Params) -> JsonObject:
    session.close_tab(require_text(params, "page_id"))
    return {"closed": True}


def _methods_list(session: Session, _params: Params) -> JsonObject:
    pages = [{"page_id": tab.id, "url": tab.url, "title": tab.title} for tab in session.tabs.values()]
    return {"pages": pages, "count": len(pages)}


def _at_once(answer: Callable[[Session, Params], JsonObject]) -> Callable[[Session, Params], Steps]:
    """A method that fetches nothing, in the shape of those that do."""

    def run(session: Session, params: Params) -> Steps:
        yield from ()
        return answer(session, params)

    return run


_ALL: Final = (
    Method("page.navigate", "page:act", _check_navigation, _navigate),
    Method("page.back", "page:act", _check_page, _back),
    Method("page.forward", "page:act", _check_page, _forward),
    Method("page.reload", "page:act", _check_page, _reload),
    Method("page.history", "som:read", _check_page, _at_once(lambda s, p: _tab(s, p).list_history())),
    Method("page.observe", "som:read", _check_page, _at_once(lambda s, p: _tab(s, p).observe(p))),
    Method("page.act", "page:act", _check_page, _act),
    Method("page.extract", "som:read", _check_page, _at_once(lambda s, p: _tab(s, p).extract(p))),
    Method("page.create", "page:act", _check_page, _at_once(_create)),
    Method("page.close", "page:act", _check_close, _at_once(_close)),
    Method("page.list", "som:read", _check_page, _at_once(_methods_list)),
    Method("session.cookies.get", "session:write", _check_page, _at_once(lambda s, p: get_cookies(p, s.browser))),
    Method("session.cookies.set", "session:write", _check_page, _at_once(lambda s, p: set_cookies(p, s.browser))),
    Method("session.cookies.clear", "session:write", _check_page, _at_once(lambda s, p: clear_cookies(p, s.browser))),
)
METHODS: Final[Mapping[str, Method]] = {method.name: method for method in _ALL}
