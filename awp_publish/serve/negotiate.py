"""Pages of the application as SOM or Markdown, where a request asks for them (RFC 9110 section 12.1).

Nothing here does I/O. `Pages.asked` reads a request, `Asked.scope` is the request that the application gets in its
place, and `Asked.answer` makes of the application's HTML what was asked for. `negotiate_exchange.py` joins them for
ASGI; an adapter of another gateway calls the same three.

What is no HTML page passes as it is (a redirect, an image, an answer that the application itself gives in the format),
and so does a page that is too large, or in a content coding that cannot be undone here.
"""

import re
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import quote

from awp_publish.model import Catalog
from awp_publish.serve.negotiate_coding import is_decodable
from awp_publish.serve.negotiate_formats import FORMATS, PLAIN, QUICK, Renditions, Source
from awp_publish.serve.negotiate_headers import (
    HTML_TYPES,
    ask_application,
    charset_of,
    describe_rendition,
    is_page,
    media_type_of,
    of_304,
    vary_with_accept,
)
from awp_publish.serve.negotiate_memory import Rendition
from awp_publish.serve.negotiate_wish import Wish, read_accept, read_query
from awp_publish.serve.reply import Fields, Headers, RawHeaders, Reply, Scope, mount_of, read_fields, route_path
from awp_publish.settings import Offering

READING: Final = frozenset({"GET", "HEAD"})
_TAG: Final = re.compile(rb'(W/)?("[^"]*")')
"""An entity tag (RFC 9110 section 8.8.3)."""

BYTES_OF_A_TOKEN: Final = 4
"""Of English text, about; the header x-markdown-tokens is an estimate."""


class Pages:
    """The pages of one public address of a site, which never comes from a request."""

    def __init__(self, catalog: Catalog, offering: Offering, renditions: Renditions) -> None:
        self.in_query = offering.in_query
        self.renditions = renditions
        self._in_shared_cache = offering.in_shared_cache
        self._url = catalog.url

    def asked(self, scope: Scope) -> "Asked | None":
        """What a request for a page asks for besides HTML, None for nothing: then the request is the application's."""
        if scope["method"] not in READING:
            return None
        fields = read_fields(scope["headers"])
        query: bytes = scope["query_string"]
        wish, left = read_query(query) if self.in_query else (None, query)
        if wish is None and b"accept" in fields:
            wish = read_accept(fields[b"accept"]).wish
        if wish is None:
            return None
        inner = {
            **scope,
            "method": "GET",  # what HEAD is told of the content, only the content tells
            "query_string": left,
            "headers": ask_application(scope["headers"], wish),
            "extensions": {},  # the server's shortcuts for sending files would go round us
        }
        url = self._url + path_and_query(scope, left)
        is_head, location = scope["method"] == "HEAD", self._location(wish, url)
        return Asked(wish, url, inner, fields, self.renditions, is_head, location, self._in_shared_cache)

    def _location(self, wish: Wish, url: str) -> bytes | None:
        """RFC 9110 section 8.7: an address that is the rendition's own. Without `?format=` there is none."""
        if not self.in_query:
            return None
        budget = f"&budget={wish.budget}" if wish != Wish(wish.format, by_query=wish.by_query) else ""
        return f"{url}{'&' if '?' in url else '?'}format={wish.format}{budget}".encode("latin-1")


