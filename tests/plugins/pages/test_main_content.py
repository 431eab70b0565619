"""Pages as Markdown over HTTP: the main content unless a request prefers all, and what the last line says."""

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from awp_publish import AgentPublisher, Site
from tests.client import TestClient

SENTENCE = "The boat left the harbour at six, and nobody on board had slept, because of the storm. "
MENU = "".join(f"<li><a href=/{number}>Menu entry {number}</a>" for number in range(30))
STORY = "".join(f"<p>Part {number}: {SENTENCE * 2}</p>" for number in range(5))
ARTICLE = (
    f"<nav><ul>{MENU}</ul></nav><main><h1>Storm</h1>{STORY}</main><footer><form action=/mail><input name=a></form>"
)
SHOP = (
    f"<nav><ul>{MENU}</ul></nav><nav><a href=/basket>Basket</a></nav><main><h1>Lamps</h1>"
    "<form action=/add method=post><p>Lamp, $ 9</p><input name=count><button>Add</button></form>"
    "<nav><a href='?page=1'>1</a> 2 <a href='?page=3'>3</a> <a href='?page=3'>\xbb</a></nav></main>"
)
LINE = "Left out beside the main content: 30 links, 1 form and 380 characters."
HEADER = "`Prefer: return=representation; content=all`"
ALL = "return=representation; content=all"


def open_site() -> TestClient:
    pages = {"/story": ARTICLE, "/shop": SHOP, "/small": "<nav><a href=/>Home</a></nav><main><h1>Small</h1>Text</main>"}
    routes = [Route(path, lambda request: HTMLResponse(pages[request.url.path])) for path in pages]
    site = Site("Paper", "News.", url="https://paper.example")
    return TestClient(AgentPublisher(Starlette(routes=routes), site=site, check=False))


def test_an_article_is_its_text_and_a_line_on_what_was_left_out():
    answer = open_site().get("/story", headers={"accept": "text/markdown"})
    first, *_, last = answer.text.strip().split("\n\n")
    assert first == "# Storm"
    assert answer.text.count("Part ") == 5
    assert "Menu entry" not in answer.text
    assert last == f"{LINE} The header {HEADER} requests all of it."
    assert answer.headers["vary"] == "Accept, Prefer"
    assert "preference-applied" not in answer.headers


@pytest.mark.parametrize("path", ["/story", "/story.md"])
@pytest.mark.parametrize(
    "prefer", [ALL, "respond-async, return=representation;content=all", 'return="representation"; content="all"']
)
def test_a_request_may_prefer_the_whole_page(path, prefer):
    client = open_site()
    answer = client.get(path, headers={"accept": "text/markdown", "prefer": prefer})
    assert "Menu entry 29" in answer.text
    assert "Left out" not in answer.text
    assert answer.headers["preference-applied"] == ALL
    assert answer.headers["etag"] != client.get(path, headers={"accept": "text/markdown"}).headers["etag"]


@pytest.mark.parametrize(
    "prefer", ["content=all", "return=minimal; content=all", "return=representation", ",;=", "x" * 9_000]
)
def test_any_other_preference_is_ignored(prefer):
    answer = open_site().get("/story", headers={"accept": "text/markdown", "prefer": prefer})
    assert "Left out" in answer.text
    assert "preference-applied" not in answer.headers


def test_a_page_on_which_one_acts_keeps_its_controls_its_small_navigation_and_its_next_pages():
    text = open_site().get("/shop", headers={"accept": "text/markdown"}).text
    assert "[button: Add]" in text
    assert "[Basket](https://paper.example/basket)" in text
    for link in ("[1](https://paper.example/shop?page=1)", "[3](", "[\xbb]("):
        assert text.count(link) == 1
    assert "Menu entry" not in text
    assert "Left out beside the main content: 30 links" in text


def test_nothing_is_left_out_of_a_page_where_to_say_so_would_take_as_long():
    text = open_site().get("/small", headers={"accept": "text/markdown"}).text
    assert text == "# Small\n\nText\n\n## Navigation\n\n[Home](https://paper.example/)\n"
