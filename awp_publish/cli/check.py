"""The command `check`: documents, pages and descriptions."""

import asyncio
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from awp_publish.checks import Finding, all_checks, check_document, check_documents
from awp_publish.checks.descriptions import RULES, Judgement, judge_descriptions
from awp_publish.checks.judged_actions import tools_in, tools_of
from awp_publish.checks.recognition import specifications
from awp_publish.checks.text import read as read_document
from awp_publish.checks.urls import is_private
from awp_publish.cli.console import Console
from awp_publish.cli.fetching import SECONDS, FetchRefused, fetch_document
from awp_publish.cli.limits import MAP_LIMITS
from awp_publish.declare.discover import find_routes, unwrap
from awp_publish.maps import failure_classes, failures, live_page, projections, rules
from awp_publish.maps.composition import Imported, ImportRefused
from awp_publish.plugin import installed, known_protocols
from awp_publish.problems import DeclarationError, did_you_mean

if TYPE_CHECKING:
    from awp_publish.plugins.actions_json.differences import Drift
from awp_publish.cli.application import Application, is_application, site_of


def check(console: Console, options: Namespace) -> int:
    """Check documents against their specifications. Returns 1 if there is an error."""
    if options.explain is not None:
        return explain_checks(console, options.explain)
    if options.as_model:
        return check_as_model(console, options.target)
    targets, kind, browser = options.target, options.kind, options.browser
    pages = options.pages or browser
    if not targets:
        raise DeclarationError("check", "needs a target.", "Name a file, an http(s) address, or module:app.")
    if kind is not None and kind not in (kinds := [specification.name for specification in specifications()]):
        raise DeclarationError(f"--kind {kind}", "is not a kind of document.", f"The kinds are: {', '.join(kinds)}.")
    findings: list[Finding] = []
    drifts: list[Drift] = []
    for target in console.progress(targets, "Checking"):
        if is_application(target):
            application = Application(target)
            documents = application.documents
            if site_of(application.app) is None:
                if not (checked := {path: document.body for path, document in documents.items()}):
                    remedy = "Add AgentPublisher to it, or name the application that has it."
                    raise DeclarationError(target, "serves no document that can be checked.", remedy)
                findings += check_documents(checked)
            else:  # what start-up logs and the overview shows
                site = application.site
                routes = find_routes(unwrap(application.app))
                # A route of the application takes precedence over these.
                published = (document for protocol in known_protocols() for document in protocol.documents)
                fallbacks = {document.path for document in published if document.is_fallback}
                own = {path: document for path, document in documents.items() if path not in fallbacks}
                if (check_published := site.ask("findings")) is not None:
                    findings += check_published(site, site.catalog.public, own, routes, "")
            if pages:
                drifts += drift_of(target, browser=browser)[1]
        elif pages:
            raise DeclarationError(target, "is not an application.", "Write check --pages module:app.")
        elif target == "-":
            findings += check_document(sys.stdin.buffer.read(), kind, lenient=options.lenient)
        elif kind is None and _is_site(target):
            findings += check_documents(_documents_of(target))
        else:
            data, address = _read(target)
            findings += _check_with_imports(data, kind, address, options.lenient)
    listed: list[Finding | Drift] = [*findings, *drifts]
    errors = sum(finding.level == "error" for finding in listed)
    console.say(*map(str, findings))
    for drift in drifts:
        sentence, _, evidence = str(drift).rpartition("\n")
        console.say(sentence, evidence)
    console.say(f"{_counted(len(listed), 'finding')}, {_counted(errors, 'error')}")
    console.json({"findings": [asdict(finding) for finding in listed], "errors": errors})
    return int(errors > 0)


def explain_checks(console: Console, check_id: str) -> int:
    """Print what one check demands, or all checks of documents.

    "codes" prints the codes with which tools of a map fail, "limits" the bounds of maps and the bridge, "drift" the
    rules of `--pages`, "model" those of `--as-model`.
    """
    if check_id == "codes":
        return _explain_codes(console)
    if check_id == "limits":
        return _explain_limits(console)
    if rules := _rules(check_id):
        console.table(("rule", "level", "what is checked", "what to do"), rules)
        return _print_rows(console, ("rule", "level", "about", "hint"), rules)
    checks = [check for check in all_checks() if check_id in ("", check.id)]
    if not checks:
        near = did_you_mean(check_id, [*(check.id for check in all_checks()), *RULES, *_kinds_of_drift()])
        raise DeclarationError(f"--explain {check_id}", "is not a check.", near)
    rows = [(check.id, check.level, check.about, check.source) for check in checks]
    console.table(("check", "level", "what is checked", "source"), rows)
    if check_id:
        console.say(checks[0].hint)
    names, hints = ("check", "level", "about", "source", "hint"), (check.hint for check in checks)
    return _print_rows(console, names, ((*row, hint) for row, hint in zip(rows, hints, strict=True)))


