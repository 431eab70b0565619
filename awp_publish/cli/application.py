"""Commands about an application, which is called without a server: init, show, export, check, call."""

import asyncio
import json
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from http.client import HTTPException
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urljoin, urlsplit

import orjson

from awp_publish.checks import Finding, all_checks, check_document, check_documents, specifications
from awp_publish.checks.descriptions import Judgement, judge_descriptions, tools_in, tools_of
from awp_publish.checks.text import read as read_document
from awp_publish.checks.urls import is_private
from awp_publish.cli.console import Console, ask, is_asking, warn, write
from awp_publish.cli.fetching import SECONDS, FetchRefused, fetch
from awp_publish.client import AgentClient, CallFailed, Door
from awp_publish.declare.discover import find_routes, unwrap
from awp_publish.declare.site import Site
from awp_publish.documents import woa
from awp_publish.documents.protocol import published
from awp_publish.http.asgi import AgentPublisher
from awp_publish.http.exchange import AsgiApp
from awp_publish.http.page_request import PageExchange, PageRequest
from awp_publish.http.running import INSPECTED, running
from awp_publish.http.startup import check_published
from awp_publish.maps import rules
from awp_publish.maps.composition import Imported, ImportRefused
from awp_publish.model import Action
from awp_publish.plugin import known_protocols
from awp_publish.plugins.actions_json.reading import ActionMap
from awp_publish.problems import DeclarationError, did_you_mean
from awp_publish.schema import compile_schema, is_secret

if TYPE_CHECKING:
    from awp_publish.plugins.actions_json.drift import Drift

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
        found = site_of(self.app)
        if found is None:
            remedy = "Name the application that it was added to."
            raise DeclarationError(self.target, "has no AgentPublisher.", remedy)
        return found

    @cached_property
    def site(self) -> Site:
        """The same, frozen. Raises DeclarationError, StartFailed."""
        assert self.documents is not None  # the first request publishes the site
        return self.declared

    @cached_property
    def documents(self) -> Mapping[str, Published]:
        """The documents that it serves, by path, those of its own paths included.

        Raises DeclarationError, StartFailed.
        """

        def paths() -> Iterable[str]:
            yield from (document.path for protocol in known_protocols() for document in protocol.documents)
            if (site := site_of(self.app)) is not None:
                yield from (document.path_in(site.catalog) for document in published(known_protocols(), site.catalog))

        return {path: one for path, (status, one) in self.read(paths).items() if status == 200}

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
        exchange = PageExchange(b"", sys.maxsize)
        inside = PageRequest(urlsplit("http://localhost"), path.encode(), b"", (), state=state)
        try:
            await self.app(inside.scope({"path": "/"}), exchange.receive, exchange.send)
        except DeclarationError:
            raise
        except Exception as error:
            raise DeclarationError(self.target, f"fails at GET {path}: {described(error)}.") from error
        answer = exchange.collected()
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
    """Import the application `module:app`. Raises DeclarationError if there is none."""
    sys.path.insert(0, "")
    module_name, _, attribute = target.partition(":")
    if not attribute:
        raise DeclarationError(target, "names no application.", f"Write module:app, such as {module_name}:app.")
    try:
        module = import_module(module_name)
    except DeclarationError:
        raise
    except ImportError as error:
        if (extra := extra_of(error)) is None:
            raise
        remedy = f'Run pip install "awp-publish[{extra}]".'
        raise DeclarationError(target, f"cannot be imported: {error}.", remedy) from error
    except Exception as error:  # a traceback through this package helps nobody; its end is in the application
        raise DeclarationError(target, f"cannot be imported: {described(error)}.") from error
    found: object = getattr(module, attribute)
    if isinstance(found, Site):
        named = [f"{module_name}:{name}" for name, one in vars(module).items() if site_of(one) is found]
        where = f": {named[0]}" if named else " that AgentPublisher was added to"
        raise DeclarationError(target, "is a Site, not an application.", f"Name the application{where}.")
    if not callable(found) or isinstance(found, type):
        kind = type(found).__name__
        raise DeclarationError(target, f"is not an ASGI application: {kind}.", "Name the application itself.")
    return cast(AsgiApp, found)


def site_of(app: object) -> Site | None:
    """Return the site that an application publishes, None if it has no AgentPublisher."""
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


