"""Sessions have pages, histories, bounds, and can be carried away and brought back."""

import contextlib
import copy
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from awp_publish.browsing.acting import VERBS
from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.compiled import PageCache
from awp_publish.browsing.errors import CODES, AwpError
from awp_publish.browsing.methods import METHODS
from awp_publish.browsing.session import Session
from tests.browsing.driving import HOME, Agent, page, redirect
from tests.examples import examples

SITE = {
    "/": "<title>Home</title><main><h1>Home</h1><a href=/a>A</a><input name=q aria-label=Find></main>",
    "/a": "<title>A</title><main><h1>A</h1><a href=/b>B</a></main>",
    "/b": "<title>B</title><main><h1>B</h1></main>",
    "/f": "<form method=post action=/done><button>Send</button></form>",
    "/done": "<title>Done</title><p>Done</p>",
    "/login": redirect("/", 302, ("Set-Cookie", "sid=1; Path=/")),
}


@pytest.fixture
def agent() -> Agent:
    return Agent(SITE)


def title(agent: Agent) -> str:
    return agent.som()["title"]


def test_back_and_forward_show_kept_pages_as_they_were_left(agent):
    agent.act("type", {"role": "text_input"}, value="x")
    agent.click({"role": "link"})
    agent.click({"role": "link"})
    asked = len(agent.web.asked)
    assert agent.call("page.back")["url"] == "https://shop.example/a"
    assert agent.call("page.back")["title"] == "Home"
    assert agent.elements("text_input")[0]["attrs"]["value"] == "x"
    assert agent.call("page.forward")["title"] == "A"
    assert len(agent.web.asked) == asked
    history = agent.call("page.history")
    assert history["index"] == 1
    assert [entry["title"] for entry in history["entries"]] == ["Home", "A", "B"]


def test_a_new_page_ends_the_way_forward(agent):
    agent.navigate("/a")
    agent.call("page.back")
    agent.navigate("/b")
    assert [entry["url"] for entry in agent.call("page.history")["entries"]] == [f"{HOME}/", f"{HOME}/b"]
    with pytest.raises(AwpError) as missed:
        agent.call("page.forward")
    assert missed.value.code == "NOT_FOUND"


def test_the_same_address_again_is_one_entry(agent):
    agent.navigate("/")
    agent.navigate("/")
    assert len(agent.call("page.history")["entries"]) == 1
    assert len(agent.web.asked) == 3


@pytest.mark.parametrize("method", ["page.back", "page.forward", "page.reload"])
def test_there_is_nothing_before_the_first_page(method):
    with pytest.raises(AwpError) as missed:
        Agent().call(method)
    assert missed.value.code == "NOT_FOUND"


def test_a_page_is_fetched_again_when_it_is_reloaded_or_was_not_kept():
    agent = Agent(SITE, limits={"kept_bytes": 0})
    agent.act("type", {"role": "text_input"}, value="x")
    agent.call("page.reload")
    assert "value" not in agent.elements("text_input")[0]["attrs"]
    agent.navigate("/a")
    assert agent.call("page.back")["title"] == "Home"
    assert [fetch.path for fetch in agent.web.asked] == ["/", "/", "/a", "/"]
    assert agent.call("page.history")["index"] == 0


def test_the_answer_to_a_form_is_not_asked_for_twice():
    agent = Agent(SITE, start="/f", limits={"kept_bytes": 0})
    agent.click("button")
    with pytest.raises(AwpError, match="submitted again") as refused:
        agent.call("page.reload")
    assert refused.value.code == "CONFLICT"
    agent.navigate("/")
    with pytest.raises(AwpError, match="submitted again"):
        agent.call("page.back")
    assert title(agent) == "Home"


def test_the_answer_to_a_form_that_is_kept_is_shown_again():
    agent = Agent(SITE, start="/f")
    agent.click("button")
    agent.navigate("/")
    assert agent.call("page.back")["title"] == "Done"
    assert [fetch.method for fetch in agent.web.asked] == ["GET", "POST", "GET"]


