"""`make soak`: two workers under load, one of them killed every few seconds, on SQLite and on Redis.

    python -m tools.soak 600        # seconds, for both stores together

Callers keep to the rules that the shop's problems tell them: what broke off is sent again under its key, a job is
polled until it has ended. In the end what they were told is held against the ledger, in which every run stands:

    accepted    calls that were answered with a success, or with a job
    done        of these, those that the ledger has
    told        calls whose callers were told that nobody knows whether they took effect
    lost        accepted and not in the ledger, or not replayed, or a job without an end: 0
    twice       run twice though they must not be: 0

Meanwhile a stranger takes all that there is: of a rate, and of places for jobs. Both shares hold over the workers and
their deaths, and the callers with a token notice nothing.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from awp_publish.plugins.jobs.jobs import MAX_JOBS_OF_CALLER
from tests.doors.adapters import DOORS
from tests.doors.callers import DoorCaller, Told
from tests.redis_server import RedisServer, find_binary, free_port
from tools.soak import PEEKS, TOKEN

CALLERS: Final = 8
WORKERS: Final = 2
KILLED_EVERY: Final = (1.5, 4.0)
PATIENCE: Final = 30.0
"""Seconds in which a call, sent again and again, has to come to an answer, and a job to its end when all is calm."""

SOON: Final = ("IDEMPOTENCY_KEY_IN_FLIGHT", "STORE_UNAVAILABLE", "HANDLER_UNAVAILABLE", "HANDLER_TIMEOUT")
"""What is no answer yet: the same call is sent again. A machine that stands still lets a handler take too long."""

ONCE: Final = ("order", "pay", "charge")
KINDS: Final = ("read_stock", "order", "label", "pay", "ship", "charge")
BROKEN: Final = (httpx.TransportError, WebSocketException, OSError, EOFError, TimeoutError)
"""How it shows that a worker has died."""


@dataclass
class Tally:
    """What the callers were told, by action. `strangers` are the successes of one without a token, and its refusals."""

    asked: Counter[str] = field(default_factory=Counter)
    accepted: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    told: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    strangers: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    kills: int = 0
    wrong: list[str] = field(default_factory=list)
    is_over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Socket:
    """A WebSocket of the network, with the words of a test client's."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def send_text(self, text: str) -> None:
        self._connection.send(text)

    def receive_text(self) -> str:
        return str(self._connection.recv(timeout=PATIENCE))


class Network(httpx.Client):
    """What the adapters of doors call through, over real sockets."""

    @contextmanager
    def websocket_connect(self, path: str, headers: Mapping[str, str]) -> Iterator[_Socket]:
        """Open a WebSocket."""
        address = str(self.base_url.join(path)).replace("http", "ws", 1)
        with connect(address, additional_headers=dict(headers), open_timeout=PATIENCE, proxy=None) as connection:
            yield _Socket(connection)


class Shop:
    """A server of two workers, which can lose one."""

    def __init__(self, store: str, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.ledger = folder / "ledger"
        self.ledger.touch()
        given = {"SOAK_URL": self.url, "SOAK_STORE": store, "SOAK_LEDGER": str(self.ledger)}
        command = [sys.executable, "-m", "uvicorn", "tools.soak.shop:make_app", "--factory", "--port", str(port)]
        command += ["--workers", str(WORKERS), "--log-level", "error", "--no-access-log"]
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            command, env={**os.environ, **given}, stdout=self._log, stderr=self._log, start_new_session=True
        )

    def wait(self) -> None:
        """Until it answers."""
        until = time.monotonic() + 3 * PATIENCE
        while time.monotonic() < until:
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/agent.json", timeout=PATIENCE).status_code == 200:
                    return
            time.sleep(0.1)
        raise TimeoutError("the shop does not open")

    def kill_one(self) -> bool:
        """End one worker as a crash does, if all serve."""
        serving = {line.split()[1] for line in self.ledger.read_text().splitlines() if line.startswith("worker ")}
        workers = [worker for worker in self._workers() if str(worker) in serving]
        if len(workers) < WORKERS:
            return False
        with suppress(ProcessLookupError):
            os.kill(random.choice(workers), signal.SIGKILL)
        return True

    def _workers(self) -> list[int]:
        """The children that serve; another one looks after what they share."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        lines = {int(child): Path(f"/proc/{child}/cmdline") for child in children}
        serving = []
        for child, line in lines.items():
            with suppress(OSError):  # it has just ended
                if b"spawn_main" in line.read_bytes():
                    serving.append(child)
        return serving

    def close(self) -> None:
        """End it and whatever it has started."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


