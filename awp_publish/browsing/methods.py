"""The methods of the protocol that are about pages and cookies, as one table: name -> `Method`.

    method = METHODS["page.navigate"]
    method.check(params)                        # INVALID_REQUEST: before the session is looked up
    steps = method.run(session, params)         # a generator for every method, whether it fetches or not
    fetch = next(steps)                         # StopIteration.value is the result
    fetch = steps.send(fetched)

`scope` is the permission that a caller needs (paper, Table 3). `run` raises every AwpError when it is driven. Strings
in `params` must be valid Unicode, as orjson and msgpack see to.

    page.navigate  {url, page_id?}                               page:act
    page.back, page.forward, page.reload  {page_id?}             page:act; they answer as page.navigate does
    page.history   {page_id?} -> {entries [{url, title}], index} som:read
    page.observe   {mode?, cursor?, budget?, page_id?}           som:read
    page.act       {intent, page_id?}                            page:act
    page.extract   {fields | structured_data | interactive_elements, page_id?}   som:read
    page.create    {} -> {page_id}                               page:act
    page.close     {page_id} -> {closed}                         page:act
    page.list      {} -> {pages [{page_id, url, title}], count}  som:read
    session.cookies.get    {name?, domain?, url?} -> {cookies, count}    session:write
    session.cookies.set    {cookies} -> {set}                            session:write
    session.cookies.clear  {name?, domain?, url?} -> {cleared}           session:write

`page_id` left out means the session's oldest open page; every session is born with one, `p_1`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from awp_publish.browsing.cookie_facts import clear_cookies, get_cookies, set_cookies
from awp_publish.browsing.fetching import Steps
from awp_publish.browsing.reading import read_text, require_text
from awp_publish.browsing.session import Session
from awp_publish.browsing.tab import Tab
from awp_publish.model import JsonObject

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


def _list(session: Session, _params: Params) -> JsonObject:
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
    Method("page.list", "som:read", _check_page, _at_once(_list)),
    Method("session.cookies.get", "session:write", _check_page, _at_once(lambda s, p: get_cookies(p, s.browser))),
    Method("session.cookies.set", "session:write", _check_page, _at_once(lambda s, p: set_cookies(p, s.browser))),
    Method("session.cookies.clear", "session:write", _check_page, _at_once(lambda s, p: clear_cookies(p, s.browser))),
)
METHODS: Final[Mapping[str, Method]] = {method.name: method for method in _ALL}
