"""The endpoint for pages of this site: `?url=` gives one as SOM or Markdown, without it stands the directory.

A page is fetched as somebody who is not known would see it, so its answer is public, and caches may keep it. Another
site's pages may read it only if they are among `allow_origins`: a site behind a firewall is not opened to the world.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl

from awp_publish.model import Door
from awp_publish.problems import InvalidUrl, MethodNotAllowed, Problem
from awp_publish.protocols.som import DOOR, PATH, PROTOCOL, SOM_VERSION
from awp_publish.serve.cors import Cors
from awp_publish.serve.credentials import refuse_foreign_host
from awp_publish.serve.documents import Prepared, prepare
from awp_publish.serve.exchange import Exchange, Telling
from awp_publish.serve.negotiate_wish import BUDGETS, FORMATS, Wish, read_accept
from awp_publish.serve.page_reading import PageReader
from awp_publish.serve.reply import Fields, Receive, Reply, Scope, Send, read_fields, send_reply
from awp_publish.site import Site

METHODS: Final = "GET, HEAD, OPTIONS"


def describe_pages(site: Site) -> tuple[Door, ...]:
    """What the documents may say about the endpoint: nothing where pages are HTML only."""
    return (Door(DOOR, SOM_VERSION, site.paths.som),) if site.offering.pages else ()


def open_som(reader: PageReader, own_hosts: frozenset[str]) -> "SomDoor":
    """Make the door."""
    directory = prepare(PROTOCOL.documents, reader.catalog, b"", {}, datetime.now(UTC))
    return SomDoor(reader, directory[PATH], own_hosts)


@dataclass(frozen=True, slots=True)
class SomDoor:
    """Answers at the endpoint of one address."""

    reader: PageReader
    directory: Prepared
    own_hosts: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fields, cors = read_fields(scope["headers"]), Cors(self.reader.site.limits.allow_origins)
        if scope["method"] == "OPTIONS":
            await send_reply(cors.preflight(fields, METHODS), send)
            return
        try:
            reply = await self._reply(scope, fields, receive)
        except Problem as problem:
            telling = Telling(self.reader.catalog)
            await Exchange(telling, scope, fields, cors.headers(fields), send).deliver(problem)
        else:
            await send_reply(Reply(reply.status, (*reply.headers, *cors.headers(fields)), reply.body), send)

    async def _reply(self, scope: Scope, fields: Fields, receive: Receive) -> Reply:
        refuse_foreign_host(fields, self.own_hosts)
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed(f"Pages are read: use one of {METHODS}.", headers=[("Allow", METHODS)])
        given = _read_query(scope["query_string"])
        if "url" not in given:
            return self.directory.answer(scope["method"], scope["headers"])
        wish = _read_wish(given, fields)
        return await self.reader.read(given["url"], wish, scope, receive, fields, scope["method"] == "HEAD")


def _read_query(query: bytes) -> dict[str, str]:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    names = [name for name, _ in pairs]
    for name in ("url", "format", "budget"):
        if names.count(name) > 1:
            raise InvalidUrl(f"{name} is given {names.count(name)} times; percent-encode what belongs to the page.")
    return dict(pairs)


def _read_wish(given: Mapping[str, str], fields: Fields) -> Wish:
    """The format by its name, else by Accept, else SOM."""
    accepted = read_accept(fields.get(b"accept", b"")).wish
    name, budget = given.get("format"), given.get("budget")
    if (name or "som") not in FORMATS or (budget or "full") not in BUDGETS:
        raise InvalidUrl(
            f"There is no such format or budget; there are {', '.join(FORMATS)} and {', '.join(BUDGETS)}.",
            recovery="Leave format and budget out, or use one that detail names.",
        )
    chosen = FORMATS[name] if name else accepted.format if accepted else "som"
    amount = next((one for one in BUDGETS if one == budget), accepted.budget if accepted else "full")
    return Wish(chosen, amount if chosen == "som" else "full", by_query=name is not None)