def extra_of(error: ImportError) -> str | None:
    """Return our extra that installs the package which cannot be imported, None if there is none."""
    cause = error.__cause__
    name = error.name or (cause.name if isinstance(cause, ImportError) else None)
    try:
        needed = requires("awp-publish") or []
    except PackageNotFoundError:
        return None
    pairs = [found.groups() for line in needed if (found := re.match(r"([\w.-]+).*; *extra == .([\w-]+).", line))]
    extras = [extra for package, extra in pairs if name and package.replace("-", "_") == name.partition(".")[0]]
    sizes = Counter(extra for _, extra in pairs)
    return min(extras, key=lambda extra: sizes[extra], default=None)  # the one that is about this package


# --- init ---

FASTAPI: Final = '''"""A site that agents can use. Run: uvicorn main:app"""

from typing import Annotated

from awp_publish import AgentPublisher, Site
from fastapi import FastAPI
from pydantic import Field

site = Site(
    name="Bookshop",  # what people call the site
    description="Find and order books.",  # the first sentence that an agent reads
    url="http://127.0.0.1:8000",  # the public address; without it, the environment variable AWP_PUBLISH_URL
    # doors=["mcp", "a2a", "awp"],  # the live protocols besides plain HTTP and WoA; each is an extra of the package
    # store="sqlite:///agents.db",  # where keys, confirmations and jobs are remembered; memory without it
    # secret_keys=["..."],  # signs confirmations; without it they end with the process
)
app = FastAPI()


@app.get("/search")
@site.action("search_books", examples=[{"q": "emma"}])  # the decorator nearest to the function
async def search(
    q: Annotated[str, Field(description="Words of the title or the author.")],
    limit: Annotated[int, Field(description="How many titles at most.", ge=1, le=50)] = 10,
) -> list[str]:
    """Search books by title or author."""  # what an agent reads of the action
    return [title for title in ("Emma", "Moby-Dick") if q.lower() in title.lower()][:limit]


@app.post("/orders")
@site.action(
    "order_book",
    confirm="Order {quantity} x {title}.",  # a person reads this before anything happens
    rate_limit="10/minute",  # for each caller
    idempotency="24h",  # the same key is the same order
    examples=[{"title": "Emma", "quantity": 1}],
)
async def order(
    title: Annotated[str, Field(description="The title, as search_books gives it.")],
    quantity: Annotated[int, Field(description="How many copies.", ge=1, le=20)] = 1,
) -> str:
    """Order copies of a book."""
    return f"{quantity} x {title} ordered"


app.add_middleware(AgentPublisher, site=site)  # the last middleware that is added is the outermost one

# See what is published:   awp-publish show main:app
# Hold it to the rules:    awp-publish check main:app
# Call it as an agent:     awp-publish call main:app search_books q=emma
'''

STARLETTE: Final = '''"""A site that agents can use. Run: uvicorn main:app"""

from awp_publish import AgentPublisher, Site
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

site = Site(
    name="Bookshop",  # what people call the site
    description="Find and order books.",  # the first sentence that an agent reads
    url="http://127.0.0.1:8000",  # the public address; without it, the environment variable AWP_PUBLISH_URL
    # doors=["mcp", "a2a", "awp"],  # the live protocols besides plain HTTP and WoA; each is an extra of the package
    # store="sqlite:///agents.db",  # where keys, confirmations and jobs are remembered; memory without it
)


class Search(BaseModel):
    """What a search reads of the request: Starlette's handlers do not say it themselves."""

    q: str = Field(description="Words of the title or the author.")


class Found(BaseModel):
    """What it answers."""

    titles: list[str]


@site.action("search_books", inputs=Search, outputs=Found, examples=[{"q": "emma"}])
async def search(request: Request) -> JSONResponse:
    """Search books by title or author."""  # what an agent reads of the action
    q = request.query_params["q"].lower()
    return JSONResponse({"titles": [title for title in ("Emma", "Moby-Dick") if q in title.lower()]})


app = Starlette(routes=[Route("/search", search)])
app.add_middleware(AgentPublisher, site=site)  # the last middleware that is added is the outermost one

# See what is published:   awp-publish show main:app
# Hold it to the rules:    awp-publish check main:app
# Call it as an agent:     awp-publish call main:app search_books q=emma
'''

