"""What the overview's pages say, whole: `texts`, in the words of `tests/transcript.py`.

Of a page they have the text, a line for each block, and the fields and links with their attributes.
"""

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
import pytest

from awp_publish import Approval, BearerToken, Principal
from tests.client import TestClient
from tests.plugins.depot import make_depot
from tests.transcript import compare

SHOWN = {"input", "select", "option", "textarea", "button", "a", "form", "th", "details", "dialog"}
INLINE = {"code", "span", "a", "strong", "b", "em", "i", "abbr", "small", "kbd", "time", "svg", "path", "use"}
CHANGING = [
    (r"[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f-]{27}", "ID"),
    (r"[\d,.]+ (bytes|kB|tokens|ms)", "N"),
    (r"ratelimit.*|\d{4}-\d\d-\d\d(T[\d:.]+Z)?|(?<=retry-after: )\d+|\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", "..."),
    (r"[\w.=-]{80,}", "TOKEN"),
    (r'("(messageId|span_id)": ?")\w+', r"\1..."),
    (r"(?<=/jobs/)[\w-]{22}|(?<=[jJ]ob )[\w-]{22}|(?<=\")[\w-]{22}(?=\\?\")|(?<=awp-job value=)[\w-]{22}", "JOB"),
    (r"/tmp/\S*/", ""),
    (r"^  \d{3,}$", "  N"),
]


class Reader(HTMLParser):
    """Reads a page as lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines, self._skips = [""], 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skips += tag in ("style", "script", "symbol")
        if tag not in INLINE:
            self.lines.append("")
        facts = " ".join(name if value is None else f"{name}={value}" for name, value in attrs if _is_shown(name))
        if facts or tag in SHOWN:
            self.lines[-1] += f"[{tag} {facts}".rstrip() + "] "
        if tag == "pre":
            self.lines.append("")

    def handle_endtag(self, tag: str) -> None:
        self._skips -= tag in ("style", "script", "symbol")
        if tag not in INLINE:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self._skips:
            first, *others = data.split("\n") if self.get_starttag_text() == "<pre>" else [re.sub(r"\s+", " ", data)]
            self.lines[-1] += first
            self.lines += others


UNSEEN = ("id", "style", "d", "viewbox", "for", "aria-labelledby")


def _is_shown(attribute: str) -> bool:
    return attribute not in UNSEEN and not attribute.startswith("data-")


def lines_of(page: str) -> str:
    reader = Reader()
    reader.feed(page)
    return "\n".join(line.strip() for line in reader.lines if line.strip())


@dataclass
class Wire:
    """A client that shows of pages what they say."""

    client: TestClient

    @property
    def cookies(self) -> Any:
        return self.client.cookies

    def request(self, method: str, address: str, *, content: bytes, headers: dict[str, str], **options: Any) -> Any:
        answer = self.client.request(method, address, content=content, headers=headers, **options)
        if not answer.headers["content-type"].startswith("text/html"):
            return answer
        return httpx2.Response(answer.status_code, text=lines_of(answer.text))


@pytest.mark.parametrize("name", ["trials", "site", "approval"])
def test_texts_of_the_overview_are_as_in_the_transcript(name, tmp_path, monkeypatch, request):
    known = {name: Principal(name, frozenset({"operator"})) for name in ("ann", "bob")} | {"eve": Principal("eve")}
    plugins: list[Any] = ["overview", "mcp", "a2a", "awp", "events", "pages", "prompts"]
    more: dict[str, list[Any]] = {"site": ["traffic"], "approval": [Approval(tmp_path / "approved.json")]}
    plugins += more.get(name, [])
    app = make_depot(plugins, tmp_path, authenticate=BearerToken(known.get))
    with TestClient(app, base_url="https://shop.example") as client:
        wire: Any = Wire(client)
        compare(Path(__file__).parent / "texts" / f"{name}.txt", wire, request, *CHANGING, sorts=True)
