"""Each folder of `plugins/` can be taken out: the core starts, and README's first example runs.

Without MCP and the overview, which it names. Doors do without the plug-ins that they ask for by name.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Site
from tests.client import TestClient
from tests.limit import OF_BROWSERS

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent.name for path in (ROOT / "awp_publish" / "plugins").glob("*/__init__.py"))
FIRST = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
NAMED = ', plugins=["mcp", "overview"]'
PROGRAM = """
import os, sys, traceback
import fastapi, hypothesis, jsonschema, mcp, opentelemetry.sdk.metrics, pydantic, starlette.testclient  # once for all
import awp_publish.plugins

assert not [name for name in sys.modules if name.startswith("awp_publish.plugins.")]
for folder in FOLDERS:
    if os.fork():
        os.wait()
        continue
    try:
        awp_publish.plugins.__path__[:] = [os.path.abspath(folder)]
        exec(EXAMPLE)
        spec = importlib.util.find_spec(f"awp_publish.plugins.{folder}")
        assert spec is None or spec.origin is None
    except BaseException:
        print(f"Without {folder}:", traceback.format_exc())
    sys.stdout.flush()
    os._exit(0)
print("All have been tried.")
"""
EXAMPLE = (
    FIRST.replace(NAMED, "")
    + """
import importlib.util
from starlette.testclient import TestClient

with TestClient(app, base_url=site.catalog.url if site.is_frozen else "http://127.0.0.1:8000") as client:
    action = site.catalog.actions[0]
    if "plain" in site.plugins:
        assert client.request(action.method, f"/agents/actions/{action.id}").status_code in (200, 422)
    if "woa" in site.plugins:
        document = client.get("/.well-known/woa.json").json()
        assert [agent["id"] for agent in document["agents"]]
        answer = client.post(f"/agents/{action.agent_id}/invoke", json={"input": {}})
        assert answer.status_code in (200, 422)
"""
)


def test_the_folders_and_the_example_are_found():
    assert len(FOLDERS) > 15
    assert NAMED in FIRST


@pytest.mark.slow
@pytest.mark.limit(OF_BROWSERS * 2)
def test_the_first_example_runs_without_any_one_of_them(tmp_path):
    """The package itself imports none; in a process for each, its folder of plug-ins has links to all others.

    Of every second one the compiled files have been left.
    """
    for count, folder in enumerate(FOLDERS):
        (tmp_path / folder).mkdir()
        if count % 2:
            (tmp_path / folder / folder / "__pycache__").mkdir(parents=True)
        for path in (ROOT / "awp_publish" / "plugins").iterdir():
            if path.name != folder:
                (tmp_path / folder / path.name).symlink_to(path)
    run = subprocess.run(
        [sys.executable, "-c", f"FOLDERS, EXAMPLE = {FOLDERS!r}, {EXAMPLE!r}\n{PROGRAM}"],
        cwd=tmp_path,
        env={**os.environ, "AWP_PUBLISH_URL": "http://127.0.0.1:8000"},
        capture_output=True,
        text=True,
    )
    assert run.stdout == "All have been tried.\n", run.stderr


@pytest.mark.parametrize("door", ["mcp", "a2a", "awp"])
@pytest.mark.parametrize("gone", ["events", "jobs", "discovery", "pages", "identity", "sessions", "confirmation"])
def test_a_door_does_without_another_plug_in(door, gone):
    site = Site("Shop", "Sells books.", "https://shop.example", plugins=[door, f"no:{gone}"])

    @site.agent("find")
    async def find(q: str) -> str:
        """Find a book."""
        return q

    with TestClient(AgentPublisher(Starlette(), site=site), base_url="https://shop.example") as client:
        assert client.post("/agents/find/invoke", json={"input": {"q": "Emma"}}).json() == "Emma"
        assert site.catalog.door(door) is not None