DJANGO: Final = '''"""What this project lets agents do. In settings.py:

INSTALLED_APPS += ["awp_publish_django"]
MIDDLEWARE += ["awp_publish_django.middleware.AgentPublisherMiddleware"]
ALLOWED_HOSTS += ["localhost", "127.0.0.1"]  # the host of the url below
AWP_PUBLISH = {"SITE": "agents.site"}  # the import path of the object below: this file beside manage.py
"""

from awp_publish import Site

site = Site(
    name="Bookshop",  # what people call the site
    description="Find and order books.",  # the first sentence that an agent reads
    url="http://127.0.0.1:8000",  # the public address; without it, the environment variable AWP_PUBLISH_URL
    # doors=["mcp", "a2a"],  # the live protocols besides plain HTTP and WoA; each is an extra of the package
    # store="sqlite:///agents.db",  # where keys, confirmations and jobs are remembered; memory without it
)


@site.agent("recommend_book", examples=[{"mood": "rainy"}])  # a function without an address of its own
def recommend(mood: str) -> str:
    """Recommend a book for a mood.

    mood: how the reader feels, in a word.
    """  # what an agent reads of the action
    return "Emma" if mood == "sunny" else "Moby-Dick"


# A view becomes an action where it stands, in views.py, with a Django form as what it takes:
#
#     from agents import site
#
#     @site.action("search_books", inputs=SearchForm)
#     def search(request): ...
#
# See what is published:   python manage.py agents show
# Hold it to the rules:    python manage.py agents check
# Call it as an agent:     python manage.py agents call recommend_book mood=rainy
'''

FILES: Final = {"fastapi": ("main.py", FASTAPI), "starlette": ("main.py", STARLETTE), "django": ("agents.py", DJANGO)}


def init(console: Console, framework: str, path: Path | None, *, force: bool = False) -> int:
    """Write the file with which a project begins. Raises DeclarationError if it exists."""
    name, text = FILES[framework]
    target = path if path is not None else Path(name)
    if str(target) == "-":
        write(text.removesuffix("\n"), is_block=True)
        return 0
    if target.is_dir():
        target = target / name
    if target.exists() and not force:
        raise DeclarationError(str(target), "exists already.", "Name another file, or use --force to replace it.")
    target.write_text(text, encoding="utf-8")
    console.say(f"{target} was written: read its comments, then run awp-publish check.")
    console.json({"file": str(target)})
    return 0


# --- show, export ---


def show(console: Console, target: str, path: str | None, *, included: bool, tokens: bool) -> int:
    """Print what is published, or one of the documents. Returns 1 if there is no such document."""
    application = Application(target)
    if path is not None:
        status, one = application.read(lambda: (path,))[path]
        text, kind = one.body.decode("utf-8", "replace"), one.media_type.partition(";")[0]
        if console.as_json and not kind.endswith("json"):
            console.json({"path": path, "status": status, "media_type": kind, "text": text})
        else:
            write(text, is_block=True)
        return int(status != 200)
    if tokens:  # documents with the same bytes are counted once
        by_body: dict[bytes, list[Published]] = {}
        for one in application.documents.values():
            by_body.setdefault(one.body, []).append(one)
        rows = sorted(by_body.values(), key=lambda group: len(group[0].body), reverse=True)
        counts = ((group[0].tokens, len(group[0].body), " = ".join(one.path for one in group)) for group in rows)
        console.table(("#tokens", "#bytes", "document"), counts)
        facts = [_facts(group[0]) | {"also_at": [one.path for one in group[1:]]} for group in rows]
        console.json({"documents": facts, "bytes_per_token": 4})
        return 0
    site = application.site
    catalog = site.catalog
    left_out = [f"left    {one.method} {one.path}  {one.name}: {one.why}" for one in site.left_out]
    if included:
        taken = {one.id: one.target for one in catalog.actions if one.id in site.included and one.target is not None}
        pages = [page for page in catalog.pages if page.path in site.included]
        console.say(*(f"action  {target.method} {target.path}  {name}" for name, target in taken.items()))
        console.say(*(f"page    GET {page.path}  {page.title}" for page in pages), *left_out)
        known = {"actions": list(taken), "pages": [page.path for page in pages]}
        console.json({**known, "left_out": [one._asdict() for one in site.left_out]})
        return 0

    def policy(action: Action) -> str:
        limit = action.rate_limit or catalog.site.rate_limit
        words = (
            f"at most {limit}" if limit is not None else "",
            "callers are known" if action.auth_required else "",
            f"scopes {', '.join(action.scopes)}" if action.scopes else "",
            "a person confirms" if action.needs_confirmation else "",
            f"after {', '.join(action.requires)}" if action.requires else "",
            "in the background" if action.is_background else "",
        )
        return "; ".join(word for word in words if word) or "open"

    console.heading("Documents")
    console.say(*application.documents)
    console.heading("Actions")
    actions = [
        {
            "id": one.id,
            "method": catalog.endpoint_of(one)[0],
            "path": catalog.endpoint_of(one)[1],
            "effect": one.effect,
            "policy": policy(one),
            "description": one.description,
        }
        for one in catalog.actions
    ]
    told = ((one["id"], f"{one['method']} {one['path']}", *list(one.values())[3:]) for one in actions)
    console.table(("action", "request", "effect", "policy", "description"), told)
    console.heading("Left out")
    console.say(*left_out)
    documents = [_facts(one) for one in application.documents.values()]
    console.json({"documents": documents, "actions": actions, "left_out": [one._asdict() for one in site.left_out]})
    return 0


