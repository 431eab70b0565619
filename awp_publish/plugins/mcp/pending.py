"""Calls whose task is not a job with the same id, in the store."""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self

import orjson

from awp_publish.calls.call import KEY, Call, share_of
from awp_publish.model import Action, utc_text
from awp_publish.plugins.mcp.dialect import CONFIRMATION, RECEIPTS, SESSION
from awp_publish.plugins.mcp.elicitation import QUESTION
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import Add, Count, Look, Step, Swap

TAKEN_SECONDS: Final = 60
"""Seconds for which a reply may be processed. After that it counts as lost, with its worker or the store."""

MAX_BYTES: Final = 262_144
MAX_ANONYMOUS_BYTES: Final = 32_768
"""Bytes of a call that waits for a person's reply, of a known and of an unknown caller."""

MAX_ANONYMOUS_TASKS: Final = 1000
"""Such calls that are kept for the unknown callers of one address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call whose task is not a job with the same id, and what has become of it.

    Either a person has to confirm it: `question` is the token and the summary of the question, None once the reply has
    been carried out; `taken` is when that began, and `round` counts the questions. Or the caller is known only by a
    session, given in an argument that clients do not repeat in messages about a task: then the task has no `principal`,
    so that its id is sufficient to read it, and its job belongs to `owner`. `job` is the job that the call has become,
    `result` the result of a call that did not become one.
    """

    action: str
    given: Mapping[str, Any] = field(repr=False)
    principal: str
    owner: str = ""
    receipts: tuple[str, ...] = field(default=(), repr=False)
    session: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    created: str
    updated: str
    question: tuple[str, str] | None = field(default=None, repr=False)
    taken: str = ""
    round: int = 1
    job: str = ""
    result: Mapping[str, Any] | None = None
    is_cancelled: bool = False

    @property
    def name(self) -> str:
        """The key of the present question: each question has its own (Task Update Requests)."""
        return QUESTION if self.round == 1 else f"{QUESTION}_{self.round}"

    def members(self, action: Action) -> dict[str, object]:
        """Return what accompanies the call once it is confirmed, under the names of other doors' envelopes."""
        token, key = self.question[0] if self.question is not None else None, action.idempotency
        return {
            key.key_field if key is not None else KEY: self.key,
            CONFIRMATION: token,
            RECEIPTS: list(self.receipts),
            SESSION: self.session,
        }

    @classmethod
    def read(cls, raw: bytes) -> Self:
        members = orjson.loads(raw)
        question, receipts = tuple(members.pop("question") or ()) or None, tuple(members.pop("receipts"))
        return cls(**members, question=question, receipts=receipts)


class PendingCalls:
    """The pending calls in the store of a site's jobs, each under the id of its task."""

    def __init__(self, jobs: Any) -> None:
        self._jobs = jobs
        self._seconds: float = jobs.result_seconds

    def now(self) -> str:
        return utc_text(self._jobs.clock(), "milliseconds")

    async def add(self, pending: Pending, call: Call | None = None) -> str | None:
        """Store a call under an unguessable id and return the id, or None if it could not be stored.

        A `call` that a person has to confirm is stored with its input, whose size is limited, as is their number
        for one address.
        """
        task_id, raw, counts = secrets.token_urlsafe(16), orjson.dumps(pending), list[Step]()
        if call is not None and len(raw) > (MAX_BYTES if call.caller_id else MAX_ANONYMOUS_BYTES):
            return None
        if call is not None and not call.caller_id:
            address = call.credentials().address
            counts.append(Count(f"mcp:kept:{share_of('', address)}", MAX_ANONYMOUS_TASKS, self._seconds))
        with suppress(StoreUnavailable):
            ran = await self._jobs.store.run((*counts, Add(_key(task_id), raw, self._seconds)), durable=True)
            return task_id if ran.failed is None else None
        return None

    async def find(self, task_id: str) -> Pending | None:
        """Return the call of a task, None for tasks that are jobs."""
        raw = (await self._jobs.store.run((Look(_key(task_id)),))).seen[0] if len(task_id) <= 40 else None
        return Pending.read(raw) if isinstance(raw, bytes) else None

    async def replace(self, task_id: str, old: Pending, new: Pending) -> bool:
        """Replace a call. Returns False if others have changed it."""
        step = Swap(_key(task_id), orjson.dumps(old), orjson.dumps(new), self._seconds)
        return (await self._jobs.store.run((step,), durable=True)).failed is None

    def is_waiting(self, pending: Pending) -> bool:
        """Return True while a question waits for a reply. Its token admits one call, however many replies there are."""
        if pending.question is None or not pending.taken:
            return pending.question is not None
        return bool((self._jobs.clock() - datetime.fromisoformat(pending.taken)).total_seconds() >= TAKEN_SECONDS)


def _key(task_id: str) -> str:
    return f"mcp-task:{task_id}"
