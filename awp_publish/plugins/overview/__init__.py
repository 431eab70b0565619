"""The overview: pages on which people see what agents are offered, and try it."""

from awp_publish.plugin import CallHooks, Context, Door, Endpoints, Plugin
from awp_publish.plugins.overview.options import Overview, is_switched_on


def _open(context: Context) -> Endpoints:
    from awp_publish.plugins.overview.door import open_door

    return open_door(context)


def _calls(context: Context) -> CallHooks:
    from awp_publish.plugins.overview.sending import time_call, time_handler

    return CallHooks(around=time_call, around_handler=time_handler)


PLUGIN = Plugin(
    name="overview",
    options=Overview,
    is_default=is_switched_on,
    doors=lambda setup, paths: [Door(name="overview", calls=False, path=paths.root, open=_open)],
    calls=_calls,
)