def _facts(one: Published) -> dict[str, object]:
    return {"path": one.path, "media_type": one.media_type, "bytes": len(one.body), "tokens": one.tokens}


def export(console: Console, target: str, folder: Path) -> int:
    """Write all documents below a folder, and their headers to its file `_headers`, for a CDN of static files.

    Raises DeclarationError if a path would be both a file and a folder.
    """
    files = {PurePosixPath(one.path.lstrip("/")): one for one in Application(target).documents.values()}
    for file in files:
        if above := next((one for one in file.parents if one in files), None):
            raise DeclarationError(f"/{above}", f"would be both a file and the folder of /{file}.", "Move one of them.")
    written: list[str] = []
    lines: list[str] = []
    for file, one in console.progress(files.items(), "Writing", len(files)):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.body)
        written.append(str(path))
        kept = [f"  {name.title()}: {value}" for name, value in one.headers if name not in CDN_HEADERS]
        lines += [one.path, *kept, ""]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_headers").write_text("\n".join(lines), encoding="utf-8")
    written.append(str(folder / "_headers"))
    console.say(*written)
    console.json({"files": written})
    return 0


# --- check: documents, pages and descriptions ---


def check(
    console: Console,
    targets: Sequence[str],
    *,
    kind: str | None = None,
    lenient: bool = False,
    pages: bool = False,
    browser: bool = False,
) -> int:
    """Check documents against their specifications. Returns 1 if there is an error."""
    if not targets:
        raise DeclarationError("check", "needs a target.", "Name a file, an http(s) address, or module:app.")
    if kind is not None and kind not in (kinds := [one.name for one in specifications()]):
        raise DeclarationError(f"--kind {kind}", "is not a kind of document.", f"The kinds are: {', '.join(kinds)}.")
    findings: list[Finding] = []
    drifts: list[Drift] = []
    for target in console.progress(targets, "Checking"):
        if is_application(target):
            application = Application(target)
            documents = application.documents
            if site_of(application.app) is None:
                findings += check_documents({path: one.body for path, one in documents.items()})
            else:  # what start-up logs and the overview shows
                site = application.site
                routes = find_routes(unwrap(application.app))
                findings += check_published(site, site.catalog.public, documents, routes, "")
            if pages:
                drifts += drift_of(target, browser=browser)[1]
        elif pages:
            raise DeclarationError(target, "is not an application.", "Write check --pages module:app.")
        elif target == "-":
            findings += check_document(sys.stdin.buffer.read(), kind, lenient=lenient)
        elif kind is None and _is_site(target):
            findings += check_documents(_documents_of(target))
        else:
            data, address = _read(target)
            findings += _check_with_imports(data, kind, address, lenient)
    found: list[Finding | Drift] = [*findings, *drifts]
    errors = sum(finding.level == "error" for finding in found)
    console.say(*map(str, findings))
    for drift in drifts:
        sentence, _, evidence = str(drift).rpartition("\n")
        console.say(sentence, evidence)
    console.say(f"{len(found)} findings, {errors} of them errors")
    console.json({"findings": [asdict(one) for one in found], "errors": errors})
    return int(errors > 0)


