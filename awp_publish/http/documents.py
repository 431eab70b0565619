"""Documents with prepared replies: after the first request, an answer is a dict lookup and a choice of variant.

The bytes are rendered when the site is frozen. ETags, compressed variants, headers and 304 replies are made at the
first request, because most documents of a site are never requested.
"""

import gzip
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Final, final

from awp_publish.documents.protocol import Document, views_of
from awp_publish.http.accept import MAX_NEGOTIATION, choose_coding
from awp_publish.http.cors import ANY_ORIGIN, preflight
from awp_publish.http.exchange import NO_SNIFFING, Fields, Pair, RawHeaders, Reply, read_fields
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.model import Catalog
from awp_publish.problems import DeclarationError, MethodNotAllowed, noting

METHODS: Final = "GET, HEAD, OPTIONS"

LARGE: Final = 262_144
"""Bytes from which a document is compressed at a faster level, so that the first request does not take too long."""

IDENTITY: Final = "identity"


@dataclass(frozen=True, slots=True)
class Variant:
    """One representation: the replies to GET and HEAD, and the 304."""

    etag: bytes
    full: Reply
    head: Reply
    unchanged: Reply


class Encodings:
    """The bytes of a document, shared by all of its paths. `encoded` has them by content coding, the best first."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.body).hexdigest()[:32]

    @cached_property
    def encoded(self) -> Mapping[str, bytes]:
        level = 5 if len(self.body) > LARGE else 9
        compressed = ((coding, compress(self.body, level)) for coding, compress in _COMPRESSORS)
        return {coding: data for coding, data in compressed if len(data) < len(self.body)} | {IDENTITY: self.body}


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """One document, ready to be served. `headers` are common to all of its representations."""

    encodings: Encodings
    headers: RawHeaders
    modified: datetime
    media_type: str

    @property
    def body(self) -> bytes:
        """The uncompressed bytes."""
        return self.encodings.body

    @property
    def codings(self) -> tuple[str, ...]:
        return tuple(self.encodings.encoded)

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """The representations, one per content coding."""
        variants, digest = [], self.encodings.digest
        for coding, data in self.encodings.encoded.items():
            etag = (f'"{digest}"' if coding == IDENTITY else f'"{digest}-{coding}"').encode()
            headers = (*self.headers, (b"etag", etag))
            marked = headers if coding == IDENTITY else (*headers, (b"content-encoding", coding.encode()))
            sized = (*marked, (b"content-length", b"%d" % len(data)))
            unchanged = tuple(pair for pair in headers if pair[0] not in (b"content-type", b"x-content-type-options"))
            variants.append(Variant(etag, Reply(200, sized, data), Reply(200, sized), Reply(304, unchanged)))
        return tuple(variants)

    @cached_property
    def whole(self) -> Reply:
        """The reply to a request for all of it, as it is."""
        return self.variants[-1].full

    def answer(self, method: str, headers: Sequence[Pair]) -> Reply:
        """Return the reply to a request, by method, `Accept-Encoding` and conditional headers (RFC 9110 section 13)."""
        fields: Fields = dict(headers)
        if len(fields) != len(headers):
            fields = read_fields(headers)
        accepted, none_match, since = fields.get(b"accept-encoding"), fields.get(b"if-none-match"), None
        if not _DATES_AND_MATCHES.isdisjoint(fields):
            required, unless = fields.get(b"if-match"), fields.get(b"if-unmodified-since")
            is_conditional = (required is not None or unless is not None) and method in ("GET", "HEAD")
            if is_conditional and self._has_changed(required, unless):
                return _CHANGED
            since = fields.get(b"if-modified-since")
        if accepted is None and none_match is None and since is None and method == "GET":
            return self.whole
        if (
            (accepted is not None and len(accepted) > MAX_NEGOTIATION)
            or (none_match is not None and len(none_match) > MAX_NEGOTIATION)
            or (since is not None and len(since) > MAX_NEGOTIATION)
        ):
            accepted = none_match = since = None  # not worth a place in the cache
        return _decide(self, method, accepted, none_match, since)

    def _has_changed(self, required: bytes | None, unless: bytes | None) -> bool:
        """Return True if If-Match, compared strongly (RFC 9110 section 13.1.1), or else If-Unmodified-Since fails."""
        if required is None:
            date = _date(unless or b"")
            return date is not None and self.modified > date
        tags = {tag.strip() for tag in required.split(b",")}
        return required.strip() != b"*" and not any(variant.etag in tags for variant in self.variants)


_DATES_AND_MATCHES: Final = frozenset({b"if-match", b"if-modified-since", b"if-unmodified-since"})
"""The headers of conditions that few clients send."""


@lru_cache(maxsize=256)
def _decide(
    document: Prepared, method: str, accepted: bytes | None, none_match: bytes | None, since: bytes | None
) -> Reply:
    """Choose the reply. Cached, because clients send the same few headers and parsing them takes longer."""
    if method != "GET" and method != "HEAD":
        return _PREFLIGHT if method == "OPTIONS" else _NOT_ALLOWED
    variant = document.variants[-1 if accepted is None else choose_coding(accepted, document.codings)]
    # If-None-Match is compared weakly (section 13.1.2); If-Modified-Since counts only without it (section 13.1.3).
    is_unchanged = False
    if none_match is not None:
        tags = {tag.strip().removeprefix(b"W/") for tag in none_match.split(b",")}
        is_unchanged = variant.etag in tags or none_match.strip() == b"*"
    elif since is not None:
        date = _date(since)
        is_unchanged = date is not None and document.modified <= date
    if is_unchanged:
        return variant.unchanged
    return variant.full if method == "GET" else variant.head


def _date(value: bytes) -> datetime | None:
    """Return the time in a header, None if it is not a valid date."""
    try:
        date = parsedate_to_datetime(value.decode("latin-1"))
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else None


def refuse_shared_paths(documents: Iterable[Document], catalog: Catalog) -> None:
    """Raise DeclarationError for two documents at one path, and for one at none."""
    taken = set[str]()
    for document in documents:
        path = document.path_in(catalog)
        if path in taken or not path.startswith("/"):
            wrong = "two would be served at this path." if path in taken else "its path has no slash before it."
            remedy = "Give that of the plug-in a path of its own, or leave the other one out: About(leave_out=[...])."
            raise DeclarationError(f"document {path}", wrong, remedy)
        taken.add(path)


def prepare(
    documents: Iterable[Document], catalog: Catalog, link: bytes, before: Mapping[str, Prepared], now: datetime
) -> dict[str, Prepared]:
    """Render every document of a catalog. Returns them by path. Raises DeclarationError.

    A document with the same bytes as in `before` keeps its date, so that caches stay valid. `link` is the Link header
    (RFC 8288) of all documents. `Last-Modified` is the site's declared `updated`, or `now`.
    """
    modified = catalog.site.updated if not before and catalog.site.updated else now
    rendered: dict[object, Encodings] = {}
    prepared, view = {}, views_of(catalog)
    for document in documents:
        way, path = (document.render, document.door), document.path_in(catalog)
        if way not in rendered:
            with noting(f"render of the document {path}"):
                body: object = document.render(view(document))
            if not isinstance(body, bytes):
                wrong = f"what renders it returned {type(body).__name__}."
                raise DeclarationError(f"document {path}", wrong, "Return bytes.")
            rendered[way] = Encodings(body)
        old = before.get(path)
        if old is not None and old.body == rendered[way].body:
            prepared[path] = old
            continue
        prepared[path] = prepare_one(document, rendered[way], modified, link)
    return prepared


def prepare_one(document: Document, encodings: Encodings, modified: datetime, link: bytes = b"") -> Prepared:
    """Return a document with the headers that all documents have. A date without a zone is read as UTC."""
    modified, last_modified = _last_modified(modified)
    seconds = document.max_age  # and as long again while a cache asks for the new one (RFC 5861, section 3)
    headers: RawHeaders = (
        (b"content-type", document.media_type.encode()),
        (b"cache-control", f"public, max-age={seconds}, stale-while-revalidate={seconds}".encode()),
        (b"vary", b"Accept-Encoding"),
        (b"last-modified", last_modified),
        ANY_ORIGIN,
        (b"access-control-expose-headers", b"ETag, Link"),
        NO_SNIFFING,
        *(((b"link", link),) if link else ()),
        *((name.lower().encode(), value.encode()) for name, value in document.headers),
    )
    return Prepared(encodings, headers, modified, document.media_type.split(";", 1)[0])


@lru_cache(maxsize=8)  # all documents of a start have the same
def _last_modified(date: datetime) -> tuple[datetime, bytes]:
    """Return a date in UTC without the fractions that HTTP dates have not got, and its header."""
    date = (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0)
    return date, format_datetime(date, usegmt=True).encode()


_COMPRESSORS: Final[list[tuple[str, Callable[[bytes, int], bytes]]]] = [
    ("gzip", lambda body, level: gzip.compress(body, level, mtime=0)),  # without mtime, the bytes are reproducible
]

try:
    _brotli = import_module("brotli")
except ImportError:  # its extra is not installed
    pass
else:

    def _compress_brotli(body: bytes, level: int) -> bytes:
        # For a few kilobytes, the default window of 4 MiB takes ten times as long as one of the document's size.
        window = min(max(len(body).bit_length(), 10), 22)
        return bytes(_brotli.compress(body, quality=level, lgwin=window))

    _COMPRESSORS.insert(0, ("br", _compress_brotli))

_PREFLIGHT: Final = preflight(METHODS)

_NOT_ALLOWED: Final = ProblemRenderer(None).reply(
    MethodNotAllowed(f"Documents are read-only: use one of {METHODS}.", headers=[("Allow", METHODS)]),
    extra=(ANY_ORIGIN,),
)

_CHANGED: Final = Reply(412, ((b"content-length", b"0"), ANY_ORIGIN))
"""412 Precondition Failed (RFC 9110 section 15.5.13)."""
