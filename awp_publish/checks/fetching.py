"""Fetches documents for commands that a person runs; nothing here is used while a site is served."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from awp_publish.checks.urls import is_private, split
from awp_publish.outgoing import AddressNotPublic, BadAnswer, RedirectRefused, TooLarge, follow

SECONDS: Final = 10.0
MAX_REDIRECTS: Final = 3


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
    parts = split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise FetchRefused(f"{url[:200]} is not an http(s) address.")
    if parts.username is not None or parts.password is not None:
        raise FetchRefused("An address with a user name or a password in it is not fetched.")
    host = parts.hostname
    if not allow_private and is_private(host):
        raise FetchRefused(f"{host} is on this machine or in its own network, and is not fetched.")
    try:
        answer = follow(
            url,
            {"Accept": accept},
            deadline=time.monotonic() + seconds,
            most_bytes=max_bytes,
            only_public=not allow_private,
            most=MAX_REDIRECTS,
            stay=stay,
        )
    except AddressNotPublic:
        detail = f"{host} is, or leads to what is, on this machine or in its own network, and is not fetched."
        raise FetchRefused(detail) from None
    except (TooLarge, RedirectRefused) as error:
        raise FetchRefused(f"{error}.") from error
    except TimeoutError as error:
        raise FetchRefused(f"{url} took longer than {seconds:g} seconds.") from error
    except BadAnswer as error:
        raise FetchRefused(f"{url} did not answer as a web server does: {error}.") from error
    except (OSError, ValueError) as error:
        raise FetchRefused(f"{url} could not be fetched: {error}.") from error
    if answer.status != 200:
        raise FetchRefused(f"{answer.url} answered with the status {answer.status}.")
    charset = answer.headers.get_content_charset("")
    kind = answer.headers.get_content_type() if "Content-Type" in answer.headers else ""
    return FetchedDocument(answer.body, answer.url, kind, charset)
