"""What A2A requires of a request: looked for in our own way, with the same verdict as the SDK's, field by field."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from a2a.types import a2a_pb2
from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.plugins.a2a.fields import check_required_fields
from tests.client import TestClient
from tests.guarded import ANN, KEYS, known_callers, make_shop

REQUESTS = [name for name in dir(a2a_pb2) if name.endswith("Request")]
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": "find", "input": {"a": [1, None]}}}]}
CONFIGURATION = {"taskPushNotificationConfig": {"url": "https://x.example", "authentication": {"scheme": "Bearer"}}}
WHOLE = {"message": MESSAGE, "configuration": CONFIGURATION, "metadata": {"a": {"b": [{}]}}}


def verdict(check, request) -> object:
    """None for a request that is whole, or all that its refusal says."""
    try:
        check(request)
    except InvalidParamsError as refused:
        return refused.message, refused.data
    return None


def cut(value: Any) -> Iterator[Any]:
    """A JSON value with one of its members gone, in every way, and with one list empty."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield {other: one for other, one in value.items() if other != name}
            yield from ({**value, name: smaller} for smaller in cut(member))
    if isinstance(value, list):
        yield []
        yield from ([smaller, *value[1:]] for smaller in cut(value[0]) if value)


@pytest.mark.parametrize("name", REQUESTS)
def test_an_empty_request_of_any_kind_is_judged_as_the_sdk_judges_it(name):
    request = getattr(a2a_pb2, name)()
    assert verdict(check_required_fields, request) == verdict(validate_proto_required_fields, request)


def test_missing_members_of_a_message_are_refused_as_by_the_sdk():
    verdicts = set()
    for told in [WHOLE, *cut(WHOLE)]:
        request = ParseDict(told, a2a_pb2.SendMessageRequest())
        judged = verdict(check_required_fields, request)
        assert judged == verdict(validate_proto_required_fields, request), told
        verdicts.add(str(judged))
    assert len(verdicts) > 5
    assert "None" in verdicts


# --- What the published kit asks for beside that ---


def kit_site() -> AgentPublisher:
    site = make_shop(plugins=["a2a"], secret_keys=KEYS, authenticate=known_callers())

    @site.agent("find", effect="read")
    async def find(title: str) -> str:
        """Find a book."""
        return title

    @site.agent("order", confirm="Order {title}.")
    async def order(title: str) -> str:
        """Order a book."""
        return title

    return AgentPublisher(Starlette(), site=site)


def send(client: TestClient, parts: list[Any], headers: Mapping[str, str] | None = None, **rest: Any) -> Any:
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": parts, **rest}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    return client.post("/a2a", json=body, headers={"a2a-version": "1.0", **(headers or {})}).json()


@pytest.mark.parametrize(
    "part",
    [
        {"raw": "dGNr", "mediaType": "application/x-unsupported"},
        {"raw": "dGNr"},
        {"url": "https://shop.example/a.png"},
        {"text": "Emma", "mediaType": "image/png"},
        {"data": {"skill": "find", "input": {"title": "Emma"}}, "mediaType": "application/xml"},
    ],
)
def test_a_part_in_a_media_type_that_no_skill_reads_is_refused(open_client, part):
    client = open_client(kit_site())
    error = send(client, [part])["error"]
    assert (error["code"], error["data"][0]["reason"]) == (-32005, "CONTENT_TYPE_NOT_SUPPORTED")
    body = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [part]}}
    answer = client.post("/a2a/message:send", json=body, headers={"a2a-version": "1.0"})
    assert (answer.status_code, answer.json()["error"]["details"][0]["reason"]) == (400, "CONTENT_TYPE_NOT_SUPPORTED")
    for kind in ("text/markdown", "application/json; charset=utf-8", ""):
        read = [{"text": "Emma", "mediaType": kind}]
        assert send(client, read, metadata={"skill": "find"})["result"]["task"]["artifacts"]


def test_a_word_of_agreement_is_no_new_input(open_client):
    client = open_client(kit_site())
    for headers, kept in ((ANN, True), ({}, False)):
        asked = send(client, [{"data": {"skill": "order", "input": {"title": "Emma"}}}], headers)["result"]["task"]
        answer = send(client, [{"text": "yes"}], headers, taskId=asked["id"])["result"]["task"]["status"]
        data = answer["message"]["parts"][1]["data"]
        assert answer["state"] == "TASK_STATE_INPUT_REQUIRED"
        if kept:
            assert data["confirmation"]["summary"] == 'Order "Emma".'
        else:
            assert "has input and, if given, confirmation" in data["recovery"]
