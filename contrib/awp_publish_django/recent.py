"""Recent calls, for the admin: the recorded facts of each call, in a table of limited length.

Recording never slows a call or makes it fail. Its facts are kept in memory until the answer of its request is sent, and
then written on that request's connection; a thread writes those of background jobs. What cannot be written is dropped.
"""

import asyncio
import json
import logging
import re
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from django.db import Error, connections, router, transaction
from django.utils import timezone

from awp_publish_django.models import RecentCall
from awp_publish_django.store import run_statement, run_transaction

logger: Final = logging.getLogger("awp_publish")

MAX_PENDING: Final = 1000
"""Calls that wait to be written; beyond that the oldest are dropped."""

PRUNE_EVERY: Final = 50
"""Calls between two deletions of the oldest."""

NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""An escaped NUL in JSON, after an even number of backslashes: an odd one more makes it text."""

JOB: Final = "job"
"""The door of calls made by background jobs, which end with no request."""


class Recorder:
    """Keeps the newest `most` calls of all processes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pending: deque[RecentCall] = deque(maxlen=MAX_PENDING)
        self._written = 0
        self._is_failing = False

    def __call__(self, facts: Mapping[str, Any]) -> None:
        """Remember a call, until `write`. In the event loop."""
        arguments = None
        if "input" in facts:  # no database takes Infinity, and PostgreSQL neither NUL nor a lone surrogate
            text = json.dumps(facts["input"], cls=DjangoJSONEncoder, ensure_ascii=False).encode("utf-8", "replace")
            arguments = json.loads(NUL.sub(r"\1?", text.decode()), parse_constant=str)
        call = RecentCall(
            time=timezone.now(),
            door=facts["door"],
            action=_fit("action", facts["action"]),
            caller=_fit("caller", facts["principal"]),
            outcome=_fit("outcome", facts["outcome"]),
            status=facts["status"],
            milliseconds=facts["ms"],
            request_id=_fit("request_id", facts["request_id"]),
            input=arguments,
        )
        self._pending.append(call)

        def write() -> None:  # in a thread of a pool, whose connection nobody else closes
            try:
                self.write()
            finally:
                connections.close_all()

        if facts["door"] == JOB:
            asyncio.get_running_loop().run_in_executor(None, write)

    def write(self) -> None:
        """Write the calls that wait. May block."""
        calls: list[RecentCall] = []
        with suppress(IndexError):  # other threads take calls too
            while True:
                calls.append(self._pending.popleft())
        if not calls:
            return
        using = router.db_for_write(RecentCall)
        records = RecentCall.objects.using(using)
        is_full = self._written + len(calls) >= min(PRUNE_EVERY, self._most)

        def add() -> None:
            with transaction.atomic(using=using):
                records.bulk_create(calls)
                if is_full:
                    too_many = records.order_by("-pk").values_list("pk", flat=True)[self._most : self._most + 1].first()
                    if too_many is not None:
                        records.filter(pk__lte=too_many).delete()

        try:
            if len(calls) == 1 and not is_full and not connections[using].in_atomic_block:
                run_statement(using, partial(calls[0].save, force_insert=True, using=using))
            else:
                run_transaction(using, add, may_block=False)
            self._written = 0 if is_full else self._written + len(calls)
            self._is_failing = False
        except Error as error:
            if not self._is_failing:
                logger.warning("recent calls cannot be written (manage.py migrate?): %s", error)
            self._is_failing = True


def _fit(field: str, text: str | None) -> str:
    """A text as its column can hold it: cut, and without lone surrogates and NUL, which databases refuse."""
    length: int = RecentCall._meta.get_field(field).max_length  # type: ignore[union-attr, assignment]
    return (text or "")[:length].encode("utf-8", "replace").decode().replace("\0", "?")
