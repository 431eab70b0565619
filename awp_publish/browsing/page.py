"""`Page`: an answer of the site as a session keeps it: where it came from, its HTML, nothing that can be made anew."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NoReturn

from awp_publish.browsing.addresses import Address
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.fetching import Fetched

NO_CONTENT: Final = frozenset({204, 205})
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = re.compile(r"text/.*|application/(?:json|xml|javascript|ecmascript|x-ndjson)|.*\+(?:json|xml)")
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_EXCERPT: Final = 500


@dataclass(frozen=True, slots=True)
class Page:
    """A loaded page. `html` is what is parsed, `html_bytes` the length of what the site sent.

    `charset` is the one of the answer's header, None where it says none. `digest` identifies the content.
    """

    address: Address
    method: str
    status: int
    content_type: str
    charset: str | None
    html: bytes = field(repr=False)
    html_bytes: int
    digest: bytes = field(repr=False)

    @property
    def url(self) -> str:
        """The address of the document, without a fragment: two places of one page are one page."""
        return self.address.document


def read_page(fetched: Fetched, address: Address, method: str, largest: int) -> Page:
    """The page that an answer is.

    Text and JSON become a page of one preformatted text, as browsers show them.

    Raises:
        AwpError: NAVIGATION_FAILED for what is not a page: an error without an HTML body (MVP 4.4), a download, a
            picture, a body that is larger than allowed, or compressed.
    """
    content_type = header_of(fetched.headers, "content-type") or _sniff(fetched.body)
    media_type = content_type.partition(";")[0].strip().lower()
    if header_of(fetched.headers, "content-encoding").strip().lower() not in ("", "identity"):
        _fail("The answer is compressed, which nobody asked for", fetched, address, content_type)
    if len(fetched.body) > largest:
        _fail(f"The answer is larger than {largest} bytes", fetched, address, content_type)
    if header_of(fetched.headers, "content-disposition").strip().lower().startswith("attachment"):
        _fail("The answer is a download, and downloads are not kept", fetched, address, content_type)
    found = _CHARSET.search(content_type)
    charset = found[1] if found else None
    if media_type in _HTML and (fetched.body or fetched.status < 300):
        body = fetched.body
    elif fetched.status >= 300:
        _fail(f"The site answered {fetched.status} without a page", fetched, address, content_type)
    elif _TEXT.fullmatch(media_type):
        body, charset = _as_html(fetched.body, charset), "utf-8"
    else:
        _fail(f"The answer is {media_type}, which is not a page", fetched, address, content_type)
    digest = blake2b(body, digest_size=16).digest()
    return Page(address, method, fetched.status, content_type, charset, body, len(fetched.body), digest)


def header_of(headers: Sequence[tuple[str, str]], name: str) -> str:
    """The first field of a name, "" for none."""
    return next((value for said, value in headers if said.lower() == name), "")


def _sniff(body: bytes) -> str:
    """What an answer without a type is: HTML if it begins like it (MIME Sniffing 7.1, in short)."""
    start = body.lstrip(b"\xef\xbb\xbf\t\n\f\r ")
    return "text/html" if start[:1] == b"<" or not start else "text/plain"


def _as_html(body: bytes, charset: str | None) -> bytes:
    try:
        text = body.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        text = body.decode("utf-8", "replace")
    return f"<!doctype html><title></title><body><pre>\n{html.escape(text, quote=False)}</pre>".encode(
        "utf-8", "replace"
    )


def _fail(message: str, fetched: Fetched, address: Address, content_type: str) -> NoReturn:
    details: dict[str, object] = {"url": str(address), "status": fetched.status, "content_type": content_type}
    if fetched.status >= 400 and _TEXT.fullmatch(content_type.partition(";")[0].strip().lower()):
        details["body"] = fetched.body[:_EXCERPT].decode("utf-8", "replace")
    raise AwpError("NAVIGATION_FAILED", message, details)
