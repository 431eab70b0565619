"""`awp-publish check`: documents, pages and descriptions held to what they should be."""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from awp_publish.checks import SPECIFICATIONS, Finding, check_document, check_documents
from awp_publish.checks.descriptions import Judgement, judge_descriptions, tools_in, tools_of
from awp_publish.checks.fetching import SECONDS, FetchRefused, fetch
from awp_publish.checks.text import read as read_document
from awp_publish.checks.urls import is_private
from awp_publish.commands.application import Application, is_application
from awp_publish.commands.console import Console
from awp_publish.problems import DeclarationError
from awp_publish.running.runtime import ActionMap
from awp_publish.workflows import rules
from awp_publish.workflows.composition import Imported, ImportRefused

if TYPE_CHECKING:
    from awp_publish.serve.drift import Drift


def check(
    console: Console,
    targets: Sequence[str],
    *,
    kind: str | None = None,
    lenient: bool = False,
    pages: bool = False,
    browser: bool = False,
) -> int:
    """Hold documents to their specifications. Returns 1 where there is an error."""
    if kind is not None and kind not in (kinds := [one.name for one in SPECIFICATIONS]):
        raise DeclarationError(f"--kind {kind}", "is no kind of document.", f"There are: {', '.join(kinds)}.")
    findings: list[Finding] = []
    drifts: list[Drift] = []
    for target in console.progress(targets, "Checking"):
        if is_application(target):
            documents = Application(target).documents
            findings += check_documents({path: one.body for path, one in documents.items()})
            if pages:
                drifts += drift_of(target, browser=browser)[1]
        elif pages:
            raise DeclarationError(target, "is no application.", "Write check --pages module:app.")
        elif target == "-":
            findings += check_document(sys.stdin.buffer.read(), kind, lenient=lenient)
        elif kind is None and _is_site(target):
            findings += check_documents(_documents_of(target))
        else:
            data, address = _read(target)
            findings += _check_with_imports(data, kind, address, lenient)
    told: list[Finding | Drift] = [*findings, *drifts]
    errors = sum(finding.level == "error" for finding in told)
    console.say(*map(str, told), f"{len(told)} findings, {errors} of them errors")
    console.json({"findings": [asdict(one) for one in told], "errors": errors})
    return int(errors > 0)


def check_as_model(console: Console, targets: Sequence[str]) -> int:
    """Judge what a model reads of the actions. Returns 1 where something is found."""
    findings: list[Finding] = []
    scores: dict[str, Judgement] = {}
    for target in targets:
        if is_application(target):
            tools = tools_of(Application(target).site.catalog)
        else:
            # Of a site's documents, the first of the table is that which tells most of its actions.
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
    """The document at an address or in a file, and where it came from."""
    if not target.startswith(("http://", "https://")):
        if not Path(target).exists():
            raise DeclarationError(
                target, "is no file.", "Name a file, an https address, or an application, module:app."
            )
        return Path(target).read_bytes(), target
    # Whoever names an address may mean one of this machine; what is imported from it may not.
    return fetch(target, max_bytes=rules.MAX_MAP_BYTES + 1, allow_private=True)


def _is_site(target: str) -> bool:
    return target.startswith(("http://", "https://")) and urlsplit(target).path[-1:] in ("", "/")


def _documents_of(target: str) -> dict[str, bytes]:
    """The document at an address or in a file; of a site, every one at the addresses that the specifications name.

    Raises FetchRefused for a site that has none.
    """
    if not _is_site(target):
        return {target: _read(target)[0]}
    found = dict[str, bytes]()
    why: FetchRefused | None = None
    for path in (path for specification in SPECIFICATIONS for path in specification.paths):
        try:
            found[path] = _read(urljoin(target, path.lstrip("/")))[0]
        except FetchRefused as refused:
            why = refused
    if why is not None and not found:
        raise why
    return found


def drift_of(target: str, *, browser: bool = False) -> tuple[Sequence[str], "Sequence[Drift]"]:
    """Return the paths of the pages that `module:app` declares, and what they and its map do not agree about."""
    from awp_publish.serve.drift import check_pages

    application = Application(target)
    site = application.site
    found = asyncio.run(check_pages(application.app, lambda: site.catalog, browser=browser))
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
                if not path.is_file():
                    raise ImportRefused(f"{uri[:200]} is no file.")
                if path.stat().st_size > rules.MAX_IMPORT_BYTES:
                    raise ImportRefused(f"{uri[:200]} has more than {rules.MAX_IMPORT_BYTES} bytes.")
                body, place = path.read_bytes(), str(path)
        except (OSError, ValueError) as error:  # the second for what is neither a path nor an address
            raise ImportRefused(f"The map cannot be had: {str(error).rstrip('.')}.") from error
        imported = ActionMap.read(body, path=place, lenient=lenient)
        if not imported.is_valid:
            raise ImportRefused(f"The map is not valid: {imported.findings[0]}")
        return Imported(imported.document, place)

    own = ActionMap.read(data, path=address, lenient=lenient)
    start = address if "://" in address else str(Path(address).resolve())
    composed = own.composed(load, start).findings[len(own.findings) :]
    return findings + [one if one.document else replace(one, document=address) for one in composed]
