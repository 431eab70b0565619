"""Whatever an agent does in whatever order: a result or an AwpError, cursors that only grow, patches that hold."""

from typing import Any

import orjson
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.errors import CODES, AwpError
from awp_publish.browsing.methods import METHODS
from awp_publish.browsing.page import Fetch
from awp_publish.browsing.session import Session
from tests.browsing.driving import HOME, Agent, page, redirect
from tests.browsing.json_patch import apply_patch
from tests.examples import examples

FORM = """<title>Form</title><main><h1>Form</h1><a href=/list>List</a><a href=#x>Here</a><a href=https://evil.example>Out</a>
<form action=/echo><input name=a aria-label=A required><input type=number name=n max=5 aria-label=N>
<select name=s aria-label=S><option>1<option>2</select><select name=m multiple aria-label=M><option>1<option>2</select>
<input type=checkbox name=c aria-label=C><input type=radio name=r value=1 aria-label=R1><input type=radio name=r value=2
aria-label=R2><textarea name=t aria-label=T>x</textarea><button>Send</button><button formmethod=post>Post</button>
<button type=reset>Reset</button><fieldset disabled><input name=d aria-label=D></fieldset></form>
<details><summary>More</summary><p>Words</p></details></main>"""


def _echo(fetch: Fetch) -> Any:
    return page(
        f"<title>Echo</title><main><h1>Echo</h1><p>{fetch.method} {len(fetch.path)}</p><a href=/>Home</a></main>"
    )


SITE: dict[str, Any] = {
    "/": FORM,
    "/echo": _echo,
    "/list": "<title>List</title><main><h1>List</h1><p>one</p><p>two</p><p>one</p></main>",
    "/moved": redirect("/list", 302, ("set-cookie", "a=1; Path=/")),
    "/out": redirect("https://evil.example/"),
    "/broken": page("", 500),
    "/empty": page("", 204),
    "/loop": redirect("/loop"),
}
URLS = st.sampled_from([*SITE, "/nowhere", "#frag", "?q=1", "https://evil.example/", "javascript:x", "http://[", ""])
LABELS = st.sampled_from(
    ["A", "N", "S", "M", "C", "R1", "R2", "T", "D", "Send", "Post", "Reset", "List", "Here", "Out", "More"]
)
VALUES = st.one_of(
    st.sampled_from(["1", "2", "x", "", "a\nb", "7"]), st.integers(0, 9), st.booleans(), st.none(), st.just(["1", "2"])
)
WILD = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["ref", "text", "role", "css", "fallback", "query", "action", "target", "value"]), inner
        )
    ),
    max_leaves=8,
)
ACTIONS = st.sampled_from(
    ["click", "type", "select", "toggle", "clear", "scroll", "submit", "fill_form", "primitive.click", "?"]
)


class Browsing(RuleBasedStateMachine):
    cursors = Bundle("cursors")

    def __init__(self) -> None:
        super().__init__()
        self.agent = Agent(SITE, start=None, limits={"history": 4, "kept_bytes": 4_000, "moments": 4})
        self.cursor = 0
        self.seen: dict[int, dict[str, Any]] = {}

    def attempt(self, method: str, **params: Any) -> dict[str, Any] | None:
        try:
            result = self.agent.call(method, **params)
        except AwpError as error:
            refused = orjson.loads(orjson.dumps(error.describe()))
        else:
            orjson.dumps(result)
            return result
        assert refused["code"] in CODES
        assert refused["message"]
        return None

    @rule(url=URLS)
    def navigate(self, url: str) -> None:
        self.attempt("page.navigate", url=url)

    @rule(method=st.sampled_from(["page.back", "page.forward", "page.reload"]))
    def travel(self, method: str) -> None:
        self.attempt(method)

    @rule(action=ACTIONS, label=LABELS, value=VALUES, submit=st.booleans())
    def act(self, action: str, label: str, value: Any, submit: bool) -> None:
        intent = {"action": action, "target": {"text": label, "fallback": {"css": "input"}}, "value": value}
        self.attempt("page.act", intent={**intent, "options": {"submit": submit}, "fields": {label: value}})

    @rule(action=ACTIONS, meant=WILD, value=WILD)
    def act_wildly(self, action: str, meant: Any, value: Any) -> None:
        self.attempt("page.act", intent={"action": action, "target": meant, "value": value})

    @rule(
        method=st.sampled_from(sorted(METHODS)),
        params=st.dictionaries(st.sampled_from(["url", "intent", "fields", "mode", "cursor", "cookies"]), WILD),
    )
    def call_wildly(self, method: str, params: dict[str, Any]) -> None:
        if method not in ("page.create", "page.close"):
            self.attempt(method, **params)

    @rule(url=URLS)
    def give_up_on_the_way(self, url: str) -> None:
        steps = METHODS["page.navigate"].run(self.agent.session, {"url": url})
        try:
            next(steps)
        except (AwpError, StopIteration):
            return
        steps.close()

    @rule(target=cursors)
    def look(self) -> int:
        answer = self.attempt("page.observe")
        if answer is None:
            return 0
        self.seen[answer["cursor"]] = orjson.loads(orjson.dumps(answer["som"]))
        return answer["cursor"]

    @rule(cursor=cursors)
    def look_at_changes(self, cursor: int) -> None:
        answer = self.attempt("page.observe", mode="mutations", cursor=f"c:{cursor}")
        if answer is None:
            return
        now = self.agent.som()
        if answer["mode"] == "snapshot":
            assert answer["som"] == now
        elif cursor in self.seen:
            assert apply_patch(self.seen[cursor], answer["patch"]) == now

    @rule()
    def carry_the_session_away(self) -> None:
        exported = orjson.loads(orjson.dumps(self.agent.session.export()))
        restored = Session.restore(exported, Origins.of(HOME), clock=self.agent.clock)
        assert restored.export() == exported

    @invariant()
    def cursors_only_grow_and_bounds_hold(self) -> None:
        history = self.agent.session.tab().history
        assert history.cursor >= self.cursor
        self.cursor = history.cursor
        assert len(history.entries) <= 4
        assert all(fetch.origin == HOME for fetch in self.agent.web.asked)


TestBrowsing = pytest.mark.slow(Browsing.TestCase)
TestBrowsing.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
