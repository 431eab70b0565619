"""Sign-in: the site as the authorization server of its own agents. People allow them to act, on the site's own pages.

The endpoints are our own. Those of the MCP SDK know no metadata documents of clients and no `iss`, and compare loopback
addresses with their port; authlib has no integration with Starlette; both would leave consent, people and the store to
us. No token is signed or encrypted in a format of anybody's: tokens are opaque, and the store has their digests.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from awp_publish.calls.challenges import PROOF_ALGORITHMS
from awp_publish.documents.members import PROTECTED_RESOURCE_PATH
from awp_publish.model import Catalog
from awp_publish.plugin import CallHooks, Context, Door, Endpoints, Finding, Plugin, Serving, Setup
from awp_publish.plugins.sign_in import metadata
from awp_publish.plugins.sign_in.options import SignIn
from awp_publish.plugins.sign_in.panel import PANEL
from awp_publish.plugins.sign_in.paths import SignInPaths
from awp_publish.problems import DeclarationError

if TYPE_CHECKING:  # a site that signs nobody in imports none of this
    from awp_publish.plugins.sign_in.at import SignInAt
    from awp_publish.plugins.sign_in.bearers import SignInTokens
    from awp_publish.plugins.sign_in.people import People
    from awp_publish.plugins.sign_in.site import SignInSite


def _start(setup: Setup) -> "SignInSite":
    from awp_publish.plugins.sign_in.site import SignInSite

    return SignInSite(setup)


def _authenticators(setup: Setup) -> "tuple[SignInTokens]":
    from awp_publish.plugins.sign_in.bearers import SignInTokens

    return (SignInTokens(setup.state),)


def _serve(serving: Serving) -> "People":
    from awp_publish.plugins.sign_in.people import People

    return People(serving)


def _at(context: Context) -> "SignInAt":
    from awp_publish.plugins.sign_in.at import SignInAt

    return SignInAt(context)


def _calls(context: Context) -> CallHooks:
    from awp_publish.plugins.sign_in.calls import SignedInCalls

    return CallHooks(carry=SignedInCalls(context))


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    """Say in all documents where people sign in, and where tokens come from."""
    authentication, options, paths = catalog.site.authentication, setup.options, SignInPaths(catalog.paths.root)
    assert authentication is not None  # of our own authenticator
    algorithms = PROOF_ALGORITHMS if setup.state.proofs is not None else ()
    scopes = sorted(
        {*options.scopes, *setup.state.permissions_of(catalog)}
    )  # those that people may allow, and no other
    endpoints = {
        **authentication.endpoints,
        metadata.AUTHORIZE: paths.authorize,
        metadata.TOKEN: paths.token,
        metadata.CONNECTIONS: paths.connections,
    }
    authentication = replace(
        authentication,
        endpoints=endpoints,
        authorization_servers=(catalog.url,),
        token_expiry=f"{options.minutes}m" if options.minutes % 60 else f"{options.minutes // 60}h",
        refresh_endpoint=paths.token,
        scopes=options.scopes,
        own_server=metadata.members_of(options, paths, algorithms, scopes),
        proof_algorithms=authentication.proof_algorithms or algorithms,
    )
    path = PROTECTED_RESOURCE_PATH if "identity" in setup.site.plugins else None
    return replace(catalog, site=replace(catalog.site, authentication=authentication), metadata_path=path)


def _check(setup: Setup, catalog: Catalog) -> Iterator[Finding]:
    from awp_publish.plugins.sign_in.framework import framework_of

    options: SignIn = setup.options
    framework = framework_of(setup.site)
    if options.login is None and framework.login() is None:
        raise DeclarationError("site", "SignIn: nobody can sign in.", 'Write SignIn(login="/login").')
    if options.user is None and framework.user() is None:
        remedy = 'Write SignIn(user=SessionUser("user_id")), or give a function of the request.'
        raise DeclarationError("site", "SignIn: the site cannot tell who is signed in.", remedy)
    if setup.site.store.is_shared and not setup.site.settings.secret_keys:
        remedy = 'Give Site(secret_keys=["..."]) one that all processes share, from the environment say.'
        raise DeclarationError("site", "SignIn needs signed tokens, and the site has no secret_keys.", remedy)
    needed = {scope: action.id for action in catalog.actions for scope in action.scopes}
    for scope in sorted(needed.keys() - options.scopes.keys()):
        if not options.scopes and framework.is_permission(scope):
            continue  # what the site alone decides, nobody has to allow
        wrong = f'Nobody can allow the scope "{scope}", which {needed[scope]} needs.'
        remedy = f'Write SignIn(scopes={{"{scope}": "..."}}).'
        yield Finding("warning", "sign-in-scope", f"/{needed[scope]}", wrong, remedy, "")


def _open(context: Context) -> Endpoints:
    from awp_publish.plugins.sign_in.authorize import AuthorizeEndpoint
    from awp_publish.plugins.sign_in.connections import ConnectionsEndpoint
    from awp_publish.plugins.sign_in.consent import ConsentEndpoint
    from awp_publish.plugins.sign_in.token import RegisterEndpoint, RevokeEndpoint, TokenEndpoint

    at: SignInAt = context.ask("sign_in")
    return Endpoints(
        exact={
            at.paths.authorize: AuthorizeEndpoint(at),
            at.paths.consent: ConsentEndpoint(at),
            at.paths.token: TokenEndpoint(at),
            at.paths.register: RegisterEndpoint(at),
            at.paths.revoke: RevokeEndpoint(at),
            at.paths.connections: ConnectionsEndpoint(at),
        }
    )


PLUGIN = Plugin(
    name="sign_in",
    needs={"jinja2": "signin"},
    options=SignIn,
    start=_start,
    authenticators=_authenticators,
    derive=_derive,
    check=_check,
    keeps=lambda setup, catalog: "what people have allowed",
    documents=(metadata.PROTOCOL,),
    serve=_serve,
    at=_at,
    calls=_calls,
    doors=lambda setup, paths: [Door(name="sign_in", calls=False, path=SignInPaths(paths.root).authorize, open=_open)],
    panel=PANEL,
)
