"""The contract of live doors: doors that a site asks for, each in its own file, opened only then."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from awp_publish.model import Action, Catalog
from awp_publish.policy.call import Principal
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.http import AsgiApp, Fields, Receive, Scope, Send, read_fields

if TYPE_CHECKING:  # which are made elsewhere, and only handed on
    from awp_publish.discover import Route
    from awp_publish.invoke import Invoker
    from awp_publish.policy.guard import Guards
    from awp_publish.serve.documents import Prepared
    from awp_publish.serve.endpoint import Admission
    from awp_publish.serve.jobs import Background
    from awp_publish.serve.pages import PageReader
    from awp_publish.serve.sessions import CookieSessions, SessionCalls
    from awp_publish.serve.webhooks import Webhooks
    from awp_publish.settings import SiteSettings
    from awp_publish.site import Site

Answer: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

AnswerRest: TypeAlias = Callable[[Scope, Receive, Send, str], Awaitable[None]]
"""A door that is given the rest of its path."""

Identify: TypeAlias = Callable[[Scope, Fields], Awaitable[Principal | None]]
"""Who makes a request, None for nobody known. Raises a Problem for credentials that are not valid."""

ENTRANCE: Final = "awp_publish.entrance"
"""The member of a scope in which a framework of its own way says where requests come in from outside."""

Entrance: TypeAlias = Callable[[Scope], AsgiApp]
"""The application with all that stands around us, as a connection that has come in to us tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorContext:
    """The parts of the doors of one public address of a site. `catalog` has what is offered at the door.

    `published` is the catalog as it was published last, with what works at the moment. `keys` are what is signed with,
    the newest first. `pages` is None where pages are HTML only. `sessions` and `carry` are there where the site has
    sessions: they keep those of callers without a cookie jar, and have them at hand in a call. For the overview there
    are `site`, its `documents` (those of ours, and those that stand where the application has none) and the `routes`.
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
    """A door's answers, their paths, and what has to run for it while the application runs.

    `exact` are paths known beforehand, `below` beginnings of paths, `sockets` paths of WebSockets. Without a lifespan
    `running` is never entered, and the door has to work all the same.
    """

    exact: Mapping[str, Answer]
    below: Mapping[str, AnswerRest] = field(default_factory=dict)
    running: Callable[[], AbstractAsyncContextManager[None]] | None = None
    sockets: Mapping[str, Answer] = field(default_factory=dict)


def identify_caller(context: DoorContext, action: Action | None = None) -> Identify:
    """Return what tells who makes a request, with the cookies of the session that it shows.

    Of an `action` it is told what the action asks its callers for.
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
