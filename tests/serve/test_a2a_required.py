"""What A2A requires of a request: looked for in our own way, with the same verdict as the SDK's, field by field."""

from collections.abc import Iterator
from typing import Any

import pytest
from a2a.types import a2a_pb2
from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict

from awp_publish.serve.a2a.handler import check_required_fields

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


def test_whatever_is_missing_of_a_message_is_missed_as_the_sdk_misses_it():
    verdicts = set()
    for told in [WHOLE, *cut(WHOLE)]:
        request = ParseDict(told, a2a_pb2.SendMessageRequest())
        judged = verdict(check_required_fields, request)
        assert judged == verdict(validate_proto_required_fields, request), told
        verdicts.add(str(judged))
    assert len(verdicts) > 5
    assert "None" in verdicts
