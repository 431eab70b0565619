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

MOST: Final = 64
"""Answers that are remembered in one place."""


class Recorded(NamedTuple):
    """What was asked under a key, and what was answered."""

    fingerprint: bytes
    result: JsonObject


class Repeats:
    """The answers under keys of one session or connection. `turn` has those with keys wait for one another."""

    __slots__ = ("_recorded", "turn")

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._recorded: OrderedDict[str, Recorded] = OrderedDict()

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
        self._recorded[key] = Recorded(fingerprint, result)
        if len(self._recorded) > MOST:
            self._recorded.popitem(last=False)


def fingerprint_of(method: str, params: Mapping[str, object]) -> bytes:
    """What tells one request from another."""
    return hashlib.sha256(orjson.dumps([method, params], option=orjson.OPT_SORT_KEYS)).digest()
