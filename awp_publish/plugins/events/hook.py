"""A webhook: a registered URL, the state of its deliveries, and its signed messages (standardwebhooks.com)."""

import base64
import hmac
import re
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

import orjson

from awp_publish.http.outgoing import Failure, Posted
from awp_publish.stores.store import WEBHOOK, Schedule

DUE: Final = "{events}webhooks"
FOREVER: Final = 10 * 365 * 86_400.0
GRACE: Final = 86_400.0
"""Seconds for which the record of an expired webhook is kept, so that it can be removed from all lists."""

PAUSES: Final = (1.0, 5.0, 30.0, 120.0, 300.0)
"""Seconds before each retry of a message; after the last one it is discarded."""

MAX_RETRYING: Final = 100
SUSPENDED_AFTER: Final = 100
SUSPENDED_SECONDS: Final = 3600.0
"""A webhook is suspended after SUSPENDED_AFTER consecutive failures over SUSPENDED_SECONDS, until it is refreshed."""

ROTATION_SECONDS: Final = 600.0
"""Seconds for which messages are also signed with the previous secret."""

FINAL: Final = frozenset({410, 413})
"""Statuses that end the attempts for one message (SEP-3415, Delivery model and Delivery profile)."""

Reason: TypeAlias = Literal["connection_refused", "timeout", "tls_error", "http_4xx", "http_5xx", "challenge_failed"]

assert set(get_args(Failure)) < set(get_args(Reason))

_SECRET: Final = re.compile(r"whsec_([A-Za-z0-9+/]+={0,2})")


class RefusedCallback(Exception):
    """A URL or secret was refused. `reason` is set if a verification request failed."""

    def __init__(self, detail: str, reason: Reason | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a webhook: its id, its body, and headers in addition to those of the signature."""

    id: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Webhook:
    """A registered URL, and the state of its deliveries.

    `kind` selects the handler that makes the messages, and `about` has the handler's own data. Events in `logs` make
    the webhook due. `secret` is None if the receiver has given none. `expires` (seconds since 1970) is None if it never
    expires. `retries` are failed messages: a key of the handler's own, the number of attempts, and the next time.
    """

    id: str
    kind: str
    principal: str
    url: str
    secret: str | None = field(default=None, repr=False)
    old_secret: tuple[str, float] | None = field(default=None, repr=False)
    expires: float | None = None
    about: dict[str, Any] = field(default_factory=dict)
    logs: tuple[str, ...] = ()
    retries: list[tuple[list[Any], int, float]] = field(default_factory=list)
    is_active: bool = True
    last_delivery: float | None = None
    last_error: Reason | None = None
    failed_since: float | None = None
    failures: int = 0
    raw: bytes = field(default=b"", repr=False, compare=False)

    @property
    def key(self) -> str:
        return f"{WEBHOOK}{self.id}"

    @property
    def seconds(self) -> float:
        """Seconds for which its record is kept from now on."""
        return FOREVER if self.expires is None else max(self.expires - time.time(), 0.0) + GRACE

    def has_expired(self) -> bool:
        return self.expires is not None and self.expires <= time.time()

    def due_in(self, seconds: float) -> Schedule:
        """Return the step that makes it due in so many seconds."""
        return Schedule(DUE, self.id, seconds)

    def message(self, message_id: str, body: bytes, headers: Mapping[str, str]) -> Message:
        """Return a message to its receiver. `headers` are sent beside those of the signature."""
        return Message(message_id, body, headers)

    def control(self, kind: str, body: bytes) -> Message:
        """Return a message that is not an event (SEP-3415, Non-event webhook bodies)."""
        return Message(f"msg_{kind}_{secrets.token_urlsafe(12)}", body, {"X-MCP-Subscription-Id": self.id})

    def signed(self, message: Message) -> dict[str, str]:
        """Return the headers of a message that is sent now, signed with its secrets."""
        now = time.time()
        headers = {"Content-Type": "application/json", **message.headers}
        headers |= {"webhook-id": message.id, "webhook-timestamp": str(int(now))}
        keys = [self.secret] if self.secret is not None else []
        if self.old_secret is not None and self.old_secret[1] > now:
            keys.append(self.old_secret[0])
        if keys:
            signatures = (sign(_key_of(key), message.id, int(now), message.body) for key in keys)
            headers["webhook-signature"] = " ".join(signatures)
        return headers

    def note(self, answer: Posted | Failure) -> bool:
        """Record the result of sending a message. Returns True if it is final: accepted, or refused permanently."""
        reason, now = reason_of(answer), time.time()
        if isinstance(answer, Posted) and answer.status in FINAL:
            return True
        if reason is None:
            self.last_delivery, self.last_error, self.failed_since, self.failures = now, None, None, 0
            return True
        self.last_error, self.failures = reason, self.failures + 1
        self.failed_since = now if self.failed_since is None else self.failed_since
        if self.failures >= SUSPENDED_AFTER and now - self.failed_since >= SUSPENDED_SECONDS:
            self.is_active = False
        return False

    def try_again(self, key: list[Any], attempts: int) -> None:
        """Schedule the retry of a message that has failed `attempts` times, unless that is too often."""
        self.give_up(key)
        if attempts <= len(PAUSES):
            self.retries = [*self.retries, (key, attempts, time.time() + PAUSES[attempts - 1])][-MAX_RETRYING:]

    def rotate(self, before: str | None) -> None:
        """Let messages be signed with the secret that it had before, too, for ROTATION_SECONDS."""
        if before is not None and before != self.secret:
            self.old_secret = before, time.time() + ROTATION_SECONDS

    def give_up(self, key: list[Any]) -> None:
        """Schedule no retry of a message any more."""
        self.retries = [retry for retry in self.retries if retry[0] != key]

    def write(self) -> bytes:
        return orjson.dumps({name: getattr(self, name) for name in self.__slots__ if name != "raw"})


def read_webhook(raw: bytes) -> Webhook:
    members = orjson.loads(raw)
    old = members.pop("old_secret")
    retries = [(key, attempts, due) for key, attempts, due in members.pop("retries")]
    logs = tuple(members.pop("logs"))
    return Webhook(**members, old_secret=tuple(old) if old else None, retries=retries, logs=logs, raw=raw)


def reason_of(answer: Posted | Failure) -> Reason | None:
    """Return why a message was not accepted, None if it was. The reason contains nothing of the answer."""
    if isinstance(answer, str):
        return answer
    if 200 <= answer.status < 300:
        return None
    return "http_5xx" if answer.status >= 500 else "http_4xx"


def read_secret(secret: str) -> bytes:
    """Return the key of a Standard Webhooks secret. Raises RefusedCallback."""
    match = _SECRET.fullmatch(secret)
    with suppress(ValueError):
        key = base64.b64decode(match[1], validate=True) if match is not None else b""
        if 24 <= len(key) <= 64:
            return key
    raise RefusedCallback('The secret must be "whsec_" and the base64 of 24 to 64 random bytes.')


def _key_of(secret: str) -> bytes:
    """Return the key of a secret: decoded if it is a Standard Webhooks secret, otherwise its text."""
    try:
        return read_secret(secret)
    except RefusedCallback:
        return secret.encode()


def sign(key: bytes, message_id: str, moment: int, body: bytes) -> str:
    """Return the signature of a message (Standard Webhooks, Signature scheme)."""
    signed = hmac.digest(key, f"{message_id}.{moment}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(signed).decode()}"
