"""Push notifications of tasks (A2A 1.0, section 4.3).

Changes of a task are sent to the addresses that its caller names. A config is a webhook of the site
(the plug-in "events"), so it is in the store and its address has to be public. Messages are signed according to
Standard Webhooks with a shared secret: `authentication.credentials` or `token`, which are keys if they begin with
`whsec_`; if the caller gives neither, with a key that the answer returns. The end of a task is sent once. 410 ends a
config.
"""

import base64
import secrets
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import orjson
from a2a.server.events import Event as Update
from a2a.types.a2a_pb2 import TaskPushNotificationConfig
from a2a.utils.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict, ParseDict

from awp_publish.http.outgoing import Failure, Posted
from awp_publish.plugin import Context
from awp_publish.plugins.a2a.event_tasks import artifact_of, subscriber_of, subscription_of
from awp_publish.plugins.a2a.record import TaskRecord, progress_of, updates_of
from awp_publish.plugins.a2a.records import Tasks
from awp_publish.plugins.a2a.tasks import TERMINAL
from awp_publish.problems import RateLimited, StoreUnavailable
from awp_publish.schema.large_numbers import with_integers
from awp_publish.stores.store import Count

KIND: Final = "a2a-task"
MAX_CONFIGS: Final = 10
MAX_TEXT: Final = 1_000
ANONYMOUS_CONFIGS: Final = 30
"""Configs that unknown callers at one address may make in a minute."""

FIRST_PAUSE: Final = 0.5
MAX_PAUSE: Final = 5.0
"""Seconds between two polls of a task."""

MAX_BODY: Final = 262_144


