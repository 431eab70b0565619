"""A caller of one door: what the contract of all doors is told through.

Calls are written by the wires of the doors.
"""

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from awp_publish.calls.wire import WireCall, WireRequest
from awp_publish.client import doors
from tests.client import TestClient

Content: TypeAlias = tuple[str, str, bytes]
"""The media type, the name and the bytes of what is not JSON."""


@dataclass(frozen=True)
class Told:
    """What a caller is told. `code` is that of a problem, None for a success.

    `recovery` says what to do now, `retry_after` (seconds) when, `challenge` what to send, `question` is a
    confirmation that a person has to give. `is_replayed` tells a recorded answer, `receipt` proves a success, `session`
    is one that has begun. `content` is the media type, the name and the bytes of an output that is not JSON.
    """

    code: str | None
    output: Any = None
    recovery: str = ""
    detail: str = ""
    retry_after: int | None = None
    challenge: str = ""
    question: Mapping[str, str] = field(default_factory=dict)
    is_replayed: bool = False
    receipt: str | None = None
    content: Content | None = None
    session: str | None = None


REBOUND: Final[Mapping[str, str]] = {
    "host": "evil.example",
    "origin": "http://evil.example",
    "x-forwarded-host": "shop.example",
}


@dataclass(frozen=True)
class Asked:
    """A call, as it was asked for: `beside` is what goes with the input, by the names of an envelope's members."""

    agent: str
    given: Mapping[str, object]
    headers: Mapping[str, str]
    beside: Mapping[str, Any]


class DoorCaller(ABC):
    """Calls agents of one application through one door.

    `ways` are, by the problem that asks for it, how a caller of this door sends a confirmation and a receipt.
    """

    ways: Mapping[str, str]
    wire: str = ""
    """The name of the wire with which calls are written. Answers are read here, so that each is read twice."""
    keeps_cookies: bool = False
    """Whether the page through which calls are made keeps cookies itself."""

    def __init__(self, client: TestClient) -> None:
        self._client = client

    def write(self, asked: Asked) -> WireRequest:
        """Write a call with the door's wire."""
        beside = asked.beside
        call = WireCall(
            action=asked.agent,
            inputs=asked.given,
            key=beside.get("idempotency_key", ""),
            confirmation=beside.get("confirmation", ""),
            receipts=beside.get("receipts", ()),
            session=beside.get("session", ""),
        )
        wire = doors()[self.wire]
        return wire.write(call, wire.path)

    def post(self, request: WireRequest, asked: Asked) -> Any:
        headers = {**dict(request.headers), **asked.headers}
        return self._client.request(request.method, request.path, content=request.content(), headers=headers)

    def call(
        self,
        agent: str,
        given: Mapping[str, object] | None = None,
        *,
        token: str | None = None,
        key: str | None = None,
        confirmation: str | None = None,
        receipts: Sequence[str] = (),
        session: str | None = None,
        as_foreign_page: bool = False,
        as_rebound_page: bool = False,
    ) -> Told:
        """Call an agent.

        `as_foreign_page` is as a browser does it for another site's page, with cookies, `as_rebound_page` for a page
        whose name leads to this server since its owner has changed its address (DNS rebinding).
        """
        headers = {"authorization": f"Bearer {token}"} if token is not None else {}
        headers |= {"cookie": "session=1", "origin": "https://evil.example"} if as_foreign_page else {}
        headers |= REBOUND if as_rebound_page else {}
        beside = {"idempotency_key": key, "confirmation": confirmation, "receipts": list(receipts), "session": session}
        return self.send(
            Asked(agent, given or {}, headers, {name: one for name, one in beside.items() if one not in (None, [])})
        )

    @abstractmethod
    def send(self, asked: Asked) -> Told:
        """Send a call, and say what the answer tells."""


class HttpCaller(DoorCaller):
    """A door that answers with HTTP's own status and headers."""

    def send(self, asked: Asked) -> Told:
        answer = self.post(self.write(asked), asked)
        if answer.headers["content-type"] == "application/problem+json":
            assert answer.json()["status"] == answer.status_code >= 400
            return refused(answer.json(), answer.headers)
        return succeeded(*self.read(answer), answer.headers)

    @abstractmethod
    def read(self, answer: Any) -> tuple[Any, Content | None]:
        """Return an answer's output, or its content that is not JSON."""


def content_of(output: Any, header: str | None) -> Content | None:
    """The content of base64 in JSON, as the header beside it says."""
    if header is None or header.startswith("text/"):
        return None
    kind, _, name = header.partition("; name*=UTF-8''")
    return kind, unquote(name), base64.b64decode(output)


def with_hyphens(members: Mapping[str, str]) -> dict[str, str]:
    """Headers as HTTP names them, from members of a message, which have no hyphens."""
    return {name.replace("_", "-"): value for name, value in members.items()}


def succeeded(output: Any, content: Content | None, headers: Mapping[str, str]) -> Told:
    """Return what a success tells, beside its output in the headers of HTTP or what stands for them."""
    return Told(
        None,
        output,
        is_replayed=headers.get("idempotent-replayed") == "true",
        receipt=headers.get("awp-receipt"),
        content=content,
        session=headers.get("awp-session"),
    )


def refused(problem: Mapping[str, Any], headers: Mapping[str, str]) -> Told:
    retry_after = headers.get("retry-after")
    return Told(
        problem["code"],
        recovery=problem["recovery"],
        detail=problem["detail"],
        retry_after=int(retry_after) if retry_after is not None else None,
        challenge=headers.get("www-authenticate", ""),
        question=problem.get("confirmation", {}),
    )