def path_and_query(scope: Scope, query: bytes) -> str:
    """A request's target below the site's url, as its client wrote it, fit to stand in a header."""
    raw = scope.get("raw_path")
    written = raw.split(b"?", 1)[0].decode("latin-1") if raw else quote(scope["path"])
    root = quote(mount_of(scope))
    path = written[len(root) :] if written.startswith(root) else quote(route_path(scope))
    asked = f"?{quote(query, safe=PLAIN + '/')}" if query else ""
    return quote(path, safe=PLAIN.replace("?", "")) + asked


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a page in another format. `scope` is the request for the page itself.

    `in_shared_cache` says that shared caches may keep what Accept has chosen, since they heed Vary.
    """

    wish: Wish
    url: str
    scope: Scope
    fields: Fields = field(repr=False)
    renditions: Renditions
    is_head: bool = False
    location: bytes | None = None
    in_shared_cache: bool = False

    def takes(self, status: int, headers: Headers) -> bool:
        """Whether an answer that begins like this is made over; any other passes as it is."""
        fields = read_lower(headers)
        return is_page(status, fields) and is_decodable(fields.get(b"content-encoding", b""))

    def passed(self, headers: Headers) -> Headers:
        """The headers of an answer that passes as it is. HTML was chosen: the next page here may be made over."""
        fields = read_lower(headers)
        is_chosen = media_type_of(fields) in HTML_TYPES and not self.wish.by_query
        vary = vary_with_accept(fields) if is_chosen else None
        return headers if vary is None else [*(pair for pair in headers if pair[0].lower() != b"vary"), vary]

    def source(self, headers: Headers, body: bytes) -> Source:
        """The page, told by its content."""
        fields = read_lower(headers)
        coding = fields.get(b"content-encoding", b"")
        return self.renditions.source(self.wish, self.url, charset_of(fields), coding, body)

    def is_quick(self, source: Source, body: bytes) -> bool:
        """Whether `answer` takes so little time that an event loop may wait for it."""
        return (len(body) <= QUICK and not source.coding) or self.renditions.remembered(source) is not None

    def answer(self, status: int, headers: Headers, body: bytes, source: Source | None = None) -> Reply | None:
        """The reply to the request, of the application's answer to `scope`; None where that has to pass as it is."""
        if not self.takes(status, headers):
            return None
        source = source or self.source(headers, body)
        rendition = self.renditions.remembered(source) or self.renditions.make(source, body)
        return None if rendition is None else self._reply(status, headers, rendition)

    def _reply(self, status: int, headers: Headers, rendition: Rendition) -> Reply:
        fields = read_lower(headers)
        varies = not self.wish.by_query
        is_private = varies and not self.in_shared_cache
        own = self._own(status, rendition)
        described = describe_rendition(headers, fields, status, varies, is_private, own, rendition.canonical)
        outcome = self._condition(fields, rendition.etag) if status == 200 else 200
        if outcome == 304:
            return Reply(304, of_304(described))
        if outcome == 412:
            return Reply(412, ((b"content-length", b"0"), *of_304(described)))
        return Reply(status, described, b"" if self.is_head else rendition.body)

    def _own(self, status: int, rendition: Rendition) -> RawHeaders:
        own = [
            (b"content-type", FORMATS[self.wish.format].media_type),
            (b"content-length", b"%d" % len(rendition.body)),
        ]
        if self.wish.format == "md":
            own.append((b"x-markdown-tokens", b"%d" % -(-len(rendition.body) // BYTES_OF_A_TOKEN)))
        if status == 200:
            own.append((b"etag", rendition.etag))
            if self.location is not None:
                own.append((b"content-location", self.location))
        return tuple(own)

    def _condition(self, answered: Fields, etag: bytes) -> int:
        """RFC 9110 section 13.2.2, in its order; the caller's conditions are about the rendition and not the HTML."""
        asked, modified = self.fields, answered.get(b"last-modified", b"")
        if b"if-match" in asked:
            if not _is_listed(asked[b"if-match"], etag, weakly=False):
                return 412
        elif b"if-unmodified-since" in asked and _is_since(asked[b"if-unmodified-since"], modified) is False:
            return 412
        if b"if-none-match" in asked:
            return 304 if _is_listed(asked[b"if-none-match"], etag, weakly=True) else 200
        return 304 if _is_since(asked.get(b"if-modified-since", b""), modified) else 200


def read_lower(headers: Headers) -> Fields:
    """Headers by name in lower case, which an application may have missed to write."""
    return read_fields([(name.lower(), value) for name, value in headers])


def _is_listed(listed: bytes, etag: bytes, weakly: bool) -> bool:
    """Section 13.1.1: one star, or tags. A comma or a star within quotes is part of a tag."""
    if listed.strip() == b"*":
        return True
    return any(tag == etag and (weakly or not weak) for weak, tag in _TAG.findall(listed))


def _is_since(asked: bytes, modified: bytes) -> bool | None:
    """Whether what was modified then has not changed since; None where one of the dates is none, or is not known."""
    try:
        since, last = (parsedate_to_datetime(text.decode("latin-1")) for text in (asked, modified))
        return last <= since
    except (ValueError, TypeError, OverflowError):
        return None
