"""Sign-in at one public address of a site: what its endpoints, its pages and its calls share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from awp_publish.browsing.addresses import WebAddress, parse_address
from awp_publish.calls.call import Principal
from awp_publish.calls.callers import KeyProofs
from awp_publish.calls.tokens import Expired, NotOurs, Tokens
from awp_publish.http.admission import read_admission_of
from awp_publish.http.client_address import client_address
from awp_publish.http.exchange import Scope
from awp_publish.http.page_request import PageRequest
from awp_publish.http.reentry import Reentry
from awp_publish.http.request import DoorRequest
from awp_publish.model import Action, Catalog
from awp_publish.plugin import Context, Serving, Setup
from awp_publish.plugins.sign_in.clients import Clients
from awp_publish.plugins.sign_in.grants import MAX_FOUND, Access, Grant, Grants
from awp_publish.plugins.sign_in.options import Person, SignIn
from awp_publish.plugins.sign_in.pages import SignInPages
from awp_publish.plugins.sign_in.paths import SignInPaths
from awp_publish.plugins.sign_in.people import Framework, People, Visitor, framework_of
from awp_publish.plugins.sign_in.redirects import with_parameters
from awp_publish.stores.values import change_value

PENDING_SECONDS: Final = 600.0
"""Seconds within which a person has to sign in and to answer."""

COOKIE: Final = "awp_sign_in"
"""The cookie to which the forms of our pages are bound."""


_HEADERS_OF_CALLER: Final = frozenset({b"authorization", b"cookie"})
_MEMBERS_OF_CALLER: Final = ("session", "user", "auth")
"""Headers with which a caller identifies itself, and members of a scope in which middleware says who it is."""

CLIENT: Final = "client:"
"""What stands before the id of a client that acts for itself."""

MAX_ACTIONS: Final = 8
"""Actions that are named beside a scope; of more, the rest are counted."""


class SignInSite:
    """Sign-in of one site, from its declaration on."""

    def __init__(self, setup: Setup) -> None:
        self.options: SignIn = setup.options
        self._site = setup.site
        self.at: SignInAt | None = None
        """Sign-in at the first address, once the site is published."""

    @property
    def framework(self) -> Framework:
        """The framework's knowledge of the site's users."""
        return framework_of(self._site)

    @property
    def permissions(self) -> frozenset[str]:
        """The scopes of actions that every token stands for, because the site alone decides whether they hold."""
        if self.options.scopes:
            return frozenset()
        needed = (scope for action in self._site.catalog.actions for scope in action.scopes)
        return frozenset(filter(self.framework.is_permission, needed))

    @property
    def proofs(self) -> KeyProofs | None:
        """The checker of proofs of clients' keys, None where that is not possible."""
        identity = self._site.ask("identity")
        return identity.proofs if identity is not None else None

    @cached_property
    def principal_of(self) -> Callable[[Access], Principal]:
        """Return the caller with an access token, with what a person has allowed as its scopes."""
        return lru_cache(MAX_FOUND)(self._principal_of)

    def _principal_of(self, access: Access) -> Principal:
        grant, granted = access.grant, access.scopes
        claims: dict[str, object] = {"client_id": grant.client, "exp": access.until}
        if grant.key:
            claims["cnf"] = {"jkt": grant.key}
        if grant.person is None:
            return Principal(CLIENT + grant.client, granted, claims, issuer=CLIENT)
        granted |= self.permissions
        claims["scope"] = " ".join(sorted(granted))
        issuer, _, name = grant.person.partition(" ")
        return Principal(name, granted, claims, issuer=issuer)

    def tokens(self, purpose: str, seconds: float = 0.0) -> Tokens:
        """Return what signs for one purpose with the site's keys."""
        return Tokens(self._site.keys, f"sign-in {purpose}:{self._site.settings.namespace}", seconds)

    @cached_property
    def grants(self) -> Grants:
        """The grants that people have made."""
        return Grants(self._site.store, self.tokens("grant"), 60 * self.options.minutes)

    @cached_property
    def clients(self) -> Clients:
        """The clients that may ask for access."""
        return Clients(self.options, self._site.store)

    async def end(self, grant_id: str) -> Grant | None:
        """End a grant and the session that it has, and return it; None if there was none. Raises StoreUnavailable."""
        ended = await self.grants.end(grant_id)
        if ended is not None:
            await self.framework.end_session({cookie.name: cookie.value for cookie in ended.cookies})
        return ended

    async def disconnect(self, grant_id: str) -> Grant | None:
        """End a grant as `end` does, and forget that its client was allowed: it is asked about again."""
        ended = await self.end(grant_id)
        if ended is not None and ended.person is not None:

            async def forget(_: bytes | None) -> None:
                return None

            await change_value(self._site.store, consent_key(ended.person, ended.client), forget, 0.0)
        return ended


def make_people(serving: Serving) -> People:
    """Make what asks the application who is signed in."""
    state: SignInSite = serving.state
    catalog = serving.site.catalog
    proxies = read_admission_of(serving.settings).trusted_proxies
    return People(serving, state.options, proxies, SignInPaths(catalog.paths.root).person)


