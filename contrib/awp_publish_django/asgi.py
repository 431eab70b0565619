"""Django's ASGI application, which also knows the lifespan: servers start and stop our jobs and probes with it.

And it knows WebSockets, at the AWP door and the bridge, whose agents browse the project through the whole of Django's
own handler.

Use it in `asgi.py` in place of `django.core.asgi.get_asgi_application`; `awp-publish worker project.asgi:application`
needs it too.
"""

import asyncio
from typing import cast

from django.core import asgi

from awp_publish.http.body import wait_in_time
from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send, send_reply
from awp_publish.http.position import ENTRANCE
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.problems import BodyTimeout
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
        elif scope["method"] == "POST" and get_publication().publisher.owns(scope):
            await self._take_in_time(scope, receive, send)
        else:
            await self._django(scope, receive, send)

    async def _take_in_time(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Django reads a whole body before any middleware sees its request, so it is timed here."""
        in_time, late = receive_in_time(scope, receive), list[BodyTimeout]()

        async def receive_or_leave() -> Message:
            try:
                return await in_time()
            except BodyTimeout as problem:
                late.append(problem)
                return {"type": "http.disconnect"}  # which has Django clear up, and answer nothing

        await self._django(scope, receive_or_leave, send)
        if late:
            catalog = get_publication().site.catalog
            renderer = ProblemRenderer(catalog)
            await send_reply(renderer.reply(late[0], renderer.instance_of(scope)), send)


def receive_in_time(scope: Scope, receive: Receive) -> Receive:
    """Return a `receive` that raises BodyTimeout if the body arrives too slowly."""
    begun, size, is_whole = asyncio.get_running_loop().time(), 0, False

    async def receive_next() -> Message:
        nonlocal size, is_whole
        if is_whole:
            return await receive()
        steps = receive().__await__()
        try:
            pending = next(steps)
        except StopIteration as there:
            message: Message = there.value
        else:
            message = await wait_in_time(scope, steps, pending, begun, size)
        size += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        return message

    return receive_next


def get_asgi_application() -> AsgiApp:
    """The project's ASGI application. Raises what Django raises for a project that is not set up."""
    return Application(cast(AsgiApp, asgi.get_asgi_application()))


def __getattr__(name: str) -> object:
    """The project's publisher, for commands that take a module:app. Made when it is asked for, as settings are."""
    if name == "publisher":
        return get_publication().publisher
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
