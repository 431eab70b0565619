"""Fetches documents for commands that a person runs; nothing here is used while a site is served.

Connections are made to the very IP addresses that were resolved and checked, so that a name cannot be rebound
meanwhile.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urljoin

from awp_publish.checks.urls import is_private, split
from awp_publish.http.networks import connect_to_first, is_public_address

SECONDS: Final = 10.0
MAX_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_PIECE: Final = 65_536


class FetchRefused(OSError):
    """A document that must not, or cannot, be fetched. The message says why."""


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A document, the address that it came from, and its media type and charset according to the server, or ""."""

    body: bytes
    url: str
    media_type: str = ""
    charset: str = ""


def fetch(url: str, *, max_bytes: int, allow_private: bool = False, seconds: float = SECONDS) -> tuple[bytes, str]:
    """Return the body at an address and the address that it came from. Raises FetchRefused."""
    fetched = fetch_document(url, max_bytes=max_bytes, allow_private=allow_private, seconds=seconds)
    return fetched.body, fetched.url


def fetch_document(
    url: str,
    *,
    max_bytes: int,
    allow_private: bool = False,
    seconds: float = SECONDS,
    accept: str = "application/json",
    stay: bool = False,
) -> FetchedDocument:
    """Return the document at an address. Raises FetchRefused.

    With `allow_private` it may be on this machine or its network; with `stay`, redirects to another origin are refused.
    No credentials are sent, redirects are checked like addresses, and a document that is longer than `max_bytes` or
    takes longer than `seconds` is not read.
    """
    deadline = time.monotonic() + seconds
    for _ in range(MAX_REDIRECTS + 1):
        parts = split(url)
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise FetchRefused(f"{url[:200]} is not an http(s) address.")
        if parts.username is not None or parts.password is not None:
            raise FetchRefused("An address with a user name or a password in it is not fetched.")
        connection = _connect(parts, allow_private, deadline)
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = {"Host": parts.netloc, "Accept": accept, "User-Agent": "awp-publish"}
            connection.request("GET", path, headers=headers | {"Accept-Encoding": "identity", "Connection": "close"})
            with connection.getresponse() as response:
                location = response.headers.get("Location")
                if response.status in _REDIRECTS and location:
                    there = urljoin(url, location)
                    if parts.scheme == "https" and not there.startswith("https:"):
                        raise FetchRefused(f"{url} leads to an address that is not encrypted.")
                    target = split(there)
                    if stay and (target is None or origin_of(target) != origin_of(parts)):
                        raise FetchRefused(f"{url} leads to another site: {there[:200]}.")
                    url = there
                    continue
                if response.status != 200:
                    raise FetchRefused(f"{url} answered with the status {response.status}.")
                body = bytearray()
                while piece := response.read1(_PIECE):
                    body += piece
                    if len(body) > max_bytes:
                        raise FetchRefused(f"{url} has more than {max_bytes} bytes.")
                    if time.monotonic() > deadline:
                        raise FetchRefused(f"{url} took longer than {seconds:g} seconds.")
                charset = response.headers.get_content_charset("")
                kind = response.headers.get_content_type() if "Content-Type" in response.headers else ""
                return FetchedDocument(bytes(body), url, kind, charset)
        except (http.client.HTTPException, ValueError) as error:
            raise FetchRefused(f"{url} did not answer as a web server does: {error}.") from error
        except (TimeoutError, ssl.SSLError, ConnectionError) as error:
            raise FetchRefused(f"{url} could not be fetched: {error}.") from error
        finally:
            connection.close()
    raise FetchRefused(f"{url} leads to more than {MAX_REDIRECTS} other addresses.")


def origin_of(parts: SplitResult) -> tuple[str, str, int]:
    """Return scheme, host and port of an address, with the default port of the scheme."""
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)


def _connect(parts: SplitResult, allow_private: bool, deadline: float) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchRefused(f"{host} is not known: {error}.") from error
    addresses = [str(entry[4][0]) for entry in found]
    if not allow_private and (is_private(host) or not all(is_public_address(one) for one in addresses)):
        raise FetchRefused(f"{host} is on this machine or in its own network, and is not fetched.")
    left = deadline - time.monotonic()
    if left <= 0:
        raise FetchRefused(f"{host} was not reached in time.")
    try:
        connected = connect_to_first(addresses, port, left)
    except OSError as error:
        raise FetchRefused(f"{host} could not be reached: {error}.") from error
    try:
        if parts.scheme == "https":
            connected = ssl.create_default_context().wrap_socket(connected, server_hostname=host)
    except OSError as error:
        connected.close()
        raise FetchRefused(f"{host} could not be reached: {error}.") from error
    connection = http.client.HTTPConnection(host, port, timeout=left)
    connection.sock = connected
    return connection
