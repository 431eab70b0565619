"""Run the own tests of public projects before and after awp_publish is added to them: what does it change?

    make suites NAMES="healthchecks fastapi-users"
    python -m tools.suites healthchecks --from ~/mirror

A project is cloned from GitHub, or from `--from FOLDER`, in which repositories are as on GitHub (OWNER/NAME.git). It
gets a virtual environment of its own, kept in `--work`. "After" has the same tests with our middleware in the project
and a site that publishes its routes (`site.include()`); nothing else differs from "before". NOT RUN is said of what
cannot be had or installed here. What the tests print is kept in `--work`, as NAME.before and NAME.after. Ends with 1 if
tests fail after that did not fail before. README.md has the figures of the last run.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.suites.outcome import Outcome, read_outcome
from tools.suites.projects import PROJECTS, Project

ROOT: Final = Path(__file__).resolve().parents[2]
OVERLAY: Final = Path(__file__).with_name("overlay")
START_SECONDS: Final = 60
MAX_SHOWN: Final = 20
"""Names of tests that are printed."""

COUNT: Final = """
import django
django.setup()
from awp_publish_django.publication import get_publication
site = get_publication().site
print(f"{len(site.catalog.actions)} actions, {len(site.left_out)} routes left out, {len(site.findings)} findings")
"""
SERVE: Final = """
import os, sys, uvicorn
if os.environ.get("AWP_SUITE_AFTER"):
    import awp_suite_asgi
uvicorn.run(sys.argv[1], port=int(sys.argv[2]), log_level="warning")
"""


class NotRun(Exception):
    """A project cannot be had, installed or started."""


@dataclass(frozen=True)
class Run:
    """One project, where it is checked out, its Python, and the environment of its tests."""

    name: str
    project: Project
    checkout: Path
    python: str
    environment: Mapping[str, str]
    seconds: float

    def test(self, kept: Path, **environment: str) -> Outcome:
        """Run the tests and keep what they print. Raises NotRun if they end without a summary, or not in time."""
        env = {**self.environment, **environment}
        with ExitStack() as running:
            if self.project.serves:
                env |= running.enter_context(serving(self, env))
            output = capture([self.python, *self.project.tests], self.checkout, env, self.seconds)
        kept.write_text(output)
        outcome = read_outcome(output)
        if outcome is None:
            raise NotRun(f"its tests do not start: {' '.join(output.strip().splitlines()[-1:])}")
        return outcome

    def count_actions(self, **environment: str) -> str:
        """Return what a Django project publishes, or why it does not."""
        output = capture([self.python, "-c", COUNT], self.checkout, {**self.environment, **environment}, self.seconds)
        return " ".join(output.strip().splitlines()[-1:])


def capture(command: Sequence[str], where: Path, env: Mapping[str, str], seconds: float) -> str:
    """Return what a command prints. Raises NotRun if it does not end in time."""
    process = subprocess.Popen(
        command, cwd=where, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise NotRun(f"its tests have not ended after {seconds:.0f} seconds") from error


def call(command: Sequence[str], where: Path, env: Mapping[str, str] | None = None) -> None:
    """Run a command. Raises NotRun with the end of what it said."""
    try:
        done = subprocess.run(command, cwd=where, env=env, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NotRun(str(error)) from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise NotRun(f"{' '.join(map(str, command[:5]))}: {' '.join(last)}")


@contextmanager
def serving(run: Run, env: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Run a server of the project, with data of its own. Gives what its tests have in their environment."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        free.close()
        prefix = run.project.serves.partition(".")[0].upper()
        path = f"{Path(run.python).parent}{os.pathsep}{env['PATH']}"
        own = {**env, "PATH": path, f"{prefix}_DIR_DATA": folder}
        with (Path(folder) / "log").open("w") as log:
            server = subprocess.Popen(
                [run.python, "-c", SERVE, run.project.serves, port], cwd=run.checkout, env=own, stdout=log, stderr=log
            )
            try:
                wait_until_served(server, port)
                name = run.name.partition("-")[0]
                plugins = {"PYTEST_PLUGINS": "awp_suite_names", "AWP_SUITE_SERVER": name}
                yield {**plugins, f"{prefix}_PORT": port}
            finally:
                server.terminate()
                server.wait(START_SECONDS)


def wait_until_served(server: subprocess.Popen[bytes], port: str) -> None:
    """Wait for a server's first answer. Raises NotRun."""
    until = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < until:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=START_SECONDS).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.2)
    raise NotRun("its server does not start")


