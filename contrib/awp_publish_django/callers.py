"""The caller as Django's own middleware knows them: the session and the user, read where queries are allowed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.apps import apps
from django.http import HttpRequest

from awp_publish.http.exchange import Scope

if TYPE_CHECKING:
    from awp_publish_django.publication import Publication


@dataclass(frozen=True, slots=True)
class Permissions:
    """A user's permissions as scopes: "shop.add_order"."""

    scopes: frozenset[str]


def identify(publication: "Publication", request: HttpRequest) -> Scope:
    """The members `session`, `user` and `auth` of the scope, as far as the site needs them. May block."""
    members: Scope = {}
    if not publication.authenticates:
        return members
    session = getattr(request, "session", None)
    if session is not None:
        members["session"] = dict(session.items())
    user = getattr(request, "user", None)
    if user is not None:
        members["user"] = user
        if user.is_authenticated and publication.uses_scopes:
            members["auth"] = Permissions(frozenset(user.get_all_permissions()))
    return members


def make_stranger() -> object:
    """The anonymous user; None in a project without users."""
    if not apps.is_installed("django.contrib.auth"):
        return None
    from django.contrib.auth.models import AnonymousUser

    return AnonymousUser()
