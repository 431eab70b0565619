"""Events: what a site declares can happen, and the log in the site's store of what has happened.

Each audience of an event has a log of its own, so that readers cannot infer that there are events for others. A log is
a head (an epoch, and the number of its last entry) and numbered entries. Appending takes one round trip: the head is
replaced only if it is unchanged since it was read, so that of two concurrent writers one retries. Events that this
process emits in the meantime are appended together. The newest MAX_KEPT entries of a log are kept, for KEPT_SECONDS.

A position in a log is the value of its head at some time. The positions of a reader in all logs of an event are encoded
as one opaque text, the cursor. Reading from a cursor returns everything later, and `truncated` if some of that is gone.
"""

import asyncio
import logging
import random
import secrets
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from heapq import merge
from typing import Any, Final, NamedTuple, cast
from weakref import WeakKeyDictionary

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

from awp_publish.calls.call import Principal, scopes_of
from awp_publish.model import Event, JsonObject, title_of, utc_text
from awp_publish.plugins.events.audiences import Positions, log_of, logs_for, read_audience, read_cursor, write_cursor
from awp_publish.plugins.events.filters import filters_of, is_match
from awp_publish.problems import DeclarationError, InvalidOutput, StoreUnavailable, Violation, did_you_mean
from awp_publish.schema import UnusableSchema, Validator, adapt, compile_schema, write_schema
from awp_publish.schema.handlers import docstring_of
from awp_publish.schema.options import AUDIENCE, ID, check
from awp_publish.stores.store import Add, Look, Schedule, Step, Store, Swap, unavailable
from awp_publish.stores.values import read_value, replacement

logger: Final = logging.getLogger("awp_publish")

KEPT_SECONDS: Final = 86_400.0
MAX_KEPT: Final = 1_000
"""The seconds for which an event can be read, and the number of events kept for each audience."""

MAX_BYTES: Final = 245_760
"""Bytes of a payload at most: a delivery has to stay below 256 KiB (SEP-3415, Delivery profile)."""

TRIMMED: Final = 100
"""Entries beyond MAX_KEPT that are removed at a time."""

HEAD_SECONDS: Final = 30 * 86_400.0
MAX_HEADS: Final = 10_000
"""Heads that are cached, so that appending takes one round trip."""

MAX_TRIES: Final = 50
MAX_TOGETHER: Final = 100
"""Events that are appended in one step at most."""

APPENDED: Final = "{events}appended"
"""The queue of logs with new entries, for the workers that deliver them."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event that has happened. `data` is its payload, a JSON object."""

    id: str
    name: str
    timestamp: str
    data: JsonObject = field(repr=False)
    log: str = ""
    number: int = 0

    @property
    def facts(self) -> dict[str, Any]:
        """The members that every protocol publishes, with the payload unchanged."""
        return {"eventId": self.id, "name": self.name, "timestamp": self.timestamp, "data": self.data}


class Batch(NamedTuple):
    """Occurrences in the order in which they happened, and the positions before and after them.

    `truncated` means that earlier occurrences are gone, `has_more` that there are more to read.
    """

    occurrences: tuple[Occurrence, ...]
    before: Positions
    positions: Positions
    truncated: bool = False
    has_more: bool = False

    def steps(self) -> Iterator[tuple[Occurrence, Positions]]:
        """Yield each occurrence with the positions after it."""
        at = dict(self.before)
        for place, entry in enumerate(self.occurrences, 1):
            at[entry.log] = (at[entry.log][0], entry.number)
            yield entry, at if place < len(self.occurrences) else self.positions


