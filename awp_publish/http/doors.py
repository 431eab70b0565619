"""The caller of a request to a door that is not a call, and the sessions of callers."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from awp_publish.calls.call import Principal
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Fields, Scope, read_fields
from awp_publish.model import Action
from awp_publish.plugin import Context

Identify: TypeAlias = Callable[[Scope, Fields], Awaitable[Principal | None]]
"""Returns the principal of a request, None if it is anonymous. Raises a Problem for invalid credentials."""


def session_ids_of(context: Context) -> Any:
    """Return the sessions of callers without a cookie jar, None if the site has none."""
    calls = context.ask("sessions")
    return calls.sessions if calls is not None else None


def identify_caller(context: Context, action: Action | None = None) -> Identify:
    """Return a function that authenticates requests, with the cookies of their sessions.

    If an `action` is given, its requirements (authentication, scopes) apply.
    """
    calls, proxies = context.ask("sessions"), context.admission.trusted_proxies
    needed, scopes = (False, ()) if action is None else (action.auth_required, action.scopes)
    gate = context.guards.identify(required=needed, scopes=scopes)

    async def identify(scope: Scope, fields: Fields) -> Principal | None:
        if calls is not None:
            scope = await calls.visit(scope)
            fields = read_fields(scope["headers"])
        return await gate(read_credentials(scope, fields, proxies))

    return identify
