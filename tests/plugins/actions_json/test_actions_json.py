"""The map of a site: what is declared on pages, in the words of actions.json V1."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import httpx
import pytest
from fastapi import FastAPI, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from awp_publish import About, AgentPublisher, DeclarationError, Site, __version__
from awp_publish.checks import check_document
from awp_publish.maps.runtime import Runtime
from awp_publish.plugins.actions_json.drift import in_process
from awp_publish.plugins.actions_json.reading import ActionMap

FORM = "form[role='search']"


class Listed(BaseModel):
    titles: list[str]


class Chosen(BaseModel):
    slug: str


def bookshop(**page: Any) -> tuple[FastAPI, Site]:
    """A shop with a search form and an order that is confirmed."""
    site = Site("Bookshop", "Find and order books.", "https://books.example")
    app = FastAPI()

    @app.get("/search")
    @site.action("search_books", awas={"selector": FORM, "selectors": {"q": f"{FORM} input[name='q']"}})
    @site.page(**{"actions": ["search_books"], **page})
    async def search(q: Annotated[str, Query(max_length=200)]) -> None:
        """Search books by title."""

    @app.post("/orders")
    @site.action("order_book", confirm=True)
    async def order(slug: str) -> dict[str, str]:
        """Order a book."""
        return {"slug": slug}

    app.add_middleware(AgentPublisher, site=site)
    return app, site


async def published(app: FastAPI) -> dict[str, Any]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://books.example") as client:
        answer = await client.get("/.well-known/actions.json")
        alias = await client.get("/actions.json")
    assert answer.status_code == alias.status_code == 200
    assert answer.content == alias.content
    assert answer.headers["access-control-allow-origin"] == "*"
    assert [str(finding) for finding in check_document(answer.content)] == []
    found: dict[str, Any] = answer.json()
    return found


def state(name: str, target: Any, **members: Any) -> dict[str, Any]:
    return {"name": name, "diagnostics": [{"name": "here", "target": target}], **members}


def projection(**snapshot: Any) -> dict[str, Any]:
    snapshot = {"extract": [], "projection": {"expression": "1"}, **snapshot}
    return {"name": "results", "description": "The books that are listed.", "snapshot": snapshot}


TARGETS = {
    "form": {"selector": FORM, "role": "search", "name": "Site search"},
    "submit": f"{FORM} button",
    "done": "p.result-count",
}
WHOLE: dict[str, Any] = {
    "imports": [
        {
            "id": "payments",
            "kind": "public",
            "uri": "https://maps.example/payments/actions.json",
            "trust": "public",
            "enabled": False,
        }
    ],
    "targets": TARGETS,
    "context": [
        {
            "id": "help",
            "title": "Help",
            "body": "Ask.",
            "load_when": {"targets": ["done", "#help"]},
            "available_tools": ["order_book"],
        }
    ],
    "states": [
        state("ready", "form", description="A query can be typed."),
        state("listed", {"selector": "li.book"}, description="Books are listed.", observables=["results", "count"]),
        state("empty", {"selector": "p.result-count", "text_contains": "Nothing"}),
    ],
    "transitions": [
        {"name": "find", "from": "ready", "to": "listed", "tool": "search_books", "rate_limit_ms": 1000},
        {"name": "leave", "from": ["ready", "listed"], "to": "orders.form", "signal": "chosen"},
        {"name": "pay", "from": "listed", "to": "payments.paid", "tool": "payments.pay"},
    ],
    "state_projections": [
        {
            **projection(
                extract=[
                    {
                        "id": "books",
                        "selector": "li.book",
                        "many": True,
                        "fields": {"title": {"selector": ".title", "required": True}},
                    }
                ],
                projection={"expression": "{'titles': $append([], records.books.title)}"},
                output_schema=Listed,
            ),
            "summaries": [{"name": "short", "expression": "{'count': $count(state.titles)}"}],
            "postconditions": {"search_books": {"verify": {"expression": "{% $exists(state.titles) %}"}}},
        }
    ],
    "signals": [{"name": "chosen", "event": "shop:chosen", "payload": Chosen, "target": {"selector": "ol.books"}}],
    "attachments": [
        {
            "id": "guide",
            "kind": "overlay_launcher",
            "target": {"selector": "main h1", "url_contains": "/en/search"},
            "affordance": {"label": "Guide", "opens": {"tool": "overlay.open", "arguments": {"title": "Guide"}}},
        }
    ],
    "checks": [
        {
            "id": "form_visible",
            "description": "The form is there.",
            "assertions": [{"target": "form", "visible": True}, {"target": "submit", "visible": True}],
        }
    ],
}


async def test_the_declaration_of_a_page_is_published_word_for_word():
    app, site = bookshop(title="Search", guide="Search before opening a book.", map=WHOLE)
    site.page("/orders", map={"states": [state("form", {"selector": "form"})]})
    app.get("/orders")(lambda: None)
    found = await published(app)
    golden = Path(__file__).parent / "actions_json_example.json"
    expected = json.loads(golden.read_text())
    expected["provenance"]["created_by"] = f"awp-publish {__version__}"
    assert found == expected
    assert list(found) == list(expected)


async def test_references_to_a_hidden_action_are_left_out():
    moves = [{"name": name, "from": "a", "to": "b", "tool": name} for name in ("hidden", "seen")]
    opening = [
        {"id": tool, "target": {"selector": "h1"}, "affordance": {"opens": {"tool": tool}}}
        for tool in ("hidden", "overlay.open")
    ]
    verify = {"verify": {"expression": "true"}}
    site, app = Site("Shop", "Sells.", "https://shop.example"), FastAPI()
    site.page(
        "/",
        map={
            "context": [{"id": "help", "available_tools": ["hidden", "seen"]}],
            "states": [state("a", {"selector": "a"}), state("b", {"selector": "b"})],
            "transitions": [*moves, {"name": "by_nobody", "from": "a", "to": "b"}],
            "state_projections": [{**projection(), "postconditions": {"hidden": verify, "seen": verify}}],
            "attachments": opening,
            "checks": [{"id": tool, "steps": [{"type": "call", "tool": tool}]} for tool in ("hidden", "seen")],
        },
    )
    app.get("/")(lambda: None)
    site.agent("hidden", audience="staff", description="Hidden.")(lambda: None)
    site.agent("seen", description="Seen.")(lambda: None)
    app.add_middleware(AgentPublisher, site=site)
    found = await published(app)
    assert [tool["name"] for tool in found["tools"]] == ["seen"]
    assert found["context"][0]["available_tools"] == ["seen"]
    assert [move["name"] for move in found["transitions"]] == ["home.seen", "home.by_nobody"]
    assert list(found["state_projections"][0]["postconditions"]) == ["seen"]
    assert [item["id"] for item in found["attachments"]] == ["home.overlay.open"]
    assert [check["id"] for check in found["checks"]] == ["home.seen"]


async def test_an_action_whose_form_is_declared_is_a_workflow_of_portable_primitives():
    parts = {name: part for name, part in WHOLE.items() if name != "transitions"}
    app, _ = bookshop(map={**parts, "transitions": WHOLE["transitions"][:1]})
    search, order = (await published(app))["tools"]
    assert [(step["id"], step["primitive"]) for step in search["workflow"]["steps"]] == [
        ("form_ready", "locator.wait_for"),
        ("hide_overlay", "overlay.menu.hide"),
        ("type_q", "text.insert"),
        ("find_submit", "locator.element_info"),
        ("submit", "pointer.click"),
        ("verify", "locator.wait_for"),
        ("page", "page.info"),
    ]
    assert search["target"]["state"] == "search.ready"
    assert search["target"]["fallback_selectors"] == ["[data-awas-action='search_books']"]
    assert "handler" not in search["x_actions"]
    assert set(search["x_actions"]["result_schema"]["required"]) == {"ok", "url", "title"}
    assert "workflow" not in order
    assert order["x_actions"]["handler"] == "agents.invoke"
    assert order["x_actions"]["binding"] == {"arguments": {"agent_id": "order_book"}}


async def test_a_workflow_proves_that_it_can_begin_uncovers_the_page_and_is_verified():
    done = {"selector": "p.count", "text_contains": '"Emma"'}
    submit = {"selectors": ["form button"], "role": "button", "text_contains": "Find"}
    app, _ = bookshop(map={"targets": {"form": FORM, "submit": submit, "done": done}})
    document = await published(app)
    workflow = document["tools"][0]["workflow"]
    steps = {step["id"]: step for step in workflow["steps"]}
    assert list(steps)[:2] == ["form_ready", "hide_overlay"]
    assert workflow["x_state_machine"]["requires_state"] == steps["form_ready"]["args"]["locator"] == {"selector": FORM}
    assert steps["hide_overlay"]["on_error"] == "continue"
    assert "overlay.menu.hide" not in document["tools"][0]["requires"]
    assert steps["find_submit"]["args"]["locator"] == {"selector": "form button", "text_contains": "Find"}
    assert steps["verify"]["args"]["locator"] == {"selector": "p.count", "text_contains": '"Emma"'}
    [outcome] = document["state_projections"]
    assert outcome["postconditions"]["search_books"]["projection"] == outcome["name"] == "search.search_books_done"
    expression = outcome["snapshot"]["projection"]["expression"]
    assert expression == """{% {'is_shown': $count(records.done[$contains($, "\\"Emma\\"")]) > 0} %}"""


@pytest.mark.parametrize("lost", ["submit", "done"])
async def test_without_all_that_a_workflow_needs_a_tool_has_the_handler(lost: str):
    for target in ({}, {lost: {"role": "button", "name": "Find"}}):  # the published runtime finds nothing by its role
        kept = {name: target for name, target in TARGETS.items() if name != lost}
        app, _ = bookshop(map={"targets": kept | target})
        assert (await published(app))["tools"][0]["x_actions"]["handler"] == "agents.invoke"


async def test_a_workflow_without_a_form_of_its_own_is_ready_when_its_button_is_there():
    site, app = Site("Shop", "Sells.", "https://shop.example"), FastAPI()
    site.action("press", description="Press.")(app.post("/press")(lambda: None))
    site.page("/", actions=["press"], map={"targets": {"submit": "#press", "done": "p"}})
    app.get("/")(lambda: None)
    app.add_middleware(AgentPublisher, site=site)
    [press] = (await published(app))["tools"]
    ready, hiding, *_ = press["workflow"]["steps"]
    assert (ready["primitive"], hiding["primitive"]) == ("locator.wait_for", "overlay.menu.hide")
    assert press["workflow"]["x_state_machine"] == {"requires_state": {"selector": "#press"}}
    assert ready["args"]["locator"] == {"selector": "#press"}


async def test_controls_beyond_portable_primitives_use_the_handler_and_a_checkbox_is_clicked():
    site, app = Site("Shop", "Sells.", "https://shop.example"), FastAPI()
    fields = {name: f"[name={name}]" for name in ("text", "number", "flag")}
    form = {"targets": {"form": "form", "submit": "form button", "done": "p"}}

    @app.get("/plain")
    @site.action("plain", awas={"selectors": fields})
    @site.page(actions=["plain"], map=form)
    async def plain(number: int, flag: bool = False, text: str = "") -> None:
        """Take what can be typed."""

    @app.get("/partly")
    @site.action("partly", awas={"selectors": {"text": "[name=text]", "sort": "[name=sort]"}})
    @site.page(actions=["partly"], map=form)
    async def partly(text: str, sort: Literal["a", "b"] = "a", page: int = 1) -> None:
        """Take what can be typed, and what need not be given."""

    @app.get("/choosing")
    @site.action("choosing", awas={"selectors": {"choice": "[name=choice]"}})
    @site.page(actions=["choosing"], map=form)
    async def choosing(choice: Literal["a", "b"]) -> None:
        """Take what is chosen from a list."""

    app.add_middleware(AgentPublisher, site=site)
    plain_tool, partly_tool, choosing_tool = (await published(app))["tools"]
    guard, ready, _, typing, *_ = partly_tool["workflow"]["steps"]
    assert (guard["id"], ready["id"], typing["id"]) == ("fits_the_form", "form_ready", "type_text")
    assert guard["when"] == (
        "{% $exists(input.`sort`) or $exists(input.`page`) "
        '? $error("The form has no field for sort, page. Leave it out.") : false %}'
    )
    steps = {step["id"]: step for step in plain_tool["workflow"]["steps"]}
    assert steps["type_number"]["args"]["text"] == "{% $string(input.number) %}"
    assert "when" not in steps["type_number"]
    assert steps["type_text"]["when"] == "{% $exists(input.text) %}"
    assert steps["checked_flag"]["args"] == {"selector": "[name=flag]:checked"}
    assert "input.flag !=" in steps["check_flag"]["when"]
    assert choosing_tool["x_actions"]["handler"] == "agents.invoke"


@pytest.mark.parametrize(
    ("css", "choices", "is_chosen"),
    [
        ("input[type=radio][name=size]", Literal["small", "large"], True),
        ("form input[name='size'][type='radio']", Literal["1", "2"], True),
        ("input[name=size]", Literal["small", "large"], False),
        ("input[type=radio] + select", Literal["small", "large"], False),
        ("input[type=radio][name=size]", Literal["small", "it's"], False),
    ],
)
async def test_one_of_several_is_chosen_where_they_are_radio_buttons(css: str, choices: Any, is_chosen: bool):
    site, app = Site("Shop", "Sells.", "https://shop.example"), FastAPI()

    @app.get("/sizes")
    @site.action("choose", awas={"selectors": {"size": css}})
    @site.page(actions=["choose"], map={"targets": {"form": "form", "submit": "form button", "done": "p"}})
    async def choose(size: choices = None) -> HTMLResponse:
        """Choose a size."""
        buttons = "".join(f"<input type=radio name=size value={argument}>" for argument in get_args(choices))
        return HTMLResponse(f"<title>{size}</title><form>{buttons}<button>Choose</button></form><p>Chosen</p>")

    app.add_middleware(AgentPublisher, site=site)
    document = await published(app)
    assert ("workflow" in document["tools"][0]) is is_chosen
    if not is_chosen:
        return
    async with in_process(app, site.catalog, {}) as open_page, open_page() as page:
        await page.perform("browser.navigate", {"url": "https://shop.example/sizes"})
        last, runtime = get_args(choices)[-1], Runtime(ActionMap.read(document), page)
        for given, title in (({"size": last}, last), ({}, "None")):
            output = (await runtime.call("choose", given)).output
            assert output == {"ok": True, "url": page.url, "title": title}


async def test_a_page_of_several_addresses_is_scoped_by_a_pattern_and_stands_in_no_list_of_addresses():
    site, app = Site("Shop", "Sells.", "https://shop.example/en"), FastAPI()

    @app.get("/books/{slug}/reviews")
    @site.page(map={"states": [state("shown", {"selector": "h1"})]})
    async def reviews(slug: str) -> None:
        """Read what others say."""

    app.add_middleware(AgentPublisher, site=site)
    found = await published(app)
    assert found["states"][0]["name"] == "reviews.shown"
    assert found["states"][0]["diagnostics"][0]["target"]["url_matches"] == "https://shop.example/en/books/*/reviews"
    assert found["tools"] == []


async def test_a_site_without_pages_publishes_a_map_of_tools():
    site, app = Site("Shop", "Sells.", "https://shop.example"), FastAPI()

    @site.agent("summarize")
    async def summarize(text: str) -> str:
        """Summarise a text."""
        return text

    app.add_middleware(AgentPublisher, site=site)
    found = await published(app)
    assert list(found) == ["protocol", "version", "surface", "tools", "provenance"]


READY = [state("ready", {"selector": "form"})]
LISTED = [{"id": "b", "selector": "li["}]
HERE = {"selector": "h1"}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], 'page "/map": map: must be a dictionary'),
        ({"stats": []}, '/stats: there is no part of a page "stats". Did you mean "states"?'),
        ({"tools": []}, "/tools: a tool is an action"),
        ({"targets": {"form": "form["}}, '/targets/form/selector: "form[" is not a CSS selector'),
        ({"targets": {"form": {"selector": "a", "fallback_selectors": ["b["]}}}, "/targets/form/fallback_selectors: "),
        ({"targets": {"form": {"selectr": "a"}}}, '/targets/form/selectr: there is no such member; did you mean "sel'),
        ({"targets": {"form": {"css": "a"}}}, '/targets/form/css: there is no such member; did you mean "selector"?'),
        ({"targets": {"form": {}}}, "/targets/form: must be a CSS selector or a target descriptor"),
        ({"targets": {"form": {"role": 1}}}, "/targets/form/role: 1 is not a string"),
        ({"targets": {"a b": "a"}}, '/targets/a b: "a b" is not a safe identifier'),
        ({"targets": {"a": "a"}, "states": [state("b", "aa")]}, '/target: there is no target "aa". Did you mean "a"?'),
        ({"states": [state("a", "form")]}, '/states/0/diagnostics/0/target: there is no target "form". There are none'),
        ({"states": READY[0]}, '/states: {"name": "ready", "diagnos'),
        ({"states": [{"nme": "a"}]}, '/states/0/nme: there is no such member; did you mean "name"?'),
        ({"states": [{"description": "Here."}]}, '/states/0/name: "name" is missing'),
        ({"states": [{"name": "a b"}]}, '/states/0/name: "a b" is not a safe identifier'),
        ({"states": [*READY, *READY]}, '/states/1/name: The name "ready" is also that of /states/0'),
        ({"states": [{"name": "a", 5: "b"}]}, "/states/0: {'name': 'a', 5: 'b'} is not JSON"),
        ({5: []}, '/5: there is no part of a page "5". There are'),
        ({"states": [{"name": "a", "description": object()}]}, "/states/0/description: <object"),
        ({"states": READY, "transitions": [{"name": "t", "from": "redy", "to": "ready"}]}, 'Did you mean "ready"?'),
        ({"states": READY, "transitions": [{"name": "t", "from": "ready", "to": 5}]}, "/transitions/0/to: 5 is not"),
        ({"transitions": [{"name": "t", "from": [], "to": [], "rate_limit_ms": -1}]}, "/transitions/0/rate_limit_ms: "),
        ({"transitions": [{"name": "t", "from": [], "to": [], "signal": "s"}]}, "/transitions/0/signal: there is no s"),
        ({"context": [{"id": "c", "next_states": ["a"]}]}, '/context/0/next_states/0: there is no state "a"'),
        ({"checks": [{"id": "c", "attachment": "a"}]}, '/checks/0/attachment: there is no attachment "a"'),
        ({"state_projections": [projection(extract=LISTED)]}, "/snapshot/extract/0/selector: "),
        ({"state_projections": [projection(projection={"expression": "{'a': "})]}, "/expression: "),
        ({"state_projections": [projection(projection={"expression": "$now()"})]}, "$now is not allowed"),
        ({"state_projections": [projection(output_schema={"type": "objekt"})]}, "/snapshot/output_schema/type: "),
        ({"state_projections": [projection(output_schema=type("Odd", (), {}))]}, "/0/snapshot/output_schema: "),
        ({"signals": [{"name": "s"}]}, "/signals/0/event: "),
        ({"signals": [{"name": "s", "event": "s", "payload": {"type": "objekt"}}]}, "/signals/0/payload"),
        ({"signals": [{"name": "s", "event": "s", "payload": int}]}, "the detail of an event must be an object"),
        ({"attachments": [{"id": "a", "target": {}}]}, "/attachments/0/target: "),
        ({"checks": [{"id": "c", "severity": "high"}]}, "/checks/0/severity: "),
        ({"imports": [{"id": "pay", "kind": "public"}]}, '/imports/0/uri: "uri" is missing'),
    ],
)
def test_a_mistake_in_a_map_is_refused_where_it_is_written_with_page_and_pointer(parts: Any, words: str):
    site = Site("Shop", "Sells.", "https://shop.example")
    with pytest.raises(DeclarationError) as refused:
        site.page("/map", map=parts)
    assert str(refused.value).startswith('page "/map": map: ')
    assert words in str(refused.value)
    assert not str(refused.value).endswith("..")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"actions": ["find_books"]}, 'actions: there is no action "find_books"'),
        (
            {"map": {"transitions": [{"name": "t", "from": [], "to": "home.open"}]}},
            'map: /transitions/0/to: there is no state "home.open"',
        ),
        (
            {"map": {"states": READY, "transitions": [{"name": "t", "from": "ready", "to": "ready", "tool": "serch"}]}},
            '/transitions/0/tool: there is no tool "serch"',
        ),
        (
            {"map": {"attachments": [{"id": "a", "target": HERE, "affordance": {"opens": {"tool": "serch_books"}}}]}},
            '/affordance/opens/tool: there is no tool "serch_books". Did you mean "search_books"?',
        ),
        (
            {"map": {"state_projections": [{**projection(), "postconditions": {"lost": {}}}]}},
            '/state_projections/0/postconditions/lost: there is no tool "lost"',
        ),
    ],
)
async def test_names_that_other_declarations_would_have_are_refused_at_the_start(options: dict[str, Any], words: str):
    app, site = bookshop(**options)
    with pytest.raises(DeclarationError) as refused:
        site.freeze(app)
    assert words in str(refused.value)


def test_a_page_without_a_path_is_named_by_its_id_or_title_where_its_map_is_wrong():
    site = Site("Shop", "Sells.", "https://shop.example")
    for options in ({"id": "search", "title": "Look"}, {"title": "search"}):
        with pytest.raises(DeclarationError, match=r'^page "search": map: /stats: '):
            site.page(**options, map={"stats": []})


def test_a_misspelt_option_of_a_page_is_refused_with_the_nearest():
    for wrong, meant in (("guid", "guide"), ("mapp", "map")):
        with pytest.raises(DeclarationError, match=f'did you mean "{meant}"'):
            bookshop(**{wrong: "x"})


class Person(BaseModel):
    name: str


class Branch(BaseModel):
    leader: Person
    members: list[Person]
    parent: "Branch | None" = None


class Club(BaseModel):
    name: Chosen
    branches: list[Branch]


async def test_types_that_a_state_uses_once_stand_where_they_are_used():
    app, _ = bookshop(map={"state_projections": [projection(output_schema=Club)]})
    schema = (await published(app))["state_projections"][0]["snapshot"]["output_schema"]
    assert schema["properties"]["name"]["properties"] == {"slug": {"type": "string"}}
    assert schema["properties"]["branches"]["items"] == {"$ref": "#/$defs/Branch"}  # it has itself inside
    assert sorted(schema["$defs"]) == ["Branch", "Person"]


async def test_a_site_says_who_has_reviewed_its_map():
    said = {"reviewed_by": "The shop's owners", "reviewed_at": "2026-03-31", "revision": "7"}
    site, app = Site("Shop", "Sells.", "https://shop.example", about=About(provenance=said)), FastAPI()
    app.add_middleware(AgentPublisher, site=site)
    assert (await published(app))["provenance"] == {
        "created_by": f"awp-publish {__version__}",
        "source": "declarations of the site",
        "revision": "7",
        "reviewed_by": "The shop's owners",
        "reviewed_at": "2026-03-31",
    }


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"source": "/home/ann/shop"}, "not for the public"),
        ({"source": "C:\\shop"}, "not for the public"),
        ({"source": "https://ann:secret@git.example/shop"}, "not for the public"),
        ({"owner": "Ann"}, "created_by"),
        ({"source": ""}, "source"),
    ],
)
def test_a_public_map_with_secrets_is_refused(said: dict[str, str], words: str):
    with pytest.raises(DeclarationError, match=words):
        Site("Shop", "Sells.", "https://shop.example", about=About(provenance=said))
