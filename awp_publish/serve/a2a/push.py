"""Push notifications of tasks (A2A 1.0, section 4.3): what becomes of a task is sent to the addresses its caller names.

A config is a webhook of the site's (`serve/webhooks.py`), so it is kept in the store, and its address has to be public.
Messages are signed as Standard Webhooks has it, with what both sides know: `authentication.credentials` or `token`, of
which those that begin with `whsec_` are keys; where the caller gives neither, with a key that the answer hands out. A
task that has ended is told of once. 410 ends a config.

An event of the site is a task that goes on: each occurrence is an artifact of it, until its caller cancels it.
"""

import base64
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from hashlib import sha256
from typing import Any, Final

import orjson
from google.protobuf.json_format import MessageToDict, ParseDict

from a2a.server.events import Event as Update
from a2a.types.a2a_pb2 import Artifact, Part, TaskArtifactUpdateEvent, TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError, UnsupportedOperationError
from a2a.utils.proto_utils import to_stream_response
from awp_publish.events import Events, Occurrence, Positions, logs_for
from awp_publish.model import Event
from awp_publish.policy.call import Principal
from awp_publish.policy.fetching import Failure, Posted
from awp_publish.problems import RateLimited, StoreUnavailable
from awp_publish.serve.a2a.tasks import (
    JSON,
    TERMINAL,
    WHOLE,
    TaskRecord,
    Tasks,
    make_data_parts,
    progress_of,
    updates_of,
)
from awp_publish.serve.doors import DoorContext
from awp_publish.serve.webhooks import (
    DUE,
    PAUSES,
    QUIET_SECONDS,
    Message,
    RefusedCallback,
    TooMany,
    Webhook,
    Webhooks,
    note,
)
from awp_publish.stores.store import Count, Schedule

logger: Final = logging.getLogger("awp_publish.calls")

KIND: Final = "a2a-task"
EVENT: Final = "event:"
"""The beginning of the skill of a task that tells of an event."""

MAX_CONFIGS: Final = 10
MAX_TEXT: Final = 1_000
ANONYMOUS_CONFIGS: Final = 30
"""Configs that callers of one address may make in a minute whom nobody knows."""

FIRST_PAUSE: Final = 0.5
MAX_PAUSE: Final = 5.0
"""Seconds between two looks at a task."""

LOOK_SECONDS: Final = 1.0
MAX_BODY: Final = 262_144


