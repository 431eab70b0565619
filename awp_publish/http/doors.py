"""The interface of live doors: optional doors, each in its own module, opened only if the site enables them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from awp_publish.calls.call import Principal
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import AsgiApp, Fields, Receive, Scope, Send, read_fields
from awp_publish.model import Action, Catalog

if TYPE_CHECKING:
    from awp_publish.calls.guard import Guards
    from awp_publish.calls.invoke import Invoker
    from awp_publish.declare.discover import Route
    from awp_publish.declare.settings import SiteSettings
    from awp_publish.declare.site import Site
    from awp_publish.http.documents import Prepared
    from awp_publish.http.endpoint import Admission
    from awp_publish.plugins.events.webhooks import Webhooks
    from awp_publish.plugins.jobs.door import Background
    from awp_publish.plugins.pages.reader import PageReader
    from awp_publish.plugins.sessions.cookies import CookieSessions, SessionCalls

Answer: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

AnswerRest: TypeAlias = Callable[[Scope, Receive, Send, str], Awaitable[None]]
"""A door that receives the rest of the path below its prefix."""

Identify: TypeAlias = Callable[[Scope, Fields], Awaitable[Principal | None]]
"""Returns the principal of a request, None if it is anonymous. Raises a Problem for invalid credentials."""

ENTRANCE: Final = "awp_publish.entrance"
"""The scope member in which the adapter of another framework gives its outermost application."""

Entrance: TypeAlias = Callable[[Scope], AsgiApp]
"""Returns the outermost application, including all middleware, for the scope of an incoming connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorContext:
    """What the doors of one public address of a site share. `catalog` has the actions that are offered at the door.

    `published` returns the catalog as it was last published, with its current status. `keys` are the signing keys, the
    newest first. `pages` is None if pages are served as HTML only. `sessions` stores the sessions of callers without a
    cookie jar, and `carry` runs calls in them; both are None if the site has no sessions. The overview also uses
    `site`, `documents` (ours, and those served only if the application has none) and `routes`.
    """

    settings: "SiteSettings"
    catalog: Catalog
    published: Callable[[], Catalog]
    invoker: "Invoker"
    guards: "Guards"
    keys: tuple[str, ...]
    admission: "Admission"
    background: "Background | None"
    entrance: Entrance
    pages: "PageReader | None"
    site: "Site"
    documents: "Callable[[], tuple[Mapping[str, Prepared], Mapping[str, Prepared]]]"
    routes: "Callable[[], Sequence[Route]]"
    sessions: "CookieSessions | None" = None
    carry: "SessionCalls | None" = None
    webhooks: "Webhooks | None" = None


@dataclass(frozen=True, slots=True)
class LiveDoor:
    """A door's endpoints by path, and the context that it needs while the application runs.

    `exact` has fixed paths, `below` prefixes of paths, `sockets` paths of WebSockets. Without a lifespan, `running` is
    never entered, and the door has to work without it.
    """

    exact: Mapping[str, Answer]
    below: Mapping[str, AnswerRest] = field(default_factory=dict)
    running: Callable[[], AbstractAsyncContextManager[None]] | None = None
    sockets: Mapping[str, Answer] = field(default_factory=dict)


def identify_caller(context: DoorContext, action: Action | None = None) -> Identify:
    """Return a function that authenticates requests, with the cookies of their sessions.

    If an `action` is given, its requirements (authentication, scopes) apply.
    """
    carry, proxies = context.carry, context.admission.trusted_proxies
    needed, scopes = (False, ()) if action is None else (action.auth_required, action.scopes)
    gate = context.guards.identify(required=needed, scopes=scopes)

    async def identify(scope: Scope, fields: Fields) -> Principal | None:
        if carry is not None:
            scope = await carry.visit(scope)
            fields = read_fields(scope["headers"])
        return await gate(read_credentials(scope, fields, proxies))

    return identify
