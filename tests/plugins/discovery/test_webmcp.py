"""The site's actions as tools of the page, in a real browser."""

import hashlib
import json
import os
import threading
import time
from base64 import b64encode
from collections.abc import Iterator

import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import About, AgentPublisher, SessionUser, Site
from awp_publish.maps.chromium import find_chromium
from awp_publish.plugins.templating import (
    action_attributes,
    param_attributes,
    structured_result,
    webmcp_hash,
    webmcp_script,
)
from tests.limit import OF_BROWSERS
from tests.redis_server import free_port

pytestmark = pytest.mark.limit(OF_BROWSERS)


CHROMIUM = find_chromium()
TOOLS = "(await document.modelContext.getTools()).map((one) => one.name)"
NONCE = "cm9vaWJvcw=="
POLICY = f"default-src 'none'; script-src 'nonce-{NONCE}'; connect-src 'self'; form-action 'self'"

TEA = {"type": "object", "properties": {"name": {"type": "string"}, "note": {"type": "string"}}}
FOUND = {
    "type": "object",
    "properties": {"teas": {"type": "array", "items": {"$ref": "#/$defs/Tea"}}},
    "$defs": {"Tea": TEA},
}


def make_app(url):
    site = Site("Tea", "Sells tea.", url=url, authenticate=SessionUser("user", endpoints={"login": "/sign-in"}))
    app = FastAPI()

    @app.get("/", response_class=HTMLResponse)
    async def front() -> HTMLResponse:
        page = (
            '<!doctype html><html lang="en"><title>Tea</title>'
            f"{webmcp_script(site.catalog, nonce=NONCE, integrity=True)}"
            f"<form action=/found {action_attributes(site.catalog, 'find', ['tool'])}><label>Word"
            f" <input name=q required {param_attributes(site.catalog, 'find', 'q', ['tool'])}></label></form>"
        )
        return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})

    @app.get("/search")
    @site.action("search")
    async def search(q: str) -> list[str]:
        """Search the teas by name."""
        return [q, "</script><b>"]

    @app.get("/found", response_class=HTMLResponse)
    @site.action("find", outputs=FOUND)
    async def find(q: str) -> HTMLResponse:
        """Find teas, as a page."""
        found = {"teas": [{"name": q, "note": "</script><b>"}], "cost_to_us": 7}
        result = structured_result(site.catalog, "find", found)
        return HTMLResponse(
            f"<title>Found</title>{result}<h1>{len(q)}</h1>", headers={"Content-Security-Policy": POLICY}
        )

    @app.post("/sign-in")
    @site.action("sign_in")
    async def sign_in(request: Request, name: str) -> str:
        """Sign in with a name."""
        request.session["user"] = name
        return f"welcome {name}"

    @app.post("/orders")
    @site.action("order", auth_required=True, confirm="Order {slug} for you", requires=["search"], idempotency="1h")
    async def order(slug: str) -> str:
        """Order a tea."""
        return f"ordered {slug}"

    @site.agent("pack", execution="async")
    async def pack(slug: str) -> str:
        """Pack a tea."""
        return f"packed {slug}"

    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key="a secret of the shop")
    return app


def test_the_script_is_a_document_like_all_others(open_client):
    client = open_client(make_app("https://shop.example"))
    answer = client.get("/agents/webmcp.tools.js", headers={"accept-encoding": "identity"})
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "etag" in answer.headers
    assert "</script" not in answer.text
    assert '"name":"order"' in answer.text


def test_a_site_without_actions_has_no_script(open_client):
    site = Site("Tea", "Sells tea.", url="https://shop.example")
    assert open_client(AgentPublisher(FastAPI(), site=site)).get("/agents/webmcp.tools.js").status_code == 404