@dataclass(slots=True)
class _Group:
    """Entries that wait to be appended to one log."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: list["_Entry"] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Entry:
    body: bytes
    once: str
    is_done: bool = False


class _Declared(NamedTuple):
    event: Event
    writes: TypeAdapter[object] | None
    conforms: Validator | None
    takes: Validator


@dataclass(slots=True)
class _Declaration:
    payload: object
    description: str | None
    audience: str
    decorated: object = None


class Events:
    """The events of one site: those declared, and those that have happened."""

    # For plug-ins that ask for the log by the name of this one.
    logs_for = staticmethod(logs_for)
    read_cursor = staticmethod(read_cursor)
    write_cursor = staticmethod(write_cursor)

    def __init__(
        self,
        store: Callable[[], Store],
        refuse_when_frozen: Callable[[str], None] = lambda subject: None,
        people: str | None = "",
    ) -> None:
        """Create the events. `people` are those whom an id without an issuer means, None if there are several kinds."""
        self._store = store
        self._people = people
        self._refuse_when_frozen = refuse_when_frozen
        self._declarations: dict[str, _Declaration] = {}
        self._known: dict[str, _Declared] = {}
        self._heads: dict[str, bytes | None] = {}
        self._groups: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Group]] = WeakKeyDictionary()
        self._listeners: tuple[Callable[[str], None], ...] = ()

    def declare(self, event_id: str, payload: object, description: str | None, audience: str) -> Callable[[Any], Any]:
        """Declare an event, and return the decorator of its class or function. Raises DeclarationError."""
        if callable(event_id):
            raise DeclarationError("site.event", 'needs an id: write @site.event("its_id", payload=Model).')
        subject = f'event "{event_id}"'
        self._refuse_when_frozen(subject)
        check(subject, ID, event_id, "id")
        if event_id in self._declarations:
            raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
        if description is not None and not (isinstance(description, str) and description.strip()):
            raise DeclarationError(subject, "description: must be a non-empty text.")
        check(subject, AUDIENCE, audience, "audience")
        declaration = self._declarations[event_id] = _Declaration(payload, description, audience)

        def decorate(decorated: Any) -> Any:
            declaration.decorated = decorated
            self._known.pop(event_id, None)
            return decorated

        return decorate

    def all(self) -> tuple[Event, ...]:
        """Return all events, in the order of their declaration. Raises DeclarationError."""
        return tuple(self._find(event_id).event for event_id in self._declarations)

    def _find(self, event_id: str) -> _Declared:
        """Return the declaration of an event. Raises DeclarationError."""
        declared = self._known.get(event_id)
        if declared is not None:
            return declared
        subject, declaration = f'event "{event_id}"', self._declarations.get(event_id)
        if declaration is None:
            suggestion = did_you_mean(event_id, self._declarations)
            raise DeclarationError(
                subject, "is not declared.", suggestion or f'Write @site.event("{event_id}", payload=...).'
            )
        payload, decorated = declaration.payload, declaration.decorated
        if payload is None and isinstance(decorated, type):
            payload = decorated
        schema, conforms, writes = cast(JsonObject, {"type": "object"}), None, None
        try:
            if isinstance(payload, Mapping):
                schema = dict(payload)
                conforms = compile_schema(schema)
            elif payload is not None:
                schema, writes = write_schema(payload, "serialization"), adapt(payload)
            inputs = filters_of(schema)
            takes = compile_schema(inputs)
        except UnusableSchema as error:
            raise DeclarationError(subject, f"payload: {error}.") from error
        if schema.get("type") != "object":
            raise DeclarationError(subject, "payload: must be an object.", "Give a model.")
        own = docstring_of(decorated) if decorated is not None and not isinstance(decorated, type) else None
        described = schema.get("description")
        words = declaration.description or own or (described if isinstance(described, str) and described else None)
        event = Event(event_id, words or title_of(event_id), schema, inputs, declaration.audience)
        declared = self._known[event_id] = _Declared(event, writes, conforms, takes)
        return declared

    async def emit(
        self, event_id: str, data: object, audience: str | Principal | None = None, *, unique: str | None = None
    ) -> str:
        """Append an event to the log of its audience and return its id. The event is in the store once this returns.

        `unique` is the event's id at its source: of several events with the same id only the first is kept. Raises
        DeclarationError for an unknown event or audience, InvalidOutput for data that does not match the declaration,
        and StoreUnavailable.
        """
        declared = self._find(event_id)
        whom = read_audience(
            f'event "{event_id}"', declared.event.audience if audience is None else audience, self._people
        )
        if unique is not None and not (isinstance(unique, str) and 0 < len(unique) <= 256):
            raise DeclarationError(f'event "{event_id}"', "unique: must be a text of at most 256 characters.")
        occurrence_id = unique or f"evt_{secrets.token_urlsafe(16)}"
        facts = {"id": occurrence_id, "at": utc_text(datetime.now(UTC), "microseconds")}  # so that they can be ordered
        body = orjson.dumps(facts)[:-1] + b',"data":' + self._write(declared, data) + b"}"
        log = log_of(event_id, whom)
        source = sha256(f"{log}:{unique}".encode("utf-8", "surrogatepass")).hexdigest()
        once = f"{{events}}id:{source}" if unique is not None else ""
        await self._append(log, _Entry(body, once))
        for listener in self._listeners:
            listener(log)
        return occurrence_id

    def _write(self, declared: _Declared, data: object) -> bytes:
        """Return the payload as JSON text. Raises InvalidOutput."""
        subject, errors = f'The payload of event "{declared.event.id}"', list[Violation]()
        try:
            if declared.writes is not None:
                body = declared.writes.dump_json(declared.writes.validate_python(data), by_alias=True)
            elif isinstance(data, BaseModel):
                body = data.model_dump_json(by_alias=True).encode()
            else:
                body = orjson.dumps(data)
        except ValidationError as error:
            errors_found = error.errors(include_url=False, include_input=False)
            errors = [Violation("".join(f"/{part}" for part in error["loc"]), error["msg"]) for error in errors_found]
        except (TypeError, ValueError) as error:  # raised by orjson, and by pydantic for unserialisable values
            raise InvalidOutput(f"{subject} cannot be written as JSON: {error}") from error
        if not errors and not body.startswith(b"{"):
            raise InvalidOutput(f"{subject} is not an object.")
        if not errors and declared.conforms is not None:
            errors = list(declared.conforms(orjson.loads(body)))
        if errors:
            violations = "; ".join(f"{error.pointer or '/'}: {error.detail}" for error in errors[:3])
            raise InvalidOutput(f"{subject} does not match its declaration: {violations}", errors=errors)
        if len(body) > MAX_BYTES:
            recovery = "Say only what happened, and let an action return the rest."
            raise InvalidOutput(f"{subject} has {len(body)} bytes, {MAX_BYTES} are allowed. {recovery}")
        return body

    async def _append(self, log: str, entry: _Entry) -> None:
        """Append an entry, together with others that are waiting. Raises StoreUnavailable."""
        groups = self._groups.setdefault(asyncio.get_running_loop(), {})
        group = groups.setdefault(log, _Group())
        group.waiting.append(entry)
        try:
            async with group.lock:
                while not entry.is_done:
                    entries = group.waiting[:MAX_TOGETHER]
                    del group.waiting[:MAX_TOGETHER]
                    try:
                        await self._write_entries(log, entries)
                    except BaseException:
                        group.waiting[:0] = [other for other in entries if other is not entry and not other.is_done]
                        raise
        finally:
            with suppress(ValueError):
                group.waiting.remove(entry)
            if not group.waiting and not group.lock.locked():
                groups.pop(log, None)

    async def _write_entries(self, log: str, entries: Sequence[_Entry]) -> None:
        store, head, waiting = self._store(), self._heads.get(log), list[_Entry]()
        for entry in entries:
            entry.is_done = bool(entry.once) and any(entry.once == other.once for other in waiting)
            waiting += [] if entry.is_done else [entry]
        for tried in range(MAX_TRIES):
            epoch, number = _read_head(head) if head is not None else (secrets.token_hex(4), 0)
            new = f"{epoch}:{number + len(waiting)}".encode()
            steps: list[Step] = [replacement(_head_key(log), head, new, HEAD_SECONDS)]
            once = {len(steps) + place: entry for place, entry in enumerate(entry for entry in waiting if entry.once)}
            steps += [Add(entry.once, b"1", KEPT_SECONDS) for entry in once.values()]
            keys = [_entry_key(log, epoch, number + 1 + place) for place in range(len(waiting))]
            steps += [Add(key, entry.body, KEPT_SECONDS) for key, entry in zip(keys, waiting, strict=True)]
            steps.append(Schedule(APPENDED, log, 0.0))
            ran = await store.run(steps, durable=True)
            if ran.failed is None:
                if len(self._heads) >= MAX_HEADS:
                    self._heads.clear()
                self._heads[log] = new
                for entry in waiting:
                    entry.is_done = True
                if number // TRIMMED != (number + len(waiting)) // TRIMMED:
                    await self._trim(log, epoch, number + len(waiting))
                return
            if ran.failed in once:  # an event with this unique id exists already
                once[ran.failed].is_done = True
                waiting.remove(once[ran.failed])
                if not waiting:
                    return
                continue
            seen = ran.seen[0]
            head = seen if isinstance(seen, bytes) else None
            if tried > 1:
                await asyncio.sleep(random.uniform(0, 0.001 * tried))
        raise unavailable("Too many events are emitted at once.")

    async def _trim(self, log: str, epoch: str, last: int) -> None:
        """Remove entries beyond MAX_KEPT. If this fails, they expire later."""
        first = max(1, last - MAX_KEPT - 2 * TRIMMED - MAX_TOGETHER)
        keys = [_entry_key(log, epoch, number) for number in range(first, last - MAX_KEPT + 1)]
        if not keys:
            return
        with suppress(StoreUnavailable):
            ran = await self._store().run([Look(key) for key in keys])
            old = [(key, raw) for key, raw in zip(keys, ran.seen, strict=True) if isinstance(raw, bytes)]
            await self._store().run([Swap(key, raw, None) for key, raw in old])

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener(log)` after each event that this process emits, in the thread that emitted it.

        Returns a function that removes the listener.
        """
        self._listeners = (*self._listeners, listener)

        def forget() -> None:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

        return forget

    def find(self, event_id: str, caller: Principal | None) -> Event | None:
        """Return an event whose existence the caller may know of, or None."""
        if event_id not in self._declarations:
            return None
        event = self._find(event_id).event
        return event if event.is_for(scopes_of(caller)) else None

    def check_arguments(self, event: Event, arguments: Mapping[str, object]) -> tuple[Violation, ...]:
        """Return what is wrong with the arguments of a subscription."""
        return self._find(event.id).takes(arguments)

    async def read(
        self,
        event: Event,
        logs: Collection[str],
        positions: Positions | None,
        *,
        most: int = 50,
        since: datetime | None = None,
        arguments: Mapping[str, object] | None = None,
    ) -> Batch:
        """Return what has happened since `positions`. Without positions, or in a log that has none, reading starts now.

        At most `most` entries are read, of which those that match `arguments` are returned. Entries older than `since`
        are left out, which counts as truncated. Raises StoreUnavailable.
        """
        store, log_names = self._store(), list(logs)
        heads = (await store.run([Look(_head_key(log)) for log in log_names])).seen
        ends = {
            log: _read_head(raw) if isinstance(raw, bytes) else ("", 0)
            for log, raw in zip(log_names, heads, strict=True)
        }
        if positions is None:
            return Batch((), ends, ends)
        truncated, has_more, pages = False, False, list[list[Occurrence]]()
        # Positions in other logs (of a lost scope, or from a forged cursor) never advance and would look like news for
        # ever.
        before, after = ({log: positions[log] for log in log_names if log in positions} for _ in range(2))
        floor = utc_text(since, "microseconds") if since is not None else ""
        for log, (epoch, last) in ends.items():
            at = after.get(log)
            if at is None:
                before[log] = after[log] = (epoch, last)
                continue
            if not epoch:  # the head has expired, and all entries with it
                truncated |= at[1] > 0
                before[log] = after[log] = ("", 0)
                continue
            number = at[1]
            if at[0] != epoch or number > last:
                truncated |= at[0] != ""
                number = 0
            if number < last - MAX_KEPT:
                truncated, number = True, last - MAX_KEPT
            before[log] = (epoch, number)
            took, step = list[Occurrence](), most
            while number < last and not took:
                numbers = range(number + 1, min(number + step, last) + 1)
                entries = (await store.run([Look(_entry_key(log, epoch, number)) for number in numbers])).seen
                for number, raw in zip(numbers, entries, strict=True):
                    if not isinstance(raw, bytes):
                        truncated = True
                    else:
                        took.append(_read_entry(event.id, raw, log, number))
                step *= 4  # growing steps skip expired entries quickly
            has_more |= number < last
            pages.append(took)
            after[log] = (epoch, number)
        occurrences = list(merge(*pages, key=lambda occurrence: occurrence.timestamp))
        if len(occurrences) > most:
            for later in occurrences[most:]:
                if after[later.log][1] >= later.number:
                    after[later.log] = (after[later.log][0], later.number - 1)
            has_more, occurrences = True, occurrences[:most]
        matches = [occurrence for occurrence in occurrences if occurrence.timestamp >= floor]
        truncated |= len(matches) < len(occurrences)
        if arguments:
            matches = [occurrence for occurrence in matches if is_match(arguments, occurrence.data)]
        return Batch(tuple(matches), before, after, truncated, has_more)

    async def follow(
        self,
        event: Event,
        logs: Collection[str],
        positions: Positions | None,
        arguments: Mapping[str, object] | None = None,
        seconds: float = 1.0,
        since: datetime | None = None,
    ) -> AsyncGenerator[Batch, None]:
        """Yield a batch of what happens after `positions`, and an empty one if nothing happens for so many `seconds`.

        Events of this process arrive at once, those of other processes when the store is polled. While the store is
        unavailable, batches are empty.
        """
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake(log: str) -> None:
            if log in logs:
                with suppress(RuntimeError):  # the reader's loop has ended
                    loop.call_soon_threadsafe(woken.set)

        forget = self.listen(wake)
        try:
            while True:
                woken.clear()
                try:
                    batch = await self.read(event, logs, positions, since=since, arguments=arguments)
                    positions = batch.positions
                except StoreUnavailable:
                    batch = Batch((), positions or {}, positions or {})
                yield batch
                if not batch.has_more:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(seconds):
                            await woken.wait()
        finally:
            forget()

    async def find_entry(self, event: Event, log: str, epoch: str, number: int) -> Occurrence | None:
        """Return one occurrence, or None if it is gone. Raises StoreUnavailable."""
        raw = await read_value(self._store(), _entry_key(log, epoch, number))
        return _read_entry(event.id, raw, log, number) if isinstance(raw, bytes) else None

    async def has_news(self, positions: Positions, postpone: Schedule) -> bool:
        """Return True if the logs have entries that were not read; otherwise postpone the next delivery attempt.

        The second look, in one step with postponing, finds entries that came after the first. Postponing right away
        would delay entries if the process is killed before it sends them.
        """
        looks = [Look(_head_key(log)) for log in positions]
        for steps in ([], [postpone]):
            heads = (await self._store().run([*steps, *looks])).seen[len(steps) :]
            read = zip(heads, positions.values(), strict=True)
            if any(isinstance(raw, bytes) and _read_head(raw) != at for raw, at in read):
                if steps:
                    await self._store().run([postpone._replace(delay=0.0)])
                return True
        return False


def _head_key(log: str) -> str:
    return f"{{events}}log:{log}"


def _entry_key(log: str, epoch: str, number: int) -> str:
    return f"{{events}}entry:{log}:{epoch}:{number}"


def _read_head(raw: bytes) -> tuple[str, int]:
    epoch, _, number = raw.decode().partition(":")
    return epoch, int(number)


def _read_entry(event_id: str, raw: bytes, log: str, number: int) -> Occurrence:
    entry = orjson.loads(raw)
    return Occurrence(entry["id"], event_id, entry["at"], entry["data"], log, number)