class Pushes:
    """The push notification configs of one public address of a site."""

    def __init__(self, door: Context, tasks: Tasks) -> None:
        served = door.ask("events")
        self._webhooks: Any = None
        self._events: Any = None
        if served is not None:
            self._webhooks, self._events, self._delivery = served.webhooks, served.log, served.delivery
            self._webhooks.kinds[KIND] = self.carry
        self._catalog = door.catalog
        self._tasks = tasks
        self._store = door.guards.store

    def check(self, config: TaskPushNotificationConfig) -> None:
        """Refuse a config with an unusable address or texts. Raises InvalidParamsError.

        Without the plug-in "events", raises PushNotificationNotSupportedError.
        """
        if self._webhooks is None:
            raise PushNotificationNotSupportedError
        texts = (config.id, config.token, config.authentication.scheme, config.authentication.credentials)
        if any(len(text) > MAX_TEXT or not (text.isascii() and text.isprintable()) for text in texts):
            raise InvalidParamsError(f"id, token and authentication are ASCII of at most {MAX_TEXT} characters.")
        try:
            self._webhooks.check_address(config.url)
        except self._webhooks.RefusedCallback as refused:
            raise InvalidParamsError(refused.detail) from refused

    async def create(
        self, record: TaskRecord, config: TaskPushNotificationConfig, address: str
    ) -> TaskPushNotificationConfig:
        """Store a config of a task, replacing one with the same id, and return it as it is stored.

        `address` is that of a caller who may be unknown. Raises A2AError, RateLimited, StoreUnavailable.
        """
        self.check(config)
        if not record.owner:
            ran = await self._store.run([Count(f"a2a-push:{address}", ANONYMOUS_CONFIGS, 60.0)])
            if ran.failed is not None:
                raise RateLimited("Too many push notification configs.", headers=[("Retry-After", "60")])
        stored = TaskPushNotificationConfig()
        stored.CopyFrom(config)
        stored.task_id, stored.id = record.task.id, config.id or secrets.token_urlsafe(12)
        if not stored.token and not stored.authentication.credentials:
            stored.authentication.scheme = stored.authentication.scheme or "StandardWebhooks"
            stored.authentication.credentials = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
        candidates = (stored.authentication.credentials, stored.token)
        key = next(
            (secret for secret in candidates if secret.startswith("whsec_")),
            stored.token or stored.authentication.credentials,
        )
        hooks = await self._configs(record)
        before = next((hook for hook in hooks if hook.about["config"]["id"] == stored.id), None)
        if before is None and len(hooks) >= MAX_CONFIGS:
            raise UnsupportedOperationError(f"The task has {MAX_CONFIGS} push notification configs already.")
        logs = [_log_of(record.task.id)]
        logs += [f"job:{record.job}"] if record.job else []
        about: dict[str, Any] = {"task": record.task.id, "owner": record.owner, "config": MessageToDict(stored)}
        about |= {"shown": None if record.state in TERMINAL else _digest_of(record), "attempts": 0}
        if (subscription := subscription_of(record)) is not None:
            caller = subscriber_of(subscription)
            event = self._events.find(subscription["event"], caller)
            logs += self._events.logs_for(event, caller) if event is not None else ()
            about |= {"positions": subscription["positions"], "caller": subscription["caller"]}
        hook = self._webhooks.new(
            id=f"a2a_{sha256(f'{record.task.id} {stored.id}'.encode()).hexdigest()[:32]}",
            kind=KIND,
            principal=record.owner or f"ip:{address}",
            url=stored.url,
            secret=key,
            expires=time.time() + self._tasks.seconds_of(record),
            about=about,
            logs=tuple(logs),
        )
        try:
            if not await self._webhooks.put(hook, before):
                raise StoreUnavailable("The config is being changed.", headers=[("Retry-After", "1")])
        except self._webhooks.TooMany as many:
            raise UnsupportedOperationError(str(many)) from many
        return stored

    async def listed(self, record: TaskRecord) -> list[TaskPushNotificationConfig]:
        return [ParseDict(hook.about["config"], TaskPushNotificationConfig()) for hook in await self._configs(record)]

    async def find(self, record: TaskRecord, config_id: str) -> TaskPushNotificationConfig:
        """Return one config of a task, by default the only one. Raises TaskNotFoundError."""
        configs = await self.listed(record)
        matches = [config for config in configs if config.id == config_id or (not config_id and len(configs) == 1)]
        if not matches:
            raise TaskNotFoundError("The task has no such push notification config.")
        return matches[0]

    async def delete(self, record: TaskRecord, config_id: str) -> None:
        for hook in await self._configs(record):
            if hook.about["config"]["id"] == config_id:
                await self._webhooks.remove(hook)

    async def _configs(self, record: TaskRecord) -> list[Any]:
        if self._webhooks is None:
            raise PushNotificationNotSupportedError
        return [hook for hook in await self._webhooks.at(_log_of(record.task.id)) if not hook.has_expired()]

    async def carry(self, hook: Any) -> float | None:
        """Send the changes of a task. Returns None if nothing more will ever be sent."""
        about = hook.about
        try:
            record = await self._tasks.refresh(await self._tasks.find(about["task"], about["owner"]))
        except TaskNotFoundError:
            return None
        digest = _digest_of(record)
        if digest != about["shown"] and not (record.state not in TERMINAL and subscription_of(record) is not None):
            answer: Posted | Failure | None = None
            for place, update in enumerate(updates_of(record.task)):
                body = _body_of(update)
                if len(body) > MAX_BODY:  # too large: it can be read with GetTask
                    continue
                answer = await self._webhooks.send(
                    hook, _hook_message(hook, f"{record.task.id}.{digest}.{place}", body)
                )
                if _is_gone(answer):
                    return None
                if isinstance(answer, str) or not 200 <= answer.status < 300:
                    break
            if (pause := await self._settle(hook, answer, {"shown": digest, "pause": FIRST_PAUSE})) is not None:
                return pause
        elif "positions" in about and record.state not in TERMINAL:
            return await self._carry_events(hook, record)
        if record.state in TERMINAL:
            pause = self._webhooks.QUIET_SECONDS if hook.expires is None else hook.expires - time.time()
        else:
            pause = min(about.get("pause", FIRST_PAUSE) * 1.5, MAX_PAUSE)
            await self._webhooks.change(hook, lambda stored: stored.about.update(pause=pause))
        later: float = await self._webhooks.postpone(hook, pause)
        return later

    async def _carry_events(self, hook: Any, record: TaskRecord) -> float | None:
        """Send the occurrences of an event to which a task subscribes, as far as the config's owner may see them."""
        subscription = {**(subscription_of(record) or {}), "caller": hook.about["caller"]}
        event = self._events.find(subscription["event"], subscriber_of(subscription))
        if event is None:
            return None

        def write(hook: Any, occurrence: Any, _: object) -> Any:
            return _hook_message(hook, occurrence.id, _body_of(artifact_of(record, occurrence)))

        options = {"arguments": subscription["arguments"], "ends": _is_gone, "is_ordered": True}
        # It looks again before long, to notice that the task was cancelled.
        pause: float | None = await self._delivery.carry(hook, event, write, quiet=MAX_PAUSE, **options)
        return pause

    async def _settle(self, hook: Any, answer: Posted | Failure | None, done: Mapping[str, object]) -> float | None:
        """Record the result of a message. Returns the seconds until it is sent again, or None if it is done."""
        pause: float | None = None

        def change(stored: Any) -> None:
            nonlocal pause
            attempts, pause, pauses = stored.about["attempts"], None, self._webhooks.PAUSES
            if answer is None or stored.note(answer) or attempts >= len(pauses):
                stored.about = {**stored.about, **done, "attempts": 0}
            else:
                pause = pauses[attempts]
                stored.about = {**stored.about, "attempts": attempts + 1}

        await self._webhooks.change(hook, change)
        return None if pause is None else await self._webhooks.postpone(hook, pause)


def _is_gone(answer: Posted | Failure | None) -> bool:
    return isinstance(answer, Posted) and answer.status == 410


def _log_of(task_id: str) -> str:
    return f"task:{task_id}"


def _digest_of(record: TaskRecord) -> str:
    return sha256(repr(progress_of(record)).encode("utf-8", "replace")).hexdigest()[:12]


def _body_of(update: Update) -> bytes:
    return with_integers(orjson.dumps(MessageToDict(to_stream_response(update))))


def _hook_message(hook: Any, message_id: str, body: bytes) -> Any:
    config: Mapping[str, Any] = hook.about["config"]
    headers = dict[str, str]()
    if config.get("token"):
        headers["X-A2A-Notification-Token"] = config["token"]
    authentication: Mapping[str, str] = config.get("authentication", {})
    if (
        authentication.get("scheme")
        and authentication.get("credentials")
        and not authentication["credentials"].startswith("whsec_")
    ):
        headers["Authorization"] = f"{authentication['scheme']} {authentication['credentials']}"
    return hook.message(message_id, body, headers)
