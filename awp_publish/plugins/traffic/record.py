"""Traffic: which callers make which calls, through which door, with which outcome and latency; and agents' page reads.

Each call is an entry in a list of this process. Every FLUSH_SECONDS the entries are added to sums in the site's store,
in one value for each day and shard. A value is replaced only if it is unchanged since it was read, so that concurrent
workers add up. Inputs and tokens are never recorded. Sums are bounded: further names beyond MAX_CALLERS and MAX_CELLS
are counted as OTHERS. The sums of a day expire after `days`; totals without callers, for monotonic counters, do not.
"""

import asyncio
import logging
import math
import random
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Final, TypeAlias
from zlib import crc32

import orjson

from awp_publish.plugins.traffic.report import ASKED, BOUNDS, JOB, OTHERS, PAGES, TrafficReport, TrafficRow
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import Look, Step, Store
from awp_publish.stores.threads import make_lock
from awp_publish.stores.values import replacement

logger: Final = logging.getLogger("awp_publish")

FLUSH_SECONDS: Final = 5.0

MAX_PENDING: Final = 1_000
"""Calls of one kind, and kinds of calls, that are summed up at a time, so that no pause is long."""

SHARDS: Final = 4
"""Values in the store among which a day is divided, so that concurrent workers seldom write the same one."""

MAX_CELLS: Final = 250

MAX_CALLERS: Final = 100
"""Doors and actions in one shard of a day; callers and outcomes of one action. Any beyond these count as OTHERS."""

MAX_NAME: Final = 200
"""Characters of a name."""

ATTEMPTS: Final = 20

MAX_LISTED: Final = 20
"""Rows of each table on a terminal."""


TOTALS: Final = "totals"

TOTALS_SECONDS: Final = 10 * 365 * 86_400.0

_Who: TypeAlias = tuple[str, str, str]
"""Caller, label and outcome."""


class _Cell:
    """The sums of one action at one door."""

    __slots__ = ("buckets", "counts", "milliseconds")

    def __init__(self) -> None:
        self.counts: dict[_Who, int] = {}
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.milliseconds = 0.0

    def add(self, who: _Who, count: int) -> None:
        for key in (who, (OTHERS, *who[1:]), (OTHERS, who[1], OTHERS)):
            if key in self.counts or len(self.counts) < MAX_CALLERS or key[2] == OTHERS:
                self.counts[key] = self.counts.get(key, 0) + count
                return

    def merge(self, other: "_Cell", with_callers: bool = True) -> None:
        for who, count in other.counts.items():
            self.add(who if with_callers else ("", *who[1:]), count)
        self.buckets = [mine + its for mine, its in zip(self.buckets, other.buckets, strict=True)]
        self.milliseconds += other.milliseconds


Kind: TypeAlias = tuple[str, str, str, str, str]
"""Door, action, caller, label and outcome."""

_Cells: TypeAlias = dict[tuple[str, str], _Cell]
"""Cells by door and action."""


