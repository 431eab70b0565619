"""The endpoint for pages of this site.

A page is requested anonymously, so its answer is public and may be cached. Pages of other origins may read it only if
`allow_origins` lists them; otherwise they could read sites behind a firewall.
"""

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from awp_publish.http.cors import Cors
from awp_publish.http.documents import prepare
from awp_publish.http.endpoint import Endpoint
from awp_publish.http.exchange import Reply
from awp_publish.http.origins import refuse_foreign_host
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.plugins.pages.formats import (
    BUDGETS,
    CONTENTS,
    FORMATS,
    USUAL_BUDGET,
    RequestedFormat,
    read_accept,
    read_content,
)
from awp_publish.plugins.pages.reader import PageReader
from awp_publish.plugins.pages.som import PATH, PROTOCOL
from awp_publish.problems import InvalidUrl


class SomDoor(Endpoint):
    """Answers with the directory of pages, or with the page that a request names."""

    methods = "GET, HEAD, OPTIONS"
    usage = "Pages are read with GET or HEAD"
    refuse_foreign = staticmethod(refuse_foreign_host)  # CORS decides what pages of other sites may read

    def __init__(self, reader: PageReader, own_origins: frozenset[str]) -> None:
        super().__init__(ProblemRenderer(reader.catalog), Cors(tuple(reader.settings.allow_origins)), own_origins)
        self._reader = reader
        self._directory = prepare(PROTOCOL.documents, reader.catalog, b"", {}, datetime.now(UTC))[PATH]

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer with the directory, or with the page at `url`, in the requested format (SOM by default)."""
        scope, fields = request.scope, request.fields
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        names, query = [name for name, _ in pairs], dict(pairs)
        for parameter in ("url", "format", "budget", "content"):
            if names.count(parameter) > 1:
                raise InvalidUrl(
                    f"{parameter} occurs {names.count(parameter)} times; percent-encode the address of the page."
                )
        if "url" not in query:
            await self._reply(request, self._directory.answer(scope["method"], scope["headers"]))
            return
        name, budget, content = query.get("format"), query.get("budget"), query.get("content")
        if (
            (name or "som") not in FORMATS
            or (budget or USUAL_BUDGET) not in BUDGETS
            or (content or "all") not in CONTENTS
        ):
            choices = " and ".join(", ".join(names) for names in (FORMATS, BUDGETS, CONTENTS))
            raise InvalidUrl(
                f"There is no such format, budget or content; there are {choices}.",
                recovery="Leave format, budget and content out, or use the values that detail names.",
            )
        accepted = read_accept(fields.get(b"accept", b"")).requested or RequestedFormat("som")
        chosen = FORMATS[name] if name else accepted.format
        amount = BUDGETS[budget] if budget else accepted.budget
        requested = RequestedFormat(
            chosen,
            amount if chosen == "som" else USUAL_BUDGET,
            by_query=name is not None,
            content=CONTENTS[content or "main"],
        )
        if content is None and requested.obeys_prefer:
            requested = replace(requested, content=read_content(fields.get(b"prefer", b"")))
        is_head = scope["method"] == "HEAD"
        reply = await self._reader.read(query["url"], requested, scope, request.receive, fields, is_head)
        await self._reply(request, reply)

    async def _reply(self, request: DoorRequest, reply: Reply) -> None:
        headers = (*reply.headers, *self._cors.headers(request.fields))
        await request.reply(Reply(reply.status, headers, reply.body))
