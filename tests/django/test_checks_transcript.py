"""What `manage.py check` and `manage.py agents` say, whole: `checks.txt` and `commands.txt` in `transcripts`.

Words are those of `tests/function_transcripts.py`. `check` is given a site of `tests/django/sites.py` and settings. A
store in Django's database does as all do.
"""

import asyncio
import re
import time
import uuid
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import django
import pytest
from awp_publish_django.management.commands.agents import Command
from awp_publish_django.publication import get_publication
from awp_publish_django.store import DjangoStore
from django.core.checks import run_checks
from django.test import override_settings

from awp_publish.stores import values
from tests.django import sites
from tests.django.test_answers_transcript import CHANGING, people
from tests.function_transcripts import compare
from tests.stores.conftest import Clock
from tests.stores.test_steps_transcript import TEXTS, Scene

HERE = "tests.django.sites"


@pytest.mark.skipif(django.VERSION < (5, 2), reason="older versions have other words")
def test_the_checks_of_django_report_as_in_the_transcript(request):
    def check(site: Any, settings: dict[str, Any] | None = None, databases: list[str] | None = None) -> list[str]:
        given = {"AWP_PUBLISH": {"SITE": f"{HERE}.{site}"} if isinstance(site, str) else site, "ROOT_URLCONF": HERE}
        with override_settings(**{**given, **(settings or {})}):
            messages = run_checks(tags=["agents"], databases=databases)
        return [
            re.sub(r'File "[^"]*/', 'File "', f"{each.id} {each.level}: {each.msg} {each.hint}") for each in messages
        ]

    def publish(own: dict[str, Any], setting: dict[str, Any], others: dict[str, Any] | None = None) -> list[object]:
        """Return what becomes of a site of these options with the setting AWP_PUBLISH, and what is wrong with it."""
        given = {"SITE": f"{HERE}.given", **setting}
        with override_settings(AWP_PUBLISH=given):
            made = vars(sites)["given"] = sites.make_site(**own)
        made.declare("order", method="POST", path="/view", description="Order.", idempotency=True)
        said = check(given, others)
        if any(message.startswith("awp_publish.E") for message in said):
            return list(said)
        with override_settings(**{"ROOT_URLCONF": HERE, **(others or {}), "AWP_PUBLISH": given}):
            site = get_publication().site
        added = set(site.plugins) ^ set(sites.plain.plugins)
        keeps = type(site.store).__name__
        return [
            keeps,
            site.settings.urls,
            sorted(added),
            len(site.settings.secret_keys),
            len(site.ask("telemetry")),
            *said,
        ]

    compare(Path(__file__).parent / "transcripts" / "checks.txt", {"check": check, "publish": publish}, request)


@pytest.mark.parametrize("database", ["default", "store"])
def test_steps_find_and_change_values_as_in_the_transcript(request, monkeypatch, database):
    monkeypatch.setattr(values, "MAX_TRIES", 3)
    clock = Clock()
    clock.pass_time(3600 + time.time() - clock())  # other stores in the database delete what has expired
    with asyncio.Runner() as runner:
        store = DjangoStore(uuid.uuid4().hex, using=database, clock=clock, timeout=20)
        scene = Scene(store, clock, runner)
        names = ("run", "durable", "take", "sleep", "change")
        try:
            compare(TEXTS / "steps.txt", {name: getattr(scene, name) for name in names}, request)
        finally:
            runner.run(store.close())


class _Lines(StringIO):
    """What a command writes, without a terminal."""

    def isatty(self) -> bool:
        return False


def test_commands_of_agents_say_what_is_in_the_transcript(request):
    def manage(*words: str) -> dict[str, object]:
        out, err = _Lines(), _Lines()
        code: object = 0
        try:
            with redirect_stdout(out), redirect_stderr(err):
                Command(stdout=out, stderr=err, no_color=True).run_from_argv(["manage.py", "agents", *words])
        except SystemExit as ended:
            code = ended.code
        texts = {"out": out.getvalue(), "err": err.getvalue()}
        for name, text in texts.items():
            for pattern, replacement in (*CHANGING, (r"(#|request_id\": \")\w{16,}", r"\1ID")):
                text = re.sub(pattern, replacement, text)
            texts[name] = re.sub(r"(?s)^usage: .*(?=manage.py agents: error)", "", text)
        return {"code": code, **{name: text.splitlines() for name, text in texts.items() if text}}

    people()
    compare(Path(__file__).parent / "transcripts" / "commands.txt", {"manage": manage}, request)
