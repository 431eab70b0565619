"""Fetches documents for commands that a person runs; nothing here is used while a site is served."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from awp_publish.checks.urls import is_private, split
from awp_publish.http.outgoing import AddressNotPublic, Deadline, TooManyRedirects, request
from awp_publish.schema.origins import DEFAULT_PORTS, Origin

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
    deadline = Deadline(seconds)

    def check_host(address: str) -> None:
        parts = split(address)
        if parts is None or parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise FetchRefused(f"{address[:200]} is not an http(s) address.")
        if parts.username is not None or parts.password is not None:
            raise FetchRefused("An address with a user name or a password in it is not fetched.")
        if not allow_private and is_private(parts.hostname):
            raise FetchRefused(f"{parts.hostname} is on this machine or in its own network, and is not fetched.")

    def check_redirect(source: str, target: str, _: int) -> None:
        check_host(target)
        if stay and Origin.of(urlsplit(source)) != Origin.of(urlsplit(target)):
            raise FetchRefused(f"{source} leads to another site: {target[:200]}.")

    check_host(url)
    try:
        answer = request(
            "GET",
            url,
            headers={"Accept": accept},
            deadline=deadline,
            max_bytes=max_bytes,
            is_public=not allow_private,
            max_redirects=MAX_REDIRECTS,
            check=check_redirect,
        )
    except FetchRefused:
        raise
    except AddressNotPublic as error:
        raise FetchRefused(f"{url[:200]} is or leads to an address in its own network, and is not fetched.") from error
    except TooManyRedirects as error:
        raise FetchRefused(f"{url[:200]} leads to more than {MAX_REDIRECTS} other addresses.") from error
    except (OSError, ValueError) as error:
        raise FetchRefused(f"{url[:200]} could not be fetched: {error}.") from error
    if answer.status != 200:
        raise FetchRefused(f"{answer.url[:200]} answered with the status {answer.status}.")
    kind = answer.headers.get_content_type() if "Content-Type" in answer.headers else ""
    return FetchedDocument(answer.body, answer.url, kind, answer.headers.get_content_charset(""))
