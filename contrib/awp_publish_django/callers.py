"""Who calls, as Django's own middleware knows it: the session and the user, read where the database may be asked."""

from dataclasses import dataclass

from django.http import HttpRequest

from awp_publish.serve.http import Scope
from awp_publish_django.publication import Publication


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a user may do, as scopes: "shop.add_order"."""

    scopes: frozenset[str]


def identify(publication: Publication, request: HttpRequest) -> Scope:
    """The members `session`, `user` and `auth` of the scope, as far as anybody will ask for them. May block."""
    found: Scope = {}
    if not publication.knows_callers:
        return found
    session = getattr(request, "session", None)
    if session is not None:
        found["session"] = dict(session.items())
    user = getattr(request, "user", None)
    if user is not None:
        found["user"] = user
        if user.is_authenticated and publication.asks_for_scopes:
            found["auth"] = Permissions(frozenset(user.get_all_permissions()))
    return found
