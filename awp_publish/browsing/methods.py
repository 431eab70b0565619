"""The protocol's methods on pages and cookies, by name.

    method = METHODS["page.navigate"]
    method.check(params)                        # INVALID_REQUEST: before the session is looked up
    steps = method.run(session, params)         # a generator for every method, whether it fetches or not
    fetch = next(steps)                         # StopIteration.value is the result
    fetch = steps.send(fetched)

docs/awp.md has the parameters and results of each. The default of `page_id` is the session's oldest open page;
every session begins with one, `p_1`. `params` are as orjson and msgpack decode them: valid Unicode, 64-bit integers.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final

from awp_publish.browsing.page import Steps
from awp_publish.browsing.parameters import read_text, require_text
from awp_publish.browsing.session import Session
from awp_publish.browsing.tab import Tab
from awp_publish.schema import JsonObject


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
