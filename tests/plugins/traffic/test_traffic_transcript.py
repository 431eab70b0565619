"""What workers record of calls, second by second of a virtual clock, and what is said of it: `traffic.txt`.

A line `> WHAT ARGUMENTS` is something that happens. `> wait 5` lets five seconds pass, and `> count w1 [DOOR, ACTION,
CALLER, LABEL, OUTCOME, MILLISECONDS] 3` counts three such calls; a `#` in it is their number, and `@250` so many
letters. Below it stand the trips to the store, what is logged, and the answer. --golden writes the text anew; read the
change.
"""

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
from starlette.applications import Starlette

from awp_publish import AgentPublisher, DeclarationError, Traffic
from awp_publish.http.running import StartFailed, running
from awp_publish.plugins.traffic import record
from awp_publish.plugins.traffic.record import SHARDS, TrafficRecord, describe_traffic
from awp_publish.plugins.traffic.report import TrafficReport
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import Look, Ran, Step
from awp_publish.stores.values import replacement
from tests.guarded import known_callers, make_shop
from tests.virtual_time import run_virtually

EVENING = datetime(2026, 11, 22, 23, 59, tzinfo=UTC).timestamp()
HEADERS = ("allow", "cache-control", "content-type", "www-authenticate", "x-content-type-options")


def now() -> float:
    return EVENING + asyncio.get_running_loop().time()


class Scene:
    """Workers of one site that share a store, each with a lifespan of its own."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.store = WatchedStore(self)
        self.records: dict[str, TrafficRecord] = {}
        self.apps: dict[str, Any] = {}
        self.lives: dict[str, AsyncExitStack] = {}

    def note(self, text: str) -> None:
        self.events.append(f"  {asyncio.get_running_loop().time():.9g} {text}")

    async def act(self, line: str) -> object:
        what, _, rest = line.partition(" ")
        who, _, rest = rest.partition(" ")
        match what:
            case "open" | "start":
                try:
                    self.open(who, json.loads(rest or "{}"))
                    if what == "start":
                        await self.lives[who].enter_async_context(running(self.apps[who]))
                except (DeclarationError, StartFailed) as error:
                    return f"! {error}"
            case "stop":
                await self.lives[who].aclose()
            case "wait":
                await asyncio.sleep(float(who))
            case "lose":
                self.store.trouble += json.loads(f"{who} {rest}".strip())
            case "damage":
                (before,) = (await MemoryStore.run(self.store, [Look(who)])).seen
                old = before if isinstance(before, bytes) else None
                await MemoryStore.run(self.store, [replacement(who, old, rest.encode(), 60.0)])
            case "count":
                kind, times = json.JSONDecoder().raw_decode(rest)
                for number in range(int(rest[times:] or 1)):
                    self.records[who].add(*(written(part, number) for part in kind))
            case "flush":
                await self.records[who].flush()
            case "due":
                return f"{self.records[who].due:g}"
            case "stored":
                return await self.stored(who)
            case "metrics":
                return await self.metrics(who, *rest.split())
            case _:
                name, *options = rest.split()
                report = await self.records[who].read(int(name) if name.isdecimal() else None)
                return shown(what, report, options)
        return None

    def open(self, who: str, options: dict[str, Any]) -> None:
        callers = {"authenticate": known_callers()} if options.pop("knows", True) else {}
        traffic = Traffic(**{"days": 3, "metrics": True, **options})
        site = make_shop(store=self.store, plugins=[traffic], **callers)
        for name in ("buy", "sell", "print"):
            site.agent(name, description=f"{name.title()} a book.")(lambda: None)
        self.records[who] = site.ask("traffic")
        self.apps[who] = AgentPublisher(Starlette(), site=site)
        self.lives[who] = AsyncExitStack()

    async def metrics(self, who: str, method: str = "GET", caller: str = "") -> list[str]:
        headers = {"authorization": f"Bearer {caller}-secret-token"} if caller else {}
        transport = httpx.ASGITransport(self.apps[who])
        async with httpx.AsyncClient(transport=transport, base_url="https://shop.example") as client:
            answer = await client.request(method, "/agents/metrics", headers=headers)
        shown = [f"{name}: {text}" for name, text in answer.headers.items() if name in HEADERS]
        text = re.sub(r'("request_id":"|#)\w{16,}', r"\1ID", answer.text)
        return [str(answer.status_code), *shown, *text.splitlines()]

    async def stored(self, name: str) -> list[str]:
        """Return what the store has of a day: the rows of each shard, or of many the first one and the last."""
        lines = []
        for shard in range(SHARDS):
            key = f"{{traffic}}{name}:{shard}"
            (value,) = (await MemoryStore.run(self.store, [Look(key)])).seen
            rows = json.loads(value) if isinstance(value, bytes) else []
            lines += [f"{shard}: {json.dumps(shortened(row))}" for row in ends(rows)]
            lines += [f"{shard}: {len(rows)} rows"] if len(rows) > 2 else []
        return lines


def written(part: object, number: int) -> Any:
    """Return a part of a kind of call: with `#` for its number, or `@N` for N letters."""
    if not isinstance(part, str):
        return part
    return "a" * int(part[1:]) if part.startswith("@") else part.replace("#", f"{number:04}")


def ends(rows: Sequence[Any]) -> Sequence[Any]:
    return rows if len(rows) < 3 else (rows[0], rows[-1])


def shortened(row: Sequence[Any]) -> list[Any]:
    door, action, counts, buckets, milliseconds = row
    named = [[part if len(part) < 100 else f"@{len(part)}" for part in who] + [count] for *who, count in ends(counts)]
    many = [f"{len(counts)} counts"] if len(counts) > 2 else []
    return [door, action if len(action) < 100 else f"@{len(action)}", named, *many, buckets, round(milliseconds, 6)]


def shown(what: str, report: TrafficReport, options: Sequence[str]) -> object:
    match what:
        case "terminal":
            return describe_traffic(report).splitlines()
        case "lines":
            return [json.dumps(line) for line in report.lines()]
        case "chart":
            sizes = [int(option) for option in options if option.isdecimal()]
            return report.chart(*sizes, legend="plain" not in options).replace("><", ">\n<").splitlines()
        case "table":
            return report.table().replace("<tr>", "\n<tr>").splitlines()
        case "tables":
            tables = report.breakdowns(with_callers="callers" in options)
            return [line for table in tables for line in (f"{table.caption}: {table.heads}", *map(str, table.rows))]
        case "figures":
            figures = {"(all)": report.total(), **report.figures()}
            lines = [
                f"{name}: {one.kinds}, {one.errors} of {one.calls}, {one.p95}, {one.p95_text}"
                for name, one in figures.items()
            ]
            return [*lines, f"{report.failures()}", f"{[report.calls_on(day) for day in report.days]}"]
        case "action":
            own = report.of_action(options[0])
            return [*map(str, own.rows), *map(str, own.latencies.items()), f"{own.quantiles()}"]
    raise ValueError(what)


class WatchedStore(MemoryStore):
    """A store that writes down its trips, each of which lets others have a turn."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(now)
        self._scene = scene
        self.trouble: list[str] = []
        """What becomes of the next trips: "away", "changed" if another process was faster, "bug"."""

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        kinds = sorted({type(step).__name__ for step in steps})
        trouble = self.trouble.pop(0) if self.trouble else ""
        self._scene.note(f"store: {len(steps)} {' '.join(kinds)}{' ' * bool(trouble)}{trouble}")
        await asyncio.sleep(0)
        match trouble:
            case "away":
                raise StoreUnavailable("The store is away.")
            case "bug":
                raise RuntimeError("a bug")
            case "changed":
                return Ran(0, ())
        return await super().run(steps, durable=durable)