def explain_checks(console: Console, check_id: str) -> int:
    """Print what one check demands, or all of them. Returns 1 if there is no such check."""
    checks = [check for check in all_checks() if check_id in ("", check.id)]
    if not checks:
        near = did_you_mean(check_id, [check.id for check in all_checks()])
        raise DeclarationError(f"--explain {check_id}", "is not a check.", near)
    rows = [(check.id, check.level, check.about, check.source) for check in checks]
    console.table(("check", "level", "what is checked", "source"), rows)
    if check_id:
        console.say(checks[0].hint)
    names = ("check", "level", "about", "source", "hint")
    console.json([dict(zip(names, (*row, check.hint), strict=True)) for row, check in zip(rows, checks, strict=True)])
    return 0


def check_as_model(console: Console, targets: Sequence[str]) -> int:
    """Judge how actions read to a model. Returns 1 if something is found."""
    findings: list[Finding] = []
    scores: dict[str, Judgement] = {}
    for target in targets:
        if is_application(target):
            tools = tools_of(Application(target).site.catalog)
        else:
            # Of a site's documents, the first one says most about its actions.
            data = sys.stdin.buffer.read() if target == "-" else next(iter(_documents_of(target).values()), b"")
            tools = tools_in(read_document(data).document)
        if not tools:
            raise DeclarationError(target, "has no actions that can be judged.", "Name an application or a manifest.")
        judged = judge_descriptions(tools)
        findings += [replace(one, document="" if is_application(target) else target) for one in judged.findings]
        scores[target] = judged
    console.say(*map(str, findings))
    for target, told in scores.items():
        console.table(("action", "#score"), told.scores.items())
        console.say(f"{target}: {told.score} of 100; {len(findings)} findings")
    facts = {target: {"score": told.score, "actions": told.scores} for target, told in scores.items()}
    console.json({"scores": facts, "findings": [asdict(one) for one in findings]})
    return int(bool(findings))


def _read(target: str) -> tuple[bytes, str]:
    """Read the document at an address or in a file. Returns it with its address."""
    if not target.startswith(("http://", "https://")):
        if not Path(target).exists():
            raise DeclarationError(
                target, "does not exist.", "Name a file, an https address, or an application, module:app."
            )
        return Path(target).read_bytes(), target
    # An address that a person names may be on this machine; what it imports may not.
    return fetch(target, max_bytes=rules.MAX_MAP_BYTES + 1, allow_private=True)


def _is_site(target: str) -> bool:
    return target.startswith(("http://", "https://")) and urlsplit(target).path[-1:] in ("", "/")


def _documents_of(target: str) -> dict[str, bytes]:
    """Read the document at an address or in a file; for a site, all documents at their specified addresses.

    Raises FetchRefused if a site has none.
    """
    if not _is_site(target):
        return {target: _read(target)[0]}
    found = dict[str, bytes]()
    failure: FetchRefused | None = None
    for path in (path for specification in specifications() for path in specification.paths):
        try:
            found[path] = _read(urljoin(target, path.lstrip("/")))[0]
        except FetchRefused as refused:
            failure = refused
    if failure is not None and not found:
        raise failure
    return found


def drift_of(target: str, *, browser: bool = False) -> tuple[Sequence[str], "Sequence[Drift]"]:
    """Return the paths of the declared pages of `module:app`, and their differences from its map."""
    from awp_publish.plugins.actions_json.drift import check_pages

    application = Application(target)
    site = application.site
    found = asyncio.run(check_pages(application.app, lambda: site.catalog, browser=browser))
    return [page.path for page in site.catalog.pages], found


