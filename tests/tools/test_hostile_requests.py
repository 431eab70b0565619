"""A thousand hostile requests over all doors (`make fuzz` sends more); and those who judge them see what is wrong."""

import time
from typing import Any

import pytest

from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send
from tools.fuzz.attack import Attack
from tools.fuzz.inputs import DOORS, REGRESSIONS, Http, Input, make_input
from tools.fuzz.processes import GROWTH, WARM, growth, run
from tools.fuzz.site import SECRET, World


@pytest.mark.slow
@pytest.mark.limit(180)
def test_a_thousand_hostile_requests_do_no_harm():
    assert run(1_000, seed=1, processes=1).failures == []


def test_the_same_seed_says_the_same_and_each_door_is_attacked():
    numbers = range(len(REGRESSIONS), len(REGRESSIONS) + 500)
    first = [make_input(1, number) for number in numbers]
    assert first == [make_input(1, number) for number in reversed(numbers)][::-1]
    assert first != [make_input(2, number) for number in numbers]
    assert {given.door for given in first} == set(DOORS)


# --- The judge sees what is wrong ---

START: Message = {"type": "http.response.start", "status": 200, "headers": []}
END: Message = {"type": "http.response.body", "body": b""}
ASKED = Input("woa", (Http("POST", b"/agents/pay/invoke", ()),))


def answering(*messages: Message) -> AsgiApp:
    """An application that sends these messages, whatever it is asked."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for message in messages:
                await send(message)

    return app


async def raising(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        raise ValueError("a bug")


async def blocking(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        time.sleep(0.2)  # noqa: ASYNC251
        await send(START)
        await send(END)


WRONG = {
    "raised ValueError": raising,
    "an answer took": blocking,
    "no answer": answering(),
    "did not end": answering(START),
    "two answers": answering(START, START, END),
    "no handler caused": answering({**START, "status": 503}, END),
    "a failure that no handler caused": answering(START, {**END, "body": b'{"error": {"code": -32603}}'}),
    "tells of an exception": answering(START, {**END, "body": SECRET.encode()}),
    "no server sends": answering({**START, "headers": [(b"x", b"a\r\nb: c")]}, END),
    "content-length": answering({**START, "headers": [(b"content-length", b"7")]}, END),
    "an answer of 20000 bytes": answering(START, {**END, "body": b"x" * 20_000}),
}


@pytest.mark.parametrize("words", WRONG)
async def test_a_misbehaving_application_is_noticed(words):
    async with Attack(WRONG[words], World(), late=0.1).going_on() as attack:
        verdict = await attack.answer(ASKED)
    assert [told for told in verdict.wrong if words in told], verdict


async def test_runs_that_nobody_may_bring_about_are_seen():
    world = World()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            world.run_guarded("pay")
            await send(START)
            await send(END)

    async with Attack(app, world).going_on() as attack:
        verdict = await attack.answer(ASKED)
    assert verdict.wrong == [
        "pay ran for nobody",
        "pay ran without credentials",
        "pay ran 1 times with 0 confirmations",
    ]


def make_stopping() -> tuple[AsgiApp, World]:
    """An application that one request stops."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if b"cancel_all" in (await receive())["body"]:
                time.sleep(60)  # noqa: ASYNC251
            await send(START)
            await send(END)

    return app, World()


def make_growing() -> tuple[AsgiApp, World]:
    """An application that forgets nothing."""
    kept: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            kept.append(bytes(range(256)) * 1_000)
            await send(START)
            await send(END)

    return app, World()


@pytest.mark.slow
def test_a_request_that_stops_a_process_is_told_by_its_number():
    whole = run(6, seed=1, processes=1, make=make_stopping, hang=2.0)
    assert [number for number, words in whole.failures if "the process was ended" in words] == [5]


@pytest.mark.slow
def test_memory_that_grows_is_seen():
    whole = run(WARM + 500, seed=1, processes=1, make=make_growing)
    assert [words for _, words in whole.failures if "memory grew" in words]


def test_memory_that_fills_up_to_a_plateau_is_no_leak_and_a_slow_leak_behind_it_is():
    plateau = [min(100 + 2 * done, 400) << 20 for done in range(1_000)]
    assert growth(plateau) < 1 << 20
    leaking = [size + done * (200 << 10) for done, size in enumerate(plateau)]
    assert growth(leaking) > GROWTH
    assert growth([]) == growth([1 << 30]) == 0
    assert growth([100 << 20, 200 << 20]) > GROWTH
