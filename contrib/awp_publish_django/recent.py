"""Recent calls, for the admin: what the record of calls says of each, in a table of limited length.

A call is never slowed or failed by this. Its facts are noted in memory, and written when the answer of a request has
gone out, on the connection of that request; those of background jobs by a thread. What cannot be written is dropped.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from django.db import Error, connections, router, transaction
from django.utils import timezone

from awp_publish_django.models import RecentCall

logger: Final = logging.getLogger("awp_publish")

MOST_PENDING: Final = 1000
"""Calls that wait to be written; beyond that the oldest are dropped."""

PRUNE_EVERY: Final = 50
"""Calls after which those are deleted that are too many."""

JOB: Final = "job"
"""The door of calls that background jobs make, after whose answers no request ends."""


class Recorder:
    """Keeps the newest `most` calls of all processes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pending: deque[RecentCall] = deque(maxlen=MOST_PENDING)
        self._written = 0
        self._is_failing = False

    def __call__(self, facts: Mapping[str, object]) -> None:
        """Remember a call, until `write`. In the event loop."""
        self._pending.append(_call_of(facts))
        if facts["door"] == JOB:
            asyncio.get_running_loop().run_in_executor(None, self._write_alone)

    def write(self) -> None:
        """Write what was noted. May block."""
        calls = list(self._take())
        if not calls:
            return
        using = router.db_for_write(RecentCall)
        try:
            with transaction.atomic(using=using):
                RecentCall.objects.using(using).bulk_create(calls)
                self._prune(using, len(calls))
        except Error as error:
            self._tell_once(error)
        else:
            self._is_failing = False

    def _take(self) -> Iterator[RecentCall]:
        """Take what was noted; several threads may do so."""
        with suppress(IndexError):
            while True:
                yield self._pending.popleft()

    def _prune(self, using: str, written: int) -> None:
        self._written += written
        if self._written < min(PRUNE_EVERY, self._most):
            return
        self._written = 0
        known = RecentCall.objects.using(using)
        newest_too_many = known.order_by("-pk").values_list("pk", flat=True)[self._most : self._most + 1].first()
        if newest_too_many is not None:
            known.filter(pk__lte=newest_too_many).delete()

    def _write_alone(self) -> None:
        """In a thread of nobody's, so with a connection that nobody else closes."""
        try:
            self.write()
        finally:
            connections.close_all()

    def _tell_once(self, error: Error) -> None:
        if not self._is_failing:
            logger.warning("recent calls cannot be written (manage.py migrate?): %s", error)
        self._is_failing = True


def _call_of(facts: Mapping[str, Any]) -> RecentCall:
    return RecentCall(
        time=timezone.now(),
        door=facts["door"],
        action=_fit("action", facts["action"]),
        caller=_fit("caller", facts["principal"]),
        outcome=_fit("outcome", facts["outcome"]),
        status=facts["status"],
        milliseconds=facts["ms"],
        request_id=_fit("request_id", facts["request_id"]),
        input=_plain(facts["input"]) if "input" in facts else None,
    )


def _fit(field: str, text: str | None) -> str:
    """As much of a text as its column takes; no database takes half of a surrogate pair, and some no NUL."""
    length: int = RecentCall._meta.get_field(field).max_length  # type: ignore[union-attr, assignment]
    return (text or "")[:length].encode("utf-8", "replace").decode().replace("\0", "?")


def _plain(value: object) -> object:
    """An input as every database takes it: PostgreSQL knows no NUL and no half of a pair, and none knows Infinity."""
    text = json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False).encode("utf-8", "replace").decode()
    return json.loads(text.replace("\\u0000", "?"), parse_constant=str)
