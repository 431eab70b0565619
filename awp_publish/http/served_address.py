"""Everything that one public address of the site serves."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from awp_publish.browsing.addresses import REDIRECTS
from awp_publish.calls.invoke import Invoker
from awp_publish.declare.composition import called
from awp_publish.declare.discover.routes import has_sign_in_name
from awp_publish.http.documents import Prepared
from awp_publish.http.exchange import Message, Receive, Scope, Send, send_reply, without_content
from awp_publish.http.redirects import location_of
from awp_publish.model import Action, Catalog
from awp_publish.plugin import Answer, AnswerRest, Context, Door, Endpoints, Find, Running
from awp_publish.problems import DeclarationError

_PAGE: Final = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype html|html)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAddress:
    """What one address serves. It is replaced as a whole, so that requests see one state.

    `actions` are those for which the doors are open, `doors` what all of them answer. `fallbacks` are documents that
    are served if the application has none. `around` is what all other requests to the application pass. `contexts` has
    what each plug-in has at this address, by its name.
    """

    host: str
    actions: tuple[Action, ...]
    documents: Mapping[str, Prepared]
    fallbacks: Mapping[str, Prepared]
    doors: Endpoints
    running: tuple[Callable[[], Running], ...]
    contexts: Mapping[str, Context]
    invoker: Invoker
    app: Answer
    around: Callable[[Answer], Answer]
    forward: Answer = field(init=False)
    answers: Mapping[str, Prepared | Answer] = field(init=False)
    prefixes: tuple[str, ...] = field(init=False)
    """The prefixes of all our paths that are not fixed."""

    def __post_init__(self) -> None:
        ours = {path: self.around(partial(_fall_back, self.app, own)) for path, own in self.fallbacks.items()}
        # One dict lookup per request.
        object.__setattr__(self, "answers", {**ours, **self.doors.exact, **self.documents})
        object.__setattr__(self, "forward", self.around(self.app))
        object.__setattr__(self, "prefixes", (*self.doors.find, *self.doors.below))

    def find(self, scope: Scope, path: str) -> Answer | None:
        """Return the door for a path that starts with one of `prefixes`, None if the path is the application's."""
        for head, answer in self.doors.below.items():
            if path.startswith(head):
                rest = path.removeprefix(head)
                return lambda scope, receive, send: answer(scope, receive, send, rest)
        matches = (find(scope, path) for head, find in self.doors.find.items() if path.startswith(head))
        return next((match for match in matches if match is not None), None)

    def owns(self, scope: Scope, path: str) -> bool:
        """Return True if a request is answered here and not by the application."""
        is_fixed = path in self.documents or path in self.doors.exact
        return is_fixed or (path.startswith(self.prefixes) and self.find(scope, path) is not None)


def is_missing(status: int, location: str, body: bytes) -> bool:
    """Return True if an answer is no file of the application's own: 404, a redirect to sign in, or any path's page."""
    is_page = status == 200 and _PAGE.match(body) is not None
    return is_page or status == 404 or (status in REDIRECTS and has_sign_in_name(location.partition("?")[0]))


async def _fall_back(app: Answer, prepared: Prepared, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass a request to the application, and serve our document if it has none."""
    held: Message | None = None
    is_ours = False

    async def watch(message: Message) -> None:
        nonlocal held, is_ours
        if message["type"] == "http.response.start":
            held = message  # until its body begins
            return
        if held is not None:
            start, held = held, None
            is_ours = is_missing(start["status"], location_of(start.get("headers", ())), message.get("body", b""))
            if not is_ours:
                await send(start)
        if not is_ours:
            await send(message)

    method = "GET" if scope["method"] == "HEAD" else scope["method"]
    plain = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
    send = send if method == scope["method"] else without_content(send)
    await app({**scope, "method": method, "headers": plain, "extensions": {}}, receive, watch)
    if is_ours:
        await send_reply(prepared.answer(scope["method"], scope["headers"]), send)


def open_all(doors: Iterable[tuple[Door, Context]]) -> tuple[Endpoints, tuple[Callable[[], Running], ...]]:
    """Open doors, each at its context. Return what they answer together, and what runs them.

    Raises DeclarationError if two of them answer at the same path.
    """
    exact, sockets = dict[str, Answer](), dict[str, Answer]()
    below, find = dict[str, AnswerRest](), dict[str, Find]()
    running, claims = list[Callable[[], Running]](), dict[str, str]()
    for door, context in doors:
        hook, seen = f'open of the door "{door.name}"', context.at_door(door)
        opened = called(context.setup.plugin, hook, Endpoints, seen, function=door.open)
        for path in {*opened.exact, *opened.claims}:
            if claims.setdefault(path, door.name) != door.name:
                raise DeclarationError(
                    f'door "{door.name}"',
                    f"would answer at {path}, which is another address of ours.",
                    "Give the agent another id, or our addresses other paths: Site(paths=...).",
                )
        exact |= opened.exact
        below |= opened.below
        find |= opened.find
        sockets |= opened.sockets
        running += [opened.running] if opened.running is not None else []
    return Endpoints(exact=exact, below=below, find=find, sockets=sockets), tuple(running)


def host_of(catalog: Catalog) -> str:
    """Return the host of a catalog's address, with its port if it is not the usual one."""
    return catalog.url.split("://", 1)[1].split("/", 1)[0].lower()
