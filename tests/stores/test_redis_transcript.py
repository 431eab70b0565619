"""What Redis is told, and what becomes of its answers: `redis.txt`; of several shards, `shards.txt`; of a cluster whose
slots move, `cluster.txt`; and what an address of one means, `redis_addresses.txt`. All are in `transcripts`.

`carry` is given the answers of the server to each round trip, and requests. --golden writes the texts anew; read the
change.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from redis import exceptions

from awp_publish.plugins.redis import PLUGIN, cluster, store
from awp_publish.plugins.redis.address import read_address
from awp_publish.plugins.redis.shards import look_everywhere, run_stretches
from awp_publish.plugins.redis.store import RedisBackend, client_options, detail_of
from awp_publish.problems import StoreUnavailable
from awp_publish.stores import Ran, Step
from awp_publish.stores.batches import RunSteps, StoreRequest, TakeDue
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import unavailable
from tests.function_transcripts import compare
from tests.stores.conftest import Clock
from tests.stores.test_steps_transcript import TEXTS, shown, step_of
from tests.virtual_time import run_virtually


class Pipeline:
    """A pipeline to a server whose answers are written down beforehand."""

    def __init__(self, server: "Server") -> None:
        self._server, self._commands = server, list[list[object]]()

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute_command(self, *parts: object) -> None:
        self._commands.append([self._server.named.get(part, part) for part in parts])  # type: ignore[call-overload]

    def execute(self, *, raise_on_error: bool) -> list[object]:
        self._server.told += [" ".join(map(_part, command)) for command in self._commands]
        self._server.told.append(f"raises: {raise_on_error}" if raise_on_error else "---")
        self._server.seconds += 0.25
        answers = self._server.answers.pop(0) if self._server.answers else []
        if isinstance(answers, str):
            raise _error(answers)
        given = [_reply(each) for each in answers]
        for command in self._commands[len(given) :]:
            match command[0]:
                case "TIME":
                    given.append((5000 + int(self._server.seconds), 500_000))
                case "ROLE":
                    given.append([b"master", 0, [b"replica"] * self._server.replicas])
                case "WAIT":
                    given.append(self._server.copies)
                case b"SCRIPT" | b"ASKING":
                    given.append(b"OK")
                case _:
                    given.append([] if command[1] == "TAKE" else [-1])
        return given


class Server:
    """A server and its client."""

    def __init__(self) -> None:
        self.told, self.answers = list[str](), list[Any]()
        self.seconds, self.replicas, self.copies, self.named = 100.0, 0, 1, dict[bytes, str]()
        self.is_closed = False

    def pipeline(self, *, transaction: bool) -> Pipeline:
        assert not transaction
        return Pipeline(self)

    def close(self) -> None:
        self.is_closed = True


def _part(part: object) -> str:
    if isinstance(part, bytes):
        return ascii(part.decode("latin-1"))[1:-1]
    return f"{part:g}" if isinstance(part, float) else str(part)


def _error(text: str) -> Exception:
    name, _, detail = text.partition(": ")
    kind = {"OSError": OSError, "MovedError": exceptions.MovedError, "AskError": exceptions.AskError}.get(name)
    error = (kind or getattr(exceptions, name))(detail)
    assert isinstance(error, Exception)
    return error


def _reply(reply: Any) -> Any:
    """Write what JSON cannot say: bytes, pairs, and errors."""
    match reply:
        case {"error": text}:
            return _error(text)
        case {"pair": [one, two]}:
            return one, two
        case list():
            return [_reply(each) for each in reply]
        case str():
            return reply.encode()
    return reply


def _order(given: Any) -> RunSteps | TakeDue:
    steps = given["steps"] if isinstance(given, dict) else given
    if steps[:1] == ["take"]:
        return TakeDue(*steps[1:])
    return RunSteps(tuple(map(step_of, steps)), isinstance(given, dict) and given.get("durable", False))


def _answer(answer: Any) -> Any:
    if isinstance(answer, Ran):
        return [answer.failed, [shown(each) for each in answer.seen]]
    if isinstance(answer, StoreUnavailable):
        return answer.detail
    return f"{type(answer).__name__}: {answer}" if isinstance(answer, Exception) else answer


def test_commands_for_redis_are_as_in_the_transcript(request, monkeypatch):
    server = Server()
    now = SimpleNamespace(monotonic=lambda: server.seconds)
    monkeypatch.setattr(store, "time", now)
    monkeypatch.setattr("awp_publish.stores.batches.time", now)
    backend: Any = None

    def opened(*, has_replicas: bool, before: str = "", refused: bool = False) -> None:
        nonlocal backend
        server.__init__()  # type: ignore[misc]
        backend = RedisBackend(
            server,  # type: ignore[arg-type]
            "shop",
            has_replicas=has_replicas,
            before=tuple((each.encode(),) for each in before.split()),
            refused=cluster._refusal if refused else None,
        )
        server.named = {backend._run.digest: "RUN", backend._take.digest: "TAKE"}
        server.named |= {backend._run.text: "of RUN", backend._take.text: "of TAKE"}

    with asyncio.Runner() as runner:

        def carry(answers: list[Any], *given: Any) -> Any:
            requests = [StoreRequest(_order(each), runner.get_loop(), 10) for each in given]
            for each, pending in zip(given, requests, strict=True):
                pending._is_abandoned = isinstance(each, dict) and each.get("gives_up", False)
            server.answers, server.told = answers, []
            try:
                backend.carry_out(requests)
            except StoreUnavailable as problem:
                return [f"! {problem.detail}", *server.told]
            return [[_answer(each.answer) for each in requests], *server.told]

        def set_server(seconds: float = 0, replicas: int = 0, copies: int = 1) -> None:
            server.seconds += seconds
            server.replicas, server.copies = replicas, copies

        def close() -> Any:
            return backend.tidy(), backend.close(), server.is_closed

        functions: dict[str, Callable[..., Any]] = {
            "open": lambda has_replicas=False, before="", refused=False: opened(
                has_replicas=has_replicas, before=before, refused=refused
            ),
            "carry": carry,
            "server": set_server,
            "close": close,
            "detail": lambda text: detail_of(_error(text)),
        }
        compare(TEXTS / "redis.txt", functions, request)


def test_runs_over_several_shards(request, caplog):
    clock = Clock()
    stores: dict[str, MemoryStore] = {}
    told, away = list[str](), set[str]()

    def shard_of(step: Step) -> str:
        return step[0][:1]

    async def run(shard: Any, steps: Sequence[Step]) -> Ran:
        told.append(f"{shard}: {', '.join(map(repr, steps))}")
        if shard in away:
            raise unavailable("The shard is away.")
        return await stores.setdefault(shard, MemoryStore(clock)).run(steps)

    def carry(function: Any, *given: Any) -> Any:
        told.clear()
        caplog.clear()
        try:
            answer = _answer(asyncio.run(function([step_of(each) for each in given], shard_of, run)))
        except StoreUnavailable as problem:
            answer = f"! {problem.detail}"
        return [answer, *told, *(record.getMessage() for record in caplog.records)]

    def lose(*shards: str) -> None:
        away.clear()
        away.update(shards)

    functions: dict[str, Callable[..., Any]] = {
        "run": lambda *given: carry(run_stretches, *given),
        "look": lambda *given: carry(look_everywhere, *given),
        "away": lose,
    }
    compare(TEXTS / "shards.txt", functions, request)


def test_a_cluster_whose_slots_move(request, monkeypatch):
    def play(order: Any, slots: list[str | None], outcomes: list[str], *, durable: bool = False) -> list[str]:
        """Ask a cluster: where its map says that the slot is, each time it is loaded, and what servers answer."""
        told, known = list[str](), list[Any]()

        def say(text: str) -> None:
            told.append(f"{asyncio.get_running_loop().time():g} {text}")

        def server_at(place: str) -> Any:
            host, port = place.split(":")
            return cluster._Server(host, int(port))

        async def main() -> None:
            made: Any = cluster.RedisClusterStore("redis+cluster://first:7000", "shop", timeout=2)

            class Map:
                def server_of(self, slot: int) -> Any:
                    return known[0] if known else None

                def move(self, slot: int, server: Any) -> None:
                    say(f"slot {slot} has moved to {server.host}:{server.port}")
                    known[:] = [server]

                def hint(self, order: Any) -> None:
                    say("the map is loaded meanwhile")
                    self.load()

                def load(self) -> None:
                    place = slots.pop(0) if slots else None
                    known[:] = [server_at(place)] if place else known

                async def ask(self, order: Any, seconds: float) -> Any:
                    say(f"the map is loaded within {seconds:g}")
                    await asyncio.sleep(0.5)
                    self.load()

            class At:
                def __init__(self, server: Any) -> None:
                    self.server = server

                async def ask(self, order: Any, seconds: float) -> Any:
                    asked = ", asking" if self.server.is_asked else ""
                    say(f"{self.server.host}:{self.server.port}{asked}: {order} within {seconds:g}")
                    await asyncio.sleep(0.125)
                    outcome = outcomes.pop(0) if outcomes else "ok"
                    if outcome == "away":
                        raise unavailable("It is away.")
                    if outcome != "ok":
                        raise cluster._Refused(_error(outcome))
                    return ("m",) if isinstance(order, TakeDue) else Ran(None, (b"1",) * len(order.steps))

            made._map, made._store_at = Map(), At
            try:
                steps = [step_of(each) for each in order] if order[:1] != ["take"] else None
                say(str(await (made.run(steps, durable=durable) if steps is not None else made.take(*order[1:]))))
            except StoreUnavailable as problem:
                say(problem.detail)

        monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time()))
        run_virtually(main())
        return told

    functions: dict[str, Callable[..., Any]] = {"play": play, "durable": lambda *given: play(*given, durable=True)}
    compare(TEXTS / "cluster.txt", functions, request)


def test_redis_addresses_are_read_as_in_the_transcript(request):
    def address(url: str) -> Any:
        read = read_address(url)
        return [read.kind, read.url, read.hosts, read.primary, read.options]

    def connect(url: str) -> Any:
        client: Any = store._connect(read_address(url), 1.5)
        kept = client.connection_pool.connection_kwargs
        names = ("host", "port", "path", "db", "username", "password", "socket_timeout", "socket_connect_timeout")
        shown = {name: kept[name] for name in (*names, "decode_responses", "retry_on_error") if name in kept}
        return [type(client.connection_pool).__name__, shown, kept["retry"]._retries]

    def opened(url: str) -> str:
        [opener] = {id(each): each for scheme, each in PLUGIN.stores.items() if url.startswith(scheme)}.values()
        return type(opener(url, "shop")).__name__

    functions: dict[str, Callable[..., Any]] = {
        "address": address,
        "connect": connect,
        "open": opened,
        "schemes": lambda: sorted(PLUGIN.stores),
        "options": lambda: sorted(client_options(1.5)),
    }
    compare(TEXTS / "redis_addresses.txt", functions, request)


@pytest.fixture(autouse=True)
def _logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "awp_publish.stores")
