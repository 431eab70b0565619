"""The command `synthesize`: agent.json and ai-actions.json for a site that has neither (agent.json, section 14).

Only what was seen is written: forms on pages, operations of an OpenAPI document, links between pages. It is marked as
synthetic, with a confidence: higher for a described operation than for a form that was never sent, and lower for a form
with a token of its page.
"""

import time
from argparse import Namespace
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

import orjson

from awp_publish.checks import check_documents
from awp_publish.cli.console import Console, write_json
from awp_publish.cli.fetching import FetchedDocument, FetchRefused, fetch_document
from awp_publish.cli.pages import SECONDS, require_parser
from awp_publish.documents.members import AGENT_JSON_PATH, AWAS_ALIAS_PATH, AWAS_PATH
from awp_publish.problems import DeclarationError

MAX_BYTES: Final = 2_000_000
"""Bytes of a page or document that `synthesize` reads."""

MAX_PAGES: Final = 200

REQUEST_SECONDS: Final = 10.0


def synthesize(console: Console, options: Namespace) -> int:
    """Read a site and write its documents below `out`, or print both. Returns 1 if there is nothing to write.

    Raises FetchRefused if the site cannot be read, DeclarationError for wrong options.
    """
    url: str = options.url
    out: Path | None = options.out
    if not 1 <= options.max_pages <= MAX_PAGES:
        raise DeclarationError("--max-pages", f"must be between 1 and {MAX_PAGES}.")
    require_parser()
    from awp_publish.cli.synthesize.crawling import read_site
    from awp_publish.cli.synthesize.documents import render_documents

    if "://" not in url:
        url = f"https://{url}"
    deadline = time.monotonic() + SECONDS

    def get(address: str, accept: str) -> FetchedDocument:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise FetchRefused(f"The site could not be read within {SECONDS:g} seconds.")
        return fetch_document(
            address,
            max_bytes=MAX_BYTES,
            allow_private=options.allow_private,
            seconds=min(REQUEST_SECONDS, remaining),
            accept=accept,
            stay=True,
        )

    own = []
    places = () if options.anyway else (AGENT_JSON_PATH, AWAS_PATH, AWAS_ALIAS_PATH)
    for address in (urljoin(url, path) for path in places):
        try:
            document = orjson.loads(get(address, "application/json").body)
        except (FetchRefused, ValueError):
            continue
        # A synthetic file is by another intermediary, not by the site.
        if isinstance(document, dict) and "actions" in document and document.get("source") != "synthetic":
            own.append(address)
    if own:
        console.say(f"{own[0]} is the site's own document, which agents read first. Use --anyway to ignore it.")
        console.json({"own": own})
        return 1
    site = read_site(console, get, url, options.max_pages)
    reasons = site.reasons()
    left_out = [{"at": at, "why": why} for at, why in reasons]
    left = [f"left    {at}: {why}" for at, why in reasons]
    if not site.seen:
        console.say(*left, f"{url}: no form, link or OpenAPI operation could be turned into an action.")
        console.json({"pages": list(site.pages), "left_out": left_out})
        return 1
    documents = render_documents(site)
    for finding in check_documents({path: orjson.dumps(document) for path, document in documents.items()}):
        if finding.level == "error":
            raise DeclarationError(url, "would have documents that are not valid.", str(finding))
    if out is not None:
        for path, document in documents.items():
            file = out / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
            console.say(str(file))
        console.table(
            ("action", "request", "#confidence", "seen at"),
            (
                (seen.action.id, f"{target.method} {target.path}", f"{seen.confidence:.2f}", seen.at)
                for seen in site.seen
                if (target := seen.action.target) is not None
            ),
        )
        console.say(*left)
        console.say(f"{len(site.pages)} pages, {len(site.seen)} actions. Read them before you publish them.")
    report = {"documents": documents, "pages": list(site.pages), "left_out": left_out}
    if out is None:
        write_json(report)
    else:
        console.json(report | {"files": [str(out / path.lstrip("/")) for path in documents]})
    return 0
