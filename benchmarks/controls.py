"""Which controls of a page somebody needs who acts on it, by Chromium's accessibility tree and what people marked.

Needed are, in the order of the document, the controls from the first to the last of the marked texts (the part of the
page in which most text is marked, with the heading before it), the fields and buttons of the `main` landmark, and links
to the next pages there or right after it. Controls of banner, footer, navigation, complementary landmarks and dialogs
are not, nor those with which a browser plays a video: the last line of the Markdown says how to get them. Scripts are
off because pages would load more with them; what only browsers without scripts show (`<noscript>`) is taken away.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urljoin

from awp_publish.maps.chromium import find_chromium

MISSING: Final = "Chromium or playwright is not there"
_FIELDS: Final = ("checkbox", "combobox", "listbox", "radio", "searchbox", "slider", "spinbutton", "switch", "textbox")
CONTROLS: Final = frozenset(("button", "link", "tab", *_FIELDS))
ELSEWHERE: Final = frozenset(("alertdialog", "banner", "contentinfo", "dialog"))
BESIDE: Final = frozenset(("complementary", "navigation"))
PLAYED: Final = frozenset(("Audio", "Video", "image"))
"""What has controls in it that are the browser's: pages call some videos pictures."""

_PAGING: Final = re.compile(
    r"\s*(?:\d+|(?:go to |view )?(?:next|previous|prev|older|newer)\b.*|[\xab\xbb\u2039\u203a<>]+|page \d+.*"
    r"|(?:load|show) more)\s*",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w+")
_ADDRESS: Final = re.compile(r"\]\(<?([^\s>)]+(?:\([^\s)]*\)[^\s>)]*)?)")
_UNMARKED: Final = -0.4
"""What a character that is not marked counts beside one that is, in the part of the page with most marked text."""

_HEADING: Final = 150
_AFTER: Final = 80
"""Nodes before the marked text among which its heading is, and after it among which a pagination or an answer is."""


@dataclass(frozen=True, slots=True)
class Control:
    """A control by its role, its name and, if it is a link, its address without a fragment."""

    role: str
    name: str
    address: str


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a Chromium without scripts, or None if there is none."""
    path = find_chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        yield None
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_context(java_script_enabled=False)
        browser.close()


def needed_controls(context: Any, html: bytes, url: str, marked: str) -> set[Control] | None:
    """Return the controls that are needed on a page, or None if it does not load. Nothing else is loaded."""
    from playwright.sync_api import Error

    tab = context.new_page()
    try:
        tab.route("**/*", lambda route: _answer(route, html))
        tab.goto(url, wait_until="domcontentloaded", timeout=20_000)
        tab.evaluate("document.querySelectorAll('noscript').forEach(fallback => fallback.remove())")
        nodes = tab.context.new_cdp_session(tab).send("Accessibility.getFullAXTree")["nodes"]
    except Error:
        return None
    finally:
        tab.close()
    return _needed(nodes, _words(marked))


def kept_controls(markdown: str, url: str, controls: set[Control]) -> set[Control]:
    """Return the controls that Markdown has: by their names, by all words of them in a line, or by their addresses."""
    text = re.sub(r"\\(.)", r"\1", markdown)
    words, lines = _words(text), [set(_WORD.findall(line.lower())) for line in text.splitlines()]
    addresses = {_plain(urljoin(url, address)) for address in _ADDRESS.findall(markdown)} - {_plain(url)}
    return {
        control
        for control in controls
        if _words(control.name) in words
        or _plain(control.address) in addresses
        or any(set(_WORD.findall(control.name.lower())) <= line for line in lines)
    }


def _answer(route: Any, html: bytes) -> None:
    if route.request.is_navigation_request() and route.request.frame.parent_frame is None:
        route.fulfill(status=200, content_type="text/html; charset=utf-8", body=html)
    else:
        route.abort()


def _needed(nodes: Sequence[Mapping[str, Any]], marked: str) -> set[Control]:
    order, around = _in_order(nodes)
    roles = [_value(node, "role") for node in order]
    names = ["" if node.get("ignored") else _value(node, "name") for node in order]
    start, end = _marked_part(
        [name if role == "StaticText" else "" for role, name in zip(roles, names, strict=True)], marked
    )
    headings = [at for at in range(max(start - _HEADING, 0), start) if roles[at] == "heading" and names[at]]
    start = headings[-1] if headings else start
    found = set[Control]()
    for at, (node, role, name) in enumerate(zip(order, roles, names, strict=True)):
        above = around[at]
        is_in_main, is_marked, is_after = "main" in above, start <= at <= end, end < at < end + _AFTER
        inner = set(above[above.index("main") :]) if is_in_main else set(above)
        is_elsewhere = inner & ELSEWHERE and not (is_marked and "article" in inner)
        if role not in CONTROLS or not name.strip() or is_elsewhere or inner & PLAYED:
            continue
        is_field = role != "link" and is_in_main and "navigation" not in inner
        is_next = _PAGING.fullmatch(name) is not None and (is_in_main or is_marked or is_after)
        is_answer = is_after and role == "textbox" and not inner & BESIDE
        if (is_marked and not inner & BESIDE) or is_field or is_next or is_answer:
            properties = {one["name"]: one["value"].get("value", "") for one in node.get("properties", ())}
            found.add(Control(role, name, str(properties.get("url", "")).partition("#")[0]))
    return found


def _in_order(nodes: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[tuple[str, ...]]]:
    """Return the nodes in document order, and the roles around each of them, the outermost first."""
    children = defaultdict[str, list[Mapping[str, Any]]](list)
    for node in nodes:
        children[node.get("parentId", "")].append(node)
    order, around = list[Mapping[str, Any]](), list[tuple[str, ...]]()
    waiting = list[tuple[Mapping[str, Any], tuple[str, ...]]]((node, ()) for node in reversed(children[""]))
    while waiting:
        node, above = waiting.pop()
        order.append(node)
        around.append(above)
        waiting += [(child, (*above, _value(node, "role"))) for child in reversed(children[node["nodeId"]])]
    return order, around


def _marked_part(texts: Sequence[str], marked: str) -> tuple[int, int]:
    """Return the first and the last of the texts between which most is marked, and little is not."""
    best, part, total, start = 0.0, (0, -1), 0.0, 0
    for at, text in enumerate(texts):
        words = _words(text)
        if total <= 0:
            total, start = 0.0, at
        if words.strip():
            total += len(words) * (_UNMARKED if words not in marked else 1 if words.count(" ") > 2 else 0.3)
        if total > best:
            best, part = total, (start, at)
    return part


def _value(node: Mapping[str, Any], member: str) -> str:
    return str(node.get(member, {}).get("value", "") or "")


def _words(text: str) -> str:
    return " ".join(["", *_WORD.findall(text.lower()), ""])


def _plain(address: str) -> str:
    return unquote(address.partition("#")[0]).rstrip("/")
