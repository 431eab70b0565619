"""The way of docs/django.md from `startproject` to a callable agent, word for word, and workers of such a project."""

import os
import re
import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.django.servers import ROOT, environment, wait_for
from tests.processes import Process, run as run_python
from tests.redis_server import free_port

pytestmark = pytest.mark.slow

SECTION = (ROOT / "docs" / "django.md").read_text().partition("\n## A new project\n")[2].partition("\n## ")[0]
FILES = re.compile(r"^# (?:at the end of )?(shop/\w+\.py)$", re.MULTILINE)


def run(folder: Path, *words: str) -> str:
    """What a command of the project says."""
    done = run_python(*words, cwd=folder, env=surroundings())
    assert done.returncode == 0, done.stderr
    return done.stdout


def surroundings() -> dict[str, str]:
    return {**environment(), "DJANGO_SETTINGS_MODULE": "shop.settings"}


@contextmanager
def process(folder: Path, *words: str) -> Iterator[Process]:
    started = Process(*words, cwd=folder, env=surroundings(), output=Path(os.devnull))
    try:
        yield started
    finally:
        started.send_signal(signal.SIGTERM)
        assert started.wait(90) in (0, -signal.SIGTERM)


def code_of_the_page() -> str:
    [code] = re.findall(r"```py\n(.*?)```", SECTION, re.DOTALL)
    return str(code)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A new project, with the lines of the page."""
    run(tmp_path, "django", "startproject", "shop")
    pieces = FILES.split(code_of_the_page())[1:]
    for name, lines in zip(pieces[::2], pieces[1::2], strict=True):
        with (tmp_path / "shop" / name).open("a") as file:
            file.write(lines)
    return tmp_path / "shop"


def test_the_page_needs_less_than_ten_lines():
    lines = [line for line in code_of_the_page().splitlines() if line and not line.startswith("#")]
    assert len(lines) == 9


def test_the_page_leads_to_a_callable_agent(project):
    commands = re.findall(r"^\$ (.*)$", SECTION, re.MULTILINE)
    assert commands[1:3] == ["django-admin startproject shop && cd shop", "python manage.py runserver &"]
    [said] = re.findall(r"^\$ curl .*\n(.*)$", SECTION, re.MULTILINE)
    _, address, _, header, _, body = shlex.split(commands[3])
    assert run(project, "manage.py", "check", "--fail-level", "WARNING")
    port = free_port()
    with process(project, "manage.py", "runserver", "--noreload", str(port)):
        wait_for(f"http://127.0.0.1:{port}")
        name, _, value = header.partition(": ")
        answer = httpx2.post(address.replace("8000", str(port)), content=body, headers={name: value})
    assert answer.text == said


WORK = '''
import os
from pathlib import Path

@site.agent("ship", execution="async", effect="idempotent")
def ship(mark: str) -> None:
    """Ship a parcel, and write down which process did."""
    Path(mark).write_text(str(os.getpid()))
'''
ACCEPT = """
import asyncio
from awp_publish.plugins.jobs.jobs import JobStore
from shop.agents import site

async def accept():
    await JobStore(site.store).accept("ship", {"mark": "mark"})
    await site.store.close()

asyncio.run(accept())
"""
WORKERS = {
    "manage.py": (
        "from awp_publish_django.store import DjangoStore\n",
        "DjangoStore()",
        ("manage.py", "agents", "worker"),
    ),
    "awp-publish": ("", '"sqlite:///agents.db"', ("awp_publish", "worker", "shop.asgi:application")),
}


@pytest.mark.parametrize("command", WORKERS)
def test_a_worker_process_runs_the_jobs_of_the_project(project, command):
    imports, store, words = WORKERS[command]
    agents, asgi = project / "shop" / "agents.py", project / "shop" / "asgi.py"
    declared = agents.read_text().replace('shop.example")', f'shop.example", store={store})')
    agents.write_text(imports + declared + WORK)
    asgi.write_text(asgi.read_text().replace("django.core.asgi", "awp_publish_django.asgi"))
    run(project, "manage.py", "migrate")
    run(project, "manage.py", "shell", "-c", ACCEPT)
    with process(project, *words) as worker:
        mark, until = project / "mark", time.monotonic() + 90
        while not mark.exists() or not mark.read_text():
            assert time.monotonic() < until
            time.sleep(0.05)
        assert int(mark.read_text()) == worker.pid


def test_a_project_without_background_actions_has_no_work(project):
    answer = run_python("manage.py", "agents", "worker", cwd=project, env=surroundings())
    assert answer.returncode != 0
    assert "has no background actions" in answer.stderr
