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

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent.name for path in (ROOT / "awp_publish" / "plugins").glob("*/__init__.py"))
FIRST = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
NAMED = ', plugins=["mcp", "overview"]'
PROGRAM = (
    FIRST.replace(NAMED, "")
    + """
import importlib.util
from tests.client import TestClient

assert importlib.util.find_spec("awp_publish.plugins.FOLDER") is None
with TestClient(app, base_url=site.catalog.url if site.is_frozen else "http://127.0.0.1:8000") as client:
    action = site.catalog.actions[0]
    document = client.get("/.well-known/woa.json").json()
    assert [agent["id"] for agent in document["agents"]]
    answer = client.post(f"/agents/{action.agent_id}/invoke", json={"input": {}})
    assert answer.status_code in (200, 422)
"""
)


def test_the_folders_and_the_example_are_found():
    assert len(FOLDERS) > 15
    assert NAMED in FIRST


def link_all_but(source: Path, name: str, target: Path) -> None:
    """Make a folder of links to everything in another but one thing. What is compiled already is linked too."""
    target.mkdir()
    for path in source.iterdir():
        if path.name != name:
            (target / path.name).symlink_to(path)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_first_example_runs_without(folder, tmp_path):
    link_all_but(ROOT / "awp_publish", "plugins", tmp_path / "awp_publish")
    link_all_but(ROOT / "awp_publish" / "plugins", folder, tmp_path / "awp_publish" / "plugins")
    paths = {"PYTHONPATH": str(tmp_path), "AWP_PUBLISH_URL": "http://127.0.0.1:8000"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("FOLDER", folder)],
        cwd=tmp_path,
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("door", ["mcp", "a2a", "awp"])
@pytest.mark.parametrize("gone", ["events", "jobs", "discovery", "pages", "identity", "sessions"])
def test_a_door_does_without_another_plug_in(door, gone):
    site = Site("Shop", "Sells books.", "https://shop.example", plugins=[door, f"no:{gone}"])

    @site.agent("find")
    async def find(q: str) -> str:
        """Find a book."""
        return q

    with TestClient(AgentPublisher(Starlette(), site=site), base_url="https://shop.example") as client:
        assert client.post("/agents/find/invoke", json={"input": {"q": "Emma"}}).json() == "Emma"
        assert site.catalog.door(door) is not None
