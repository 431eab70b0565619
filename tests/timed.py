"""A shop in whose transcripts seconds pass when they say so: they call its agent `wait`.

What its calls did at the store since it was asked the last time says its agent `steps`; `lose` makes the store fail.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Proxies, Site
from awp_publish.calls.tokens import Tokens
from awp_publish.http.exchange import AsgiApp
from awp_publish.plugin import Facts
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import Ran, Step
from tests.client import TestClient
from tests.guarded import KEYS, known_callers, make_shop
from tests.transcript import compare

BEGIN = 1_800_000_000.0
CHANGING = [
    (r'(\\"by\\":\\")[^"\\]+', r"\1ID"),
    (r"(?<==b')\d{10}(?=')", "NOW"),
    (r"(?<=spent:)[\w-]{16}", "ID"),
    (r'"token":"[^"$]+"', '"token":"..."'),
]


class Clock:
    """Unix seconds that go on when a test says so."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> float:
        return self.now


@contextmanager
def clock_of_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """Give the gates and tokens of all sites that are started within the context a clock of the test."""
    clock = Clock()
    with monkeypatch.context() as patched:
        patched.setattr(Facts.__init__, "__kwdefaults__", {**(Facts.__init__.__kwdefaults__ or {}), "clock": clock})
        patched.setattr(Tokens.__init__, "__defaults__", (clock,))
        yield clock


class WrittenStore(MemoryStore):
    """A store that writes down the steps of each run, and whether they have to be durable."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.steps: list[str] = []
        self.lost: list[str] = []
        """Kinds of steps: a run that has one of the first kind fails, and the next kind has its turn."""

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        self.steps.append(f"{'durable: ' if durable else ''}{', '.join(map(repr, steps))}")
        if self.lost and self.lost[0] in [type(step).__name__ for step in steps]:
            self.lost.pop(0)
            raise StoreUnavailable("The store is away.")
        return await super().run(steps, durable=durable)


def make_timed_shop(clock: Clock, **options: Any) -> Site:
    """Make a shop of known callers behind a proxy that names their addresses."""
    store = WrittenStore(clock)
    options = {"authenticate": known_callers(), "secret_keys": KEYS, "proxies": Proxies(["0.0.0.0/0"]), **options}
    site = make_shop(store=store, **options)

    @site.agent("wait")
    async def wait(seconds: float) -> float:
        """Let seconds pass."""
        clock.now += seconds
        return seconds

    @site.agent("steps")
    async def steps() -> list[str]:
        """Say what was done at the store since the last time."""
        written, store.steps = store.steps, []
        return written

    @site.agent("lose")
    async def lose(kinds: list[str]) -> list[str]:
        """Let the store fail at steps of these kinds, one after the other."""
        store.lost[:] = kinds
        return kinds

    return site


def compare_timed(
    path: Path,
    declare: Callable[[Site], AsgiApp | None],
    request: pytest.FixtureRequest,
    **options: Any,
) -> None:
    """Compare a transcript with the answers of a timed shop that has what is declared."""
    with clock_of_calls(request.getfixturevalue("monkeypatch")) as clock:
        site = make_timed_shop(clock, **options)
        app = declare(site) or Starlette()
        client = TestClient(AgentPublisher(app, site=site), base_url="https://shop.example", client=("10.1.2.3", 1))
        with client:
            compare(path, client, request, *CHANGING)
