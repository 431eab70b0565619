"""Routes that only calls of actions reach."""

from fastapi.routing import APIRoute
from starlette.datastructures import URLPath
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

from awp_publish.model import ROUTE_CALL


class HiddenRoute(BaseRoute):
    """A route for calls of one action, which no other request reaches, whatever its path."""

    awp_is_hidden = True

    def __init__(self, inner: APIRoute) -> None:
        self.inner = inner

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match only calls that are meant for this very route."""
        if getattr(scope.get(ROUTE_CALL), "hidden", None) is not self.inner.endpoint:
            return Match.NONE, {}
        match, child = self.inner.matches(scope)
        if match is not Match.FULL:  # that of a function has no parameters, so its path does not matter
            _, child = self.inner.matches({**scope, "path": self.inner.path, "root_path": ""})
        return Match.FULL, child

    def url_path_for(self, name: str, /, **path_params: object) -> URLPath:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.inner.handle(scope, receive, send)
