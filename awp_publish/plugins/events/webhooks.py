"""Webhooks: signed messages about events, sent to URLs that callers have registered, with retries.

A webhook is a record in the site's store and a member of a queue, due when there may be something to send. A worker
takes it from the queue, and the handler of its kind (`Webhooks.kinds`) decides by the record what to send next. So an
accepted message is not lost if a process ends; it may be sent twice, under the same id.

Requests are signed according to Standard Webhooks (standardwebhooks.com). They are sent only to public addresses, over
https. Each address is resolved and checked before each request, and redirects are not followed. The environment
variable AWP_PUBLISH_CALLBACK_ORIGINS lists trusted origins, for development and for private networks: these may have
private addresses and use plain HTTP.
"""

import asyncio
import hmac
import logging
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from hashlib import sha256
from ipaddress import ip_address
from typing import Final, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import orjson

from awp_publish.checks.urls import is_private
from awp_publish.http import outgoing
from awp_publish.http.outgoing import Failure, Posted, is_public_address
from awp_publish.plugins.events.hook import (
    DUE,
    FOREVER,
    PAUSES,
    Message,
    RefusedCallback,
    Webhook,
    read_secret,
    read_webhook,
    reason_of,
)
from awp_publish.plugins.events.log import APPENDED, Events
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import WEBHOOK, Add, Count, Look, Schedule, Step, Store, Swap, Unschedule, unavailable
from awp_publish.stores.threads import ThreadsOfTheirOwn
from awp_publish.stores.values import change_value, read_value

logger: Final = logging.getLogger("awp_publish.calls")

ORIGINS_VARIABLE: Final = "AWP_PUBLISH_CALLBACK_ORIGINS"

LEASE: Final = 20.0
"""Seconds after which another worker may take a webhook from one that does not finish."""

QUIET_SECONDS: Final = 300.0
"""Seconds after which a webhook is checked again without a notification that there is something to send."""

LOOK_SECONDS: Final = 1.0
OTHERS_EVERY: Final = 5
"""The queues of `on_queue` are polled in every fifth round only, in case another process has no worker.

LOOK_SECONDS is the time between two rounds.
"""

SEND_SECONDS: Final = 5.0
"""Seconds within which a receiver has to answer."""

MAX_AT_ONCE: Final = 32
MAX_AT_ONCE_OF_CALLER: Final = 8
"""Concurrent webhooks, in total and per caller: addresses that never answer delay only those of the same caller."""

MAX_TAKEN: Final = 1_000
"""Maximum webhooks that this process has taken from the queue."""

MAX_AT_ONE_LOOK: Final = 100

MAX_AT_LOG: Final = 1_000
MAX_OF_CALLER: Final = 100
VERIFICATIONS: Final = 30
"""Verification requests per minute, both per caller and per host."""

VERIFIED_SECONDS: Final = 7 * 86_400.0
DROPPED_SECONDS: Final = 3 * 86_400.0
"""Seconds of continuous failure after which a webhook without expiry is removed."""

MAX_URL: Final = 2_000
MAX_TRIES: Final = 20


class TooMany(Exception):
    """A limit is reached: there are `most` of `what` already."""

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"There are {most} {what} already.")
        self.what = what
        self.most = most


Carry: TypeAlias = Callable[[Webhook], Awaitable[float | None]]
"""Sends the due messages of a webhook. Returns the seconds until there may be more, None if the webhook has ended."""