class Pushes:
    """The push notification configs of one public address of a site, and the events that tasks tell of."""

    def __init__(self, door: DoorContext, tasks: Tasks) -> None:
        assert door.webhooks is not None
        self._webhooks: Webhooks = door.webhooks
        self._webhooks.kinds[KIND] = self.carry
        self._events: Events = door.site.events
        self._catalog = door.catalog
        self._tasks = tasks
        self._store = door.guards.store

    # --- Configs ---

    def check(self, config: TaskPushNotificationConfig) -> None:
        """Refuse a config that nothing can be sent to. Raises InvalidParamsError."""
        told = (config.id, config.token, config.authentication.scheme, config.authentication.credentials)
        if any(len(one) > MAX_TEXT or not (one.isascii() and one.isprintable()) for one in told):
            raise InvalidParamsError(f"id, token and authentication are ASCII of at most {MAX_TEXT} characters.")
        try:
            self._webhooks.check_address(config.url)
        except RefusedCallback as refused:
            raise InvalidParamsError(refused.detail) from refused

    async def create(
        self, record: TaskRecord, config: TaskPushNotificationConfig, address: str
    ) -> TaskPushNotificationConfig:
        """Keep a config of a task, new or in place of the one with its id, and return it as it is kept.

        `address` is the caller's, whom nobody may know. Raises A2AError, RateLimited, StoreUnavailable.
        """
        self.check(config)
        if not record.owner:
            ran = await self._store.run([Count(f"a2a-push:{address}", ANONYMOUS_CONFIGS, 60.0)])
            if ran.failed is not None:
                raise RateLimited("Too many push notification configs.", headers=[("Retry-After", "60")])
        kept = TaskPushNotificationConfig()
        kept.CopyFrom(config)
        kept.task_id, kept.id = record.task.id, config.id or secrets.token_urlsafe(12)
        if not kept.token and not kept.authentication.credentials:
            kept.authentication.scheme = kept.authentication.scheme or "StandardWebhooks"
            kept.authentication.credentials = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
        given = (kept.authentication.credentials, kept.token)
        key = next((one for one in given if one.startswith("whsec_")), kept.token or kept.authentication.credentials)
        known = await self._configs(record)
        before = next((one for one in known if one.about["config"]["id"] == kept.id), None)
        if before is None and len(known) >= MAX_CONFIGS:
            raise UnsupportedOperationError(f"The task has {MAX_CONFIGS} push notification configs already.")
        logs = [_log_of(record.task.id)]
        logs += [f"job:{record.job}"] if record.job else []
        about: dict[str, Any] = {"task": record.task.id, "owner": record.owner, "config": MessageToDict(kept)}
        about |= {"shown": None if record.state in TERMINAL else _digest_of(record), "attempts": 0}
        if (wanted := wanted_of(record)) is not None:
            event, caller = self._events.find(wanted["event"], _caller_of(wanted)), _caller_of(wanted)
            logs += logs_for(event, caller) if event is not None else ()
            about["positions"] = wanted["positions"]
        hook = Webhook(
            id=f"a2a_{sha256(f'{record.task.id} {kept.id}'.encode()).hexdigest()[:32]}",
            kind=KIND,
            principal=record.owner or f"ip:{address}",
            url=kept.url,
            secret=key,
            expires=time.time() + self._tasks.seconds_of(record),
            about=about,
            logs=tuple(logs),
        )
        try:
            if not await self._webhooks.put(hook, before):
                raise StoreUnavailable("The config is being changed.", headers=[("Retry-After", "1")])
        except TooMany as many:
            raise UnsupportedOperationError(str(many)) from many
        return kept

    async def listed(self, record: TaskRecord) -> list[TaskPushNotificationConfig]:
        """Return the configs of a task."""
        return [ParseDict(one.about["config"], TaskPushNotificationConfig()) for one in await self._configs(record)]

    async def find(self, record: TaskRecord, config_id: str) -> TaskPushNotificationConfig:
        """Return one config of a task; the only one, where no id is given. Raises TaskNotFoundError."""
        known = await self.listed(record)
        found = [one for one in known if one.id == config_id or (not config_id and len(known) == 1)]
        if not found:
            raise TaskNotFoundError("The task has no such push notification config.")
        return found[0]

    async def delete(self, record: TaskRecord, config_id: str) -> None:
        """Forget a config of a task; one that there is not is gone already."""
        for one in await self._configs(record):
            if one.about["config"]["id"] == config_id:
                await self._webhooks.remove(one)

    async def _configs(self, record: TaskRecord) -> list[Webhook]:
        return [one for one in await self._webhooks.at(_log_of(record.task.id)) if not one.has_expired()]

    # --- Sending ---

    async def carry(self, hook: Webhook) -> float | None:
        """Send what has become of a task since; None where there is nothing more to be sent, ever."""
        about = hook.about
        try:
            record = await self._tasks.refresh(await self._tasks.find(about["task"], about["owner"]))
        except TaskNotFoundError:
            return None
        shown = _digest_of(record)
        if shown != about["shown"] and not (record.state not in TERMINAL and wanted_of(record) is not None):
            answer: Posted | Failure | None = None
            for place, update in enumerate(updates_of(record.task)):
                body = _body_of(update)
                if len(body) > MAX_BODY:  # they read it with GetTask
                    continue
                answer = await self._webhooks.send(hook, _message(hook, f"{record.task.id}.{shown}.{place}", body))
                if isinstance(answer, Posted) and answer.status == 410:
                    return None
                if isinstance(answer, str) or not 200 <= answer.status < 300:
                    break
            if (pause := await self._settle(hook, answer, {"shown": shown, "pause": FIRST_PAUSE})) is not None:
                return pause
        elif "positions" in about and record.state not in TERMINAL:
            return await self._carry_events(hook, record)
        if record.state in TERMINAL:
            return await self._postpone(hook, QUIET_SECONDS if hook.expires is None else hook.expires - time.time())
        pause = min(about.get("pause", FIRST_PAUSE) * 1.5, MAX_PAUSE)
        await self._webhooks.change(hook, lambda kept: kept.about.update(pause=pause))
        return await self._postpone(hook, pause)

    async def _carry_events(self, hook: Webhook, record: TaskRecord) -> float | None:
        """Send what has happened of the event that a task tells of."""
        wanted = wanted_of(record) or {}
        caller = _caller_of(wanted)
        event = self._events.find(wanted["event"], caller)
        if event is None:
            return None
        current: Webhook | None = hook
        while current is not None:
            batch = await self._events.read(
                event, logs_for(event, caller), _positions(current), most=20, arguments=wanted["arguments"]
            )
            for one, after in batch.steps():
                body = _body_of(artifact_of(record, one))
                answer = await self._webhooks.send(current, _message(current, one.id, body))
                if isinstance(answer, Posted) and answer.status == 410:
                    return None
                if (pause := await self._settle(current, answer, {"positions": dict(after)})) is not None:
                    return pause
                current = await self._webhooks.find(hook.id)
                if current is None:
                    return None
            if _positions(current) != batch.positions:
                current = await self._webhooks.change(current, partial(_put, {"positions": batch.positions}))
            if current is not None and not batch.has_more:
                look_again = Schedule(DUE, hook.id, MAX_PAUSE)  # for whether the task is cancelled
                if not await self._events.has_news(_positions(current), look_again):
                    return MAX_PAUSE
        return None

    async def _settle(self, hook: Webhook, answer: Posted | Failure | None, done: Mapping[str, object]) -> float | None:
        """Note what became of a message: that it is done with, or after how many seconds it is sent again."""
        pause: float | None = None

        def change(kept: Webhook) -> None:
            nonlocal pause
            attempts, pause = kept.about["attempts"], None
            if answer is None or note(kept, answer) or attempts >= len(PAUSES):
                kept.about = {**kept.about, **done, "attempts": 0}
            else:
                pause = PAUSES[attempts]
                kept.about = {**kept.about, "attempts": attempts + 1}

        await self._webhooks.change(hook, change)
        return None if pause is None else await self._postpone(hook, pause)

    async def _postpone(self, hook: Webhook, pause: float) -> float:
        await self._store.run([Schedule(DUE, hook.id, pause)])
        return pause

    # --- Events as tasks that go on ---

    def event_of(self, skill: object, caller: Principal | None) -> Event | None:
        """Return the event that a skill is to a caller, None for any other skill."""
        known = {one.id for one in self._catalog.events} if isinstance(skill, str) else ()
        return self._events.find(str(skill), caller) if skill in known else None

    async def begin(self, event: Event, arguments: Mapping[str, object], caller: Principal | None) -> dict[str, Any]:
        """Return what a task has to know that tells of an event from now on. Raises StoreUnavailable."""
        batch = await self._events.read(event, logs_for(event, caller), None)
        known = None if caller is None else [caller.id, sorted(caller.scopes)]
        return {"event": event.id, "arguments": arguments, "caller": known, "positions": batch.positions}

    async def follow(self, record: TaskRecord, seconds: float) -> AsyncGenerator[Update, None]:
        """Yield what happens of the event that a task tells of, until it is cancelled or the time is over."""
        wanted = wanted_of(record) or {}
        caller = _caller_of(wanted)
        event, end = self._events.find(wanted["event"], caller), time.monotonic() + seconds
        if event is None:
            return
        logs, positions = logs_for(event, caller), _read_positions(wanted["positions"])
        batches = self._events.follow(event, logs, positions, wanted["arguments"], LOOK_SECONDS)
        async with aclosing(batches):
            async for batch in batches:
                for one in batch.occurrences:
                    yield artifact_of(record, one)
                if time.monotonic() > end:
                    return
                if not batch.has_more:
                    record = await self._tasks.find(record.task.id, record.owner)
                if record.state in TERMINAL:
                    for update in updates_of(record.task):
                        yield update
                    return