class TrafficRecord:
    """Counts the calls of one site in this process, and keeps their sums in its store for `days`.

    `store` returns the site's store, `clock` the seconds since 1970.
    """

    def __init__(self, store: Callable[[], Store], days: int = 90, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self.days = days
        self.pending: dict[Kind, list[float | None]] = {}
        """Seconds of recent calls, by kind. Code that appends directly calls `sum_up` when a list has MAX_PENDING."""
        self.max_pending = MAX_PENDING
        self.midnight = math.inf
        """The time (perf_counter) at which the day of the pending calls ends."""
        self._today = ""
        self._sums: dict[str, _Cells] = {}
        self._lock = make_lock()
        self._is_kept = False
        self._is_well = True
        self.due = time.perf_counter() + FLUSH_SECONDS
        """The time (perf_counter) at which a call has to write the sums itself, if no lifespan runs `keeping`."""

    def add(
        self, door: str, action: str, caller: str, label: str, outcome: str, milliseconds: float | None = None
    ) -> None:
        """Count one call, or one page read, which has no latency."""
        times = self.times_of((door, action, caller, label, outcome), time.perf_counter())
        times.append(None if milliseconds is None else milliseconds / 1000)
        if len(times) >= MAX_PENDING:
            self.sum_up()

    def times_of(self, kind: Kind, now: float) -> list[float | None]:
        """Return the list of seconds for calls of a kind that end at `now` (perf_counter)."""
        if now >= self.midnight or len(self.pending) >= MAX_PENDING:
            self.sum_up()
        if not self.pending:
            day = datetime.fromtimestamp(clock := self._clock(), UTC).date()
            self._today = day.isoformat()
            self.midnight = now + ((day - date(1970, 1, 1)).days + 1) * 86_400.0 - clock
        return self.pending.setdefault(kind, [])

    def sum_up(self) -> None:
        with self._lock:
            pending, self.pending = self.pending, {}
            cells = self._sums.setdefault(self._today, {}) if pending else {}
            for (door, action, caller, label, outcome), durations in tuple(pending.items()):
                key = door, action[:MAX_NAME]
                if key not in cells and len(cells) >= MAX_CELLS * SHARDS:
                    key = (door, OTHERS)
                cell = cells.setdefault(key, _Cell())
                cell.add((caller[:MAX_NAME], label, outcome[:MAX_NAME]), len(durations))
                times = sorted(seconds for seconds in durations if seconds is not None)
                cell.milliseconds += sum(times) * 1000
                below = [0, *(bisect_right(times, bound / 1000) for bound in BOUNDS), len(times)]
                cell.buckets = [
                    bucket + after - before
                    for bucket, (before, after) in zip(cell.buckets, pairwise(below), strict=True)
                ]

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Write the sums every FLUSH_SECONDS while the application runs, and once more when it ends."""
        stopped = asyncio.Event()

        async def keep() -> None:
            while not stopped.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(FLUSH_SECONDS):
                        await stopped.wait()
                await self.flush()

        task = asyncio.create_task(keep(), name="awp_publish traffic")
        self._is_kept, self.due = True, math.inf
        try:
            yield
        finally:
            self._is_kept = False
            self.due = time.perf_counter() + FLUSH_SECONDS
            stopped.set()
            await asyncio.wait({task})

    async def flush(self) -> None:
        """Write the sums. If the store fails, they are kept until the next time."""
        if not self._is_kept:
            self.due = time.perf_counter() + FLUSH_SECONDS
        self.sum_up()
        with self._lock:
            sums, self._sums = self._sums, {}
        if not sums:
            return
        values: dict[str, tuple[_Cells, float, bool]] = {}
        for day, cells in sums.items():
            for (door, action), cell in cells.items():
                shard = crc32(f"{door}\n{action}".encode("utf-8", "replace")) % SHARDS
                retention = (self.days + 1) * 86_400.0
                for name, seconds, with_callers in ((day, retention, True), (TOTALS, TOTALS_SECONDS, False)):
                    own = values.setdefault(_key(name, shard), ({}, seconds, with_callers))[0]
                    own.setdefault((door, action), _Cell()).merge(cell, with_callers)
        try:
            if await self._write(values):
                self._note(None)
                return
            self._note("other processes write all the time")
        except StoreUnavailable as problem:
            self._note(problem.detail)
        except Exception:
            logger.exception("traffic could not be written")
            return
        with self._lock:
            for day, cells in sums.items():
                current = self._sums.setdefault(day, {})
                for key, cell in cells.items():
                    current.setdefault(key, _Cell()).merge(cell)

    async def _write(self, values: Mapping[str, tuple[_Cells, float, bool]]) -> bool:
        """Add the new sums to each value, in one step. Returns False after ATTEMPTS conflicts with other workers."""
        store, keys = self._store(), list(values)
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(random.uniform(0, 0.02 * attempt))
            raw_values = (await store.run([Look(key) for key in keys])).seen
            steps: list[Step] = []
            for key, old in zip(keys, raw_values, strict=True):
                cells, seconds, _ = values[key]
                before = old if isinstance(old, bytes) else None
                stored = _unpacked(before)
                for (door, action), cell in cells.items():
                    place = (door, action if (door, action) in stored or len(stored) < MAX_CELLS else OTHERS)
                    stored.setdefault(place, _Cell()).merge(cell)
                rows = [
                    [*place, [[*who, count] for who, count in cell.counts.items()], cell.buckets, cell.milliseconds]
                    for place, cell in stored.items()
                ]
                new = orjson.dumps(rows)
                steps.append(replacement(key, before, new, seconds))
            if (await store.run(steps)).failed is None:
                return True
        return False

    def _note(self, trouble: str | None) -> None:
        """Log when writing begins to fail and when it works again."""
        if trouble is not None and self._is_well:
            logger.warning("traffic is not written at the moment: %s", trouble)
        self._is_well = trouble is None

    async def read(self, days: int | None = None) -> TrafficReport:
        """Return what all workers have recorded in the last `days`, today included. Raises StoreUnavailable."""
        today = datetime.fromtimestamp(self._clock(), UTC).date()
        day_count = max(1, min(days or self.days, self.days))
        return await self._read([(today - timedelta(ago)).isoformat() for ago in reversed(range(day_count))])

    async def read_totals(self) -> TrafficReport:
        """Return the sums of all days, without callers; they never decrease. Raises StoreUnavailable."""
        return await self._read([TOTALS])

    async def _read(self, names: Sequence[str]) -> TrafficReport:
        await self.flush()
        keys = [(name, _key(name, shard)) for name in names for shard in range(SHARDS)]
        rows: list[TrafficRow] = []
        latencies: dict[tuple[str, str, str], Sequence[int]] = {}
        spent: dict[tuple[str, str, str], float] = {}
        for start in range(0, len(keys), 100):
            some = keys[start : start + 100]
            raw_values = (await self._store().run([Look(key) for _, key in some])).seen
            for (name, _), value in zip(some, raw_values, strict=True):
                for (door, action), cell in _unpacked(value if isinstance(value, bytes) else None).items():
                    rows += (TrafficRow(name, door, action, *who, count) for who, count in cell.counts.items())
                    latencies[name, door, action], spent[name, door, action] = cell.buckets, cell.milliseconds
        return TrafficReport(tuple(names), tuple(sorted(rows)), latencies, spent)


def _key(name: str, shard: int) -> str:
    return f"{{traffic}}{name}:{shard}"


def _unpacked(value: bytes | None) -> _Cells:
    """Return the cells of a value, or none if it is damaged or of another version."""
    cells: _Cells = {}
    try:
        for door, action, counts, buckets, milliseconds in orjson.loads(value) if value is not None else ():
            cell = cells[door, action] = _Cell()
            cell.counts = {(caller, label, outcome): int(count) for caller, label, outcome, count in counts}
            cell.milliseconds = float(milliseconds)
            if len(buckets) == len(BOUNDS) + 1:
                cell.buckets = [int(bucket) for bucket in buckets]
    except (ValueError, TypeError):
        logger.error("a record of traffic cannot be read and is started over")
        return {}
    return cells


def describe_traffic(report: TrafficReport) -> str:
    """Format a report as text for a terminal: tables with the largest number of calls first."""
    total = sum(row.calls for row in report.rows)
    lines = [f"{total} calls and page reads, {report.days[0]} to {report.days[-1]}"]
    tables: tuple[tuple[str, tuple[str, ...], Callable[[TrafficRow], bool]], ...] = (
        ("day", ("day",), lambda row: True),
        ("door", ("door",), lambda row: True),
        ("action or page", ("action",), lambda row: bool(row.action)),
        ("caller", ("caller", "label"), lambda row: row.door not in PAGES and row.door != JOB),
        ("outcome", ("outcome",), lambda row: row.outcome == "ok"),
        ("consent asked for", ("action",), lambda row: row.outcome == ASKED),
        ("refusals", ("outcome",), lambda row: row.outcome not in ("ok", ASKED)),
        ("jobs", ("action", "outcome"), lambda row: row.door == JOB),
    )
    for title, names, only in tables:
        sums = report.sum_by(*names, only=only)
        if sums:
            lines += ["", title]
        for key, count in sorted(sums.items()) if title == "day" else list(sums.items())[:MAX_LISTED]:
            label = "  ".join(part or "(unidentified)" for part in key)
            lines.append(f"{count:>10}  {''.join(sign if sign.isprintable() else '?' for sign in label)}")
        if title != "day" and len(sums) > MAX_LISTED:
            lines.append(f"            and {len(sums) - MAX_LISTED} more: --json has them all")
    measured = [(door, report.quantiles(door)) for (door,) in report.sum_by("door")]
    if any(times for _, times in measured):
        lines += ["", "milliseconds  (p50, p90, p99)"]
        lines += [
            "  ".join(f"{seconds:>9g}" for seconds in times.values()) + f"  {door}" for door, times in measured if times
        ]
    return "\n".join(lines)
