"""`Session`: cookies, pages and who browses; the methods of the protocol are in `methods.py`."""

import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Final

from awp_publish.browsing.browser import LOCALE, USER_AGENT, Browser
from awp_publish.browsing.cookies import CookieJar
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.limits import Limits
from awp_publish.browsing.origins import Origins
from awp_publish.browsing.saving import export_session, restore_into
from awp_publish.browsing.shelf import PageCache
from awp_publish.browsing.tab import Tab
from awp_publish.model import JsonObject

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
