"""A session as JSON and back again. What comes back is believed in nothing: it may be of another site or version."""

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from awp_publish.browsing.browser import Browser
from awp_publish.browsing.cookie_facts import describe_cookie, read_cookie
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.history import Entry, History
from awp_publish.model import JsonObject

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
