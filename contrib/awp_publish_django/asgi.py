"""Django's ASGI application, which also knows the lifespan: servers start and stop our jobs and probes with it.

And it knows WebSockets at the AWP door, whose agents browse the project through the whole of Django's own handler.

Use it in `asgi.py` in place of `django.core.asgi.get_asgi_application`; `awp-publish worker project.asgi:application`
needs it too.
"""

from typing import cast

from django.core import asgi

from awp_publish.serve.live import ENTRANCE
from awp_publish.serve.reply import AsgiApp, Receive, Scope, Send
from awp_publish_django.publication import get_publication


class Application:
    """Django's own for all but the lifespan and WebSockets."""

    def __init__(self, django: AsgiApp) -> None:
        self._django = django

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await get_publication().publisher(scope, receive, send)
        elif scope["type"] == "websocket":
            await get_publication().publisher({**scope, ENTRANCE: self._django}, receive, send)
        else:
            await self._django(scope, receive, send)


def get_asgi_application() -> AsgiApp:
    """The project's ASGI application. Raises what Django raises for a project that is not set up."""
    return Application(cast(AsgiApp, asgi.get_asgi_application()))
