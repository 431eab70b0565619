"""Authentication classes of Django REST framework, as ways to identify callers."""

import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from django.http import HttpRequest

from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.callers import Scheme
from awp_publish.calls.challenges import COOKIE
from awp_publish.calls.threads import run_in_thread
from awp_publish.problems import InvalidCredentials
from awp_publish_django.callers import make_stranger
from awp_publish_django.inner import exempt_from_csrf


@dataclass(frozen=True, slots=True)
class RestAuthentication:
    """Authenticates callers with an authentication class of Django REST framework.

    Scopes are the user's permissions.
    """

    authentication: Any
    scheme: "Scheme | None"
    method: str
    challenge: str
    people: str = "application-user"
    kind: ClassVar[str] = "application-user"
    """The project's users, as those whom its middleware knows: both are named by their primary key."""

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """The caller, None if there are no credentials of this kind. Raises InvalidCredentials."""
        return await run_in_thread(lambda: self._ask(credentials))

    def _ask(self, credentials: Credentials) -> Principal | None:
        from rest_framework.exceptions import APIException
        from rest_framework.request import Request

        request = HttpRequest()
        request.method = "GET"
        request.META = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in credentials.headers.items()}
        request.META["REMOTE_ADDR"] = credentials.address
        request.user = credentials.user or make_stranger()  # type: ignore[assignment]
        request.session = dict(credentials.session or {})  # type: ignore[assignment]
        exempt_from_csrf(request)
        try:
            authenticated = self.authentication.authenticate(Request(request))
        except APIException as error:
            raise InvalidCredentials(str(error.detail)) from error
        if authenticated is None or not getattr(authenticated[0], "is_authenticated", False):
            return None
        user = authenticated[0]
        scopes = user.get_all_permissions() if hasattr(user, "get_all_permissions") else ()
        return Principal(str(getattr(user, "pk", None) or user), frozenset(scopes), issuer=self.people)


def adapt_rest_authentication(declared: object) -> RestAuthentication | None:
    """Adapt an authentication class of REST framework, or an instance of one. None for anything else."""
    if "rest_framework.authentication" not in sys.modules:
        return None
    from rest_framework import authentication as known

    kind = declared if isinstance(declared, type) else type(declared)
    if not issubclass(kind, known.BaseAuthentication):
        return None
    authentication: Any = kind() if isinstance(declared, type) else declared
    with suppress(Exception):  # it needs something of a real request
        challenge = authentication.authenticate_header(HttpRequest()) or ""
        if isinstance(authentication, known.SessionAuthentication):
            return RestAuthentication(authentication, None, "session", COOKIE)
        return RestAuthentication(
            authentication, "bearer" if challenge.lower().startswith("bearer") else None, "bearer", challenge
        )
    return RestAuthentication(authentication, None, "bearer", "")