def _check_with_imports(data: bytes, kind: str | None, address: str, lenient: bool) -> list[Finding]:
    """Check a document, and, for a map of actions.json, its imports, which are fetched within limits."""
    findings = check_document(data, kind, address, lenient=lenient)
    document = read_document(data).document or {}
    if document.get("protocol") != rules.PROTOCOL or not document.get("imports"):
        return findings
    deadline = time.monotonic() + SECONDS

    def load_import(uri: str, base: str) -> Imported:
        is_web = base.startswith(("http://", "https://"))
        try:
            if is_web or uri.startswith(("http://", "https://")):
                # Only a map that is in this network itself may import from it.
                allow = is_web and is_private(urlsplit(base).hostname or "")
                left = max(0.1, deadline - time.monotonic())
                limit = rules.MAX_IMPORT_BYTES
                body, place = fetch(urljoin(base, uri), max_bytes=limit, allow_private=allow, seconds=left)
            else:
                folder = Path(base).resolve().parent
                path = (folder / uri).resolve()
                if rules.path_fault(uri) is not None or not path.is_relative_to(folder):
                    raise ImportRefused(f"{uri[:200]} is not below the folder of the map.")
                if not path.is_file():
                    raise ImportRefused(f"{uri[:200]} is not a file.")
                if path.stat().st_size > rules.MAX_IMPORT_BYTES:
                    raise ImportRefused(f"{uri[:200]} has more than {rules.MAX_IMPORT_BYTES} bytes.")
                body, place = path.read_bytes(), str(path)
        except (OSError, ValueError) as error:  # ValueError: neither a path nor an address
            raise ImportRefused(f"The map cannot be loaded: {str(error).rstrip('.')}.") from error
        imported = ActionMap.read(body, path=place, lenient=lenient)
        if not imported.is_valid:
            raise ImportRefused(f"The map is not valid: {imported.findings[0]}")
        return Imported(imported.document, place)

    own = ActionMap.read(data, path=address, lenient=lenient)
    start = address if "://" in address else str(Path(address).resolve())
    composed = own.composed(load_import, start).findings[len(own.findings) :]
    return findings + [one if one.document else replace(one, document=address) for one in composed]


# --- call ---


def call(
    console: Console,
    target: str,
    action: str,
    pairs: Sequence[str],
    *,
    given: str = "{}",
    door: Door = "woa",
    token: str | None = None,
    headers: Sequence[str] = (),
    key: str | None = None,
    yes: bool = False,
) -> int:
    """Call an action and print its output. If the site refuses, prints the reason on standard error and returns 1.

    At a terminal, missing required inputs and confirmations are asked for. Elsewhere nothing is asked, and a call that
    needs confirmation is refused without `yes`.
    """
    fields: dict[str, str] = {}
    for line in headers:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise DeclarationError(f"--header {line}", "is not a header.", 'Write --header "Name: value".')
        fields[name.strip()] = value.strip()

    def confirm(summary: str) -> bool:
        write("  " + summary.replace("\n", "\n  "), is_block=True, to=sys.stderr)
        return ask("Do this? [y/N]").lower() in ("y", "yes")

    consent = True if yes else confirm if is_asking() and not console.as_json else None
    app = load(target) if is_application(target) else None
    if app is None and not target.startswith(("http://", "https://")):
        raise DeclarationError(target, "is neither an application nor an address.", "Write module:app, or https://...")
    try:
        client = AgentClient(target if app is None else app, door=door, token=token, headers=fields, confirm=consent)
        with client:
            if app is not None:
                with suppress(CallFailed, ValueError):
                    client.document("/agent.json")  # the application runs now, and the site is published
                catalog = Application(target).declared.catalog
                if door in ("mcp", "a2a", "awp") and catalog.door(door) is None:
                    remedy = f'Write Site(plugins=["{door}"]), or use another door.'
                    raise DeclarationError(f"--door {door}", "is not open.", remedy)
                schema = next((one.inputs for one in catalog.actions if one.id == action), None)
            else:
                schema = _schema_at(client, action)
            inputs = read_inputs(schema, pairs, given)
            if schema is not None and is_asking() and not console.as_json:
                inputs |= _ask_for(schema, inputs)
            answer = client.send(action, inputs, key=key)
    except (ValueError, HTTPException, RuntimeError, OSError) as error:
        raise DeclarationError(target, f"cannot be called: {str(error).rstrip('.')}.") from error
    except CallFailed as failed:
        problem = failed.problem
        console.json(problem)
        if not console.as_json:
            code, question = problem.get("code") or problem.get("status") or "failed", problem.get("confirmation")
            lines = [f"awp-publish: {code}: {problem.get('detail', '')}"]
            errors = problem.get("errors")
            for one in errors if isinstance(errors, list) else ():
                if isinstance(one, Mapping):
                    lines.append(f"  {one.get('pointer', '')}: {one.get('detail', '')}")
            lines += [f"  {problem['recovery']}"] if problem.get("recovery") else []
            if isinstance(question, Mapping):
                lines += [f"  {question.get('summary', '')}", "  Use --yes to confirm."]
            for line in lines:
                write(line, to=sys.stderr)
        return 1
    if console.as_json:
        output = answer.output.decode("latin-1") if isinstance(answer.output, bytes) else answer.output
        console.json({"output": output, "headers": dict(answer.headers)})
    elif isinstance(answer.output, bytes):
        if sys.stdout.isatty():
            warn(f"The output is a file of {len(answer.output)} bytes: redirect it, as in > file.")
            return 1
        sys.stdout.buffer.write(answer.output)
    elif isinstance(answer.output, str):
        write(answer.output, is_block=True)
    else:
        write(json.dumps(answer.output, indent=2, ensure_ascii=False), is_block=True)
    return 0


