"""Sessions of callers without a cookie jar: what actions set in cookies is kept in the store under an id."""

from awp_publish.calls.guard import Tokens
from awp_publish.plugin import CallHooks, Context, Plugin, Serving
from awp_publish.plugins.sessions.cookies import LIFETIME, CookieSessions, SessionCalls, has_session_callers


def _serve(serving: Serving) -> CookieSessions | None:
    """Return the sessions of the site, None if it identifies nobody by cookies."""
    catalog = serving.site.catalog
    if not serving.has_sessions and not has_session_callers(serving.guards_of(catalog), catalog):
        return None
    tokens = Tokens(serving.site.keys, f"session:{serving.settings.namespace}", LIFETIME)
    return CookieSessions(serving.site.store, tokens)


def _at(context: Context) -> SessionCalls | None:
    if context.service is None:
        return None
    proxies = context.admission.trusted_proxies
    return SessionCalls(context.service, context.catalog, context.guards, proxies, context.outside)


def _calls(context: Context) -> CallHooks:
    return CallHooks(carry=context.ask("sessions"))


PLUGIN = Plugin(name="sessions", is_default=True, serve=_serve, at=_at, calls=_calls)
