"""Commands about an application, which is called without a server: init, show, export, check, call."""

import asyncio
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from inspect import signature
from pathlib import Path
from types import FunctionType
from typing import Final, cast
from urllib.parse import urlsplit

from awp_publish.declare.site import Site
from awp_publish.documents.protocol import published
from awp_publish.http.asgi import sites_of
from awp_publish.http.exchange import AsgiApp
from awp_publish.http.page_request import PageExchange, PageRequest
from awp_publish.http.running import INSPECTED, running
from awp_publish.plugin import known_protocols
from awp_publish.problems import DeclarationError

CDN_HEADERS: Final = frozenset(("content-length", "content-encoding", "date", "etag", "last-modified", "vary"))
"""Headers that a CDN generates itself."""


@dataclass(frozen=True, slots=True)
class Published:
    """One document as served, with its headers (names in lower case)."""

    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...]

    @property
    def media_type(self) -> str:
        return dict(self.headers).get("content-type", "")

    @property
    def tokens(self) -> int:
        """An estimate of its tokens, of four bytes each."""
        return -(-len(self.body) // 4)


class Application:
    """The application `module:app`. Raises DeclarationError if there is none."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.app = load(target)

    @property
    def declared(self) -> Site:
        """The site that it publishes. Raises DeclarationError."""
        site = site_of(self.app)
        if site is None:
            remedy = "Name the application that it was added to."
            raise DeclarationError(self.target, "has no AgentPublisher.", remedy)
        return site

    @cached_property
    def site(self) -> Site:
        """The same, frozen. Raises DeclarationError, StartFailed."""
        assert self.documents is not None  # the first request publishes the site
        return self.declared

    @cached_property
    def documents(self) -> Mapping[str, Published]:
        """The documents that it serves, by path, those of its own paths included, without the pages of problem types.

        Raises DeclarationError, StartFailed.
        """

        def paths() -> Iterable[str]:
            yield from (document.path for protocol in known_protocols() for document in protocol.documents)
            if (site := site_of(self.app)) is not None:
                catalog = site.catalog
                published_paths = (document.path_in(catalog) for document in published(known_protocols(), catalog))
                yield from (path for path in published_paths if not path.startswith(catalog.paths.problems))

        return {path: document for path, (status, document) in self.read(paths).items() if status == 200}

    def read(self, paths: Callable[[], Iterable[str]]) -> Mapping[str, tuple[int, Published]]:
        """Return status and answer of GET requests, all made while the application runs.

        `paths` is called once the site is published. Raises DeclarationError if the application fails, and StartFailed.
        """

        async def read() -> dict[str, tuple[int, Published]]:
            async with running(self.app, {INSPECTED: True}) as state:
                await self._get("/agent.json", state)  # without a lifespan, the first request publishes the site
                return {path: await self._get(path, state) for path in dict.fromkeys(paths())}

        return asyncio.run(read())

    async def _get(self, path: str, state: Mapping[str, object]) -> tuple[int, Published]:
        inside = PageRequest(urlsplit("http://localhost"), path.encode(), b"", (), state=state)
        try:
            answer = await PageExchange().run(self.app, inside.scope({"path": "/"}))
        except DeclarationError:
            raise
        except Exception as error:
            raise DeclarationError(self.target, f"fails at GET {path}: {described(error)}.") from error
        headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in answer.headers)
        return answer.status, Published(path, answer.body, headers)


def described(error: BaseException) -> str:
    """Return an exception in one line, with the place where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({last[0].filename}, line {last[0].lineno})" if last else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"


def is_application(target: str) -> bool:
    """Return True if a command line target has the form `module:app`."""
    module, colon, attribute = target.partition(":")
    return bool(colon) and attribute.isidentifier() and not Path(target).exists() and "/" not in module


def load(target: str) -> AsgiApp:
    """Import the application `module:app` from here or from `src`. Raises DeclarationError if there is none."""
    if target.startswith(("http://", "https://")):
        raise DeclarationError(target, "is an address, not an application.", "Write module:app.")
    sys.path[:0] = ["", "src"] if Path("src").is_dir() else [""]
    module_name, _, attribute = target.partition(":")
    if not attribute:
        raise DeclarationError(target, "names no application.", f"Write module:app, such as {module_name}:app.")
    try:
        module = import_module(module_name)
    except DeclarationError:
        raise
    except ImportError as error:
        extra = extra_of(error)
        remedy = "" if extra is None else f'Run pip install "awp-publish[{extra}]".'
        raise DeclarationError(target, f"cannot be imported: {error}.", remedy) from error
    except Exception as error:  # a traceback through this package helps nobody; its end is in the application
        raise DeclarationError(target, f"cannot be imported: {described(error)}.") from error
    if not hasattr(module, attribute):
        raise DeclarationError(target, f"the module has no {attribute}.", "Name the application itself.")
    app: object = getattr(module, attribute)
    if isinstance(app, Site):
        names = [f"{module_name}:{name}" for name, value in vars(module).items() if site_of(value) is app]
        where = f": {names[0]}" if names else " that AgentPublisher was added to"
        raise DeclarationError(target, "is a Site, not an application.", f"Name the application{where}.")
    if isinstance(app, FunctionType) and not signature(app).parameters:
        remedy = f"Keep what it returns, app = {attribute}(), and name that: {module_name}:app."
        raise DeclarationError(target, "is a function that makes an application.", remedy)
    if not callable(app) or isinstance(app, type):
        kind = type(app).__name__
        raise DeclarationError(target, f"is not an ASGI application: {kind}.", "Name the application itself.")
    return cast(AsgiApp, app)


def site_of(app: object) -> Site | None:
    """Return the site that an application publishes, None if it has no AgentPublisher."""
    return next(sites_of(app), None)


def extra_of(error: ImportError) -> str | None:
    """Return our extra that installs the package which cannot be imported, None if there is none."""
    cause = error.__cause__
    name = error.name or (cause.name if isinstance(cause, ImportError) else None)
    try:
        needed = requires("awp-publish") or []
    except PackageNotFoundError:
        return None
    pairs = [match.groups() for line in needed if (match := re.match(r"([\w.-]+).*; *extra == .([\w-]+).", line))]
    extras = [extra for package, extra in pairs if name and package.replace("-", "_") == name.partition(".")[0]]
    sizes = Counter(extra for _, extra in pairs)
    return min(extras, key=lambda extra: sizes[extra], default=None)  # the one that is about this package
