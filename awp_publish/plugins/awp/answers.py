"""`meta.idempotency_key`: answers that are given again."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakValueDictionary

import orjson

from awp_publish.browsing.errors import AwpError
from awp_publish.calls.call import read_key
from awp_publish.model import JsonObject
from awp_publish.plugins.awp.messages import AwpRequest, JsonText, write_json
from awp_publish.problems import AnswerNotKept
from awp_publish.schema.redaction import Redact

MAX_ANSWERS: Final = 64
MAX_ANSWER_BYTES: Final = 1_000_000
"""Bytes of the JSON of all remembered answers together. The latest answer is remembered whatever its size."""


class AnswerCache:
    """The answers by idempotency key, of one session or of one connection. The oldest are dropped first.

    Errors are not remembered, so that a failed request can be retried with the same key.
    """

    __slots__ = ("_answers", "_bytes", "_locks")

    def __init__(self) -> None:
        self._locks = WeakValueDictionary[str, asyncio.Lock]()
        # By key: the fingerprint of the request, the answer (None for one that is returned only once), its bytes.
        self._answers: OrderedDict[str, tuple[bytes, JsonObject | None, int]] = OrderedDict()
        self._bytes = 0

    async def answer_once(
        self,
        request: AwpRequest,
        run: Callable[[], Awaitable[JsonObject]],
        redact: Redact | None = None,
        *,
        is_safe: bool = False,
    ) -> JsonObject:
        """Return the remembered answer for a request's key; otherwise call `run`, and remember and return its answer.

        If `is_safe`, the request is always carried out again, but its key is still its own. `redact` finds values in an
        action's output that are returned only once: such an answer is not remembered. Requests with the same key wait
        for one another. Raises AwpError CONFLICT for the key of another request, InvalidIdempotencyKey for a malformed
        key, and AnswerNotKept.
        """
        if request.key is None:
            return await run()
        key = read_key(request.key)
        encoded = orjson.dumps([request.method, request.params], option=orjson.OPT_SORT_KEYS)
        fingerprint = hashlib.sha256(encoded).digest()
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            if key in self._answers:
                previous, answer, _ = self._answers[key]
                if previous != fingerprint:
                    words = "The idempotency key was used for another request."
                    raise AwpError("CONFLICT", words, {"idempotency_key": key})
                if is_safe:
                    return await run()
                if answer is None:
                    raise AnswerNotKept("The first request with this key succeeded; its answer is returned only once.")
                return answer
            answer = await run()
            size = len(write_json(answer))
            stored: JsonObject | None = answer
            if is_safe:
                stored, size = None, 0
            if redact is not None and isinstance(text := answer.get("output"), JsonText):
                output = orjson.loads(text.body)
                stored, size = (answer, size) if redact(output) == output else (None, 0)
            self._answers[key] = fingerprint, stored, size
            self._bytes += size
            while len(self._answers) > 1 and (len(self._answers) > MAX_ANSWERS or self._bytes > MAX_ANSWER_BYTES):
                self._bytes -= self._answers.popitem(last=False)[1][2]
            return answer