def _schema_at(client: AgentClient, action: str) -> Mapping[str, Any] | None:
    """Return the published inputs of an action, None if there are none; the site then decides about the call."""
    try:
        document = client.document(woa.PATH)
    except (CallFailed, ValueError):
        return None
    agents = document.get("agents") if isinstance(document, dict) else None
    agent_id, _, operation = action.partition(".")
    for agent in agents if isinstance(agents, list) else ():
        if not isinstance(agent, dict) or agent.get("id") != agent_id:
            continue
        operations = agent.get("operations")
        listed = [one for one in operations if isinstance(one, dict)] if isinstance(operations, list) else []
        own = next((one for one in listed if one.get("name") == operation), {})
        found = own.get("inputs") or agent.get("inputs")
        return found if isinstance(found, dict) else None
    return None


def read_inputs(schema: Mapping[str, Any] | None, pairs: Sequence[str], given: str) -> dict[str, Any]:
    """Return inputs from a JSON object and `name=value` pairs.

    Values are JSON if possible, unless the input is a text.
    """
    try:
        inputs = orjson.loads(sys.stdin.buffer.read() if given == "-" else given)
    except ValueError as error:
        raise DeclarationError("--input", f"is not JSON: {error}.", """Write --input '{"name": "value"}'.""") from None
    if not isinstance(inputs, dict):
        raise DeclarationError("--input", "is not a JSON object.", """Write --input '{"name": "value"}'.""")
    members = _properties_of(schema or {})
    for pair in pairs:
        name, is_pair, text = pair.partition("=")
        if not is_pair or not name:
            raise DeclarationError(pair, "is not an input.", "Write inputs as name=value.")
        inputs[name] = _value_of(text, _resolved(members.get(name), schema or {}))
    return inputs


def _properties_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _value_of(text: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "string":
        return text
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def _resolved(schema: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a member's schema, following one reference into `$defs`."""
    reference = schema.get("$ref") if isinstance(schema, Mapping) else None
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        definitions = root.get("$defs")
        name = reference.removeprefix("#/$defs/")
        schema = definitions.get(name) if isinstance(definitions, Mapping) else None
    return schema if isinstance(schema, Mapping) else {}


def _ask_for(schema: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for each missing required input until the answer fits its schema."""
    found: dict[str, Any] = {}
    members, required = _properties_of(schema), schema.get("required")
    for name in required if isinstance(required, list) else ():
        if not isinstance(name, str) or name in inputs:
            continue
        member = _resolved(members.get(name), schema)
        own = members.get(name)
        beside = (own.get("description") if isinstance(own, Mapping) else "") or member.get("description") or ""
        choices = member.get("enum")
        told = f"one of {', '.join(map(str, choices))}" if isinstance(choices, list) else str(member.get("type") or "")
        question = f"{name}{f' ({told})' if told else ''}{f': {beside}' if beside else ''}"
        validate = compile_schema({**member, "$defs": schema.get("$defs") or {}}, asserts_formats=True)
        while True:
            write(question, to=sys.stderr)
            value = _value_of(ask("  >", secret=is_secret(member)), member)
            wrong = validate(value)
            if not wrong:
                break
            write(f"  It {wrong[0].detail}.", to=sys.stderr)
        found[name] = value
    return found