def test_the_element_names_the_script_with_the_hash_of_its_bytes(open_client):
    site = Site("Tea", "Sells tea.", url="https://shop.example/tea")
    site.agent("pack", description="Pack.", inputs={"type": "object"})(lambda given: given)
    site.agent("mend", description="Pack.", inputs={"type": "object"}, expose=["mcp"])(lambda given: given)
    client = open_client(AgentPublisher(FastAPI(), site=site))
    body = client.get("/agents/webmcp.tools.js").content
    assert b"mend" not in body
    digest = f"sha384-{b64encode(hashlib.sha384(body).digest()).decode()}"
    assert webmcp_hash(site.catalog) == digest
    assert webmcp_script(site.catalog, nonce='"x', integrity=True) == (
        f'<script type="module" src="/tea/agents/webmcp.tools.js" integrity="{digest}" nonce="&quot;x"></script>'
    )
    assert webmcp_script(site.catalog) == '<script type="module" src="/tea/agents/webmcp.tools.js"></script>'
    left = Site("Tea", "Sells tea.", url="https://shop.example", about=About(leave_out=["webmcp"]))
    left.agent("pack", description="Pack.", inputs={"type": "object"})(lambda given: given)
    open_client(AgentPublisher(FastAPI(), site=left))
    assert webmcp_script(left.catalog) == ""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port = free_port()
    config = uvicorn.Config(make_app(f"http://127.0.0.1:{port}"), port=port, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def page(address):
    if CHROMIUM is None:
        pytest.skip("there is no chromium here")
    from playwright.sync_api import sync_playwright

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*sandbox, "--enable-features=WebMCP"])
        page = browser.new_page()
        page.goto(address)
        page.wait_for_function(f"async () => ({TOOLS}).includes('pack')")
        yield page
        browser.close()


def call(page, name, given):
    return page.evaluate(
        """async ([name, given]) => {
            const tools = await document.modelContext.getTools();
            return document.modelContext.executeTool(tools.find((one) => one.name === name), given);
        }""",
        [name, given],
    )


@pytest.mark.slow
def test_every_action_is_a_tool_of_the_page(page):
    assert {"search", "sign_in", "order", "pack"} <= set(page.evaluate(f"async () => {TOOLS}"))


@pytest.mark.slow
def test_a_form_of_the_page_is_a_tool_whose_call_submits_it(page, address):
    tool = "(await document.modelContext.getTools()).filter((one) => one.name === 'find')"
    described = page.evaluate(f"async () => {tool}.map((one) => [one.description, JSON.stringify(one.inputSchema)])")
    assert described[0][0] == "Find teas, as a page."
    assert '"required":["q"]' in described[0][1]


@pytest.mark.slow
def test_a_form_that_is_a_tool_answers_with_the_json_ld_of_the_next_page(page, address):
    session, answers = page.context.new_cdp_session(page), []
    session.on("WebMCP.toolResponded", lambda told: answers.append(told))
    session.send("WebMCP.enable")
    frame = session.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
    with page.expect_navigation(url=f"{address}/found?q=assam"):
        session.send("WebMCP.invokeTool", {"frameId": frame, "toolName": "find", "input": {"q": "assam"}})
    page.wait_for_function("document.querySelector('h1').textContent === '5'")
    while not answers:
        page.wait_for_timeout(20)
    (told,) = answers
    assert told["status"] == "Completed"
    (output,) = told["output"]
    assert output["identifier"] == "find"
    assert output["result"] == {"teas": [{"name": "assam", "note": "</script><b>"}]}
    session.detach()
    page.goto(address)
    page.wait_for_function(f"async () => ({TOOLS}).includes('pack')")


@pytest.mark.slow
def test_tools_call_the_site_with_the_visitors_session_and_the_person_confirms(page):
    asked = []

    def decide(dialog):
        asked.append(dialog.message)
        dialog.accept() if len(asked) > 1 else dialog.dismiss()

    page.on("dialog", decide)
    assert json.loads(call(page, "search", {"q": "assam"})) == ["assam", "</script><b>"]
    refused = call(page, "order", {"slug": "assam"})
    assert refused.startswith('Error {"code":"AUTHENTICATION_REQUIRED"')
    assert json.loads(call(page, "sign_in", {"name": "ann"})) == "welcome ann"
    call(page, "search", {"q": "assam"})  # what a stranger has done counts for nobody in particular
    assert call(page, "order", {"slug": "assam"}) == "Not done: the person did not agree."
    assert json.loads(call(page, "order", {"slug": "assam"})) == "ordered assam"
    assert asked == ['Order "assam" for you'] * 2
    assert '"result":"packed assam"' in call(page, "pack", {"slug": "assam"})
    wrong = call(page, "search", {})
    assert wrong.startswith('Error {"code":"INVALID_INPUT"')