def wanted_of(record: TaskRecord) -> dict[str, Any] | None:
    """Return what a task has to know that tells of an event, None for any other task."""
    return dict(record.input or {}) if record.skill.startswith(EVENT) else None


def artifact_of(record: TaskRecord, one: Occurrence) -> TaskArtifactUpdateEvent:
    """Return an occurrence as an artifact of the task that tells of it."""
    parts = make_data_parts(one.data) or [Part(text=orjson.dumps(one.data).decode(), media_type=JSON)]
    artifact = Artifact(artifact_id=one.id, name=one.name, parts=parts)
    artifact.metadata.update({"timestamp": one.timestamp})
    task = record.task
    return TaskArtifactUpdateEvent(task_id=task.id, context_id=task.context_id, artifact=artifact, last_chunk=True)


def _caller_of(wanted: Mapping[str, Any]) -> Principal | None:
    known = wanted.get("caller")
    return Principal(known[0], frozenset(known[1])) if known else None


def _read_positions(told: Mapping[str, Iterable[Any]]) -> Positions:
    return {log: (epoch, number) for log, (epoch, number) in told.items()}


def _positions(hook: Webhook) -> Positions:
    return _read_positions(hook.about["positions"])


def _put(members: Mapping[str, object], hook: Webhook) -> None:
    hook.about = {**hook.about, **members}


def _log_of(task_id: str) -> str:
    return f"task:{task_id}"


def _digest_of(record: TaskRecord) -> str:
    return sha256(repr(progress_of(record)).encode("utf-8", "replace")).hexdigest()[:12]


def _body_of(update: Update) -> bytes:
    return WHOLE.sub(rb"\1\2", orjson.dumps(MessageToDict(to_stream_response(update))))


def _message(hook: Webhook, message_id: str, body: bytes) -> Message:
    config: Mapping[str, Any] = hook.about["config"]
    headers = dict[str, str]()
    if config.get("token"):
        headers["X-A2A-Notification-Token"] = config["token"]
    known: Mapping[str, str] = config.get("authentication", {})
    if known.get("scheme") and known.get("credentials") and not known["credentials"].startswith("whsec_"):
        headers["Authorization"] = f"{known['scheme']} {known['credentials']}"
    return Message(message_id, body, headers)