def test_a_history_is_bounded():
    agent = Agent({f"/{n}": page(f"<title>{n}</title>") for n in range(9)}, start="/0", limits={"history": 3})
    for number in range(1, 9):
        agent.navigate(f"/{number}")
    assert [entry["title"] for entry in agent.call("page.history")["entries"]] == ["6", "7", "8"]


def test_cursors_grow_with_every_navigation_and_every_change(agent):
    cursors = [
        agent.navigate("/")["cursor"],
        agent.act("type", {"role": "text_input"}, value="x")["effects"]["som_cursor"],
        agent.act("type", {"role": "text_input"}, value="x")["effects"]["som_cursor"],
        agent.navigate("/a")["cursor"],
        agent.call("page.back")["cursor"],
    ]
    assert cursors == [2, 3, 3, 4, 5]


def test_a_session_has_several_pages_with_histories_of_their_own_and_cookies_in_common(agent):
    assert agent.call("page.create") == {"page_id": "p_2"}
    agent.call("page.navigate", url="/login", page_id="p_2")
    agent.call("page.navigate", url="/a")
    listed = agent.call("page.list")
    assert [(entry["page_id"], entry["title"]) for entry in listed["pages"]] == [("p_1", "A"), ("p_2", "Home")]
    assert dict(agent.web.last.headers)["cookie"] == "sid=1"
    assert len(agent.session.tabs) == listed["count"] == 2
    assert agent.call("page.close", page_id="p_1") == {"closed": True}
    assert title(agent) == "Home"
    assert agent.call("page.create") == {"page_id": "p_3"}
    for wrong in ({}, {"page_id": 1}):
        with pytest.raises(AwpError, match="INVALID_REQUEST"):
            agent.call("page.close", **wrong)
    with pytest.raises(AwpError, match="Page not found: p_1"):
        agent.call("page.observe", page_id="p_1")


def test_a_session_without_pages_says_so(agent):
    agent.call("page.close", page_id="p_1")
    assert (agent.url, len(agent.session.tabs)) == (None, 0)
    with pytest.raises(AwpError, match="Page not found"):
        agent.navigate("/")
    agent.call("page.create")
    assert agent.navigate("/")["title"] == "Home"


def test_pages_are_bounded():
    agent = Agent(SITE, limits={"pages": 2})
    agent.call("page.create")
    with pytest.raises(AwpError, match="Maximum pages") as refused:
        agent.call("page.create")
    assert refused.value.code == "RATE_LIMITED"


def test_ids_of_sessions_cannot_be_guessed():
    assert len({Agent().session.id for _ in range(100)}) == 100
    assert len(Agent().session.id) == 34


def test_a_session_is_carried_to_another_process_and_goes_on_there(agent):
    agent.navigate("/login")
    agent.navigate("/a#part")
    agent.call("page.create")
    carried = json.loads(orjson.dumps(agent.session.export()))
    later = Agent(SITE, start=None)
    later.session = Session.restore(carried, Origins.of(HOME), clock=later.clock)
    assert later.session.id != agent.session.id
    assert later.cookies == {"sid": "1"}
    assert [tab.url for tab in later.session.tabs.values()] == [f"{HOME}/a#part", None]
    with pytest.raises(AwpError, match="No page loaded yet"):
        later.som()
    assert later.call("page.reload")["title"] == "A"
    assert dict(later.web.last.headers)["cookie"] == "sid=1"
    assert later.call("page.back")["title"] == "Home"
    assert later.session.export() == {**later.session.export(), "user_agent": agent.session.browser.user_agent}


def test_typed_text_is_not_exported(agent):
    agent.act("type", {"role": "text_input"}, value="secret")
    assert b"secret" not in orjson.dumps(agent.session.export())


def test_expired_cookies_stay_behind(agent):
    agent.call("session.cookies.set", cookies=[{"name": "a", "value": "1", "expires": agent.clock.now + 5}])
    carried = agent.session.export()
    agent.clock.now += 10
    assert agent.session.export()["cookies"] == []
    later = Session.restore(carried, Origins.of(HOME), clock=agent.clock)
    assert len(later.browser.jar) == 0


def _sound() -> dict[str, Any]:
    agent = Agent(SITE, start="/login")
    agent.navigate("/a")
    return json.loads(orjson.dumps(agent.session.export()))


