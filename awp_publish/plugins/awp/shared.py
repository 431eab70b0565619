"""What all connections of the door share."""

from typing import Any

from awp_publish.calls.tokens import Tokens
from awp_publish.http.doors import session_ids_of
from awp_publish.http.handshake import own_urls
from awp_publish.plugin import Context
from awp_publish.plugins.awp.callers import AwpCallers
from awp_publish.plugins.awp.sessions import EXPORT_LIFETIME, Sessions
from awp_publish.plugins.awp.skills import AwpSkills


class SharedParts:
    """The parts of the door that all connections share. `max_seconds` limits the time of any method."""

    def __init__(self, context: Context) -> None:
        settings, self.catalog = context.settings, context.catalog
        self.sessions = Sessions(context.options, own_urls(context))
        self.callers, self.skills = AwpCallers(context), AwpSkills(context)
        self.exports = Tokens(context.site.keys, f"awp_session:{settings.namespace}", EXPORT_LIFETIME)
        served = context.ask("events")  # without that plug-in, there are no events
        self.events: Any = served.log if served is not None else None
        self.session_ids = session_ids_of(context)
        self.max_seconds = settings.limits.timeout
