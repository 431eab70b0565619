"""Contents that a server streams after the page, as React does, are read where a browser shows them."""

import re

import pytest

from awp_publish.pages import compile_som
from awp_publish.pages.markdown import write_content, write_markdown

URL = "https://shop.example/"

SCRIPT = """<script>
$RC = (boundary, content) => {
  const place = document.getElementById(boundary), part = document.getElementById(content), around = place.parentNode
  for (let depth = 0, node = place.nextSibling; node;) {
    const next = node.nextSibling, sign = node.nodeType === 8 ? node.data : ''
    if (sign === '/$' && !depth--) break
    depth += sign.startsWith('$')
    node.remove()
    node = next
  }
  while (part.firstChild) around.insertBefore(part.firstChild, place)
  place.remove()
  part.remove()
}
$RS = (content, place) => {
  const at = document.getElementById(place), part = document.getElementById(content)
  while (part.firstChild) at.parentNode.insertBefore(part.firstChild, at)
  at.remove()
  part.remove()
}
</script>"""
"""What the calls in a page do, written for these tests."""


def page(body: str) -> str:
    return f"<!DOCTYPE html><html><head><title>Shop</title>{SCRIPT}</head><body>{body}</body></html>"


def boundary(number: int, fallback: str = "<p>Loading</p>") -> str:
    return f'<!--$?--><template id="B:{number}"></template>{fallback}<!--/$-->'


def content(number: int, html: str) -> str:
    return f'<div hidden id="S:{number}">{html}</div><script>$RC("B:{number}","S:{number}")</script>'


LATE = {
    "in its place": f"<main><h1>Shop</h1>{boundary(0)}<p>Below.</p></main><footer>Ends.</footer>"
    + content(0, "<p>Late.</p>"),
    "in another content": f"<main>{boundary(0)}</main><p>Below.</p>"
    + content(0, f"<h1>First</h1>{boundary(1)}<p>Third.</p>")
    + content(1, "<p>Second.</p>"),
    "in a content that waits for it": f'<main>{boundary(0)}</main><div hidden id="S:0"><h1>Whole</h1>'
    '<template id="P:2"></template><p>Rest.</p></div><div hidden id="S:2"><p>Part.</p></div>'
    '<script>$RS("S:2","P:2")</script><script>$RC("B:0","S:0")</script>',
    "beside a boundary that is complete": f"<main><!--$--><p>Early.</p><!--/$-->{boundary(0)}</main>"
    + content(0, "<p>Late.</p>"),
    "over a boundary in what is shown meanwhile": "<main>"
    + boundary(0, f"<p>Wait</p>{boundary(1)}<p>for it</p>")
    + "<p>Below.</p></main>"
    + content(0, "<p>Late.</p>"),
    "empty": f"<main><p>Above.</p>{boundary(0)}<p>Below.</p></main>" + content(0, ""),
    "in a list": f"<main><ul><li>One</li>{boundary(0, '<li>Loading</li>')}<li>Four</li></ul></main>"
    + content(0, "<li>Two</li><li>Three</li>"),
}


READ = {
    "in its place": "# Shop Late. Below. Ends.",
    "in another content": "# First Second. Third. Below.",
    "in a content that waits for it": "# Whole Part. Rest.",
    "beside a boundary that is complete": "# Shop Early. Late.",
    "over a boundary in what is shown meanwhile": "# Shop Late. Below.",
    "empty": "# Shop Above. Below.",
    "in a list": "# Shop - One - Two - Three - Four",
}


@pytest.mark.parametrize("name", LATE)
def test_late_content_is_read_in_its_place(name):
    assert " ".join(write_markdown(page(LATE[name]), URL).split()) == READ[name]


@pytest.mark.parametrize("name", LATE)
def test_a_page_that_was_saved_without_its_scripts_is_read_by_its_numbers(name):
    saved = re.sub(r"<script>.*?</script>", "", page(LATE[name]), flags=re.DOTALL)
    assert " ".join(write_markdown(saved, URL).split()) == READ[name]


@pytest.mark.parametrize("name", LATE)
def test_late_content_is_read_as_chromium_shows_it(name, tab):
    tab.set_content(page(LATE[name]))
    shown = tab.content()
    assert "<template" not in shown
    assert write_markdown(page(LATE[name]), URL) == write_markdown(shown, URL)
    texts = [
        element.get("text") for region in compile_som(shown, URL).document["regions"] for element in region["elements"]
    ]
    late = compile_som(page(LATE[name]), URL).document["regions"]
    assert [element.get("text") for region in late for element in region["elements"]] == texts


def test_late_content_is_the_main_content_of_its_page():
    sentences = "".join(
        f"<p>This is the sentence {number} of an article, which has some words.</p>" for number in range(9)
    )
    text = write_content(
        page(f"<nav><a href=/>Home</a></nav><main>{boundary(0)}</main>" + content(0, f"<h1>Article</h1>{sentences}")),
        URL,
    )
    assert text.startswith("# Article\n\nThis is the sentence 0")
    assert "sentence 8" in text
    assert "Loading" not in text


@pytest.mark.parametrize(
    "body",
    [
        '<p>Seen.</p><div hidden id="S:0">Secret</div>',
        '<p>Seen.</p><template id="B:0"></template><div hidden id="S:0">Secret</div>',
        '<p>Seen.</p><div hidden id="S:0">Secret</div><script>$RC("B:0","S:0")</script>',
        '<p>Seen.</p><template id="B:0"></template><section><div hidden id="S:0">Secret</div></section>'
        '<script>$RC("B:0","S:0")</script>',
        '<p>Seen.</p><div hidden id="S:0"><template id="B:0"></template>Secret</div><script>$RC("B:0","S:0")</script>',
        '<p>Seen.</p><template id="B:0"></template><div hidden id="S:0">Secret</div><script>$RC("B:1","S:0")</script>',
    ],
)
def test_hidden_content_that_no_call_puts_in_its_place_stays_hidden(body):
    assert "Seen" in write_markdown(page(body), URL)
    assert "Secret" not in write_markdown(page(body), URL)


def test_a_boundary_without_an_end_keeps_what_is_after_it():
    body = '<main><template id="B:0"></template><p>After.</p></main>' + content(0, "<p>Late.</p>")
    assert write_markdown(page(body), URL).split() == ["#", "Shop", "Late.", "After."]


def test_countless_boundaries_without_an_end_are_read_in_linear_time():
    number = 20_000
    places = "".join(f'<template id="B:{at:x}"></template>' for at in range(number))
    contents = "".join(
        f'<div hidden id="S:{at:x}">x{at} </div><script>$RC("B:{at:x}","S:{at:x}")</script>' for at in range(number)
    )
    text = write_markdown(page(f"<main>{places}</main>{contents}"), URL)
    assert text.split()[2:] == [f"x{at}" for at in range(number)]