class Caller:
    """One caller, who does as it is told. Calls go through all doors in turn."""

    def __init__(self, shop: Shop, tally: Tally, name: int) -> None:
        self._shop = shop
        self._tally = tally
        self._random = random.Random(name)
        self._name = name
        self._http = Network(base_url=shop.url, timeout=PATIENCE, headers={"authorization": f"Bearer {TOKEN}"})

    def run(self, until: float) -> None:
        """Call until the time is over."""
        self._calm = until
        number = 0
        with self._http:
            while time.monotonic() < until and not self._tally.is_over:
                number += 1
                kind = self._random.choice(KINDS)
                try:
                    self._perform(kind, f"{self._name}-{number}")
                except Exception as error:
                    self._note_wrong(f"{kind}: {type(error).__name__}: {str(error)[:300]}")

    def _perform(self, kind: str, number: str) -> None:
        with self._tally.lock:
            self._tally.asked[kind] += 1
        door = self._random.choice(("woa", "awp", "mcp") if kind in ("ship", "charge") else tuple(DOORS))
        caller: DoorCaller = DOORS[door](self._http)  # type: ignore[arg-type]
        given = {"number": number}
        confirmation = None
        if kind == "pay":
            confirmation = self._call(caller, kind, given, None, None).question["token"]
        answer = self._call(caller, kind, given, None if kind == "read_stock" else number, confirmation)
        if answer.code == "OUTCOME_UNKNOWN":
            with self._tally.lock:
                self._tally.told[kind] += 1
        elif answer.code is not None:
            self._note_wrong(f"{kind} {number} at {door}: {answer.code}: {answer.detail}")
        else:
            self._accept(caller, kind, number, answer, confirmation)

    def _accept(self, caller: DoorCaller, kind: str, number: str, told: Told, confirmation: str | None) -> None:
        with self._tally.lock:
            self._tally.accepted[kind].add(number)
        if kind in ("ship", "charge"):
            self._follow(kind, number, told.output["job_id"])
        elif told.output != number:
            self._note_wrong(f"{kind} {number} was answered {told.output}")
        if kind == "read_stock" or self._random.random() < 0.5:
            return
        again = self._call(caller, kind, {"number": number}, number, confirmation)
        if kind not in ("ship", "charge") and (again.output, again.is_replayed) != (number, True):
            self._note_wrong(f"LOST {kind} {number}: the recorded answer is gone: {again.code} {again.detail}")
        if kind in ("ship", "charge") and (again.code or again.output["job_id"] != told.output["job_id"]):
            self._note_wrong(f"LOST {kind} {number}: its key gave another job: {again.code} {again.detail}")
        if confirmation is not None:
            spent = self._call(caller, kind, {"number": number}, f"{number}-b", confirmation)
            if spent.code != "CONFIRMATION_SPENT":
                self._note_wrong(f"TWICE {kind} {number}: its confirmation was taken again: {spent.code}")

    def _call(self, caller: DoorCaller, kind: str, given: Any, key: str | None, confirmation: str | None) -> Told:
        """One call, sent again for as long as it breaks off or is told to come back."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                answer = caller.call(kind, given, token=TOKEN, key=key, confirmation=confirmation)
            except BROKEN:
                with self._tally.lock:
                    self._tally.broken += 1
                time.sleep(0.1)
                continue
            if answer.code not in SOON:
                return answer
            time.sleep(0.2)
        raise TimeoutError(f"no answer for {PATIENCE:g} seconds, key {key}")

    def _follow(self, kind: str, number: str, job: str) -> None:
        """Poll a job until it has ended. It has to, once no worker is killed any more."""
        until = max(time.monotonic(), self._calm) + PATIENCE
        status = ""
        while time.monotonic() < until:
            with suppress(*BROKEN):
                answer = self._http.get(f"/agents/jobs/{job}").json()
                status = str(answer.get("status", answer.get("code")))
                if status == "done" and answer["result"] == number:
                    with self._tally.lock:
                        self._tally.ended[kind] += 1
                    return
                if status == "failed" and answer["problem"]["code"] in ("JOB_INTERRUPTED", "HANDLER_TIMEOUT"):
                    with self._tally.lock:
                        self._tally.told[kind] += 1
                    return
            time.sleep(0.1)
        self._note_wrong(f"LOST {kind} {number}: its job {job} has not ended ({status})")

    def _note_wrong(self, words: str) -> None:
        with self._tally.lock:
            self._tally.wrong.append(words)


class Stranger:
    """One caller without a token, who takes what there is, and in the end leaves. What breaks off may be accepted."""

    def __init__(self, shop: Shop, tally: Tally) -> None:
        self._tally = tally
        self._http = httpx.Client(base_url=shop.url, timeout=PATIENCE)
        self._jobs: list[str] = []

    def run(self, until: float) -> None:
        """Call until the time is over."""
        number = 0
        with self._http:
            while time.monotonic() < until and not self._tally.is_over:
                number += 1
                with suppress(*BROKEN):
                    self._call("idle" if number % 4 else "peek", str(number))
                time.sleep(0.005)
            for job in self._jobs:
                with suppress(*BROKEN):
                    self._http.delete(f"/agents/jobs/{job}")

    def _call(self, kind: str, number: str) -> None:
        answer = self._http.post(f"/agents/{kind}/invoke", json={"input": {"number": number}})
        if answer.status_code == 202:
            self._jobs.append(answer.json()["job_id"])
        code = kind if answer.status_code < 300 else f"{kind} {answer.json()['code']}"
        with self._tally.lock:
            self._tally.strangers[code] += 1


def soak(store: str, seconds: float, folder: Path) -> tuple[Tally, Mapping[tuple[str, str], Counter[str]]]:
    """Let callers call for so long, and give what they were told, and the ledger."""
    shop, tally = Shop(store, folder), Tally()
    try:
        shop.wait()
        until = time.monotonic() + seconds
        with ThreadPoolExecutor(CALLERS + 1) as callers:
            calling = [callers.submit(Caller(shop, tally, name).run, until) for name in range(CALLERS)]
            calling.append(callers.submit(Stranger(shop, tally).run, until))
            killing = time.monotonic() + KILLED_EVERY[0]
            try:
                while not all(call.done() for call in calling):
                    time.sleep(0.1)
                    if killing < time.monotonic() < until and shop.kill_one():
                        tally.kills += 1
                        killing = time.monotonic() + random.uniform(*KILLED_EVERY)
            finally:
                tally.is_over = True
            for call in calling:
                call.result()
    finally:
        shop.close()
    ledger: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for line in shop.ledger.read_text().splitlines():
        action, number, phase, _ = line.split()
        ledger[action, number][phase] += 1
    return tally, ledger


def _exceeded(tally: Tally, begun: int, seconds: float) -> Iterator[str]:
    """What a stranger had beyond its shares, of whose jobs so many have begun.

    A rate begins anew each minute, so that one minute more may be touched. A job that has begun may have ended.
    """
    shares = {"peek": PEEKS * (int(seconds // 60) + 2), "idle": MAX_JOBS_OF_CALLER + begun}
    for kind, share in shares.items():
        if tally.strangers[kind] > share:
            yield f"SHARE {kind}: a stranger had {tally.strangers[kind]}, of which {share} may be"


def judge(tally: Tally, ledger: Mapping[tuple[str, str], Counter[str]], seconds: float = 0.0) -> bool:
    """Print what came of it. True if nothing is lost and nothing done twice."""
    lost = Counter(words.split()[1] for words in tally.wrong if words.startswith("LOST"))
    twice = Counter(words.split()[1] for words in tally.wrong if words.startswith("TWICE"))
    print(f"  {'':<12}" + "".join(f"{name:>10}" for name in ("asked", "accepted", "done", "told", "lost", "twice")))
    for kind in KINDS:
        accepted = tally.accepted[kind]
        done = {number for number in accepted if ledger[kind, number]["done"]} if kind != "read_stock" else accepted
        if kind not in ("ship", "charge"):
            lost[kind] += len(accepted - done)
        else:
            lost[kind] += max(0, tally.ended[kind] - len(done))
        if kind in ONCE:
            twice[kind] += sum(runs["begun"] > 1 for (action, _), runs in ledger.items() if action == kind)
        figures = (tally.asked[kind], len(accepted), len(done), tally.told[kind], lost[kind], twice[kind])
        print(f"  {kind:<12}" + "".join(f"{figure:>10}" for figure in figures))
    tally.wrong += _exceeded(tally, sum(action == "idle" for action, _ in ledger), seconds)
    print("  a stranger: " + ", ".join(f"{name} {count}" for name, count in sorted(tally.strangers.items())))
    print(f"  {tally.kills} workers killed, {tally.broken} calls broken off and sent again")
    for words in tally.wrong[:20]:
        print(f"  FAILED {words}")
    return not (tally.wrong or lost.total() or twice.total())


def main() -> int:
    """Soak the shop on each store."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak")
    parser.add_argument("seconds", nargs="?", type=float, default=600.0)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing stays behind
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        for name in ("sqlite", "redis"):
            place = Path(folder) / name
            place.mkdir()
            redis = RedisServer(find_binary(), place) if name == "redis" else None
            try:
                if redis is not None:
                    redis.start()
                print(f"{name}, {given.seconds / 2:g} seconds", flush=True)
                store = redis.url if redis is not None else f"sqlite:///{place}/agents.db"
                is_good &= judge(*soak(store, given.seconds / 2, place), given.seconds / 2)
                log = (place / "log").read_text(errors="replace")
                if "Traceback" in log:
                    is_good = False
                    print(f"  FAILED the log of the server has a traceback:\n{log[-3000:]}")
            finally:
                if redis is not None:
                    redis.stop()
    return not is_good


if __name__ == "__main__":
    sys.exit(main())
