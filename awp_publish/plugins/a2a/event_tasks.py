"""Events of the site as tasks without an end: each occurrence is an artifact, until the caller cancels the task."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final

import orjson
from a2a.server.events import Event as Update
from a2a.types.a2a_pb2 import Artifact, Part, TaskArtifactUpdateEvent

from awp_publish.calls.call import Principal
from awp_publish.model import Event
from awp_publish.plugin import Context
from awp_publish.plugins.a2a.record import TaskRecord, updates_of
from awp_publish.plugins.a2a.records import Tasks
from awp_publish.plugins.a2a.tasks import JSON, TERMINAL, make_data_parts
from awp_publish.problems import Problem

EVENT: Final = "event:"
"""The prefix of the skill of a task that subscribes to an event."""

VERIFY_SECONDS: Final = 60.0
"""Seconds after which the caller of a stream of events is identified again."""

LOOK_SECONDS: Final = 1.0


class EventTasks:
    """The tasks of one public address of a site that subscribe to events."""

    def __init__(self, door: Context, tasks: Tasks) -> None:
        served = door.ask("events")
        self._events: Any = served.log if served is not None else None
        self._catalog = door.catalog
        self._tasks = tasks

    def event_of(self, skill: object, caller: Principal | None) -> Event | None:
        """Return the event that a skill stands for, if the caller may see it, or None."""
        catalog_ids = {event.id for event in self._catalog.events} if isinstance(skill, str) else ()
        return self._events.find(str(skill), caller) if skill in catalog_ids else None

    async def begin(self, event: Event, arguments: Mapping[str, object], caller: Principal | None) -> dict[str, Any]:
        """Return the data of a task that subscribes to an event from now on. Raises StoreUnavailable."""
        batch = await self._events.read(event, self._events.logs_for(event, caller), None)
        subscriber = None if caller is None else [caller.key, sorted(caller.scopes)]
        return {"event": event.id, "arguments": arguments, "caller": subscriber, "positions": batch.positions}

    async def follow(
        self, record: TaskRecord, seconds: float, identify: Callable[[], Awaitable[Principal | None]]
    ) -> AsyncGenerator[Update, None]:
        """Yield the occurrences of the event to which a task subscribes, until it is cancelled or the time is over.

        The caller is identified again every VERIFY_SECONDS, and when its token has expired. The updates end if it is
        no longer the same.
        """
        subscription = subscription_of(record) or {}
        caller = subscriber_of(subscription)
        event, end = self._events.find(subscription["event"], caller), time.monotonic() + seconds
        if event is None:
            return
        principal, verified = await identify(), time.monotonic()
        logs, positions = self._events.logs_for(event, caller), _read_positions(subscription["positions"])
        batches = self._events.follow(event, logs, positions, subscription["arguments"], LOOK_SECONDS)
        async with aclosing(batches):
            async for batch in batches:
                if time.monotonic() - verified >= VERIFY_SECONDS or (principal is not None and principal.has_expired()):
                    verified, current = time.monotonic(), None
                    with suppress(Problem):
                        current = await identify()
                    if current != principal:
                        return
                for occurrence in batch.occurrences:
                    yield artifact_of(record, occurrence)
                if time.monotonic() > end:
                    return
                if not batch.has_more:
                    record = await self._tasks.find(record.task.id, record.owner)
                if record.state in TERMINAL:
                    for update in updates_of(record.task):
                        yield update
                    return


def subscription_of(record: TaskRecord) -> dict[str, Any] | None:
    """Return the data of a task that subscribes to an event, or None for other tasks."""
    return dict(record.input or {}) if record.skill.startswith(EVENT) else None


def artifact_of(record: TaskRecord, occurrence: Any) -> TaskArtifactUpdateEvent:
    """Return an occurrence as an artifact of the task that subscribes to its event."""
    parts = make_data_parts(occurrence.data) or [Part(text=orjson.dumps(occurrence.data).decode(), media_type=JSON)]
    artifact = Artifact(artifact_id=occurrence.id, name=occurrence.name, parts=parts)
    artifact.metadata.update({"timestamp": occurrence.timestamp})
    task = record.task
    return TaskArtifactUpdateEvent(task_id=task.id, context_id=task.context_id, artifact=artifact, last_chunk=True)


def subscriber_of(subscription: Mapping[str, Any]) -> Principal | None:
    stored = subscription.get("caller")
    return Principal.of_key(stored[0], frozenset(stored[1])) if stored else None


def _read_positions(stored: Mapping[str, Iterable[Any]]) -> dict[str, tuple[str, int]]:
    return {log: (epoch, number) for log, (epoch, number) in stored.items()}
