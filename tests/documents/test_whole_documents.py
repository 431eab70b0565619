"""Every document of four sites and of some catalogs, whole: in `whole` and `rendered`.

--golden writes them anew; read the change.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from awp_publish import __version__
from awp_publish.documents.protocol import Document, Protocol, views_of
from awp_publish.model import Catalog
from tests.client import TestClient
from tests.documents.catalogs import CATALOGS
from tests.documents.known import ALL
from tests.documents.sites import SITES
from tests.installed import taken_out

HERE = Path(__file__).parent


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


def documents_of(protocol: Protocol, catalog: Catalog) -> list[Document]:
    return [*protocol.documents, *(protocol.further(catalog) if protocol.further else ())]


def written(document: Document, body: bytes) -> str:
    if "json" in document.media_type:
        return indented(json.loads(body))
    text = body.decode()
    if "html" in document.media_type and (part := re.search(r"<h1>.*</(dl|ul)>", text)):
        text = part[0]
    lines = text.rstrip("\n").split("\n")
    return "\n".join(lines[:2] if "javascript" in document.media_type else lines)  # the rest is a file of the package


def transcribe(protocol: Protocol, sites: dict[str, tuple[TestClient, Any]]) -> str:
    lines, said = list[str](), dict[str, str]()
    for name, (client, catalog) in sites.items():
        view = views_of(catalog)
        for document in documents_of(protocol, catalog):
            path = document.path_in(catalog)
            answer = client.get(path)
            kind, age = (answer.headers.get(header, "") for header in ("content-type", "cache-control"))
            title = f"# {name} {path} {answer.status_code}"
            if answer.status_code == 200:
                assert answer.content == document.render(view(document)), "what is served is what is rendered"
                text = written(document, answer.content)
                lines += [f"{title} {kind} {age}", said.get(text, text)]
                said.setdefault(text, f"as {name} {path}")
            else:
                lines.append(title)
    return "\n".join(lines)


def compare(path: Path, text: str, request: Any) -> None:
    text = re.sub(rf"\b{re.escape(__version__)}\b", "VERSION", text) + "\n"
    if request.config.getoption("--golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


pytestmark = pytest.mark.skipif(bool(taken_out()), reason="they name what all plug-ins have")
PROTOCOLS = pytest.mark.parametrize("protocol", [pytest.param(protocol, id=protocol.name) for protocol in ALL])


@PROTOCOLS
def test_each_document_that_is_served_is_the_reviewed_one(protocol, sites, request):
    compare(HERE / "whole" / f"{protocol.name}.txt", transcribe(protocol, sites), request)


@PROTOCOLS
def test_each_document_of_a_catalog_is_the_reviewed_one(protocol, request):
    lines, said = list[str](), dict[str, str]()
    for name, catalog in CATALOGS.items():
        view = views_of(catalog)
        for document in documents_of(protocol, catalog):
            seen = view(document)
            title = f"# {name} {document.path_in(catalog)}"
            if document.condition is not None and not document.condition(seen):
                lines.append(f"{title} is not there")
                continue
            text = written(document, document.render(seen))
            lines += [title, said.get(text, text)]
            said.setdefault(text, title.replace("#", "as"))
    compare(HERE / "rendered" / f"{protocol.name}.txt", "\n".join(lines), request)
