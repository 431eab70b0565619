"""Headers around a page that is made over: what the application is asked, and what is kept of its answer."""

import re
from typing import Final

from awp_publish.serve.negotiate_wish import ELEMENT, Wish
from awp_publish.serve.reply import NO_SNIFFING, Fields, Headers, RawHeaders

NOT_ASKED: Final = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"if-match",
        b"if-modified-since",
        b"if-none-match",
        b"if-range",
        b"if-unmodified-since",
        b"range",
        b"te",
    }
)
"""Headers that speak of the answer that the caller gets, which is not the one that the application gives."""

NOT_KEPT: Final = frozenset(
    {
        b"accept-ranges",
        b"content-digest",
        b"content-encoding",
        b"content-length",
        b"content-location",
        b"content-md5",
        b"content-range",
        b"content-type",
        b"digest",
        b"etag",
        b"repr-digest",
        b"trailer",
        b"transfer-encoding",
        b"vary",
    }
)
"""Headers that speak of the HTML itself. All others are kept: cookies, Cache-Control, security policies."""

NOT_IN_304: Final = frozenset({b"content-language", b"last-modified"})
"""RFC 9110 section 15.4.5: what describes content that is not sent."""

OF_SHARED_CACHES: Final = frozenset({"public", "private", "s-maxage", "proxy-revalidate"})
"""Directives of Cache-Control that speak of shared caches; `private` of some fields only is made one of all."""

CACHE_CONTROLS: Final = frozenset({b"cache-control", b"surrogate-control", b"edge-control", b"x-accel-expires"})
"""What caches in front of a site go by, and first by its own name (RFC 9213: CDN-Cache-Control and its like)."""

HTML_TYPES: Final = frozenset({b"text/html", b"application/xhtml+xml"})
VARY_BY_ACCEPT: Final = (b"vary", b"Accept")
_CHARSET: Final = re.compile(rb';\s*charset\s*=\s*"?([^\s";]+)', re.IGNORECASE)
_CANONICAL: Final = re.compile(rb'rel\s*=\s*"?[^",;]*\bcanonical\b', re.IGNORECASE)

ACCEPTED: Final = {
    "som": b"application/som+json, text/html;q=0.9, application/xhtml+xml;q=0.8, */*;q=0.1",
    "md": b"text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.8, */*;q=0.1",
}
"""An application that has the format itself may answer with it; it knows its pages best."""


def ask_application(headers: Headers, wish: Wish) -> list[tuple[bytes, bytes]]:
    """The headers of the request that the application gets: whole HTML, not encoded, under no condition."""
    return [*(pair for pair in headers if pair[0] not in NOT_ASKED), (b"accept", ACCEPTED[wish.format])]


def is_page(status: int, fields: Fields) -> bool:
    """Whether an answer is HTML to be read: a page, or a refusal in the form of a page."""
    is_whole = 200 <= status < 300 and status not in (204, 205, 206)
    return (is_whole or status >= 400) and media_type_of(fields) in HTML_TYPES


def media_type_of(fields: Fields) -> bytes:
    """The media type without its parameters."""
    return fields.get(b"content-type", b"").split(b";", 1)[0].strip().lower()


def charset_of(fields: Fields) -> str | None:
    """The charset of the Content-Type, None if it names none; then the page itself may name one."""
    found = _CHARSET.search(fields.get(b"content-type", b""))
    return found[1].decode("latin-1") if found else None


def vary_with_accept(fields: Fields) -> tuple[bytes, bytes] | None:
    """The Vary header of an answer that was chosen by Accept; None where it says so already."""
    given = fields.get(b"vary")
    if given is None:
        return VARY_BY_ACCEPT
    names = {name.strip().lower() for name in given.split(b",")}
    return None if names & {b"*", b"accept"} else (b"vary", given + b", Accept")


def keep_private(cache_control: bytes) -> bytes:
    """Cache-Control (RFC 9111 section 5.2) with which no shared cache keeps an answer; a browser does as it said."""
    directives = [part.strip() for part in ELEMENT.findall(cache_control.decode("latin-1")) if part.strip()]
    names = [directive.partition("=")[0].strip().lower() for directive in directives]
    kept = [one for one, name in zip(directives, names, strict=True) if name not in OF_SHARED_CACHES]
    return ", ".join(kept if "no-store" in names else ["private", *kept]).encode("latin-1")


def describe_rendition(
    headers: Headers,
    fields: Fields,
    status: int,
    varies: bool,
    is_private: bool,
    added: RawHeaders,
    canonical: bytes,
) -> RawHeaders:
    """The application's headers as they hold for a rendition, and `added`, which belong to it.

    `is_private` keeps it out of shared caches, of which many do not heed Vary: they would give it to a browser.
    """
    kept = [pair for pair in headers if pair[0].lower() not in NOT_KEPT]
    if is_private:
        kept = [pair for pair in kept if not _is_for_caches(pair[0].lower())]
        kept.append((b"cache-control", keep_private(fields.get(b"cache-control", b""))))
    vary = (vary_with_accept(fields) if varies else None) or ((b"vary", fields[b"vary"]) if b"vary" in fields else None)
    if vary is not None:
        kept.append(vary)
    if b"x-content-type-options" not in fields:
        kept.append(NO_SNIFFING)
    if 200 <= status < 300 and not _CANONICAL.search(fields.get(b"link", b"")):
        kept.append((b"link", b'<%b>; rel="canonical"' % canonical))
    return (*kept, *added)


def _is_for_caches(name: bytes) -> bool:
    return name in CACHE_CONTROLS or name.endswith(b"cdn-cache-control")


def of_304(headers: RawHeaders) -> RawHeaders:
    """The headers of a 304 in place of a 200 with these."""
    gone = NOT_IN_304 | {b"content-type", b"content-length", NO_SNIFFING[0]}
    return tuple(pair for pair in headers if pair[0] not in gone)
