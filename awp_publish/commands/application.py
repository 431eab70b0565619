"""The application that a command is about, asked without a server."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import cast

from awp_publish.problems import DeclarationError
from awp_publish.protocols import ALL
from awp_publish.protocols.protocol import published
from awp_publish.serve.asgi import AgentPublisher
from awp_publish.serve.http import AsgiApp, Message, Scope
from awp_publish.site import Site


@dataclass(frozen=True, slots=True)
class Published:
    """One document as it is served, with its headers (names in lower case)."""

    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...]

    @property
    def media_type(self) -> str:
        return dict(self.headers).get("content-type", "")

    @property
    def tokens(self) -> int:
        """About how many tokens a model reads: four bytes each."""
        return -(-len(self.body) // 4)


def is_application(target: str) -> bool:
    """Return True if a target of the command line is meant as `module:app`."""
    module, colon, attribute = target.partition(":")
    return bool(colon) and attribute.isidentifier() and not Path(target).exists() and "/" not in module


class Application:
    """The application `module:app`. Raises DeclarationError for what is none."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.app = load(target)

    @cached_property
    def site(self) -> Site:
        """The site that it publishes, frozen. Raises DeclarationError."""
        found = site_of(self.app)
        if found is None:
            raise DeclarationError(
                self.target, "AgentPublisher is not in it.", "Name the application that it was added to."
            )
        get(self.app, "/agent.json")  # the first request publishes the site
        return found

    @cached_property
    def documents(self) -> Mapping[str, Published]:
        """Return the documents that it serves, by path: what every site may have, and what only this one has."""
        paths = [document.path for protocol in ALL for document in protocol.documents]
        if site_of(self.app) is not None:
            paths += [document.path_in(self.site.catalog) for document in published(ALL, self.site.catalog)]
        served: dict[str, Published] = {}
        for path in dict.fromkeys(paths):
            status, headers, body = get_with_headers(self.app, path)
            if status == 200:
                served[path] = Published(path, body, headers)
        return served


def load(target: str) -> AsgiApp:
    """The application that is meant. Raises DeclarationError for what is none."""
    sys.path.insert(0, "")
    module_name, _, attribute = target.partition(":")
    if not attribute:
        raise DeclarationError(target, "names no application.", f"Write module:app, {module_name}:app for instance.")
    module = import_module(module_name)
    found: object = getattr(module, attribute)
    if isinstance(found, Site):
        named = [f"{module_name}:{name}" for name, one in vars(module).items() if site_of(one) is found]
        where = (
            f"Name the application: {named[0]}." if named else "Name the application that AgentPublisher was added to."
        )
        raise DeclarationError(target, "is a Site, and not an application.", where)
    if not callable(found) or isinstance(found, type):
        raise DeclarationError(
            target, f"is no ASGI application: {type(found).__name__}.", "Name the application itself."
        )
    return cast(AsgiApp, found)


def site_of(app: object) -> Site | None:
    """The site that an application publishes: of the middleware around its routes, or added to them."""
    seen: set[int] = set()
    while app is not None and id(app) not in seen:
        seen.add(id(app))
        if isinstance(app, AgentPublisher):
            return app.site
        for one in getattr(app, "user_middleware", ()):
            kwargs, args = getattr(one, "kwargs", {}), getattr(one, "args", ())
            found = kwargs.get("site") or next((given for given in args if isinstance(given, Site)), None)
            if isinstance(found, Site):
                return found
        app = getattr(app, "app", None)
    return None


def get(app: AsgiApp, path: str) -> tuple[int, bytes]:
    """Status and body of one request without a server."""
    status, _, body = get_with_headers(app, path)
    return status, body


def get_with_headers(app: AsgiApp, path: str) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    """The same with the headers, whose names are lower-case."""
    messages: list[Message] = []
    body_is_due, is_answered = iter((True,)), asyncio.Event()

    async def receive() -> Message:
        if next(body_is_due, False):
            return {"type": "http.request", "body": b"", "more_body": False}
        await is_answered.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        messages.append(message)
        if message["type"].endswith(".body") and not message.get("more_body"):
            is_answered.set()

    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [],
        "state": {},
    }

    async def request() -> None:
        await app(scope, receive, send)

    asyncio.run(request())
    fields = messages[0].get("headers", ())
    headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in fields)
    return messages[0]["status"], headers, b"".join(message.get("body", b"") for message in messages)
