"""Findings: logged when a server starts."""

import sys
from argparse import ArgumentParser
from contextlib import AbstractAsyncContextManager, nullcontext

from awp_publish.calls.workers import count_workers
from awp_publish.http.collector import collector_paused
from awp_publish.http.running import INSPECTED
from awp_publish.plugin import Plugin, Serving
from awp_publish.plugins.findings.report import check_published, report


def _report(serving: Serving) -> AbstractAsyncContextManager[object]:
    """Report once. With a reloader, each new process does: it has new code."""
    application = serving.application
    is_read = INSPECTED in application.extensions()
    if application.is_checked and not is_read and (count_workers() == 1 or _is_first_worker()):
        root_path = application.lifespan().get("root_path") or _root_path_of_server()
        with collector_paused():
            report(serving.site, application.documents(), application.routes(), root_path)
    return nullcontext()


def _is_first_worker() -> bool:
    """Return False in a process that a server has started with `multiprocessing` beside or after the first one."""
    multiprocessing = sys.modules.get("multiprocessing")  # loaded in every such process; slow to import elsewhere
    number = multiprocessing.current_process().name.rpartition("-")[2] if multiprocessing is not None else ""
    return not number.isdecimal() or number == "1"


def _root_path_of_server() -> str:
    """Return uvicorn's `--root-path`, which its lifespan scope does not contain."""
    options = ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--root-path", default="", nargs="?")
    return options.parse_known_args(sys.argv[1:])[0].root_path or ""


PLUGIN = Plugin(name="findings", is_default=True, start=lambda setup: check_published, running=_report)
