"""What every test may ask for: a site, and a client for an application that publishes it."""

import gc
import io
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir
from contextvars import copy_context
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess
from types import FunctionType
from typing import cast

import httpx
import httpx2
import pytest
from hypothesis import HealthCheck, settings

from awp_publish import About, OAuth, Site, cli, plugin
from awp_publish.checks import Finding, check_documents
from awp_publish.http.exchange import AsgiApp
from tests.client import TestClient
from tests.installed import can_be_imported, installed, is_installed, missing_plugin
from tests.limit import Limit
from tests.postgres_server import postgres_url as postgres_url, share_server, stop_shared_server
from tests.redis_cluster import (
    redis_cluster as redis_cluster,
    shared_cluster as shared_cluster,
    start_cluster as start_cluster,
)
from tests.redis_server import redis_url as redis_url, start_redis as start_redis

gc.disable()  # until all tests are collected
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes that tests start read what an earlier one has compiled

# The same examples in each run, however slow the machine is; `make fuzz` draws new ones.
settings.register_profile(
    "steady", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("random", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

# The two seconds of a site's store are too few for a busy machine, and so are the five of a client.
for _module, _kind in (("sqlite", "SqliteStore"), ("redis", "RedisStore"), ("postgres", "PostgresStore")):
    if is_installed(_module):
        _store = getattr(import_module(f"awp_publish.plugins.{_module}.store"), _kind)
        (cast(FunctionType, _store.__init__).__kwdefaults__ or {})["timeout"] = 20.0
for _default in (httpx._config.DEFAULT_TIMEOUT_CONFIG, httpx2._config.DEFAULT_TIMEOUT_CONFIG):
    _default.connect = _default.read = _default.write = _default.pool = 30.0


@lru_cache(128)
def _check_once(documents: tuple[tuple[str, bytes], ...]) -> list[Finding]:
    return check_documents(dict(documents))


# A test starts the site that the test before it has started: what its documents say need not be judged again.
if is_installed("findings"):
    _report = import_module("awp_publish.plugins.findings.report")
    vars(_report)["check_documents"] = lambda documents: _check_once(tuple(documents.items()))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="write the golden documents anew")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Limit())
    if not hasattr(config, "workerinput"):
        share_server()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        stop_shared_server()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files of tests that import from a plug-in which has been taken out."""
    is_test = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    return True if is_test and not can_be_imported(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Iterator[None]:
    """Skip a test that asks a site for a plug-in which has been taken out."""
    if call.excinfo is not None and (plugin := missing_plugin(call.excinfo.value)) is not None:
        skipped = pytest.skip.Exception(f"taken out: {plugin}").with_traceback(call.excinfo.tb)
        call.excinfo = pytest.ExceptionInfo.from_exception(skipped)
    return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test of the core that names plug-ins which have been taken out."""
    for marker in item.iter_markers("needs"):
        missing = [name for name in marker.args if not is_installed(name)]
        if missing:
            pytest.skip(f"taken out: {', '.join(missing)}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Run a test in a context of its own, since asgiref gives the thread what a coroutine has set."""
    vars(item)["runtest"] = partial(copy_context().run, item.runtest)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes `-n auto` starts: three for two cores, since tests often wait; four take longer."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(2, cores * 3 // 2)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait, which the first process then has to itself while the others use the cores."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Keep the collector of garbage from looking at half a million objects that stay, over and over."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


LOGIN = OAuth(authorization_servers=("https://login.example",))
"""With an authorization server and every door, a site has every document there is."""

OpenClient = Callable[..., TestClient]


ROOT = Path(__file__).parents[1]


_make_parser = cli.make_parser
_parsers: dict[tuple[plugin.Plugin, ...], ArgumentParser] = {}


def _make_parser_once(arguments: Sequence[str] = ()) -> ArgumentParser:
    """Make the parser of commands that need no application once: that takes longer than most of them."""
    plugins = tuple(plugin.installed().values())
    if plugins not in _parsers:
        _parsers[plugins] = _make_parser()
    [commands] = [list(action.choices or ()) for action in _parsers[plugins]._actions if action.dest == "command"]
    is_known = any(argument in commands for argument in arguments[:2])
    return _parsers[plugins] if is_known else _make_parser(arguments)


vars(cli)["make_parser"] = _make_parser_once


def run_command(*arguments: str, cwd: Path = ROOT, given: str = "", is_terminal: bool = False) -> CompletedProcess[str]:
    """Run `awp-publish` in a folder, in this process: a start of Python takes longer than most commands.

    What it imports from the folder is forgotten afterwards, so that the next one reads its own.
    """
    streams = [io.TextIOWrapper(io.BytesIO(text), encoding="utf-8") for text in (given.encode(), b"", b"")]
    known, path = set(sys.modules), list(sys.path)
    with pytest.MonkeyPatch.context() as patch, chdir(cwd):
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
            patch.setattr(stream, "isatty", lambda: is_terminal)
        try:
            status = cli.main(arguments)
        except SystemExit as ended:  # argparse has refused the command line, or was asked for help
            status = int(ended.code or 0)
        finally:
            sys.path[:] = path
            for name in set(sys.modules) - known:
                places = [getattr(sys.modules[name], "__file__", None), *getattr(sys.modules[name], "__path__", ())]
                if cwd != ROOT and any(str(place).startswith(str(cwd)) for place in places):
                    del sys.modules[name]
    results = []
    for stream in streams[1:]:
        stream.flush()
        results.append(stream.buffer.getvalue().decode())
    return CompletedProcess(arguments, status, *results)


def make_site(about: About = About()) -> Site:  # noqa: B008
    doors = installed("mcp", "a2a")
    return Site("Shop", "Sells things.", url="https://shop.example", about=about, oauth=LOGIN, plugins=doors)


@pytest.fixture
def site() -> Site:
    return make_site()


@pytest.fixture
def open_client() -> Iterator[OpenClient]:
    """Start an application and give a client for it; both are closed when the test ends."""
    with ExitStack() as stack:

        def open_one(
            app: AsgiApp, *, root_path: str = "", client: tuple[str, int] = ("testclient", 50000)
        ) -> TestClient:
            made = TestClient(app, base_url="https://shop.example", root_path=root_path, client=client)
            return stack.enter_context(made)

        yield open_one
