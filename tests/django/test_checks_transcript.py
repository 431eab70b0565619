"""What `manage.py check` says, whole: `transcripts/checks.txt`, in the words of `tests/function_transcripts.py`.

`check` is given a site of `tests/django/sites.py` and settings. A store in Django's database does as all do.
"""

import asyncio
import re
import time
import uuid
from pathlib import Path
from typing import Any

import django
import pytest
from awp_publish_django.checks import TAG
from awp_publish_django.store import DjangoStore
from django.core.checks import run_checks
from django.test import override_settings

from awp_publish.stores import values
from tests.function_transcripts import compare
from tests.stores.conftest import Clock
from tests.stores.test_steps_transcript import TEXTS, Scene

HERE = "tests.django.sites"


@pytest.mark.skipif(django.VERSION < (5, 2), reason="older versions have other words")
def test_the_checks_of_django_report_as_in_the_transcript(request):
    def check(site: Any, settings: dict[str, Any] | None = None, databases: list[str] | None = None) -> list[str]:
        given = {"AWP_PUBLISH": {"SITE": f"{HERE}.{site}"} if isinstance(site, str) else site, "ROOT_URLCONF": HERE}
        with override_settings(**{**given, **(settings or {})}):
            messages = run_checks(tags=[TAG], databases=databases)
        return [
            re.sub(r'File "[^"]*/', 'File "', f"{each.id} {each.level}: {each.msg} {each.hint}") for each in messages
        ]

    compare(Path(__file__).parent / "transcripts" / "checks.txt", {"check": check}, request)


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