async def play(lines: Sequence[str], log: Any) -> list[str]:
    scene, text = Scene(), list[str]()
    log.scene = scene
    for line in lines:
        answer = await scene.act(line.removeprefix("> "))
        text += [line, *scene.events]
        scene.events.clear()
        parts = answer if isinstance(answer, list) else [] if answer is None else [answer]
        text += [
            re.sub(r"\d+\.\d{7,}", lambda number: f"{float(number[0]):.6g}", f"  {part}".rstrip()) for part in parts
        ]
    for life in scene.lives.values():
        await life.aclose()
    return text


class Log(logging.Handler):
    scene: Scene

    def emit(self, entry: logging.LogRecord) -> None:
        self.scene.note(f"{entry.levelname.lower()}: {entry.getMessage()}")


def test_traffic_is_recorded_and_reported_as_in_the_transcript(request, monkeypatch):
    monkeypatch.setattr(TrafficRecord.__init__, "__defaults__", (90, now))
    monkeypatch.setattr(record, "time", SimpleNamespace(perf_counter=lambda: asyncio.get_running_loop().time()))
    monkeypatch.setattr(record, "random", SimpleNamespace(uniform=lambda low, high: high))
    path, log, made = Path(__file__).parent / "traffic.txt", Log(), list[str]()
    logger = logging.getLogger("awp_publish")
    logger.addHandler(log)
    try:
        for story in re.split(r"\n\n(?=# )", path.read_text().removesuffix("\n")):
            title, *rest = story.split("\n")
            played = run_virtually(play([line for line in rest if line.startswith("> ")], log))
            made.append("\n".join([title, *played]))
    finally:
        logger.removeHandler(log)
    text = "\n\n".join(made) + "\n"
    if request.config.getoption("--golden"):
        path.write_text(text)
    assert text == path.read_text()