def _print_rows(console: Console, names: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Print rows as JSON objects if JSON was requested, and return 0."""
    console.json([dict(zip(names, row, strict=True)) for row in rows])
    return 0


def _has_maps() -> bool:
    return "actions_json" in installed()


def _kinds_of_drift() -> Mapping[str, tuple[object, str, str]]:
    if not _has_maps():
        return {}
    from awp_publish.plugins.actions_json.differences import KINDS

    return KINDS


def _rules(name: str) -> list[tuple[str, str, str, str]]:
    drift = [(kind, str(level), about, hint) for kind, (level, about, hint) in _kinds_of_drift().items()]
    model = [(rule, "warning", about, hint) for rule, (about, hint) in RULES.items()]
    return {"drift": drift, "model": model}.get(name) or [row for row in (*drift, *model) if row[0] == name]


def _explain_codes(console: Console) -> int:
    classes = {
        name: f"{words} Failed: the {state}. {'It may be tried again.' if again else 'Do not simply try again.'}"
        for name, (state, again, words) in failure_classes.RECOVERY.items()
    }
    kinds: dict[str, Mapping[Any, str]] = {
        "call": failures.CODES,
        "workflow": failure_classes.WORKFLOW_CODES,
        "primitive": live_page.CODES,
        "projection": projections.PROJECTION_CODES,
        "class of a failure": classes,
    }
    rows = [(kind, str(code), words) for kind, codes in kinds.items() for code, words in codes.items()]
    console.table(("of a", "code", "means"), rows)
    return _print_rows(console, ("kind", "code", "means"), rows)


def _explain_limits(console: Console) -> int:
    limits: list[tuple[str, Sequence[tuple[str, float]]]] = [("map", MAP_LIMITS)]
    if _has_maps():
        from awp_publish.plugins.actions_json.limits import BRIDGE_LIMITS

        limits.append(("bridge", BRIDGE_LIMITS))
    rows = [(kind, name, bound) for kind, bounds in limits for name, bound in bounds]
    console.table(("of a", "at most", "#bound"), [(kind, name, f"{bound:,.12g}") for kind, name, bound in rows])
    return _print_rows(console, ("kind", "name", "bound"), rows)


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
        findings += [replace(finding, document="" if is_application(target) else target) for finding in judged.findings]
        scores[target] = judged
    console.say(*map(str, findings))
    for target, score in scores.items():
        console.table(("action", "#score"), score.scores.items())
        console.say(f"{target}: {score.score} of 100; {_counted(len(findings), 'finding')}")
    facts = {target: {"score": score.score, "actions": score.scores} for target, score in scores.items()}
    console.json({"scores": facts, "findings": [asdict(finding) for finding in findings]})
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
    fetched = fetch_document(target, max_bytes=rules.MAX_MAP_BYTES + 1, allow_private=True)
    return fetched.body, fetched.url


def _is_site(target: str) -> bool:
    return target.startswith(("http://", "https://")) and urlsplit(target).path[-1:] in ("", "/")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _documents_of(target: str) -> dict[str, bytes]:
    """Read the document at an address or in a file; for a site, all documents at their specified addresses.

    Raises FetchRefused if a site has none.
    """
    if not _is_site(target):
        return {target: _read(target)[0]}
    bodies = dict[str, bytes]()
    failure: FetchRefused | None = None
    for path in (path for specification in specifications() for path in specification.paths):
        try:
            bodies[path] = _read(urljoin(target, path.lstrip("/")))[0]
        except FetchRefused as refused:
            failure = refused
    if failure is not None and not bodies:
        raise failure
    return bodies


def drift_of(target: str, *, browser: bool = False) -> tuple[Sequence[str], "Sequence[Drift]"]:
    """Return the paths of the declared pages of `module:app`, and their differences from its map."""
    from awp_publish.plugins.actions_json.drift import check_pages

    application = Application(target)
    site = application.site
    differences = asyncio.run(check_pages(application.app, lambda: site.catalog, browser=browser))
    return [page.path for page in site.catalog.pages], differences


def _check_with_imports(data: bytes, kind: str | None, address: str, lenient: bool) -> list[Finding]:
    """Check a document, and, for a map of actions.json, its imports, which are fetched within limits."""
    findings = check_document(data, kind, address, lenient=lenient)
    document = read_document(data).document or {}
    if document.get("protocol") != rules.PROTOCOL or not document.get("imports") or not _has_maps():
        return findings
    from awp_publish.plugins.actions_json.reading import ActionMap

    deadline = time.monotonic() + SECONDS

    def load_import(uri: str, base: str) -> Imported:
        is_web = base.startswith(("http://", "https://"))
        try:
            if is_web or uri.startswith(("http://", "https://")):
                # Only a map that is in this network itself may import from it.
                allow = is_web and is_private(urlsplit(base).hostname or "")
                remaining = max(0.1, deadline - time.monotonic())
                limit = rules.MAX_IMPORT_BYTES
                fetched = fetch_document(urljoin(base, uri), max_bytes=limit, allow_private=allow, seconds=remaining)
                body, place = fetched.body, fetched.url
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
    return findings + [finding if finding.document else replace(finding, document=address) for finding in composed]
