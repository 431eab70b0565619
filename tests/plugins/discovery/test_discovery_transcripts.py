"""What discovery makes of inputs, examples and names of files, and what pages link to: `transcripts`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from awp_publish.plugins.discovery.agent_skills import media_type_of
from awp_publish.plugins.discovery.ard import render_ard
from awp_publish.plugins.discovery.signatures import signature
from tests.client import TestClient
from tests.documents.catalogs import make_action, make_catalog
from tests.documents.sites import SITES
from tests.function_transcripts import compare
from tests.installed import taken_out

TRANSCRIPTS = Path(__file__).parent / "transcripts"


def _queries(*examples: dict[str, Any]) -> Any:
    """Return what a person may say who wants an action with these examples."""
    rendered: Any = render_ard(make_catalog(make_action("ping", name="Ping", examples=examples)))
    return [[entry["identifier"], entry["representativeQueries"]] for entry in rendered["entries"]]


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "signature": signature,
    "media_type": media_type_of,
    "queries": _queries,
}


def test_each_function_answers_as_reviewed(request):
    compare(TRANSCRIPTS / "functions.txt", FUNCTIONS, request)


@pytest.mark.skipif(bool(taken_out()), reason="they name what all plug-ins have")
def test_each_page_links_to_what_was_reviewed(request):
    lines = list[str]()
    for name, make in SITES.items():
        app, site = make()
        with TestClient(app, base_url=site.settings.urls[0].removesuffix("/shop")) as client:
            for path in ("/", "/nowhere", "/agents/status"):
                answer = client.head(path)
                lines += [f"# {name} {path} {answer.status_code}"]
                lines += [link.strip() for link in answer.headers.get("link", "").split(", <") if link]
    reviewed = TRANSCRIPTS / "links.txt"
    if request.config.getoption("--golden"):
        reviewed.write_text("\n".join(lines) + "\n")
    assert lines == reviewed.read_text().splitlines()
