"""What the core holds at its doors holds behind Django as well, under WSGI and ASGI.

Under WSGI the core runs in a thread of its own, whose steps are not counted again.
"""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from tests.django.test_calls import Agent, Asgi, Wsgi
from tests.http.test_hostile_shapes import JSON, SMALL, TIMES
from tests.steps import LINEAR, counting

DISTINCT = ("distinct names", "distinct names, the last twice", "deep objects", "escapes", "a long number")


@pytest.fixture(params=[Wsgi, Asgi])
def agent(request: pytest.FixtureRequest) -> Agent:
    made: Agent = request.param()
    return made


def steps_of(agent: Any, path: str, body: str) -> int:
    async def send(*sent: Any, **options: Any) -> Any:
        return await agent.client.post(*sent, **options)

    post = async_to_sync(send) if isinstance(agent, Asgi) else agent.client.post
    with counting() as steps:
        answer = post(path, body, content_type="application/json", headers={"host": "shop.example"})
    assert answer.status_code < 500
    return steps.count


@pytest.mark.parametrize("path", ["/agents/add/invoke", "/mcp", "/a2a"])
def test_json_of_any_shape_is_read_in_linear_time(agent, path):
    steps_of(agent, path, "{}")
    for name in DISTINCT:
        sent = [f'{{"input": {JSON[name](size)}}}' for size in (SMALL, SMALL * TIMES)]
        small, large = [steps_of(agent, path, body) for body in sent]
        assert large <= LINEAR * small, name


async def test_unknown_members_are_counted_and_the_first_are_told(agent):
    given = {"first": 1, "second": 2} | {f"member{number}": number for number in range(30_000)}
    answer = await agent.call("add", given)
    assert (answer.status_code, len(answer.json()["errors"])) == (422, 20)
    assert "(and 29999 more; the first 20 are listed)" in answer.json()["detail"]
    assert len(answer.content) < 16_000
    assert len((await agent.call("add", {"x" * 400_000: 1})).content) < 16_000
    assert json.loads((await agent.call("add", {"first": 1, "second": 2})).content) == 3


@pytest.mark.parametrize("leaf", ["no", 1])
@pytest.mark.parametrize("levels", [16, 190])
async def test_a_union_within_itself_is_refused_at_once_however_deep(agent, levels, leaf):
    given: object = leaf
    for _ in range(levels):
        given = {"all": given}
    answer = await agent.call("filter_books", {"where": given})
    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_INPUT")
    assert (await agent.call("filter_books", {"where": {"all": {"all": 1}}})).json() == "found"
