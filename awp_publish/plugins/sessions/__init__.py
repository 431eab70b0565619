"""Sessions of callers without a cookie jar, whose cookies the store keeps under an id."""

from awp_publish.calls.tokens import Tokens
from awp_publish.plugin import CallHooks, Plugin, Serving
from awp_publish.plugins.sessions.calls import SessionCalls
from awp_publish.plugins.sessions.cookies import LIFETIME, CookieSessions, has_session_callers


def _serve(serving: Serving) -> CookieSessions | None:
    """Return the sessions of the site, None if it identifies nobody by cookies."""
    catalog = serving.site.catalog
    if not serving.application.has_sessions and not has_session_callers(
        serving.application.guards_of(catalog), catalog
    ):
        return None
    tokens = Tokens(serving.site.keys, f"session:{serving.settings.namespace}", LIFETIME)
    successes = serving.ask("prerequisites")
    return CookieSessions(serving.site.store, tokens, identifying=_identifying(serving), successes=successes)


def _identifying(serving: Serving) -> frozenset[str]:
    """Return the names of cookies, and of members of a session, by which callers are known to be identified."""
    by_routes = (credential for action in serving.site.catalog.actions for credential in action.route_credentials)
    by_site = (
        getattr(authenticator, name, None)
        for authenticator in serving.site.authenticators
        for name in ("cookie", "key")
    )
    of_middleware = (name.decode("latin-1") for name in serving.application.called.session_cookies)
    of_routes = (credential.name for credential in by_routes if credential.place == "cookie")
    return frozenset({*of_routes, *(name for name in by_site if isinstance(name, str)), *of_middleware})


PLUGIN = Plugin(
    name="sessions",
    is_default=True,
    serve=_serve,
    at=lambda context: SessionCalls(context) if context.service is not None else None,
    calls=lambda context: CallHooks(carry=context.ask("sessions")),
)
