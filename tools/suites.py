"""Run the own tests of public Django projects before and after awp_publish is added to them: what does it change?

    python -m tools.suites healthchecks linkding --from ~/checkouts --python python3.13

A project is cloned from GitHub, or from `--from FOLDER/NAME` (a checkout or a bare repository). It gets a virtual
environment of its own, kept in `--work`. "After" has the same tests with our application in INSTALLED_APPS, our
middleware below AuthenticationMiddleware, and a site that publishes all of the project's routes (`site.include()`).
Nothing in the checkout is changed. NOT RUN is said of what cannot be had or installed here. Ends with 1 if tests fail
after that did not fail before.
"""

import os
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TIMEOUT: Final = 3600


@dataclass(frozen=True, kw_only=True)
class Project:
    """A public project. `requires` are arguments of pip, `tests` of Python, both in its checkout.

    `path` is where its modules are, `folders` are made before its tests.
    """

    repository: str
    settings: str
    requires: tuple[str, ...]
    tests: tuple[str, ...]
    path: str = "."
    folders: tuple[str, ...] = ()


PYTEST: Final = ("pytest", "pytest-django", "pytest-asyncio")
PROJECTS: Final[Mapping[str, Project]] = {
    "linkding": Project(
        repository="sissbruecker/linkding",
        settings="bookmarks.settings.dev",
        requires=(
            *(
                "beautifulsoup4",
                "bleach",
                "bleach-allowlist",
                "django>=6.0.7",
                "djangorestframework",
                "huey",
                "markdown",
            ),
            *("mozilla-django-oidc", "requests", "waybackpy", "django-debug-toolbar", *PYTEST),
        ),
        tests=("-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "--ignore", "bookmarks/tests_e2e"),
        folders=("data",),
    ),
    "healthchecks": Project(
        repository="healthchecks/healthchecks",
        settings="hc.settings",
        requires=("-r", "requirements.txt"),
        tests=("manage.py", "test"),
    ),
    "django-helpdesk": Project(
        repository="django-helpdesk/django-helpdesk",
        settings="demodesk.config.settings",
        requires=(".", "--group", "test", "--group", "teams"),
        tests=("manage.py", "test", "helpdesk"),
        path="src",
    ),
    "djangoproject.com": Project(
        repository="django/djangoproject.com",
        settings="djangoproject.settings.dev",
        requires=("-r", "requirements/tests.txt"),
        tests=("manage.py", "test"),
    ),
    "django-ninja": Project(
        repository="vitalik/django-ninja",
        settings="demo.settings",
        requires=("-e", ".", "psycopg2-binary", *PYTEST),
        tests=("-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "tests"),
        path="tests/demo_project",
    ),
    "bakerydemo": Project(
        repository="wagtail/bakerydemo",
        settings="bakerydemo.settings.test",
        requires=("-r", "requirements/base.txt"),
        tests=("manage.py", "test"),
    ),
}

SETTINGS: Final = """
import importlib, os
project = importlib.import_module(os.environ["AWP_SUITE_SETTINGS"])
globals().update({name: getattr(project, name) for name in dir(project) if name.isupper()})
INSTALLED_APPS = [*project.INSTALLED_APPS, "awp_publish_django"]
above = [place for place, name in enumerate(project.MIDDLEWARE) if name.endswith("AuthenticationMiddleware")]
MIDDLEWARE = list(project.MIDDLEWARE)
MIDDLEWARE.insert(above[-1] + 1 if above else 0, "awp_publish_django.middleware.AgentPublisherMiddleware")
AWP_PUBLISH = {"SITE": "awp_suite_agents.site"}
"""
AGENTS: Final = """
from awp_publish import ApplicationUser, Site
site = Site("Suite", "A project as its own tests know it.", url="https://testserver", authenticate=ApplicationUser())
site.include()
"""
COUNT: Final = """
import django
django.setup()
from awp_publish_django.publication import get_publication
site = get_publication().site
print(f"{len(site.catalog.actions)} actions, {len(site.left_out)} routes left out, {len(site.findings)} findings")
"""

_FAILED: Final = (
    re.compile(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", re.MULTILINE),  # unittest
    re.compile(r"^(?:FAILED|ERROR) (\S+\.py\S*)", re.MULTILINE),  # pytest
)
_SUMMARY: Final = re.compile(r"^(Ran \d+ tests?|=*\s*(?:\d+ (?:passed|failed|errors?|skipped).*))", re.MULTILINE)


class NotRun(Exception):
    """A project cannot be had, or not be installed."""


@dataclass(frozen=True)
class Outcome:
    """What a suite said: its last line, and the names of the tests that failed."""

    summary: str
    failed: frozenset[str]


def fetch(name: str, project: Project, source: Path | None, work: Path) -> Path:
    """Return the checkout of a project. Raises NotRun."""
    checkout = work / name
    if not checkout.exists():
        given = source / name if source is not None else None
        origin = str(given) if given is not None else f"https://github.com/{project.repository}"
        depth = () if given is not None else ("--depth", "1")
        call(["git", "clone", "-q", *depth, origin, str(checkout)], work)
    return checkout


def install(name: str, project: Project, checkout: Path, python: str, work: Path) -> str:
    """Return the Python of the project's environment. Raises NotRun."""
    venv = work / f"venv-{name}"
    own = str(venv / "bin" / "python")
    if not venv.exists():
        call([python, "-m", "venv", str(venv)], work)
    call([own, "-m", "pip", "install", "-q", *project.requires], checkout)
    return own


def call(command: Sequence[str], where: Path) -> str:
    """Run a command. Raises NotRun with the end of what it said."""
    try:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotRun(str(error)) from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise NotRun(f"{' '.join(command[:5])}: {' '.join(last)}")
    return done.stdout


def run_tests(python: str, project: Project, checkout: Path, environment: Mapping[str, str]) -> Outcome:
    """Run the project's tests. Raises NotRun if they end without a summary."""
    done = subprocess.run(
        [python, *project.tests], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    summaries = _SUMMARY.findall(said)
    if not summaries:
        raise NotRun(f"its tests do not start: {' '.join(said.strip().splitlines()[-1:])}")
    return Outcome(summaries[-1].strip("= "), frozenset(one for form in _FAILED for one in form.findall(said)))


def compare(name: str, project: Project, source: Path | None, python: str, work: Path) -> bool:
    """Run a suite twice and print what differs. Returns True if nothing fails that did not fail before."""
    checkout = fetch(name, project, source, work)
    own = install(name, project, checkout, python, work)
    overlay = work / f"overlay-{name}"
    for folder in (overlay, *(checkout / one for one in project.folders)):
        folder.mkdir(parents=True, exist_ok=True)
    (overlay / "awp_suite_settings.py").write_text(SETTINGS)
    (overlay / "awp_suite_agents.py").write_text(AGENTS)
    paths = os.pathsep.join(str(one) for one in (overlay, checkout / project.path, checkout))
    plain = {**os.environ, "PYTHONPATH": paths, "DJANGO_SETTINGS_MODULE": project.settings}
    before = run_tests(own, project, checkout, plain)
    print(f"{name}: before: {before.summary}, {len(before.failed)} failed", flush=True)
    call([own, "-m", "pip", "install", "-q", f"{ROOT}[django]"], work)
    ours = {**plain, "DJANGO_SETTINGS_MODULE": "awp_suite_settings", "AWP_SUITE_SETTINGS": project.settings}
    counted = subprocess.run([own, "-c", COUNT], cwd=checkout, env=ours, capture_output=True, text=True, check=False)
    published = (counted.stdout.strip() or counted.stderr.strip()).splitlines()[-1:]
    after = run_tests(own, project, checkout, ours)
    print(f"{name}: after:  {after.summary}, {len(after.failed)} failed ({' '.join(published)})")
    new = sorted(after.failed - before.failed)
    for one in new:
        print(f"  fails now: {one}")
    for one in sorted(before.failed - after.failed):
        print(f"  failed before only: {one}")
    return not new


def main() -> int:
    parser = ArgumentParser(description="The own tests of public projects, before and after awp_publish is added.")
    parser.add_argument("names", nargs="*", metavar="project", help=f"{', '.join(PROJECTS)}; all without any")
    parser.add_argument(
        "--from", dest="source", type=Path, help="a folder with checkouts or bare repositories, by name"
    )
    parser.add_argument("--python", default=sys.executable, help="the Python of the projects, where they need another")
    parser.add_argument("--work", type=Path, default=Path("build/suites"), help="where checkouts and environments are")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in PROJECTS]:
        parser.error(f"unknown: {', '.join(unknown)}. There are: {', '.join(PROJECTS)}.")
    work: Path = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    is_same = True
    for name in options.names or PROJECTS:
        try:
            is_same &= compare(name, PROJECTS[name], options.source, options.python, work)
        except NotRun as reason:
            print(f"{name}: NOT RUN: {reason}", flush=True)
    return int(not is_same)


if __name__ == "__main__":
    sys.exit(main())
