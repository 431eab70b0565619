"""The command `awp-publish`: check documents, show what an application publishes, run its background jobs."""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, cast

import orjson

from awp_publish.checks import Finding, check_document, check_documents
from awp_publish.problems import DeclarationError
from awp_publish.protocols import ALL, som
from awp_publish.serve.http import AsgiApp, Message, Scope
from awp_publish.serve.jobs import serve_jobs
from awp_publish.serve.lifespan import StartFailed

PATHS: Final = tuple(document.path for protocol in ALL for document in protocol.documents)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Answers 0 when nothing is wrong, 1 when a check found an error, 2 when it could not look."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (OSError, DeclarationError, ImportError, AttributeError, StartFailed) as error:
        print(f"awp-publish: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="awp-publish", description=__doc__)
    commands = parser.add_subparsers(required=True)
    check = commands.add_parser("check", help="check documents against their specifications")
    check.add_argument("target", nargs="+", help='a file, "-" for standard input, or module:app')
    check.add_argument("--kind", help="what the document is, if its members do not tell: awas, agent-json, woa, ...")
    check.add_argument("--lenient", action="store_true", help="read maps that are older than actions.json V1, too")
    check.set_defaults(run=_check)
    show = commands.add_parser("show", help="print one document that an application publishes")
    show.add_argument("target", help="module:app")
    show.add_argument("path", nargs="?", help="the document's path; without it, all paths are listed")
    show.set_defaults(run=_show)
    robots = commands.add_parser("robots", help="print the lines that robots.txt may have about an application's pages")
    robots.add_argument("target", help="module:app")
    robots.set_defaults(run=_robots)
    worker = commands.add_parser("worker", help="run the background jobs of an application, until it is told to stop")
    worker.add_argument("target", help="module:app")
    worker.set_defaults(run=_work)
    return parser


def _work(options: argparse.Namespace) -> int:
    asyncio.run(serve_jobs(_load(options.target)))
    return 0


def _check(options: argparse.Namespace) -> int:
    findings = [finding for target in options.target for finding in _findings(target, options)]
    for finding in findings:
        print(finding)
    errors = sum(finding.level == "error" for finding in findings)
    print(f"{len(findings)} findings, {errors} of them errors")
    return int(errors > 0)


def _findings(target: str, options: argparse.Namespace) -> list[Finding]:
    if target == "-":
        return check_document(sys.stdin.buffer.read(), options.kind, lenient=options.lenient)
    if _is_application(target):
        return check_documents(_documents_of(_load(target)))
    return check_document(Path(target).read_bytes(), options.kind, target, lenient=options.lenient)


def _show(options: argparse.Namespace) -> int:
    app = _load(options.target)
    if options.path is None:
        print("\n".join(path for path in PATHS if _get(app, path)[0] == 200))
        return 0
    status, body = _get(app, options.path)
    sys.stdout.write(body.decode("utf-8", "replace") + "\n")
    return int(status != 200)


def _robots(options: argparse.Namespace) -> int:
    status, body = _get(_load(options.target), som.PATH)
    if status != 200:
        print(f"awp-publish: {options.target} does not give its pages as SOM", file=sys.stderr)
        return 1
    sys.stdout.write(som.robots_lines_of(orjson.loads(body)))
    return 0


def _is_application(target: str) -> bool:
    module, colon, attribute = target.partition(":")
    return bool(colon) and attribute.isidentifier() and not Path(target).exists() and "/" not in module


def _load(target: str) -> AsgiApp:
    sys.path.insert(0, "")
    module, _, attribute = target.partition(":")
    return cast(AsgiApp, getattr(import_module(module), attribute))


def _documents_of(app: AsgiApp) -> Mapping[str, bytes]:
    answers = {path: _get(app, path) for path in PATHS}
    return {path: body for path, (status, body) in answers.items() if status == 200}


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
