"""What the store has under a key: that its call runs, its answer, or why there is none."""

import logging
from collections.abc import Collection, Sequence
from typing import Any, Final

import orjson

from awp_publish.calls.call import PART_OF_ANSWER, REPLAYED, Content, Outcome
from awp_publish.plugins.idempotency.problems import IdempotencyKeyInFlight, IdempotencyKeyReused, OutcomeUnknown
from awp_publish.problems import AnswerNotKept
from awp_publish.schema import media
from awp_publish.stores.store import unavailable

logger: Final = logging.getLogger("awp_publish.calls")

RECORDED_HEADERS: Final = PART_OF_ANSWER | {b"location", media.HEADER}
"""Headers of an answer that are recorded. A Set-Cookie is secret and given only once."""

_NOT_KEPT: Final = {
    "too large": "its answer was too large to be kept",
    "not recorded": "its answer could not be recorded",
    "given once": "its answer is returned only once",
}
"""States of keys whose calls succeeded, but whose answers are not recorded, and the reason."""

_FIRST: Final = "The first call with this idempotency key"


def write_running(fingerprint: str, until: int, request_id: str) -> bytes:
    """Return the record of a call that runs; `until` is in milliseconds since 1970."""
    return orjson.dumps({"state": "running", "for": fingerprint, "until": until, "by": request_id})


def write_state(state: str, fingerprint: str) -> bytes:
    """Return the record of a call that has ended without an answer that could be given again."""
    return orjson.dumps({"state": state, "for": fingerprint}) + b"\n"


def write_answer(outcome: Outcome, fingerprint: str, kept: Collection[bytes]) -> bytes:
    """Return the record of an answer with the headers that are kept: one line of JSON, then the unchanged body."""
    headers: Sequence[tuple[str, str]] = ()
    if outcome.headers:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in outcome.headers if name in kept]
    facts: dict[str, object] = {"state": "done", "for": fingerprint, "status": outcome.status, "headers": headers}
    if outcome.content is not None:
        facts["content"] = list(outcome.content)
    return orjson.dumps(facts) + b"\n" + outcome.body


def answer_again(record: bytes, fingerprints: Collection[str], now: float) -> Outcome:
    """Return the answer that is recorded under a key. Raises the Problem of a key without one for this input."""
    try:
        facts, answer = _read(record)
        state, meant_for = facts["state"], facts["for"]
        is_running = state == "running" and now * 1000 < facts["until"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        logger.error("the record of an idempotency key cannot be read: %s", type(error).__name__)
        raise unavailable("The record of this idempotency key is damaged.") from error
    if meant_for not in fingerprints:
        raise IdempotencyKeyReused("This idempotency key was used before with another input or other credentials.")
    if is_running:
        raise IdempotencyKeyInFlight(f"{_FIRST} has not ended yet.", headers=[("Retry-After", "1")])
    if answer is not None:
        return answer
    if reason := _NOT_KEPT.get(str(state)):
        raise AnswerNotKept(f"{_FIRST} succeeded; {reason}.")
    raise OutcomeUnknown(f"{_FIRST} ended without an answer and may have taken effect.")


def _read(record: bytes) -> tuple[dict[str, Any], Outcome | None]:
    """Return the facts of a record, and its answer if it has one. Raises ValueError, KeyError, TypeError."""
    line, _, body = record.partition(b"\n")
    facts = orjson.loads(line)
    if not isinstance(facts["for"], str):
        raise TypeError
    if facts["state"] != "done":
        return facts, None
    headers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in facts["headers"])
    content = Content(*facts["content"]) if "content" in facts else None
    return facts, Outcome(body, orjson.loads(body), int(facts["status"]), ((REPLAYED, b"true"), *headers), content)
