"""The statements of the AWP paper about a server, each with what holds it or with where the documentation departs.

A statement is held by a check through the door, by the name of a test beside this one, or is not kept: then
docs/differences.md has the sentence.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from awp_publish import Awp, Site
from tests.plugins.awp.awp_client import HELLO, AwpClient
from tests.plugins.awp.awp_site import publish

HERE = Path(__file__).parent
DIFFERENCES = HERE.parents[2] / "docs" / "differences.md"
PAGE = """<!doctype html><html lang=en><title>Widget Pro</title><nav><a href="/">Home</a><a href="/two">Two</a></nav>
<main><h1>Widget Pro</h1><p>$49.99</p><form action="/two"><input name=q><input type=checkbox name=c><textarea name=t>
</textarea><input type=radio name=r><select name=s><option>S<option>M</select><button>Add to Cart</button></form>"""


class Asked(NamedTuple):
    """A connection with a session on the page, the SOM of that, and the answer to the handshake."""

    door: AwpClient
    session: str
    som: Any
    hello: Any

    def do(self, method: str, **params: Any) -> Any:
        return self.door.do(method, session_id=self.session, **params)

    def act(self, action: str, target: object, **more: Any) -> Any:
        self.do("page.navigate", url="/")
        return self.do("page.act", intent={"action": action, "target": target, **more})

    def of(self, role: str) -> Any:
        return next(
            element for region in self.som["regions"] for element in region["elements"] if element["role"] == role
        )

    def acts_on(self, target: object, role: str) -> bool:
        return bool(self.act("click", target)["resolved"]["role"] == role)


Held = Callable[[Asked], object] | str
ACTIONS = {"link": ["click"], "button": ["click"], "text_input": ["type", "clear"], "textarea": ["type", "clear"]} | {
    "select": ["select"],
    "checkbox": ["toggle"],
    "radio": ["select"],
}
CART = {"text": "Add to Cart", "role": "button"}
STATEMENTS: list[tuple[str, str, Held]] = [
    ("4.1", "a WebSocket carries messages in both directions", "test_a_client_that_wants_it_is_told_what_its_actions"),
    ("4.1", "one connection has several sessions, isolated", "test_one_connection_has_several_sessions_each_with"),
    ("4.1", "responses are matched by the client's id", lambda on: on.do("page.list")["count"] == 1),
    ("4.1", "actions of one page keep their order", "test_requests_of_one_session_keep_their_order"),
    ("4.1", "unless the client opts into concurrency", "test_pages_of_one_session_are_opened_at_the_same_time"),
    ("4.1, 4.3", "events have no id", "test_a_client_that_wants_it_is_told_what_its_actions_made_of_a_page"),
    ("4.2", "JSON in text frames, keys in lower_snake_case", lambda on: all(name.islower() for name in on.hello)),
    ("4.2", "MessagePack in binary frames", "test_message_pack_and_json_say_the_same"),
    ("4.2", "zstd", "zstd is not supported."),
    ("4.3", "a response has exactly one of result and error", lambda on: on.door.ask("page.list")["error"]),
    ("4.3", "unknown fields are ignored", lambda on: on.do("page.list", nonsense=1)),
    ("4.3", "meta has an idempotency key", "test_a_key_acts_once"),
    ("4.3", "meta has a trace id", "test_frames_that_are_requests_and_others"),
    ("4.4", "errors have one of the codes", "test_every_code_but_that_of_scripts_can_occur_and_says_why"),
    ("4.4", "errors have details", lambda on: on.door.fail("page.list", session_id="s_1")["details"]),
    ("4.4", "an unknown method is INVALID_REQUEST", lambda on: on.door.fail("page.fly")["code"] == "INVALID_REQUEST"),
    ("4.5", "nothing is processed before the handshake", "test_handshakes"),
    (
        "4.5",
        "the answer has version, name and server version",
        lambda on: on.hello["server_name"] and on.hello["awp_version"] and on.hello["server_version"],
    ),
    ("4.5", "features", lambda on: {"som.snapshot", "act.primitive", "extract"} <= set(on.hello["features"])),
    ("4.5", "versions are negotiated", "test_handshakes"),
    ("5.2", "all parameters of a session are optional", lambda on: on.door.create().startswith("s_")),
    ("5.2", "a session id has eight digits", "Session ids are `s_` and 32 digits instead of 8"),
    (
        "5.2, 8",
        "500 sessions by default, a fifth for one address",
        lambda on: on.hello["limits"]["max_sessions"] == 100,
    ),
    ("5.2, 8", "16 pages a session by default", lambda on: on.hello["limits"]["max_pages_per_session"] == 16),
    ("5.3", "a closed session is gone", "test_sessions"),
    (
        "5.4",
        "a navigation's answer",
        lambda on: (
            {"url", "status", "content_type", "html_bytes", "som_ready", "load_ms"}
            <= set(on.do("page.navigate", url="/"))
        ),
    ),
    (
        "5.4",
        "four ways to wait",
        lambda on: all(
            on.do("page.navigate", url="/", wait={"until": how})
            for how in ("dom_content_loaded", "load", "network_idle", "som_stable")
        ),
    ),
    ("5.4", "a navigation times out", "test_a_page_that_takes_too_long_is_a_timeout_and_leaves_the_page_before"),
    ("5.4", "any address is fetched", "Only this site is browsed, at its own address"),
    (
        "5.5",
        "a snapshot has the members of SOM",
        lambda on: list(on.som)[:5] == ["som_version", "url", "title", "lang", "regions"],
    ),
    (
        "5.5",
        "and its compression",
        lambda on: set(on.som["meta"]) == {"html_bytes", "som_bytes", "element_count", "interactive_count"},
    ),
    (
        "5.6",
        "an action says on what it acted",
        lambda on: (
            on.act("click", {"ref": on.of("link")["id"]})["resolved"]
            == {"element_id": on.of("link")["id"], "role": "link", "text": "Home"}
        ),
    ),
    (
        "5.6",
        "and what it did",
        lambda on: (
            on.act("click", {"text": "Two"})["effects"].items() >= {"navigated": True, "som_changed": True}.items()
        ),
    ),
    (
        "5.6",
        "click, type, select",
        lambda on: on.act("type", {"css": "input"}, value="x") and on.act("select", {"css": "select"}, value="M"),
    ),
    (
        "5.6",
        "scroll",
        lambda on: on.do("page.act", intent={"action": "scroll", "value": "down"})["effects"]["scroll_y"] > 0,
    ),
    (
        "5.7",
        "a field by role and level",
        lambda on: on.do("page.extract", fields={"x": {"role": "heading", "level": 1}})["data"] == {"x": "Widget Pro"},
    ),
    (
        "5.7",
        "all matches with properties",
        lambda on: (
            on.do("page.extract", fields={"x": {"role": "link", "all": True, "props": ["text", "href"]}})["data"]["x"][
                1
            ]
            == {"text": "Two", "href": "/two"}
        ),
    ),
    (
        "5.7",
        "a field by the match of a text",
        lambda on: on.do("page.extract", fields={"x": {"text_match": r"\$\d+\.\d{2}"}})["data"] == {"x": "$49.99"},
    ),
    (
        "5.7",
        "provenance",
        lambda on: (
            on.do("page.extract", fields={"x": {"role": "button"}})["provenance"] == {"x": on.of("button")["id"]}
        ),
    ),
    ("6.3", "a target by its id", lambda on: on.acts_on({"ref": on.of("button")["id"]}, "button")),
    ("6.3", "by text and role", lambda on: on.acts_on(CART, "button")),
    ("6.3", "by CSS", lambda on: on.acts_on({"css": "form button"}, "button")),
    (
        "6.3",
        "by a chain of others",
        lambda on: on.acts_on({"ref": "e_9f2c", "fallback": [{"text": "x"}, CART]}, "button"),
    ),
    ("6.3", "in this order", lambda on: on.acts_on({"css": "nav a", "ref": on.of("button")["id"]}, "button")),
    ("6.4", "primitive", lambda on: on.act("primitive.click", CART)),
    ("6.4", "semantic", lambda on: on.act("semantic.fill_form", {"css": "form"}, fields={"q": "x"})),
    ("6.4, 9", "intents and skills", "test_pages"),
    (
        "6.5",
        "effects have confidence and a cursor",
        lambda on: {"confidence", "som_cursor"} <= set(on.act("click", CART)["effects"]),
    ),
    ("7.2", "roles have their affordances", lambda on: {role: on.of(role)["actions"] for role in ACTIONS} == ACTIONS),
    ("7.2", "no budget drops an interactive element", "No `budget` of `page.observe` drops a control or a link (7.2)"),
    (
        "7.3",
        "ids are the same across fetches",
        lambda on: on.do("page.reload") and on.do("page.observe")["som"] == on.som,
    ),
    ("7.4", "changes since a cursor", "test_a_client_that_wants_it_is_told_what_its_actions_made_of_a_page"),
    ("7.4", "changes as events", "test_a_client_that_wants_it_is_told_what_its_actions_made_of_a_page"),
    ("8", "cookies of responses are kept", "test_a_form_is_filled_in_and_its_cookie_is_kept"),
    (
        "8",
        "cookies are read and set",
        lambda on: (
            on.do("session.cookies.set", cookies=[{"name": "a", "value": "b"}])["set"] == 1
            and on.do("session.cookies.get")["count"]
            and on.do("session.cookies.clear")["cleared"]
        ),
    ),
    ("8", "pages of a session", lambda on: on.do("page.close", page_id=on.do("page.create")["page_id"])["closed"]),
    ("8", "a session persists", "`persist` is refused"),
    ("8", "a session expires", "test_open_sessions"),
    ("8", "a session is exported and imported", "test_an_exported_session_goes_on_elsewhere"),
    ("3.1", "a session survives a reconnect", "test_a_session_is_resumed_with_its_token"),
    ("9", "skills are listed and invoked", "test_skills"),
    ("9", "skills are WebAssembly", "skills are the\n  site's actions rather than WebAssembly"),
    ("10.1", "none, bearer and HMAC", "test_a_signed_challenge_tells_who_speaks"),
    ("10.2", "scopes", "test_a_caller_with_scopes_has_these_and_no_others"),
    (
        "10.2",
        "scripts are refused apart",
        lambda on: on.door.fail("page.evaluate_js", script="1")["code"] == "UNSUPPORTED",
    ),
    ("10.2", "the network is configured", "there are no `network.*`, `proxy.*`"),
]


async def show(request: Request) -> Response:
    return HTMLResponse(PAGE)


def test_each_statement_of_the_paper_about_a_server_is_kept_or_the_documentation_says_that_it_is_not(
    open_client, monkeypatch
):
    tests = "".join(path.read_text() for path in HERE.glob("test_awp*.py") if path.name != Path(__file__).name)
    differences = DIFFERENCES.read_text()
    monkeypatch.setattr("tests.plugins.awp.awp_site.ROUTES", [Route("/", show), Route("/two", show)])
    site = Site(
        name="Shop", description="A shop.", url="https://shop.example", plugins=[Awp(messages_per_second=5_000)]
    )
    wrong = []
    with AwpClient.open(open_client(publish(site))) as door:
        hello = door.do("awp.hello", **HELLO)
        for section, statement, held in STATEMENTS:
            if isinstance(held, str):
                is_held = f"def {held}" in tests if held.startswith("test_") else held in differences
            else:
                session = door.create()
                door.do("page.navigate", session_id=session, url="/")
                som = door.do("page.observe", session_id=session)["som"]
                try:
                    is_held = bool(held(Asked(door, session, som, hello)))
                except (AssertionError, KeyError) as error:
                    is_held, statement = False, f"{statement}: {error!r}"
                door.ask("session.close", {"session_id": session})
            if not is_held:
                wrong.append(f"{section}: {statement}")
    assert not wrong, f"{len(wrong)} of {len(STATEMENTS)}:\n" + "\n".join(wrong)