SOUND = _sound()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), []),
        (("format",), "awp-session/9"),
        (("user_agent",), None),
        (("user_agent",), "a\r\nb"),
        (("locale",), 3),
        (("cookies",), {}),
        (("cookies",), [{"name": "a", "value": "1"}] * 181),
        (("cookies", 0), "sid=1"),
        (("cookies", 0, "domain"), "evil.example"),
        (("cookies", 0, "value"), "1\r\nx: y"),
        (("cookies", 0, "path"), "x"),
        (("pages",), None),
        (("pages",), [{"entries": [], "index": -1}] * 17),
        (("pages", 0), 7),
        (("pages", 0, "index"), 2),
        (("pages", 0, "index"), -1),
        (("pages", 0, "index"), True),
        (("pages", 0, "entries"), [None]),
        (("pages", 0, "entries", 0), "x"),
        (("pages", 0, "entries", 0, "url"), "https://evil.example/"),
        (("pages", 0, "entries", 0, "url"), "javascript:x"),
        (("pages", 0, "entries", 0, "method"), "DELETE"),
        (("pages", 0, "entries", 0, "title"), 1),
    ],
)
def test_a_session_that_was_tampered_with_is_refused(path, value):
    spoiled = copy.deepcopy(SOUND)
    holder = spoiled
    for part in path[:-1]:
        holder = holder[part]
    if path:
        holder[path[-1]] = value
    else:
        spoiled = value
    with pytest.raises(AwpError) as refused:
        Session.restore(spoiled, Origins.of(HOME))
    assert refused.value.code == "INVALID_REQUEST"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*SOUND, "name", "url"]), inner),
    max_leaves=10,
)


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(["format", "user_agent", "locale", "cookies", "pages"]), JSON)
def test_nothing_that_is_imported_does_more_than_be_refused(name, value):
    with contextlib.suppress(AwpError):
        Session.restore({**SOUND, name: value}, Origins.of(HOME))


def test_errors_have_the_eleven_codes_and_say_what_they_know():
    assert len(CODES) == len(set(CODES)) == 11
    assert AwpError("TIMEOUT", "Too late").describe() == {"code": "TIMEOUT", "message": "Too late"}
    assert AwpError("CONFLICT", "Busy", {"a": 1}).describe()["details"] == {"a": 1}


def test_the_documented_methods_are_those_that_there_are():
    text = (Path(__file__).parents[2] / "docs" / "awp.md").read_text()
    assert set(METHODS) <= set(re.findall(r"`((?:page|session)\.[a-z.]+)`", text))
    actions = set(re.findall(r"`([a-z_]+)`", "".join(re.findall(r"^\| (`[a-z_`, ]+) \|", text, re.MULTILINE))))
    assert {*VERBS, "scroll"} <= actions


def test_sessions_share_the_pages_that_they_look_at():
    cache = PageCache()
    one, other = (Agent(SITE, cache=cache) for _ in range(2))
    kept = [agent.session.tab().history.entries[0].page for agent in (one, other)]
    assert kept[0] is not None
    assert kept[1] is not None
    assert kept[0].html is kept[1].html
    one.act("type", {"role": "text_input"}, value="mine")
    assert "value" not in other.elements("text_input")[0]["attrs"]


def test_a_cache_of_one_page_serves_sessions_on_many():
    cache = PageCache(max_pages=1, max_bytes=1)
    agents = [Agent(SITE, cache=cache, start=start) for start in ("/", "/a", "/b")]
    assert [title(agent) for agent in agents] == ["Home", "A", "B"]
    agents[0].act("type", {"role": "text_input"}, value="x")
    assert title(agents[2]) == "B"
    assert agents[0].elements("text_input")[0]["attrs"]["value"] == "x"


def test_a_cache_can_be_used_from_several_threads():
    cache = PageCache(max_pages=2)
    with ThreadPoolExecutor(4) as threads:
        titles = list(
            threads.map(lambda number: title(Agent(SITE, cache=cache, start="/ab"[: number % 2 + 1])), range(60))
        )
    assert titles == ["Home", "A"] * 30
