"""What is published of a shop, what its file of approvals has, and what is logged: the texts beside this file.

`declare` starts the shop anew, with these actions and their options; search and fetch are the actions of a plug-in. The
words are those of `tests/function_transcripts.py`.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Approval, DeclarationError, Site, WebBotAuth
from awp_publish.http.running import running
from awp_publish.model import Action
from awp_publish.plugins.approval import LOOK_EVERY
from awp_publish.plugins.approval.file import digests_of
from tests.client import TestClient
from tests.conftest import run_command
from tests.function_transcripts import compare
from tests.guarded import known_callers
from tests.virtual_time import run_virtually

TEXTS = Path(__file__).parent / "transcripts"
COMMAND = """
from starlette.applications import Starlette
from awp_publish import AgentPublisher, Site

site = Site("Shop", "Sells.", url="https://shop.example", plugins=PLUGINS)
for name, words in ACTIONS.items():
    site.agent(name, description=words)(lambda: None)
app = AgentPublisher(Starlette(), site=site)
"""


class Shop:
    """A shop whose actions are declared by a text, and what has been logged since the line before."""

    def __init__(self, file: Path, caplog: Any) -> None:
        self.file, self._caplog = file, caplog
        self._published: list[str] = []

    def declare(self, actions: Mapping[str, Mapping[str, Any]], **options: Any) -> Any:
        plugins = ["confirmation", "search", Approval(str(self.file)), *options.pop("plugins", ())]
        self.site = Site("Shop", "Sells.", url="https://shop.example", plugins=plugins, **options)
        for name, each in actions.items():
            self.site.agent(name, **{"description": f"{name.title()} a book.", **each})(_buy)
        self.app = AgentPublisher(Starlette(), site=self.site)
        assert TestClient(self.app, base_url="https://shop.example").get("/agent.json").status_code == 200
        return self.publishes()

    def publishes(self) -> Any:
        published = [action.id for action in self.site.catalog.public.actions]
        records = [record for record in self._caplog.records if "approval" in record.pathname]
        logged = [record.getMessage().replace(str(self.file.parent), "FOLDER") for record in records]
        self._caplog.clear()
        return [", ".join(published), *logged]

    def standing(self) -> list[str]:
        try:
            return [str(row) for row in self.site.approvals()]
        except DeclarationError as error:
            return [str(error).replace(str(self.file.parent), "FOLDER")]

    def refuses(self) -> list[str]:
        """Approve with a damaged file, and start with it."""
        results = []
        for refused in (lambda: self.site.approve("buy"), lambda: self.declare({"buy": {}})):
            with pytest.raises(DeclarationError) as problem:
                refused()
            results.append(str(problem.value).replace(str(self.file.parent), "FOLDER"))
        return results

    def approve(self, *names: str) -> Any:
        return [self.site.approve(*names).name, *self.standing(), *self.publishes()]

    def look(self, times: int = 1) -> Any:
        for _ in range(times):
            asyncio.run(self.site.ask("approval").publish_approved())
        return self.publishes()

    def write(self, text: str) -> None:
        self.file.write_bytes(text.encode("latin-1"))

    def remove(self) -> None:
        self.file.unlink()

    def option(self, file: Any) -> str:
        return str(Site("Shop", "Sells.", url="https://shop.example", plugins=[Approval(file)]).ask("approval").path)

    def files(self) -> Any:
        return [file.name for file in self.file.parent.iterdir()], self.file.read_text().splitlines()[:5]

    def run(self, seconds: int, changes: Mapping[str, Any]) -> list[str]:
        """Write into the file at some seconds of a run; whose approvals end with it."""
        told, shown = list[str](), ""

        async def live() -> None:
            nonlocal shown
            async with running(self.app):
                for second in range(seconds):
                    if names := changes.get(str(second)):
                        self.site.approve(*names)
                    await asyncio.sleep(LOOK_EVERY / 2)
                    if (now := ", ".join(action.id for action in self.site.catalog.public.actions)) != shown:
                        told.append(f"{asyncio.get_running_loop().time():g} {(shown := now)}")
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            told.append(f"{len(tasks)} tasks are left")

        run_virtually(live())
        return told


def _buy(title: str = "") -> str:
    return title


def _digests(options: Mapping[str, Any]) -> Any:
    """Return what the file has of an action with some options, as far as it differs from that of one without."""
    if options.get("confirm") == "function":
        options = {**options, "confirm": lambda inputs: "Buy it?"}
    of_each = [digests_of(_action(each)) for each in ({}, options)]
    return {part: digest for part, digest in of_each[1].items() if not options or digest != of_each[0][part]}


def _action(options: Mapping[str, Any]) -> Action:
    plugins = ["confirmation", "identity", "jobs", Approval("none.json")]
    site = Site(
        "Shop", "Sells.", url="https://shop.example", plugins=plugins, authenticate=[known_callers(), WebBotAuth()]
    )
    for name in ("find", "check"):
        site.agent(name, description=name)(lambda: None)
    site.agent("buy", **{"description": "Buy a book.", **options})(_buy)
    site.freeze(Starlette())
    return next(action for action in site.catalog.actions if action.id == "buy")


def test_approved_actions_are_published_as_in_the_transcript(tmp_path, request, caplog, monkeypatch):
    async def call(function: Callable[[], bool]) -> bool:
        return function()  # while a thread works, virtual seconds would pass

    monkeypatch.setattr(asyncio, "to_thread", call)
    caplog.set_level(logging.WARNING, "awp_publish")
    shop = Shop(tmp_path / "approved.json", caplog)
    names = (
        "declare",
        "publishes",
        "standing",
        "approve",
        "look",
        "write",
        "remove",
        "files",
        "run",
        "refuses",
        "option",
    )
    compare(TEXTS / "published.txt", {name: getattr(shop, name) for name in names}, request)


def test_the_file_has_a_digest_of_each_option(request):
    compare(TEXTS / "digests.txt", {"digests": _digests}, request)


def test_the_command_reports_as_in_the_transcript(tmp_path, request):
    def shop(actions: Mapping[str, str], plugins: Any = ("approval",)) -> None:
        head = f"ACTIONS, PLUGINS = {dict(actions)!r}, {list(plugins)!r}"
        (tmp_path / "shop.py").write_text(head + COMMAND)

    def approve(*arguments: str) -> list[Any]:
        done = run_command("approve", *arguments, cwd=tmp_path)
        said = re.sub(r"[0-9a-f]{32}", "DIGEST", done.stdout + done.stderr)
        return [done.returncode, *said.splitlines()]

    compare(TEXTS / "command.txt", {"shop": shop, "approve": approve}, request)
