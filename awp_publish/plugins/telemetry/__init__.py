"""Telemetry: each call in the access log, to listeners and in OpenTelemetry's spans."""

from awp_publish.plugin import Plugin
from awp_publish.plugins.telemetry.watcher import CallListener, Watcher, listen

PLUGIN = Plugin(
    name="telemetry",
    is_default=True,
    fulfils=("log_inputs",),
    start=lambda setup: list[CallListener](),
    declares={"on_call": listen},
    watcher=lambda setup: Watcher(setup.site.settings.log_inputs, setup.state),
)
