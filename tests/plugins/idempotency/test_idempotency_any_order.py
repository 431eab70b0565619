"""Idempotency keys in any order of calls, duplicates, failures, crashes, jumps of clocks: never two runs under one.

The model knows what stands under each key, and so what every call has to be told and whether it may run.
"""

import asyncio
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Limits, Refused
from awp_publish.calls.gates.gate import Facts
from awp_publish.plugins.idempotency import gate as idempotency
from awp_publish.plugins.sqlite.store import SqliteStore
from awp_publish.stores.memory import MemoryStore
from tests.examples import examples
from tests.guarded import KEYS, Caller, Watched, make_shop

WINDOW, LEASE = 3600.0, 30.0 + idempotency.MARGIN
AGENTS = {"repeatable": {"effect": "idempotent"}, "other": {}, "irreversible": {"effect": "irreversible"}}
FREED_BY = {
    "repeatable": {"refused", "failed"},
    "other": {"refused", "failed"},
    "irreversible": {"refused"},
}


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()
STORE = Watched(MemoryStore())
BEGUN: list["Run"] = []


@dataclass(eq=False)
class Run:
    """One run of a handler. `end` is what the machine lets it end with."""

    agent: str
    end: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    task: Any = None
    caller: Any = None
    place: tuple[str, str] = ("", "")


@dataclass
class Entry:
    """What stands under a key: "running", "done" or "unknown"."""

    state: str
    given: int
    expires: float
    until: float = 0.0
    owner: Run | None = None
    body: bytes = b""


@cache
def make_apps() -> tuple[AgentPublisher, ...]:
    """Two processes of one site, on one store. Made once; what they keep is new in each example."""
    defaults = dict(Facts.__init__.__kwdefaults__ or {})
    Facts.__init__.__kwdefaults__ = defaults | {"clock": CLOCK}
    try:
        return tuple(_make_app() for _ in range(2))
    finally:
        Facts.__init__.__kwdefaults__ = defaults


def _make_app() -> AgentPublisher:
    site = make_shop(store=STORE, secret_keys=KEYS, limits=Limits(timeout=30.0))
    for agent, options in AGENTS.items():
        _declare(site, agent, options)
    app = AgentPublisher(Starlette(), site=site)
    asyncio.run(Caller(app, "nobody", {}).call())  # the first request freezes the site
    return app


def _declare(site, agent, options) -> None:
    @site.agent(agent, idempotency="1h", timeout=30.0, **options)
    async def handle(given: int) -> str:
        """Do something that shows."""
        run = Run(agent)
        BEGUN.append(run)
        how = await run.end
        if how == "refused":
            raise Refused("No.")
        if how == "failed":
            raise RuntimeError("a bug")
        return f"{given}: {how}"


