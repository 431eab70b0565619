"""Findings: logged when a server starts."""

from contextlib import AbstractAsyncContextManager, nullcontext

from awp_publish.calls.workers import count_workers, is_first_worker, root_path_of_server
from awp_publish.http.collector import collector_paused
from awp_publish.http.running import INSPECTED
from awp_publish.plugin import Plugin, Serving
from awp_publish.plugins.findings.report import check_published, report


def _report(serving: Serving) -> AbstractAsyncContextManager[object]:
    """Report once. With a reloader, each new process does: it has new code."""
    application = serving.application
    is_read = INSPECTED in application.extensions()
    if application.is_checked and not is_read and (count_workers() == 1 or is_first_worker()):
        root_path = application.lifespan().get("root_path") or root_path_of_server()
        with collector_paused():
            report(serving.site, application.documents(), application.routes(), root_path)
    return nullcontext()


PLUGIN = Plugin(name="findings", is_default=True, start=lambda setup: check_published, running=_report)