class SignInAt:
    """Sign-in at one address."""

    def __init__(self, context: Context) -> None:
        state: SignInSite = context.state
        self.state = state
        state.at = state.at or self
        self.options, self.grants, self.clients = state.options, state.grants, state.clients
        self.permissions = state.permissions
        self.catalog: Catalog = context.catalog
        self.issuer = context.catalog.url
        """The issuer identifier (RFC 8414 section 2)."""
        self._canonical = replace(context.catalog, url=context.settings.urls[0])
        self.admission = context.admission
        self.people: People = context.service
        self.paths = SignInPaths(context.catalog.paths.root)
        self.pages = SignInPages(state.options, context.catalog, self.people.framework)
        self.pending = state.tokens("request", PENDING_SECONDS)
        self.forms = state.tokens("form", PENDING_SECONDS)
        self.store = context.site.store
        self.reentry = Reentry(context.outside)
        self.home = self.address_of_cookies("/")
        self.is_secure = context.catalog.url.startswith("https:")
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
        """Return the address of a request's client."""
        return client_address(request.scope, request.fields, self.admission.trusted_proxies)

    def scopes_of(self, wanted: str) -> tuple[str, ...] | None:
        """Return the scopes of a request that people may allow, all if it names none; None if it names no such."""
        known = self.options.scopes
        names = [name for name in dict.fromkeys(wanted.split()) if name != "offline_access"]
        if not names:
            return tuple(known)
        found = tuple(name for name in names if name in known)
        return found or (() if self.permissions.issuperset(names) else None)

    def described(self, scopes: Sequence[str]) -> list[dict[str, str]]:
        """Return scopes in the site's words, each with the actions that it opens."""
        shown = self.catalog.actions
        return [
            {
                "name": name,
                "words": self.options.scopes.get(name, name),
                "actions": _named([action for action in shown if name in action.scopes]),
            }
            for name in scopes
        ]

    def guarded(self) -> str:
        """Return the names of the actions that need a person."""
        return _named([action for action in self.catalog.actions if action.auth_required])

    async def recognize(self, scope: Scope, grant: Grant, address: WebAddress) -> Scope | None:
        """Return a request's scope as its grant's person would have sent it; None if that person is signed out.

        Asks the site, and raises what it raises.
        """
        own = [pair for pair in scope["headers"] if pair[0] not in _HEADERS_OF_CALLER]
        inner = {**scope}
        for member in _MEMBERS_OF_CALLER:
            inner.pop(member, None)
        if self.options.as_user is not None:
            headers = await self.people.headers_of(Person(_id_of(grant), grant.person_name))
            if headers is None:
                return None
            names = {name.lower().encode("latin-1") for name in headers}
            added = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
            inner["headers"] = [*(pair for pair in own if pair[0] not in names), *added]
        else:
            own.append((b"cookie", grant.cookie_header(address)))
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
        asked = PageRequest(parts, b"/", b"", ((b"host", parts.netloc.encode()),))
        scope = await self.recognize(asked.scope({"path": "/", "client": (address, 0)}), grant, self.home)
        return scope is not None and await self.is_signed_in(await self.reentry.see(scope), grant)

    async def is_person_of(self, scope: Scope, grant: Grant) -> bool:
        """Return True if the person of a grant sends the request with this scope, which has passed all middleware."""
        signed = await self.people.recognize(scope)
        return signed is not None and signed.principal.key == grant.person

    async def end(self, grant: Grant) -> None:
        """End a grant, and the session that it has."""
        await self.state.end(grant.id)

    def form_token(self, purpose: str, signed: Visitor, nonce: str) -> str:
        """Return the token of a form: for one person, one purpose and one browser."""
        return self.forms.write({"f": digest(purpose), "p": signed.principal.key, "n": digest(nonce)})[0]

    def is_form_of(self, token: str, purpose: str, signed: Visitor, nonce: str) -> bool:
        """Return True if a form was made for this person, purpose and browser."""
        facts = read_signed(self.forms, token)
        expected = {"f": digest(purpose), "p": signed.principal.key, "n": digest(nonce)}
        return bool(nonce) and facts is not None and all(facts.get(name) == value for name, value in expected.items())

    def cookie(self, nonce: str) -> tuple[bytes, bytes]:
        """Return the header that sets our cookie."""
        secure = "; Secure" if self.is_secure else ""
        path = self.here(self.catalog.paths.root)
        return (b"set-cookie", f"{COOKIE}={nonce}; Path={path}; HttpOnly; SameSite=Lax{secure}".encode("latin-1"))


def read_signed(tokens: Tokens, token: str) -> Mapping[str, Any] | None:
    """Return the facts of a signed text, None if it is not ours or is over."""
    try:
        return tokens.read(token)
    except (NotOurs, Expired):
        return None


def consent_key(person: str, client: str) -> str:
    """Return the key under which the store has what a person has allowed a client."""
    named = f"{person}\n{client}"
    return f"sign-in:consent:{digest(named)}"


def _id_of(grant: Grant) -> str:
    return (grant.person or "").partition(" ")[2]


def digest(text: str) -> str:
    """Return a digest of a text, for keys of the store and for what a form is bound to."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _named(actions: Sequence[Action]) -> str:
    names = [action.id.replace("_", " ") for action in actions]
    rest = len(names) - MAX_ACTIONS
    return ", ".join(names[:MAX_ACTIONS]) + (f" and {rest} more" if rest > 0 else "")


def _resources(context: Context) -> set[str]:
    """Return the resources for which tokens are asked (RFC 8707): the site and its doors, at each of its addresses."""
    found: set[str] = set()
    for url in context.settings.urls:
        catalog = replace(context.site.catalog, url=url)
        doors = [catalog.absolute(door.path) for door in catalog.doors if "{" not in door.path]
        found |= {url, *doors}
    return found
