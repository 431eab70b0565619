"""`awp-publish show`, `export`, `robots`, `dns` and `traffic`: what an application publishes, printed or written."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

import orjson

from awp_publish.commands.application import Application, Published, get, get_with_headers, load, site_of
from awp_publish.commands.console import Console
from awp_publish.model import Action
from awp_publish.problems import DeclarationError, StoreUnavailable
from awp_publish.protocols import agent_card, mcp_server_card, som
from awp_publish.protocols.catalogues import ARD_PATH
from awp_publish.traffic import TrafficReport, describe_traffic

OF_THE_ANSWER: Final = frozenset(("content-length", "content-encoding", "date", "etag", "last-modified", "vary"))
"""Headers that a CDN makes itself, of the bytes that it sends."""

CAPABILITY_KEY: Final = "key65400"
WELL_KNOWN_KEY: Final = "key65409"
"""DNS-AID's `cap` and `well-known`, as its reference implementation numbers them: none is assigned yet (RFC 9460)."""

MAX_AID_BYTES: Final = 255
"""Bytes of one string of a TXT record."""


def show(console: Console, target: str, path: str | None, *, included: bool, tokens: bool) -> int:
    """Print what is published, or one document of it. Returns 1 for a document that is not there."""
    application = Application(target)
    if path is not None:
        status, headers, body = get_with_headers(application.app, path)
        text, kind = body.decode("utf-8", "replace"), dict(headers).get("content-type", "").partition(";")[0]
        if console.as_json and not kind.endswith("json"):
            console.json({"path": path, "status": status, "media_type": kind, "text": text})
        else:
            sys.stdout.write(f"{text}\n")
        return int(status != 200)
    if tokens:  # of four bytes; the same bytes are counted once
        by_body: dict[bytes, list[Published]] = {}
        for one in application.documents.values():
            by_body.setdefault(one.body, []).append(one)
        rows = sorted(by_body.values(), key=lambda group: len(group[0].body), reverse=True)
        prices = ((group[0].tokens, len(group[0].body), " = ".join(one.path for one in group)) for group in rows)
        console.table(("#tokens", "#bytes", "document"), prices)
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
        told = {"actions": list(taken), "pages": [page.path for page in pages]}
        console.json({**told, "left_out": [one._asdict() for one in site.left_out]})
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
    columns = ("action", "request", "effect", "policy", "description")
    console.table(
        columns,
        (
            (one["id"], f"{one['method']} {one['path']}", one["effect"], one["policy"], one["description"])
            for one in actions
        ),
    )
    console.heading("Left out")
    console.say(*left_out)
    documents = [_facts(one) for one in application.documents.values()]
    console.json({"documents": documents, "actions": actions, "left_out": [one._asdict() for one in site.left_out]})
    return 0


def _facts(one: Published) -> dict[str, object]:
    return {"path": one.path, "media_type": one.media_type, "bytes": len(one.body), "tokens": one.tokens}


def show_robots(console: Console, target: str) -> int:
    """Print the lines that robots.txt may have about the pages. Returns 1 where they are not given as SOM."""
    status, body = get(Application(target).app, som.PATH)
    if status != 200:
        print(f"awp-publish: {target} does not give its pages as SOM", file=sys.stderr)
        return 1
    lines = som.robots_lines_of(orjson.loads(body))
    if console.as_json:
        console.json({"lines": lines.splitlines()})
    else:
        sys.stdout.write(lines)
    return 0


def export(console: Console, target: str, folder: Path) -> int:
    """Write all documents below a folder, and their headers into its file `_headers` for a CDN of static files."""
    return export_documents(console, list(Application(target).documents.values()), folder)


def export_documents(console: Console, documents: Sequence[Published], folder: Path) -> int:
    """The same for documents that are at hand. Raises DeclarationError where a file would stand in a folder's place."""
    files = {PurePosixPath(one.path.lstrip("/")): one for one in documents}
    for file in files:
        if above := next((one for one in file.parents if one in files), None):
            raise DeclarationError(f"/{above}", f"would be a file and the folder of /{file}.", "Move one of them.")
    written: list[str] = []
    lines: list[str] = []
    for file, one in console.progress(files.items(), "Writing", len(files)):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.body)
        written.append(str(path))
        kept = [f"  {name.title()}: {value}" for name, value in one.headers if name not in OF_THE_ANSWER]
        lines += [one.path, *kept, ""]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_headers").write_text("\n".join(lines), encoding="utf-8")
    written.append(str(folder / "_headers"))
    console.say(*written)
    console.json({"files": written})
    return 0