@contextmanager
def databases(run: Path, project: Project, checkout: Path) -> Iterator[dict[str, str]]:
    """Run a PostgreSQL server with the databases of a project. Gives what its settings have in their environment."""
    if not project.databases:
        yield {}
        return
    folder = run / "postgres"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        raise NotRun("PostgreSQL is not installed")
    owner = "postgres" if os.geteuid() == 0 else None
    data = Path(tempfile.mkdtemp(prefix="awp-suite-", dir="/tmp"))
    if owner is not None:
        shutil.chown(data, owner)

    def as_owner(*words: str) -> None:
        subprocess.run(words, user=owner, cwd="/", check=True, stdout=subprocess.DEVNULL)

    as_owner(str(programs[-1] / "initdb"), "--auth=trust", "--no-sync", "--username=awp", f"--pgdata={data}/data")
    options = f"-k {data} -F -c listen_addresses= -c log_min_messages=fatal"
    server = str(programs[-1] / "pg_ctl")
    as_owner(server, "start", "-w", "-D", f"{data}/data", "-l", "/dev/null", "-o", options)
    try:
        for name, filled in project.databases.items():
            sql = ("psql", "-q", "-U", "awp", "-h", str(data))
            call([*sql, "-d", "postgres", "-c", f'CREATE ROLE "{name}" SUPERUSER LOGIN'], checkout)
            call([*sql, "-d", "postgres", "-c", f'CREATE DATABASE "{name}" OWNER "{name}"'], checkout)
            if filled:
                call([*sql, "-d", name, "-f", filled], checkout)
        yield {"PGHOST": str(data)}
    finally:
        as_owner(server, "stop", "--mode=immediate", "-D", f"{data}/data")
        shutil.rmtree(data, ignore_errors=True)


def install(name: str, project: Project, source: Path | None, work: Path) -> tuple[Path, str]:
    """Return the checkout of a project and the Python of its environment. Raises NotRun."""
    env = dict(os.environ)
    if source is not None:  # of the project itself, and of what its requirements take from there
        env |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.{source.resolve()}/.insteadOf"}
        env |= {"GIT_CONFIG_VALUE_0": "https://github.com/"}
    checkout, venv = work / name, work / f"venv-{name}"
    if not checkout.exists():
        call(["git", "clone", "-q", f"https://github.com/{project.repository}.git", str(checkout)], work, env)
    python = shutil.which(f"python{project.python}")
    if python is None:
        raise NotRun(f"it needs python{project.python}")
    own = str(venv / "bin" / "python")
    if not venv.exists():
        call([python, "-m", "venv", str(venv)], work)
        call([own, "-m", "pip", "install", "-q", "--upgrade", "pip"], work)
    call([own, "-m", "pip", "uninstall", "-q", "-y", "awp-publish"], work)
    call([own, "-m", "pip", "install", "-q", *project.requires], checkout, env)
    for file, text in project.files.items():
        (checkout / file).parent.mkdir(parents=True, exist_ok=True)
        (checkout / file).write_text(text)
    for file, (old, new) in project.edits.items():
        (checkout / file).write_text((checkout / file).read_text().replace(old, new))
    return checkout, own


def compare(name: str, source: Path | None, work: Path, seconds: float) -> bool:
    """Run a suite twice and print what differs. Returns True if nothing fails that did not fail before."""
    project = PROJECTS[name]
    checkout, python = install(name, project, source, work)
    version = capture(["git", "describe", "--tags", "--always"], checkout, os.environ, seconds).strip()
    paths = os.pathsep.join(str(item) for item in (OVERLAY, checkout / project.path, checkout))
    environment = {**os.environ, **project.environment, "PYTHONPATH": paths}
    added = {"AWP_SUITE_AFTER": "1"}
    if project.settings:
        environment |= {"DJANGO_SETTINGS_MODULE": "awp_suite_settings", "AWP_SUITE_SETTINGS": project.settings}
    elif not project.serves:
        added = {"PYTEST_PLUGINS": "awp_suite_asgi"}
    with databases(work, project, checkout) as found:
        run = Run(name, project, checkout, python, {**environment, **found}, seconds)
        if project.prepare:
            call([python, *project.prepare], checkout, run.environment)
        before = run.test(work / f"{name}.before")
        print(f"{name} {version}: before: {before}", flush=True)
        call([python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", str(ROOT)], work)
        call([python, "-m", "pip", "install", "-q", f"{ROOT}[{project.extra}]"], work)
        published = f" ({run.count_actions(**added)})" if project.settings else ""
        after = run.test(work / f"{name}.after", **added)
    print(f"{name} {version}: after:  {after}{published}", flush=True)
    new = sorted(after.failed - before.failed)
    for said, tests in (("fails now", new), ("failed before only", sorted(before.failed - after.failed))):
        for test in tests[:MAX_SHOWN]:
            print(f"  {said}: {test}")
        if len(tests) > MAX_SHOWN:
            print(f"  {said}: {len(tests) - MAX_SHOWN} more")
    return not new


def main() -> int:
    parser = ArgumentParser(description="The own tests of public projects, before and after awp_publish is added.")
    parser.add_argument("names", nargs="*", metavar="project", help=f"{', '.join(PROJECTS)}; all without any")
    parser.add_argument("--from", dest="source", type=Path, help="a folder of repositories, OWNER/NAME.git")
    parser.add_argument("--work", type=Path, default=Path("build/suites"), help="where checkouts and environments are")
    parser.add_argument("--minutes", type=float, default=30, help="for one run of a suite")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in PROJECTS]:
        parser.error(f"unknown: {', '.join(unknown)}. There are: {', '.join(PROJECTS)}.")
    work: Path = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    is_same = True
    for name in options.names or PROJECTS:
        try:
            is_same &= compare(name, options.source, work, options.minutes * 60)
        except NotRun as reason:
            print(f"{name}: NOT RUN: {reason}", flush=True)
    return int(not is_same)


if __name__ == "__main__":
    sys.exit(main())