class Webhooks:
    """The webhooks of one site. `kinds` has the handler of each kind of webhook."""

    # For plug-ins that ask for the webhooks by the name of this one.
    new = Webhook
    check_secret = staticmethod(read_secret)
    RefusedCallback = RefusedCallback
    TooMany = TooMany
    PAUSES = PAUSES
    QUIET_SECONDS = QUIET_SECONDS

    def __init__(self, store: Callable[[], Store], events: Events) -> None:
        self._store = store
        self._events = events
        self.kinds: dict[str, Carry] = {}
        self.on_queue: dict[str, Callable[[str], Awaitable[None]]] = {
            APPENDED: lambda log: self.wake(log, Unschedule(APPENDED, log))
        }
        self._has_lifespan = False
        # Separate from the event loop's few threads, which are needed to check credentials.
        self._threads = ThreadsOfTheirOwn()
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)
        self._turns_of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._worker: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        origins = os.environ.get(ORIGINS_VARIABLE, "")
        self.trusted = frozenset(origin.rstrip("/").lower() for origin in re.split(r"[,\s]+", origins) if origin)

    @property
    def is_durable(self) -> bool:
        """True if webhooks survive the process."""
        return self._store().is_shared

    def check_address(self, url: str) -> None:
        """Check a URL without resolving its host. Raises RefusedCallback."""
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            raise RefusedCallback("The url is not a valid address.") from None
        if len(url) > MAX_URL or not url.isascii() or any(character <= " " for character in url):
            raise RefusedCallback(f"The url must be ASCII without spaces, of at most {MAX_URL} characters.")
        if f"{parts.scheme}://{parts.netloc}" in self.trusted:
            return
        if parts.scheme != "https" or not host:
            raise RefusedCallback("The url must begin with https://.")
        if parts.username is not None or parts.fragment:
            raise RefusedCallback("The url must not contain a user name, a password or a fragment.")
        is_local = is_private(host)
        with suppress(ValueError):
            is_local |= not is_public_address(str(ip_address(host)))
        if is_local:
            raise RefusedCallback("The url leads into a private network.")

    async def verify(self, hook: Webhook, *, is_forever: bool) -> None:
        """Verify that a URL wants the messages, by a challenge (SEP-3415, Endpoint verification).

        The result is valid for the same caller for VERIFIED_SECONDS, or FOREVER. Raises RefusedCallback, TooMany,
        StoreUnavailable.
        """
        seconds = FOREVER if is_forever else VERIFIED_SECONDS
        key = f"webhook-verified:{_digest(hook.principal, hook.url)}"
        host = urlsplit(hook.url).netloc
        counts = [f"webhook-verify:{_digest(kind, name)}" for kind, name in (("of", hook.principal), ("at", host))]
        ran = await self._store().run([Look(key)])
        if isinstance(ran.seen[0], bytes):
            return
        ran = await self._store().run([Count(key, VERIFICATIONS, 60.0) for key in counts])
        if ran.failed is not None:
            raise TooMany("verifications a minute", VERIFICATIONS)
        challenge = secrets.token_urlsafe(32)
        body = orjson.dumps({"type": "verification", "challenge": challenge})
        answer = await self.send(hook, hook.control("verification", body))
        reason = reason_of(answer)
        if reason is None and isinstance(answer, Posted):
            with suppress(ValueError, TypeError, AttributeError):
                echoed = orjson.loads(answer.body).get("challenge")
                if hmac.compare_digest(echoed.encode(), challenge.encode()):
                    await self._store().run([Add(key, b"1", seconds)])
                    return
        outcomes = {None: "did not echo the challenge", "http_4xx": "refused", "http_5xx": "failed"}
        raise RefusedCallback(
            f"The address {outcomes.get(reason, 'could not be reached')}.",
            reason if isinstance(answer, str) else "challenge_failed",
        )

    async def find(self, webhook_id: str) -> Webhook | None:
        """Return a webhook, expired or not; None if there is none."""
        raw = await read_value(self._store(), f"{WEBHOOK}{webhook_id}")
        return read_webhook(raw) if isinstance(raw, bytes) else None

    async def at(self, log: str) -> list[Webhook]:
        """Return the webhooks that are registered for a log."""
        raw = await read_value(self._store(), f"{{events}}webhooks-at:{log}")
        ids: list[str] = orjson.loads(raw) if isinstance(raw, bytes) else []
        values = (await self._store().run([Look(f"{WEBHOOK}{hook_id}") for hook_id in ids])).seen if ids else ()
        return [read_webhook(value) for value in values if isinstance(value, bytes)]

    async def put(self, hook: Webhook, before: Webhook | None) -> bool:
        """Store a webhook, new or in place of `before`. Returns False if `before` has been changed meanwhile.

        The webhook is due at once. Raises TooMany, StoreUnavailable.
        """
        store, of_caller = self._store(), f"{{events}}webhooks-of:{_digest(hook.principal)}"
        written = hook.write()
        step = Add(hook.key, written, hook.seconds)
        steps: list[Step] = [step if before is None else Swap(hook.key, before.raw, written, hook.seconds)]
        steps += [Schedule(of_caller, hook.id, hook.seconds, MAX_OF_CALLER), Schedule(DUE, hook.id, 0.0)]
        for tried in range(2):
            ran = await store.run(steps, durable=True)
            if ran.failed != 1 or tried:
                break
            over = await store.take(of_caller, LEASE, MAX_OF_CALLER)
            await store.run([Unschedule(of_caller, hook_id) for hook_id in over])
        if ran.failed == 1:
            raise TooMany("subscriptions", MAX_OF_CALLER)
        if ran.failed is not None:
            return False
        hook.raw = written
        try:
            for log in hook.logs:
                await self._change_list(log, hook.id, is_listed=True)
            for log in set(before.logs if before is not None else ()).difference(hook.logs):
                await self._change_list(log, hook.id, is_listed=False)
        except TooMany:
            await self.remove(hook)
            raise
        self.work_anyway()
        self._wake.set()
        return True

    async def change(self, hook: Webhook, change: Callable[[Webhook], None]) -> Webhook | None:
        """Apply a change to the stored webhook, again after each concurrent change. Returns None if it is gone.

        Raises StoreUnavailable after MAX_TRIES.
        """
        current: Webhook | None = hook
        for _ in range(MAX_TRIES):
            if current is None:
                return None
            change(current)
            written = current.write()
            swap = Swap(current.key, current.raw, written, current.seconds)
            ran = await self._store().run([swap, Schedule(DUE, current.id, LEASE)])
            if ran.failed is None:
                current.raw = written
                return current
            current = await self.find(hook.id)
        raise unavailable("Too many requests change this subscription at the same time.")

    async def postpone(self, hook: Webhook, seconds: float) -> float:
        """Make a webhook due in so many seconds, which are returned."""
        await self._store().run([hook.due_in(seconds)])
        return seconds

    async def remove(self, hook: Webhook) -> None:
        for _ in range(MAX_TRIES):
            ran = await self._store().run(
                [
                    Swap(hook.key, hook.raw, None),
                    Unschedule(DUE, hook.id),
                    Unschedule(f"{{events}}webhooks-of:{_digest(hook.principal)}", hook.id),
                ]
            )
            current = await self.find(hook.id) if ran.failed is not None else None
            if current is None:
                break
            hook = current
        for log in hook.logs:
            await self._change_list(log, hook.id, is_listed=False)

    async def _change_list(self, log: str, webhook_id: str, *, is_listed: bool) -> None:
        """Add a webhook to the list of a log, or remove it."""
        store = self._store()

        async def change(value: bytes | None) -> bytes | None:
            ids: list[str] = orjson.loads(value) if value is not None else []
            if (webhook_id in ids) is is_listed:
                return value
            if is_listed and len(ids) >= MAX_AT_LOG:
                hooks = (await store.run([Look(f"{WEBHOOK}{listed}") for listed in ids])).seen
                ids = [listed for listed, hook in zip(ids, hooks, strict=True) if isinstance(hook, bytes)]
                if len(ids) >= MAX_AT_LOG:
                    raise TooMany("subscriptions of this event", MAX_AT_LOG)
            changed = [*ids, webhook_id] if is_listed else [listed for listed in ids if listed != webhook_id]
            return orjson.dumps(changed) if changed else None

        if not await change_value(store, f"{{events}}webhooks-at:{log}", change, FOREVER, durable=True):
            raise unavailable("Too many requests change the subscriptions of an event at the same time.")

    async def send(self, hook: Webhook, message: Message) -> Posted | Failure:
        """Sign a message and send it once."""
        post = partial(
            outgoing.post, hook.url, message.body, hook.signed(message), seconds=SEND_SECONDS, trusted=self.trusted
        )
        return await asyncio.get_running_loop().run_in_executor(self._threads, post)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run the worker while the application runs."""
        self._has_lifespan = True
        task = self._start()
        try:
            yield
        finally:
            self._has_lifespan = False
            task.cancel()
            await asyncio.wait({task})

    def work_anyway(self) -> None:
        """Start the worker if the server has no lifespan; it then ends with the event loop."""
        if not self._has_lifespan and (
            self._worker is None or self._worker.done() or self._worker.get_loop().is_closed()
        ):
            self._worker = self._start()

    def hurry(self) -> None:
        """Wake the worker of this process. May be called from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._wake.set)

    def _start(self) -> "asyncio.Task[None]":
        self._wake, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self._turns, self._turns_of = asyncio.Semaphore(MAX_AT_ONCE), WeakValueDictionary()
        self._wake.set()
        return asyncio.get_running_loop().create_task(self._work(), name="awp_publish webhooks")

    async def _work(self) -> None:
        loop, wake = asyncio.get_running_loop(), self._wake
        tasks, again = dict[str, asyncio.Task[None]](), set[str]()

        def start(webhook_id: str) -> None:
            task = tasks[webhook_id] = loop.create_task(self._carry(webhook_id))
            task.add_done_callback(lambda _: release(webhook_id))

        def release(webhook_id: str) -> None:
            del tasks[webhook_id]
            wake.set()
            if webhook_id in again:
                again.discard(webhook_id)
                start(webhook_id)

        forget, is_away, looks = self._events.listen(lambda _: self.hurry()), False, 0
        try:
            while True:
                looks = 0 if wake.is_set() else looks + 1
                wake.clear()
                due: Sequence[str] = ()
                try:
                    # This process's own entries wake the worker. Most other processes have workers of their own.
                    for queue, handle in self.on_queue.items() if looks % OTHERS_EVERY == 0 else ():
                        for member in await self._store().take(queue, LEASE, MAX_AT_ONE_LOOK):
                            await handle(member)
                    free = min(MAX_TAKEN - len(tasks), MAX_AT_ONE_LOOK)
                    due = await self._store().take(DUE, LEASE, free) if free else ()
                    is_away = False
                except StoreUnavailable:
                    if not is_away:
                        logger.warning("the store is unavailable: webhooks wait for it")
                    is_away = True
                except Exception:
                    logger.exception("looking for webhooks failed and will be retried")
                for webhook_id in due:
                    if webhook_id in tasks:  # the running task may have read the record too early
                        again.add(webhook_id)
                    else:
                        start(webhook_id)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await wake.wait()
        finally:
            forget()
            again.clear()
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def wake(self, log: str, *also: Step) -> None:
        """Make the webhooks of a log due, together with the steps of `also`. Raises StoreUnavailable."""
        raw = await read_value(self._store(), f"{{events}}webhooks-at:{log}")
        ids: list[str] = orjson.loads(raw) if isinstance(raw, bytes) else []
        await self._store().run([*(Schedule(DUE, hook_id, 0.0) for hook_id in ids), *also])

    async def _carry(self, webhook_id: str) -> None:
        try:
            hook = await self.find(webhook_id)
            if hook is None:
                await self._store().run([Unschedule(DUE, webhook_id)])
                return
            own = self._turns_of.setdefault(hook.principal, asyncio.Semaphore(MAX_AT_ONCE_OF_CALLER))
            has_to_wait = own.locked() or self._turns.locked()
            async with AsyncExitStack() as turn:
                try:
                    async with asyncio.timeout(LEASE / 2):
                        await turn.enter_async_context(own)
                        await turn.enter_async_context(self._turns)
                except TimeoutError:
                    return  # it is due again when its lease ends
                if has_to_wait:
                    await self._store().run([Schedule(DUE, webhook_id, LEASE)])
                    hook = await self.find(webhook_id)
                    if hook is None:
                        return
                gone = time.time() - hook.failed_since if hook.failed_since is not None else 0.0
                if hook.has_expired() or (hook.expires is None and gone > DROPPED_SECONDS):
                    await self.remove(hook)
                    return
                if not hook.is_active or hook.kind not in self.kinds:  # another version of the site may know the kind
                    await self._store().run([Schedule(DUE, webhook_id, QUIET_SECONDS)])
                    return
                pause = await self.kinds[hook.kind](hook)
                if pause is None:
                    await self.remove(hook)
        except StoreUnavailable:
            pass  # it is due again when its lease ends
        except Exception:
            logger.exception("a webhook could not be delivered, and is tried again")


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
