"""Requests to the site, its responses, and the pages made from these."""

import html
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, TypeAlias

from awp_publish.browsing.addresses import WebAddress
from awp_publish.browsing.errors import AwpError
from awp_publish.schema import JsonObject, media


@dataclass(frozen=True, slots=True)
class Fetch:
    """One request to this site.

    `path` is the request target in origin form: path and query, percent-encoded, including a mounted site's prefix.
    `headers` have lower-case names: `host` first, then a browser's, `cookie` and `content-type`, but no
    `content-length`. `origin` (`https://shop.example`) is the site's origin to which it goes. Redirects must not be
    followed: the session does that.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The site's response: the status, all headers in order (including every `set-cookie`), the whole body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)


Steps: TypeAlias = Generator[Fetch, Fetched, JsonObject]
"""A running method. Closing it (at a time limit, or because nobody waits) leaves the page as it was before."""
NO_CONTENT: Final = frozenset({204, 205})
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = re.compile(r"text/.*|application/(?:json|xml|javascript|ecmascript|x-ndjson)|.*\+(?:json|xml)")
_MAX_EXCERPT: Final = 500


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """A loaded page. `html` is the parsed source, `html_bytes` the length of the site's body.

    `charset` is that of the Content-Type header, or None. `digest` identifies the content.
    """

    address: WebAddress
    method: str
    status: int
    content_type: str
    charset: str | None
    html: bytes = field(repr=False)
    html_bytes: int
    digest: bytes = field(repr=False)

    @property
    def url(self) -> str:
        """The address of the document, without a fragment."""
        return self.address.document


def read_page(fetched: Fetched, address: WebAddress, method: str, max_bytes: int) -> LoadedPage:
    """Make a page from a response. Text and JSON become one preformatted text, as browsers show them.

    Raises:
        AwpError: NAVIGATION_FAILED if it is not a page: an error without an HTML body (MVP 4.4), a download,
            an image, a body that is too large, or compressed.
    """
    body, status = fetched.body, fetched.status
    content_type = header_of(fetched.headers, "content-type")
    if not content_type:  # HTML if it begins like HTML (a simplified MIME Sniffing 7.1)
        start = body.lstrip(b"\xef\xbb\xbf\t\n\f\r ")
        content_type = "text/html" if start[:1] == b"<" or not start else "text/plain"
    media_type = content_type.partition(";")[0].strip().lower()
    is_text, is_html = _TEXT.fullmatch(media_type) is not None, media_type in _HTML and (body or status < 300)
    charset = media.charset_of(content_type)
    problem = None
    if header_of(fetched.headers, "content-encoding").strip().lower() not in ("", "identity"):
        problem = "The answer is compressed, which the request does not accept"
    elif len(body) > max_bytes:
        problem = f"The answer is larger than {max_bytes} bytes"
    elif header_of(fetched.headers, "content-disposition").strip().lower().startswith("attachment"):
        problem = "The answer is a download, and downloads are not supported"
    elif not is_html and status >= 300:
        problem = f"The site answered {status} without a page"
    elif not is_html and not is_text:
        problem = f"The answer is {media_type}, which is not a page"
    if problem is not None:
        details: dict[str, object] = {"url": str(address), "status": status, "content_type": content_type}
        if status >= 400 and is_text:
            details["body"] = body[:_MAX_EXCERPT].decode("utf-8", "replace")
        raise AwpError("NAVIGATION_FAILED", problem, details)
    if not is_html:
        text = html.escape(media.decode(body, content_type)[0], quote=False)
        document = f"<!doctype html><title></title><body><pre>\n{text}</pre>"
        body, charset = document.encode("utf-8", "replace"), "utf-8"
    digest = blake2b(body, digest_size=16).digest()
    return LoadedPage(address, method, status, content_type, charset, body, len(fetched.body), digest)


def header_of(headers: Sequence[tuple[str, str]], name: str) -> str:
    """Return the first header with a name, or ""."""
    return next((value for key, value in headers if key.lower() == name), "")
