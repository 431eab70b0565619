"""The bookshop as agents meet it: golden documents, the WoA draft's appendix B, the door and the pages."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from awp_publish.checks import check_documents
from demo_site.agents import DOORS
from demo_site.app import create_app
from tests.client import TestClient
from tests.demo_site.bookshop import get_token

ORIGIN = "https://books.example"
GOLDEN = Path(__file__).parent / "golden"
SHARED = Path(__file__).parents[3] / "shared"
DOCUMENTS = {
    "/.well-known/ai-actions.json": "ai-actions.json",
    "/agent.json": "agent.json",
    "/.well-known/woa.json": "woa.json",
    "/.well-known/mcp-manifest.json": "mcp-manifest.json",
    "/.well-known/a2a-manifest.json": "a2a-manifest.json",
    "/.well-known/som.json": "som.json",
}
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the specifications and fixtures are not beside the project"
)


@pytest.fixture(scope="module")
def agent():
    with TestClient(create_app(ORIGIN), base_url=ORIGIN) as client:
        yield client


@pytest.mark.parametrize(("path", "name"), DOCUMENTS.items())
def test_the_documents_are_the_reviewed_ones(agent, request, path, name):
    """Run with --golden to write them anew, then read the difference."""
    published = orjson.dumps(agent.get(path).json(), option=orjson.OPT_INDENT_2) + b"\n"
    golden = GOLDEN / name
    if request.config.getoption("--golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_bytes(published)
    assert published == golden.read_bytes()


def test_the_documents_pass_every_check(agent):
    found = check_documents({path: agent.get(path).content for path in [*DOCUMENTS, "/.well-known/awas.json"]})
    assert [finding for finding in found if finding.level == "error"] == []


@needs_shared
@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/.well-known/ai-actions.json", "awas/ai-actions-schema.json"),
        ("/agent.json", "agent-json/agent-json.schema.v0.2.json"),
    ],
)
def test_the_published_schemas_accept_the_documents(agent, path, schema):
    published = json.loads((SHARED / "fixtures" / schema).read_text())
    jsonschema.Draft7Validator(published).validate(agent.get(path).json())


def test_the_schema_that_the_site_serves_accepts_its_manifest(agent):
    manifest = agent.get("/.well-known/ai-actions.json").json()
    served = agent.get(manifest["$schema"].removeprefix(ORIGIN)).json()
    jsonschema.Draft202012Validator(served).validate(manifest)


def test_an_action_has_one_name_and_one_description_in_every_document():
    with TestClient(create_app(ORIGIN, doors=["mcp", "a2a"]), base_url=ORIGIN) as client:
        woa = client.get("/.well-known/woa.json").json()["agents"]
        awas = client.get("/.well-known/ai-actions.json").json()["actions"]
        other = client.get("/agent.json").json()["actions"]
        skills = client.get("/.well-known/agent-card.json").json()["skills"]
    described = {agent["id"]: (agent["name"], agent["description"]) for agent in woa}
    assert described["summarizer"] == ("Document Summarizer", "Summarizes English text.")
    assert {action["id"]: (action["name"], action["description"]) for action in awas} == described
    assert {skill["id"]: (skill["name"], skill["description"]) for skill in skills} == described
    assert {action["id"]: action["description"] for action in other} == {
        key: text for key, (_, text) in described.items()
    }


# --- Appendix B of draft-gaikwad-woa-00, word for word ---


def appendix_b() -> str:
    text = (SHARED / "specs" / "woa-draft-00.txt").read_text()
    return text[text.index("Appendix B: Complete Example WoA Flow (Non-Normative)\n\n   This appendix provides") :]


def example(heading: str) -> Any:
    """The first JSON object below a heading of the appendix."""
    text = appendix_b()
    return json.JSONDecoder().raw_decode(text[text.index("{", text.index(heading)) :])[0]


@needs_shared
def test_the_summarizer_is_described_as_in_the_drafts_document(agent):
    answer = agent.get("/.well-known/woa.json", headers={"accept": "application/woa+json, application/json"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/woa+json"
    assert re.fullmatch(r'"[^"]+"', answer.headers["etag"])
    assert "max-age=300" in answer.headers["cache-control"]
    expected = example("Example WoA Document")
    document = answer.json()
    assert document["woa_version"] == expected["woa_version"]
    assert document["transports"]["rest"]["invoke_path"] == expected["transports"]["rest"]["invoke_path"]
    described = next(agent for agent in document["agents"] if agent["id"] == "summarizer")
    assert described == expected["agents"][0]


@needs_shared
def test_the_drafts_invocation_is_answered_as_the_draft_says(agent):
    envelope = example("The client then builds an invocation envelope")
    answer = agent.post("/agents/summarizer/invoke", json=envelope, headers={"accept": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    described = next(a for a in agent.get("/.well-known/woa.json").json()["agents"] if a["id"] == "summarizer")
    jsonschema.Draft202012Validator(described["outputs"]).validate(answer.json())


def test_the_summary_obeys_max_words(agent):
    text = " ".join(f"Sentence number {number} says something about whales and the sea." for number in range(200))
    for most in (10, 40, 500):
        summary = invoke(agent, "summarizer", {"text": text, "max_words": most}).json()["summary"]
        assert 0 < len(summary.split()) <= most
    assert invoke(agent, "summarizer", {"text": text, "max_words": 9}).status_code == 422


# --- A visit ---


def invoke(client: TestClient, called: str, given: dict[str, object], **headers: str):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(f"/agents/{called}/invoke", json={"input": given}, headers=headers)


@pytest.fixture
def visitor():
    """An agent in a shop of its own, where nobody has used up a limit or bought a book."""
    with TestClient(create_app(ORIGIN, packing_pause=0), base_url=ORIGIN) as client:
        yield client


def use_token(agent: TestClient) -> None:
    """Call with a token from now on."""
    agent.headers["authorization"] = f"Bearer {get_token(agent)}"


def sign_in(person: TestClient) -> Any:
    """Sign in on the page, as a person does."""
    return person.post("/sign-in", data={"name": "reader", "password": "lamplight"}, follow_redirects=False)


def test_refusals_of_the_shop_name_a_declared_code_and_a_recovery(visitor):
    unknown = invoke(visitor, "show_book", {"slug": "no-such-book"}).json()
    assert (unknown["status"], unknown["code"]) == (404, "UNKNOWN_BOOK")
    assert "search_books" in unknown["recovery"]
    assert visitor.get(unknown["type"]).status_code == 200
    use_token(visitor)
    too_many = invoke(visitor, "add_to_basket", {"slug": "moby-dick", "quantity": 20}).json()
    assert (too_many["status"], too_many["code"]) == (409, "OUT_OF_STOCK")


def test_a_call_from_a_page_of_another_site_is_refused_like_its_form(visitor):
    headers = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    given = {"input": {"slug": "moby-dick"}}
    shown = headers | {"authorization": f"Bearer {get_token(visitor)}"}
    answer = visitor.post("/agents/add_to_basket/invoke", json=given, headers=shown)
    assert (answer.status_code, answer.json()["code"]) == (403, "FOREIGN_ORIGIN")
    assert "access-control-allow-origin" not in answer.headers
    assert "set-cookie" not in answer.headers
    sign_in(visitor)
    answer = visitor.post("/agents/add_to_basket/invoke", json=given, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "CROSS_SITE_COOKIES")


def test_searching_is_limited_as_the_manifest_says(visitor):
    manifest = visitor.get("/.well-known/ai-actions.json").json()
    declared = next(action["rateLimit"] for action in manifest["actions"] if action["id"] == "search_books")
    for _ in range(declared["requests"]):
        assert invoke(visitor, "search_books", {"q": "sea"}).status_code == 200
    refused = invoke(visitor, "search_books", {"q": "sea"})
    assert (refused.status_code, refused.json()["code"]) == (429, "RATE_LIMITED")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert invoke(visitor, "show_book", {"slug": "emma"}).status_code == 200
    assert visitor.get("/search", headers={"accept": "text/html"}).status_code == 200


def test_signing_in_on_the_page_sets_one_cookie_that_documents_never_carry(visitor):
    answer = sign_in(visitor)
    assert len(answer.headers.get_list("set-cookie")) == 1
    assert "secure" in answer.headers["set-cookie"]
    for path in DOCUMENTS:
        assert "set-cookie" not in visitor.get(path).headers
    visitor.post("/sign-out", headers={"accept": "application/json"})
    assert invoke(visitor, "show_basket", {}).status_code == 401


def test_no_password_is_taken_from_an_agent_at_a_door():
    with TestClient(create_app(ORIGIN, doors=DOORS), base_url=ORIGIN) as client:
        refused = invoke(client, "sign_in", {"name": "reader", "password": "lamplight"}).json()
        assert (refused["status"], refused["code"]) == (404, "UNKNOWN_AGENT")
        for path in [*DOCUMENTS, "/llms.txt", "/llms-full.txt", "/auth.md", "/.well-known/agent-card.json"]:
            answer = client.get(path)
            assert answer.status_code == 200
            assert not re.search(r"sign_(in|out)\b", answer.text), path
        tools = {tool["name"] for tool in client.get("/actions.json").json()["tools"]}
    assert {"sign_in", "sign_out"} <= tools


# --- The pages ---


@pytest.mark.parametrize("path", ["/", "/search?q=sea", "/books/moby-dick", "/basket", "/sign-in", "/about"])
def test_every_page_carries_attributes_and_links_of_declared_actions(visitor, path):
    sign_in(visitor)
    page = visitor.get(path, headers={"accept": "text/html"})
    known = {action["id"]: action for action in visitor.get("/.well-known/ai-actions.json").json()["actions"]}
    named = re.findall(r'data-awas-(?:action|result)="([^"]+)"', page.text)
    assert "search_books" in named
    assert set(named) <= set(known)
    assert '<link rel="ai-actions" type="application/json" href="/.well-known/ai-actions.json"' in page.text
    assert 'rel="ai-actions"' in page.headers["link"]


def test_the_manifests_selectors_find_their_elements_in_the_pages(agent):
    """Every selector of an input or result, tried on the page where it is to be found."""
    from selectolax.lexbor import LexborHTMLParser

    pages = {
        "search_books": "/search?q=the",
        "show_book": "/books/moby-dick",
        "add_to_basket": "/books/moby-dick",
    }
    known = {action["id"]: action for action in agent.get("/.well-known/ai-actions.json").json()["actions"]}
    for action_id, path in pages.items():
        tree = LexborHTMLParser(agent.get(path, headers={"accept": "text/html"}).text)
        selectors = [parameter["selector"] for parameter in known[action_id]["parameters"] if "selector" in parameter]
        result = known[action_id].get("result", {})
        if action_id in ("search_books", "show_book"):
            selectors += [result["selector"], *result["properties"].values()]
        assert selectors
        for selector in selectors:
            assert tree.css_first(selector) is not None, (action_id, selector)


# --- The pages ---


def test_a_page_is_read_as_markdown(agent):
    page = agent.get("/books/moby-dick", headers={"accept": "text/markdown"})
    assert page.headers["content-type"] == "text/markdown; charset=utf-8"
    assert page.headers["vary"] == "Accept, Prefer, Cookie"
    assert page.text.startswith("# Moby")
    assert page.text.count("\n# ") == 0
    assert f"[Basket 0]({ORIGIN}/basket)" in page.text
    assert f"`POST {ORIGIN}/basket`" in page.text
    assert "[button: " in page.text
    asked = {"accept": "text/markdown", "if-none-match": page.headers["etag"]}
    assert agent.get("/books/moby-dick", headers=asked).status_code == 304


def test_a_page_is_read_as_som_by_its_own_address_and_by_the_endpoint(agent):
    own = agent.get("/about", headers={"accept": "application/som+json"})
    lent = agent.get("/agents/som", params={"url": f"{ORIGIN}/about"})
    assert own.json() == lent.json()
    assert {"navigation", "main", "footer"} <= {region["role"] for region in own.json()["regions"]}


def test_private_pages_are_not_lent(agent):
    assert agent.get("/agents/som", params={"url": f"{ORIGIN}/checkout"}).status_code in (401, 404)
    lost = agent.get("/nowhere", headers={"accept": "text/markdown"})
    assert (lost.status_code, lost.headers["content-type"]) == (404, "text/markdown; charset=utf-8")


def test_pages_and_robots_point_at_the_directory(agent):
    page = agent.get("/", headers={"accept": "text/html"})
    link = '<link rel="describedby" type="application/som+json" href="/.well-known/som.json" title="SOM">'
    assert link in page.text
    assert 'rel="alternate"; type="application/som+json"' in page.headers["link"]
    robots = agent.get("/robots.txt")
    assert robots.headers["content-type"] == "text/plain; charset=utf-8"
    assert f"Sitemap: {ORIGIN}/sitemap.xml\n" in robots.text


def test_the_first_page_that_agents_read_is_short(agent):
    answer = agent.get("/llms.txt", headers={"accept-encoding": "identity"})
    assert len(answer.content) <= 600 * 4
    for action in ("search_books", "add_to_basket", "check_out"):
        assert f"- {action} {{" in answer.text


def test_awas_and_woa_cost_at_most_400_tokens_for_each_action_with_all_doors():
    with TestClient(create_app(ORIGIN, doors=DOORS), base_url=ORIGIN) as client:
        document = client.get("/.well-known/woa.json", headers={"accept-encoding": "identity"})
        assert len(document.json()["agents"]) == 11
        assert len(document.content) / 4 <= 11 * 400
        answer = client.get("/.well-known/ai-actions.json", headers={"accept-encoding": "identity"})
        assert len(answer.json()["actions"]) == 11
        assert len(answer.content) / 4 <= 11 * 400
        for action in answer.json()["actions"]:
            for member in ("inputSchema", "outputSchema"):
                path, _, name = action[member].get("$ref", "").partition("#/$defs/")
                assert not path or name in client.get(path).json()["$defs"]


@pytest.mark.parametrize("path", ["/.well-known/ai-actions.json", "/agent.json", "/.well-known/woa.json"])
def test_a_manifest_costs_at_most_4000_tokens_for_ten_actions(path):
    document = json.loads((GOLDEN / path.rpartition("/")[2]).read_bytes())
    described = document["agents" if path.endswith("woa.json") else "actions"]
    assert len(described) == 10
    assert len(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()) / 4 <= 4000
