"""The command `awp-publish`: check documents, show what an application publishes, run its background jobs."""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urljoin, urlsplit

import orjson

from awp_publish.browsing.runtime import ActionMap
from awp_publish.checks import Finding, check_document, check_documents
from awp_publish.checks.fetching import SECONDS, fetch
from awp_publish.checks.text import read as read_document
from awp_publish.checks.urls import is_private
from awp_publish.problems import DeclarationError
from awp_publish.protocols import ALL, som
from awp_publish.serve.asgi import AgentPublisher
from awp_publish.serve.http import AsgiApp, Message, Scope
from awp_publish.serve.jobs import serve_jobs
from awp_publish.serve.lifespan import StartFailed
from awp_publish.site import Site
from awp_publish.workflows import rules
from awp_publish.workflows.composition import Imported, ImportRefused

if TYPE_CHECKING:
    from awp_publish.serve.drift import Drift

PATHS: Final = tuple(document.path for protocol in ALL for document in protocol.documents)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Answers 0 when nothing is wrong, 1 when a check found an error, 2 when it could not look."""
    options = make_parser().parse_args(arguments)
    try:
        match options.command:
            case "check":
                return _check(
                    options.target, options.kind, options.lenient, options.pages or options.browser, options.browser
                )
            case "show":
                if options.included:
                    return _show_included(options.target)
                return _show(_load(options.target), options.path)
            case "approve":
                return _approve(options.target, options.action, options.all)
            case "robots":
                status, body = _get(_load(options.target), som.PATH)
                if status != 200:
                    print(f"awp-publish: {options.target} does not give its pages as SOM", file=sys.stderr)
                    return 1
                sys.stdout.write(som.robots_lines_of(orjson.loads(body)))
            case "worker":
                asyncio.run(serve_jobs(_load(options.target)))
        return 0
    except (OSError, DeclarationError, ImportError, AttributeError, StartFailed) as error:
        print(f"awp-publish: {error}", file=sys.stderr)
        return 2


def make_parser() -> argparse.ArgumentParser:
    """Make what reads the command line."""
    parser = argparse.ArgumentParser(prog="awp-publish", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="check documents against their specifications")
    check.add_argument("target", nargs="+", help='a file, an http(s) address, "-" for standard input, or module:app')
    check.add_argument("--kind", help="what the document is, if its members do not tell: awas, agent-json, woa, ...")
    check.add_argument("--lenient", action="store_true", help="read maps that are older than actions.json V1, too")
    check.add_argument("--pages", action="store_true", help="render the pages of module:app, and hold them to its map")
    check.add_argument("--browser", action="store_true", help="render these pages in Chromium")
    show = commands.add_parser("show", help="print one document that an application publishes")
    show.add_argument("target", help="module:app")
    show.add_argument("path", nargs="?", help="the document's path; without it, all paths are listed")
    show.add_argument("--included", action="store_true", help="what site.include() took, what it left out, and why")
    approve = commands.add_parser("approve", help="list what waits for the owner's approval, or approve it")
    approve.add_argument("target", help="module:app, whose site says approval=True")
    approve.add_argument("action", nargs="*", help="approve these as they are now; without any, what waits is listed")
    approve.add_argument("--all", action="store_true", help="approve all that waits")
    robots = commands.add_parser("robots", help="print the lines that robots.txt may have about an application's pages")
    robots.add_argument("target", help="module:app")
    worker = commands.add_parser("worker", help="run the background jobs of an application, until it is told to stop")
    worker.add_argument("target", help="module:app")
    return parser


def _check(targets: Sequence[str], kind: str | None, lenient: bool, pages: bool, browser: bool) -> int:
    findings: list[Finding] = []
    drifts: list[Drift] = []
    for target in targets:
        module, colon, attribute = target.partition(":")
        if target == "-":
            findings += check_document(sys.stdin.buffer.read(), kind, lenient=lenient)
        elif target.startswith(("http://", "https://")):
            # Whoever names an address may mean one of this machine; what is imported from it may not.
            data, address = fetch(target, max_bytes=rules.MAX_MAP_BYTES + 1, allow_private=True)
            findings += _check_with_imports(data, kind, address, lenient)
        elif colon and attribute.isidentifier() and not Path(target).exists() and "/" not in module:
            app = _load(target)
            answers = {path: _get(app, path) for path in PATHS}
            findings += check_documents({path: body for path, (status, body) in answers.items() if status == 200})
            if pages:
                drifts += drift_of(target, browser=browser)[1]
        elif pages:
            raise DeclarationError(target, "is no application.", "Write check --pages module:app.")
        else:
            findings += _check_with_imports(Path(target).read_bytes(), kind, target, lenient)
    told: list[Finding | Drift] = [*findings, *drifts]
    for finding in told:
        print(finding)
    errors = sum(finding.level == "error" for finding in told)
    print(f"{len(told)} findings, {errors} of them errors")
    return int(errors > 0)


def drift_of(target: str, *, browser: bool = False) -> tuple[Sequence[str], "Sequence[Drift]"]:
    """Return the paths of the pages that `module:app` declares, and what they and its map do not agree about."""
    from awp_publish.serve.drift import check_pages

    app = _load(target)
    site = _site_of(app)
    if site is None:
        raise DeclarationError(target, "AgentPublisher is not in it.", "Name the application that it was added to.")
    found = asyncio.run(check_pages(app, lambda: site.catalog, browser=browser))
    return [page.path for page in site.catalog.pages], found


def _check_with_imports(data: bytes, kind: str | None, address: str, lenient: bool) -> list[Finding]:
    """Check a document; of a map of actions.json what it imports too, fetched within bounds."""
    findings = check_document(data, kind, address, lenient=lenient)
    document = read_document(data).document or {}
    if document.get("protocol") != rules.PROTOCOL or not document.get("imports"):
        return findings
    deadline = time.monotonic() + SECONDS

    def load(uri: str, base: str) -> Imported:
        is_web = base.startswith(("http://", "https://"))
        try:
            if is_web or uri.startswith(("http://", "https://")):
                # What is in this network may be imported by what is there itself, and by nothing else.
                allow = is_web and is_private(urlsplit(base).hostname or "")
                left = max(0.1, deadline - time.monotonic())
                limit = rules.MAX_IMPORT_BYTES
                body, place = fetch(urljoin(base, uri), max_bytes=limit, allow_private=allow, seconds=left)
            else:
                folder = Path(base).resolve().parent
                path = (folder / uri).resolve()
                if rules.path_fault(uri) is not None or not path.is_relative_to(folder):
                    raise ImportRefused(f"{uri[:200]} is not below the folder of the map.")
                if path.stat().st_size > rules.MAX_IMPORT_BYTES:
                    raise ImportRefused(f"{uri[:200]} has more than {rules.MAX_IMPORT_BYTES} bytes.")
                body, place = path.read_bytes(), str(path)
        except OSError as error:
            raise ImportRefused(f"The map cannot be had: {error}") from error
        imported = ActionMap.read(body, path=place, lenient=lenient)
        if not imported.is_valid:
            raise ImportRefused(f"The map is not valid: {imported.findings[0]}")
        return Imported(imported.document, place)

    own = ActionMap.read(data, path=address, lenient=lenient)
    start = address if "://" in address else str(Path(address).resolve())
    composed = own.composed(load, start).findings[len(own.findings) :]
    return findings + [one if one.document else replace(one, document=address) for one in composed]


def _show(app: AsgiApp, path: str | None) -> int:
    if path is None:
        print("\n".join(path for path in PATHS if _get(app, path)[0] == 200))
        return 0
    status, body = _get(app, path)
    sys.stdout.write(body.decode("utf-8", "replace") + "\n")
    return int(status != 200)


def _show_included(target: str) -> int:
    app = _load(target)
    site = _site_of(app)
    if site is None:
        raise DeclarationError(target, "AgentPublisher is not in it.", "Name the application that it was added to.")
    _get(app, PATHS[0])  # the first request publishes the site
    catalog = site.catalog
    for action in catalog.actions:
        if action.id in site.included and action.target is not None:
            print(f"action  {action.target.method} {action.target.path}  {action.id}")
    for page in catalog.pages:
        if page.path in site.included:
            print(f"page    GET {page.path}  {page.title}")
    for one in site.left_out:
        print(f"left    {one.method} {one.path}  {one.name}: {one.why}")
    return 0


def _approve(target: str, names: Sequence[str], approves_all: bool) -> int:
    """List what is new or has changed since it was approved, or approve it. Returns 1 while something waits."""
    app = _load(target)
    site = _site_of(app)
    if site is None:
        raise DeclarationError(target, "AgentPublisher is not in it.", "Name the application that it was added to.")
    _get(app, PATHS[0])  # the first request publishes the site
    lines, hidden = approve(site, names, approves_all)
    print("\n".join(lines))
    return int(hidden > 0)


def approve(site: Site, names: Sequence[str], approves_all: bool) -> tuple[list[str], int]:
    """Approve actions, then list what still waits; returns that in lines, and how many actions are hidden."""
    lines, standing = list[str](), site.approvals()
    if approves_all:
        names = [one.action for one in standing if one.state in ("new", "changed")]
    if names or approves_all:
        path, standing = site.approve(*names), site.approvals()
        lines.append(f"{path}: {len(names)} approved ({', '.join(names) or 'nothing was new or changed'})")
    waiting = [one for one in standing if one.state != "approved"]
    hidden = sum(one.state != "gone" for one in waiting)
    lines += [str(one) for one in waiting]
    return [*lines, f"{len(standing) - len(waiting)} approved, {hidden} hidden until they are"], hidden


def _site_of(app: object) -> Site | None:
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


def _load(target: str) -> AsgiApp:
    """The application that is meant. Raises DeclarationError for what is none."""
    sys.path.insert(0, "")
    module_name, _, attribute = target.partition(":")
    if not attribute:
        raise DeclarationError(target, "names no application.", f"Write module:app, {module_name}:app for instance.")
    module = import_module(module_name)
    found: object = getattr(module, attribute)
    if isinstance(found, Site):
        named = [f"{module_name}:{name}" for name, one in vars(module).items() if _site_of(one) is found]
        where = (
            f"Name the application: {named[0]}." if named else "Name the application that AgentPublisher was added to."
        )
        raise DeclarationError(target, "is a Site, and not an application.", where)
    if not callable(found) or isinstance(found, type):
        raise DeclarationError(
            target, f"is no ASGI application: {type(found).__name__}.", "Name the application itself."
        )
    return cast(AsgiApp, found)


def _get(app: AsgiApp, path: str) -> tuple[int, bytes]:
    """One request without a server."""
    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

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
    return messages[0]["status"], b"".join(message.get("body", b"") for message in messages)
