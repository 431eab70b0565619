"""Sign-in at one public address of a site: what its endpoints, its pages and its calls share."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from awp_publish.browsing.addresses import WebAddress, parse_address
from awp_publish.calls.call import Principal
from awp_publish.http.client_address import client_address
from awp_publish.http.exchange import Scope
from awp_publish.http.page_request import PageRequest
from awp_publish.http.reentry import Reentry
from awp_publish.http.request import DoorRequest
from awp_publish.model import Action, Catalog
from awp_publish.plugin import Context
from awp_publish.plugins.sign_in.clients import KnownClient
from awp_publish.plugins.sign_in.errors import OAuthError
from awp_publish.plugins.sign_in.forms import Forms
from awp_publish.plugins.sign_in.grants import Grant
from awp_publish.plugins.sign_in.options import Person
from awp_publish.plugins.sign_in.pages import SignInPages
from awp_publish.plugins.sign_in.paths import SignInPaths
from awp_publish.plugins.sign_in.people import People
from awp_publish.plugins.sign_in.redirects import with_parameters
from awp_publish.plugins.sign_in.site import SignInSite

PENDING_SECONDS: Final = 600.0
"""Seconds within which a person has to sign in and to answer."""

_HEADERS_OF_CALLER: Final = frozenset({b"authorization", b"cookie"})
_MEMBERS_OF_CALLER: Final = ("session", "user", "auth")
"""Headers with which a caller identifies itself, and members of a scope in which middleware says who it is."""

_OF_OPENID: Final = frozenset({"openid", "profile", "email", "address", "phone", "offline_access"})
"""Scopes of OpenID Connect that some clients ask every server for. They are left out (RFC 6749 section 3.3)."""

MAX_ACTIONS: Final = 8
"""Actions that are named beside a scope; of more, the rest are counted."""


class SignInAt:
    """Sign-in at one address."""

    def __init__(self, context: Context) -> None:
        state: SignInSite = context.state
        self.state = state
        state.still_knows = state.still_knows or self.still_knows
        self.options, self.grants, self.clients = state.options, state.grants, state.clients
        self.permissions = state.permissions
        self.catalog: Catalog = context.catalog
        self.issuer = context.catalog.url
        """The issuer identifier (RFC 8414 section 2)."""
        self._canonical = replace(context.catalog, url=context.settings.urls[0])
        self.admission = context.admission
        self.people: People = context.service
        self.paths = SignInPaths(context.catalog.paths.root)
        token = context.catalog.absolute(self.paths.token)
        self.audiences = (self.issuer, f"{self.issuer}/", token)
        """What assertions of clients may be for (RFC 7523 section 3). The MCP SDK ends the issuer with a slash."""
        self.pages = SignInPages(state.options, context.catalog, self.people.framework)
        self.pending = state.tokens("request", PENDING_SECONDS)
        self.forms = Forms(state.tokens("form", PENDING_SECONDS), self.here(self.paths.root), context.catalog.url)
        self.store = context.site.store
        self.reentry = Reentry(context.application.called)
        self.home = self.address_of_cookies("/")
        self.resources = frozenset(_resources(context))

    def here(self, path: str) -> str:
        """Return a path below the site as browsers have to ask for it."""
        return self.catalog.prefix + path if path.startswith("/") else path

    def address_of_cookies(self, path: str) -> WebAddress:
        """Return the address to which a grant's cookies for a path belong: the same, wherever the site is called."""
        return parse_address(self._canonical.absolute(path))

    def by_way_of(self, page: str, path: str) -> str:
        """Return the address of a page of the site that leads to a path of ours: to an address, if it is elsewhere."""
        back = self.here(path) if page.startswith("/") else self.catalog.absolute(path)
        return with_parameters(self.here(page), **{self.options.next: back})

    def address_of(self, request: DoorRequest) -> str:
        return client_address(request.scope, request.fields, self.admission.trusted_proxies)

    def check_resources(self, resources: Sequence[str]) -> None:
        """Raise OAuthError unless all are addresses of this site or of its doors (RFC 8707 section 2).

        Scheme and host are compared without case, as MCP's clients may have them from a person.
        """
        for resource in resources:
            scheme, _, rest = resource.partition("://")
            host, slash, path = rest.partition("/")
            if f"{scheme.lower()}://{host.lower()}{slash}{path}".rstrip("/") not in self.resources:
                raise OAuthError("invalid_target", "resource must be the address of this site, or of one of its doors.")

    def vouches_for(self, client: KnownClient) -> bool:
        """Return True if the owner of the site knows a client, or the host where it is from."""
        return client.origin == "named" or (client.origin == "document" and bool(self.options.trusted_hosts))

    def scopes_of(self, requested: str) -> tuple[str, ...] | None:
        """Return the scopes of a request that people may allow, all if it names none; None if it names no such."""
        allowed = self.options.scopes
        names = [name for name in dict.fromkeys(requested.split()) if name in allowed or name not in _OF_OPENID]
        if not names:
            return tuple(allowed)
        scopes = tuple(name for name in names if name in allowed)
        return scopes or (() if self.permissions.issuperset(names) else None)

    def described(self, scopes: Sequence[str]) -> list[dict[str, str]]:
        """Return scopes in the site's words, each with the actions that it opens."""
        visible = self.catalog.actions
        return [
            {
                "name": name,
                "words": self.options.scopes.get(name, name),
                "actions": _names_of([action for action in visible if name in action.scopes]),
            }
            for name in scopes
        ]

    def guarded(self) -> str:
        """Return the names of the actions that need a person."""
        return _names_of([action for action in self.catalog.actions if action.auth_required])

    async def recognize(self, scope: Scope, grant: Grant, address: WebAddress) -> Scope | None:
        """Return a request's scope as its grant's person would have sent it; None if that person is signed out.

        Asks the site, and raises what it raises.
        """
        own = [pair for pair in scope["headers"] if pair[0] not in _HEADERS_OF_CALLER]
        inner = {**scope}
        for member in _MEMBERS_OF_CALLER:
            inner.pop(member, None)
        if self.options.as_user is not None:
            headers = await self.people.headers_of(Person(Principal.of_key(grant.person or "").id, grant.person_name))
            if headers is None:
                return None
            names = {name.lower().encode("latin-1") for name in headers}
            added = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
            own = [*(pair for pair in own if pair[0] not in names), *added]
        if (self.options.as_user is None or b"cookie" not in names) and (cookies := grant.cookie_header(address)):
            own.append((b"cookie", cookies))
        inner["headers"] = own
        return inner

    async def is_signed_in(self, scope: Scope, grant: Grant) -> bool:
        """Return True if the site still knows the person of a grant. `scope` is any request with their cookies."""
        if grant.person is None or self.options.as_user is not None:
            return True
        signed = await self.people.find(scope)
        return signed is not None and signed.principal.key == grant.person

    async def still_knows(self, grant: Grant, address: str) -> bool:
        """Return True if the site still knows the person of a grant, whose token was shown by a client's address."""
        parts = urlsplit(self.catalog.url)
        request = PageRequest(parts, b"/", b"", ((b"host", parts.netloc.encode()),))
        scope = await self.recognize(request.scope({"path": "/", "client": (address, 0)}), grant, self.home)
        return scope is not None and await self.is_signed_in(await self.reentry.see(scope), grant)

    async def is_person_of(self, scope: Scope, grant: Grant) -> bool:
        """Return True if the person of a grant sends the request with this scope, which has passed all middleware."""
        signed = await self.people.recognize(scope)
        return signed is not None and signed.principal.key == grant.person


def _names_of(actions: Sequence[Action]) -> str:
    names = [action.id.replace("_", " ") for action in actions]
    rest = len(names) - MAX_ACTIONS
    return ", ".join(names[:MAX_ACTIONS]) + (f" and {rest} more" if rest > 0 else "")


def _resources(context: Context) -> set[str]:
    """Return the resources for which tokens are asked (RFC 8707): the site and its doors, at each of its addresses."""
    resources: set[str] = set()
    for url in context.settings.urls:
        catalog = replace(context.site.catalog, url=url)
        doors = [catalog.absolute(door.path) for door in catalog.doors if "{" not in door.path]
        resources |= {url, *doors}
    return resources
