"""The facts that documents publish about a site, and how its callers are identified."""

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from awp_publish.calls.application_users import SessionUser
from awp_publish.calls.authenticators import published_facts
from awp_publish.calls.callers import Authenticator, TokenAuthenticator
from awp_publish.calls.challenges import PROOF_ALGORITHMS
from awp_publish.calls.sent_secrets import ApiKey
from awp_publish.declare.discover.routes import has_sign_in_name
from awp_publish.declare.discover.starlette import session_cookies
from awp_publish.declare.settings.rates import read_rate
from awp_publish.declare.settings.site import OAuth, SiteSettings
from awp_publish.model import Action, Authentication, Contact, SiteFacts


def facts_of(settings: SiteSettings, authenticators: Sequence[Authenticator]) -> SiteFacts:
    """Return the facts that documents publish about a site."""
    about = settings.about
    return SiteFacts(
        name=settings.name,
        description=settings.description,
        provenance=dict(about.provenance),
        version=about.version,
        contact=Contact(about.email, about.contact) if about.email or about.contact else None,
        authentication=_authentication_of(settings.oauth, authenticators),
        rate_limit=read_rate(limit) if (limit := settings.limits.rate_limit) is not None else None,
        errors=dict(settings.errors),
        hints=dict(about.hints),
        allowed_origins=tuple(settings.allow_origins),
        workflows=tuple(about.workflows),
        documentation=about.documentation,
        license=about.license,
        updated=cast(datetime | None, about.updated),
        extensions=dict(about.extensions),
    )


def session_of(app: object, actions: Sequence[Action]) -> Authentication | None:
    """Return what is known of the application's own sessions, if an action begins them."""
    credentials = (credential for action in actions for credential in action.route_credentials)
    of_routes = [credential.name for credential in credentials if credential.place == "cookie"]
    begins = (action.target.path for action in actions if action.is_write and action.target is not None)
    login = next(filter(has_sign_in_name, begins), None)
    cookies = [*session_cookies(app), *of_routes]
    if login is None or not cookies:
        return None
    return Authentication(methods=("session",), session_cookie=cookies[0], endpoints={"login": login})


def _authentication_of(oauth: OAuth | None, authenticators: Sequence[Authenticator]) -> Authentication | None:
    """Return what documents say of how callers are identified, None if they are not."""
    if not authenticators and oauth is None:
        return None
    scheme, methods = published_facts(authenticators)
    if oauth is not None:
        scheme = "oauth2"
    else:
        oauth = OAuth()
    session = next((each for each in authenticators if isinstance(each, SessionUser)), None)
    tokens = [each for each in authenticators if isinstance(each, TokenAuthenticator)]
    return Authentication(
        type=scheme,
        methods=methods,
        token_expiry=oauth.token_expiry,
        refresh_endpoint=oauth.refresh_endpoint,
        endpoints={**oauth.endpoints, **(session.endpoints if session is not None else {})},
        authorization_servers=oauth.authorization_servers,
        api_key_header=next((each.header for each in authenticators if isinstance(each, ApiKey)), None),
        session_cookie=session.cookie if session is not None else None,
        audiences=tuple(audience for token in tokens for audience in token.audience),
        proof_algorithms=PROOF_ALGORITHMS if tokens else (),
        proof_required=bool(tokens) and all(token.dpop_required for token in tokens),
    )