class Keys(RuleBasedStateMachine):
    """One loop, two processes, one store."""

    def __init__(self) -> None:
        super().__init__()
        self.apps = make_apps()
        CLOCK.now = 1_000_000.25
        STORE._store = self.make_store()
        BEGUN.clear()
        self.runner = asyncio.Runner()
        self.entries: dict[tuple[str, str], Entry] = {}
        self.runs: list[Run] = []

    def make_store(self):
        return MemoryStore(CLOCK)

    # --- What may happen ---

    @rule(
        agent=st.sampled_from(list(AGENTS)),
        key=st.sampled_from("ab"),
        given=st.integers(0, 1),
        process=st.integers(0, 1),
    )
    def call(self, agent, key, given, process):
        expected = self.expect((agent, key), given)
        (caller,) = self.send(agent, key, given, self.apps[process : process + 1])
        assert self.told(caller) == expected

    @rule(agent=st.sampled_from(list(AGENTS)), key=st.sampled_from("ab"), given=st.integers(0, 1))
    def call_twice_at_once(self, agent, key, given):
        first = self.expect((agent, key), given)
        callers = self.send(agent, key, given, self.apps)
        second = ("IDEMPOTENCY_KEY_IN_FLIGHT", b"") if first == ("", b"") else first
        assert sorted(self.told(caller) for caller in callers) == sorted([first, second])

    @rule(how=st.sampled_from(["answered", "refused", "failed"]), index=st.integers(0, 5))
    def end(self, how, index):
        if not self.runs:
            return
        run = self.runs.pop(index % len(self.runs))
        self.runner.run(self._end(run, how))
        assert run.caller.status == {"answered": 200, "refused": 409, "failed": 500}[how]
        entry = self.entry(run.place)
        if entry is None or entry.owner is not run:
            return  # too late: what is there now stays as it is
        if how == "answered":
            self.entries[run.place] = Entry("done", entry.given, CLOCK.now + WINDOW, body=run.caller.body)
        elif how in FREED_BY[run.agent]:
            del self.entries[run.place]
        else:
            self.entries[run.place] = Entry("unknown", entry.given, CLOCK.now + WINDOW)

    @rule(index=st.integers(0, 5))
    def crash(self, index):
        """The process dies: what it claimed stays."""
        if self.runs:
            run = self.runs.pop(index % len(self.runs))
            self.runner.run(self._cancel([run.task]))

    @rule(seconds=st.sampled_from([1.0, LEASE - 2.0, LEASE + 1.0, WINDOW - LEASE, WINDOW + 1.0]))
    def time_passes(self, seconds):
        CLOCK.now += seconds

    def expect(self, place, given) -> tuple[str, bytes]:
        """What a call has to be told: a code, or "" and the recorded body; ("", b"") if it has to run."""
        entry = self.entry(place)
        if entry is None:
            return "", b""
        if entry.given != given:
            return "IDEMPOTENCY_KEY_REUSED", b""
        if entry.state == "done":
            return "", entry.body
        if entry.state == "running" and CLOCK.now < entry.until:
            return "IDEMPOTENCY_KEY_IN_FLIGHT", b""
        return "OUTCOME_UNKNOWN", b""

    def entry(self, place) -> Entry | None:
        entry = self.entries.get(place)
        return entry if entry is not None and CLOCK.now < entry.expires else None

    # --- How it happens ---

    def send(self, agent, key, given, apps) -> list[Caller]:
        callers = [
            Caller(app, agent, {"given": given}, {"idempotency-key": key} | self.agreement(agent, given))
            for app in apps
        ]
        self.runner.run(self._send(callers))
        for run in BEGUN:
            keep = LEASE if agent == "repeatable" else WINDOW
            run.place = (agent, key)
            self.entries[run.place] = Entry("running", given, CLOCK.now + keep, CLOCK.now + LEASE, run)
            self.runs.append(run)
        BEGUN.clear()
        return callers

    def agreement(self, agent, given) -> dict[str, str]:
        """A person's, where one is asked for."""
        if agent != "irreversible":
            return {}
        asked = self.runner.run(Caller(self.apps[0], agent, {"given": given}).call())
        return {"awp-confirmation": orjson.loads(asked.body)["confirmation"]["token"]}

    async def _send(self, callers) -> None:
        """Until every call is answered or runs."""
        tasks = {caller: asyncio.get_running_loop().create_task(caller.call()) for caller in callers}
        while len(unanswered := [task for task in tasks.values() if not task.done()]) > len(BEGUN):
            await asyncio.wait(unanswered, timeout=0.001, return_when=asyncio.FIRST_COMPLETED)
        waiting = [caller for caller, task in tasks.items() if not task.done()]
        assert len(waiting) == len(BEGUN) <= 1, "two runs under one key"
        for run, caller in zip(BEGUN, waiting, strict=True):
            run.task, run.caller = tasks[caller], caller

    def told(self, caller) -> tuple[str, bytes]:
        if not caller.messages:
            return "", b""
        if caller.status == 200:
            assert caller.headers[b"idempotent-replayed"] == b"true"
            return "", caller.body
        return orjson.loads(caller.body)["code"], b""

    async def _end(self, run, how) -> None:
        run.end.set_result(how)
        await run.task

    async def _cancel(self, tasks) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @invariant()
    def nothing_runs_twice_under_one_key(self):
        places = [run.place for run in self.runs if run.agent != "repeatable" and self.is_owner(run)]
        assert len(places) == len(set(places))

    def is_owner(self, run) -> bool:
        entry = self.entry(run.place)
        return entry is not None and entry.owner is run

    def teardown(self) -> None:
        self.runner.run(self._cancel([run.task for run in self.runs]))
        self.runner.run(STORE.close())
        self.runner.close()


class KeysInFiles(Keys):
    """The same on SQLite, whose clock is the machine's: it may also be set back."""

    def make_store(self):
        self.folder = tempfile.TemporaryDirectory()
        return SqliteStore(str(Path(self.folder.name) / "agents.db"), "shop", clock=CLOCK, timeout=20.0)

    @rule()
    def the_clock_is_set_back(self):
        if not any(CLOCK.now - 7 < entry.expires <= CLOCK.now for entry in self.entries.values()):
            CLOCK.now -= 7  # what has expired meanwhile may be swept away or not

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


LIMITS: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much]}
Keys.TestCase.settings = settings(max_examples=examples(80), stateful_step_count=40, **LIMITS)
KeysInFiles.TestCase.settings = settings(max_examples=examples(25), stateful_step_count=30, **LIMITS)
TestKeys = pytest.mark.slow(Keys.TestCase)
TestKeysInFiles = pytest.mark.slow(KeysInFiles.TestCase)
