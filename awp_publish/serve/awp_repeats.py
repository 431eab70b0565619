"""`meta.idempotency_key` of the AWP door: a request that is sent again is answered again, and done once (draft).

Answers are remembered for each session, and for each connection where there is no session yet; the oldest go first.
Errors are not remembered: what failed may be tried again under the same key.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

import orjson

from awp_publish.browsing.errors import AwpError
from awp_publish.model import JsonObject
from awp_publish.serve.awp_messages import write_json

MOST: Final = 64
"""Answers that are remembered in one place."""

MOST_BYTES: Final = 1_000_000
"""Of their JSON, all together; the last one is remembered whatever its size."""


class Recorded(NamedTuple):
    """What was asked under a key, what was answered, and how much that is."""

    fingerprint: bytes
    result: JsonObject
    size: int


class Repeats:
    """The answers under keys of one session or connection. `turn` has those with keys wait for one another."""

    __slots__ = ("_bytes", "_recorded", "turn")

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._recorded: OrderedDict[str, Recorded] = OrderedDict()
        self._bytes = 0

    def find(self, key: str, fingerprint: bytes) -> JsonObject | None:
        """The answer under a key. Raises AwpError CONFLICT if something else was asked under it."""
        recorded = self._recorded.get(key)
        if recorded is None:
            return None
        if recorded.fingerprint != fingerprint:
            raise AwpError("CONFLICT", "The idempotency key was used for another request.", {"idempotency_key": key})
        return recorded.result

    def keep(self, key: str, fingerprint: bytes, result: JsonObject) -> None:
        """Remember an answer."""
        size = len(write_json(result))
        self._recorded[key] = Recorded(fingerprint, result, size)
        self._bytes += size
        while len(self._recorded) > 1 and (len(self._recorded) > MOST or self._bytes > MOST_BYTES):
            _, oldest = self._recorded.popitem(last=False)
            self._bytes -= oldest.size


def fingerprint_of(method: str, params: Mapping[str, object]) -> bytes:
    """What tells one request from another."""
    return hashlib.sha256(orjson.dumps([method, params], option=orjson.OPT_SORT_KEYS)).digest()
