"""A site at an address, over HTTP and WebSocket."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from socket import SHUT_RDWR
from threading import Timer
from typing import Any, Final, cast
from urllib.parse import urlsplit

from awp_publish.calls.wire import CallFailed, WireResponse
from awp_publish.http.outgoing import (
    AddressNotPublic,
    AnswerTooLarge,
    Deadline,
    OutOfTime,
    TooManyRedirects,
    connect,
    request,
)
from awp_publish.http.talk import TalkFailed, read_message
from awp_publish.schema.origins import Origin

MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one response over the network, at most."""

MAX_REDIRECTS: Final = 3
CLOSE_SECONDS: Final = 1.0
"""Seconds for which a closed WebSocket is waited for."""


class Network:
    """A site at an address, over HTTP. Redirects are followed only within that site."""

    def __init__(self, address: str, timeout: float, allow_private: bool) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{address!r} is not the address of a site. Write https://books.example, for instance.")
        self._parts = parts
        self._timeout = timeout
        try:
            ip_address(parts.hostname)
            says_what_it_is = True
        except ValueError:
            says_what_it_is = "." not in parts.hostname or parts.hostname.endswith(".localhost")
        self._has_to_be_public = not (allow_private or says_what_it_is)
        self._authority = parts.netloc.rpartition("@")[2]
        self.prefix = parts.path.rstrip("/")

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> WireResponse:
        def check(_: str, target: str, status: int) -> None:
            if not self._is_ours(target):
                raise _network_failed(path, "OFF_SITE_REDIRECT", f"{path} redirects to another site, {target[:200]}.")
            if status not in (307, 308) and method not in ("GET", "HEAD"):
                detail = f"{path} redirects to {target[:200]}: the call was not made. Give AgentClient that address."
                raise _network_failed(path, "REDIRECTED", detail)

        try:
            answer = request(
                method,
                f"{self._parts.scheme}://{self._authority}{self._below(path)}",
                headers=headers,
                body=body,
                deadline=Deadline(self._timeout),
                max_bytes=MAX_BYTES,
                is_public=self._has_to_be_public,
                max_redirects=MAX_REDIRECTS,
                check=check,
            )
        except AddressNotPublic as error:
            raise self._not_public(error) from None
        except AnswerTooLarge:
            detail = f"The answer of {path} has more than {MAX_BYTES} bytes."
            raise _network_failed(path, "ANSWER_TOO_LARGE", detail) from None
        except TooManyRedirects:
            raise _network_failed(path, "REDIRECTED", "Too many redirects.") from None
        except OutOfTime:
            raise OutOfTime(f"{path} was not answered within {self._timeout:g} seconds.") from None
        fields = {name.lower(): value for name, value in answer.headers.items()}
        return WireResponse(answer.status, fields, answer.body)

    def _below(self, path: str) -> str:
        """Return a path below the target's, so that nothing in it becomes a part of the authority."""
        return f"{self.prefix}/{path.lstrip('/')}"

    def _is_ours(self, address: str) -> bool:
        """Return True if an address has the target's authority, or differs only by upgrading http to https."""
        try:
            parts = urlsplit(address)
            own, other = Origin.of(self._parts), Origin.of(parts)
        except ValueError:
            return False
        return other == own or (own.scheme, own.port, other) == ("http", 80, ("https", own.host, 443))

    def _not_public(self, error: AddressNotPublic) -> CallFailed:
        detail = f"{error}. If that is meant, write AgentClient(..., allow_private=True)."
        return _network_failed(cast(str, self._parts.hostname), "PRIVATE_ADDRESS", detail)

    def talk(
        self, path: str, headers: Mapping[str, str], messages: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        try:
            from websockets.exceptions import InvalidStatus, WebSocketException
            from websockets.sync.client import connect as open_websocket
        except ModuleNotFoundError:
            remedy = 'The AWP door of a site needs the package websockets: pip install "awp-publish[awp]".'
            raise RuntimeError(remedy) from None
        scheme = "wss" if self._parts.scheme == "https" else "ws"
        received: list[dict[str, Any]] = []
        deadline = Deadline(self._timeout)
        host, port = cast(str, self._parts.hostname), self._parts.port or (443 if scheme == "wss" else 80)
        try:
            connected = connect(host, port, deadline, is_public=self._has_to_be_public)
        except AddressNotPublic as error:
            raise self._not_public(error) from None

        def cut() -> None:
            with suppress(OSError):  # it is closed already
                connected.shutdown(SHUT_RDWR)

        # websockets has a time limit for each step, but none for all of them.
        timer = Timer(deadline.left(), cut)
        timer.daemon = True
        timer.start()
        try:
            with open_websocket(
                f"{scheme}://{self._authority}{self._below(path)}",
                sock=connected,
                additional_headers=dict(headers),
                open_timeout=deadline.left(),
                close_timeout=CLOSE_SECONDS,
                max_size=MAX_BYTES,
            ) as opened:
                bytes_left = MAX_BYTES
                for message in messages:
                    opened.send(json.dumps(message))
                    while True:
                        text = opened.recv(timeout=deadline.left())
                        bytes_left -= len(text)
                        if bytes_left < 0:
                            detail = f"The answers of {path} have more than {MAX_BYTES} bytes."
                            raise _network_failed(path, "ANSWER_TOO_LARGE", detail)
                        answer = read_message(text)
                        if answer.get("id") in (message["id"], ""):  # empty: the message could not be read
                            break
                    received.append(answer)
                    if "error" in answer:
                        break
        except InvalidStatus as refused:
            raise TalkFailed("The connection was refused.", refused.response.status_code) from None
        except (TimeoutError, WebSocketException) as error:
            deadline.left()  # raises OutOfTime if that is what closed it
            raise TalkFailed(f"The connection was closed: {error}") from None
        finally:
            timer.cancel()
            connected.close()
        return received

    def close(self) -> None:
        """Do nothing: no connection stays open."""


def _network_failed(subject: str, code: str, detail: str) -> CallFailed:
    return CallFailed(subject, {"code": code, "status": 0, "detail": detail})
