"""Every document of four sites, whole: `tests/documents/whole`. --golden writes them anew; read the change."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from awp_publish import __version__
from awp_publish.documents.protocol import Protocol
from tests.client import TestClient
from tests.documents.known import ALL
from tests.documents.sites import SITES

WHOLE = Path(__file__).parent / "whole"


@pytest.fixture(scope="module")
def sites() -> Iterator[dict[str, tuple[TestClient, Any]]]:
    with ExitStack() as stack:
        started = {}
        for name, make in SITES.items():
            app, site = make()
            origin = site.settings.urls[0].removesuffix("/shop")
            started[name] = stack.enter_context(TestClient(app, base_url=origin)), site
        yield {name: (client, site.catalog) for name, (client, site) in started.items()}


def indented(value: Any, depth: int = 3, indent: str = "\n") -> str:
    """Return JSON whose outer members stand on lines of their own."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    within = indent + " "
    items = value if isinstance(value, list) else value.values()
    names = [""] * len(value) if isinstance(value, list) else [f"{json.dumps(name)}: " for name in value]
    lines = [within + name + indented(item, depth - 1, within) for name, item in zip(names, items, strict=True)]
    begin, end = "[]" if isinstance(value, list) else "{}"
    return begin + ",".join(lines) + indent + end


def transcribe(protocol: Protocol, sites: dict[str, tuple[TestClient, Any]]) -> str:
    lines, said = list[str](), dict[str, str]()
    for name, (client, catalog) in sites.items():
        for document in (*protocol.documents, *(protocol.further(catalog) if protocol.further else ())):
            path = document.path_in(catalog)
            answer = client.get(path)
            kind, age = (answer.headers.get(header, "") for header in ("content-type", "cache-control"))
            title, text = f"# {name} {path} {answer.status_code}", answer.text.rstrip("\n")
            if answer.status_code == 200:
                if "json" in kind:
                    text = indented(answer.json())
                lines += [f"{title} {kind} {age}", said.get(text, text)]
                said.setdefault(text, f"as {name} {path}")
            else:
                lines.append(title)
    return re.sub(rf"\b{re.escape(__version__)}\b", "VERSION", "\n".join(lines)) + "\n"


@pytest.mark.needs(
    "mcp", "a2a", "awp", "bridge", "prompts", "skills", "events", "search", "jobs", "sessions", "sign_in"
)
@pytest.mark.parametrize("protocol", [pytest.param(protocol, id=protocol.name) for protocol in ALL])
def test_each_document_is_the_reviewed_one(protocol, sites, request):
    text, path = transcribe(protocol, sites), WHOLE / f"{protocol.name}.txt"
    if request.config.getoption("--golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