def show_dns(console: Console, target: str) -> int:
    """Print the DNS records by which agents find the doors, to paste into the zone.

    DNS-AID (draft-mozleywilliams-dnsop-dnsaid-02): SVCB records in ServiceMode below `_agents`, one for each agent
    protocol, with the document that describes it, and one for the index of the domain. AID (draft-nemethi-dawn-aid-00):
    one TXT record at `_agent`, since clients take two of a version for an ambiguity.
    """
    application = Application(target)
    catalog = application.site.catalog
    parts = urlsplit(catalog.url)
    if parts.scheme != "https":
        remedy = "Set Site(url=...) to its public address: both drafts ask for https."
        raise DeclarationError(f"site.url {catalog.url}", "is no https address.", remedy)
    domain = catalog.domain.encode("idna").decode() if not catalog.domain.isascii() else catalog.domain
    port = parts.port or 443
    doors = [door for door in catalog.doors if door.protocol in ("mcp", "a2a")]
    cards = {"mcp": mcp_server_card.address_of(catalog), "a2a": agent_card.PATH}

    def service(alpn: str, card: str | None, key: str, value: str) -> str:
        beside = f' {key}="{value}"' if card in application.documents else ""
        return f'1 {domain}. mandatory="alpn,port" alpn="{alpn}" port="{port}"{beside}'

    index = service("h2", ARD_PATH, WELL_KNOWN_KEY, ARD_PATH.removeprefix("/.well-known/"))
    records = [("SVCB", f"_index._agents.{domain}.", index)]
    for door in doors:
        card = cards[door.protocol]
        value = service(f"{door.protocol},h2", card, CAPABILITY_KEY, catalog.absolute(card))
        records.append(("SVCB", f"_{door.protocol}._agents.{domain}.", value))
    first = min(doors, key=lambda door: door.protocol != "mcp", default=None)
    if first is not None:
        address, protocol = catalog.absolute(first.path), first.protocol
    elif catalog.openapi is not None:
        address, protocol = catalog.absolute(catalog.openapi.path), "openapi"
    else:
        address = protocol = ""
    comments = [
        "; DNS-AID: where agents of this domain are. Sign the zone (DNSSEC): without it the answers prove nothing.",
        "; AID: the one address with which to begin.",
    ]
    if address:
        known = catalog.site.authentication
        auth = ";a=oauth2_code" if known is not None and known.type == "oauth2" else ""
        text = f"v=aid2;u={address};p={protocol}{auth}"
        name = "".join(sign for sign in catalog.site.name if sign.isprintable() and sign not in ';"\\')
        named = f"{text};s={name}"
        if len(text.encode()) > MAX_AID_BYTES:
            raise DeclarationError(f"site.url {catalog.url}", "is too long for a TXT record.", "Use a shorter one.")
        text = named if len(named.encode()) <= MAX_AID_BYTES else text
        records.append(("TXT", f"_agent.{domain}.", f'"{text}"'))
    for kind, comment in zip(("SVCB", "TXT"), comments, strict=True):
        lines = [f"{name} 3600 IN {of} {value}" for of, name, value in records if of == kind]
        console.say(*([comment, *lines] if lines else ()))
    console.json({"records": [{"name": name, "ttl": 3600, "type": of, "value": value} for of, name, value in records]})
    return 0


def show_traffic(console: Console, target: str, days: int) -> int:
    """Print who called what in so many days, and how it ended."""
    site = site_of(load(target))
    if site is None:
        raise DeclarationError(target, "AgentPublisher is not in it.", "Name the application that it was added to.")
    record = site.traffic
    if record is None:
        print(f"awp-publish: {target} keeps no traffic: it has Site(traffic=False)", file=sys.stderr)
        return 1

    async def read() -> TrafficReport:
        try:
            return await record.read(days)
        finally:
            await site.store.close()

    try:
        report = asyncio.run(read())
    except StoreUnavailable as problem:
        print(f"awp-publish: {problem.detail}", file=sys.stderr)
        return 2
    if not site.store.is_shared:
        told = (
            'its store is the memory of its own process, which nobody else sees; give Site(store="sqlite:///agents.db")'
        )
        print(f"awp-publish: {target}: {told}", file=sys.stderr)
    if console.as_json:
        for line in report.lines():
            sys.stdout.write(orjson.dumps(line).decode() + "\n")
    else:
        console.say(describe_traffic(report))
    return 0
