"""Fields that A2A requires (`google.api.field_behavior` in a2a.proto).

The SDK checks every field of every message, so the data of a part, in which nothing is required, costs it more than
the rest of a request. Here we only find out whether anything is missing; then the SDK reports what.
"""

import re
from functools import cache
from typing import Final

from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import validate_proto_required_fields
from google.api.field_behavior_pb2 import FieldBehavior, field_behavior
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message as ProtobufMessage

_REQUIRED: Final = FieldBehavior.Value("REQUIRED")
_REPEATED: Final = 3
"""`FieldDescriptor.LABEL_REPEATED`, the equivalent of `is_repeated` before protobuf 6.31."""


def check_required_fields(request: ProtobufMessage) -> None:
    """Refuse a request that lacks required members. Raises InvalidParamsError, with every missing member."""
    waiting = [request]
    for message in waiting:  # nested messages are appended
        for name, is_required, has_messages, is_many, has_presence, default in _fields_of(message.DESCRIPTOR):
            is_missing = not message.HasField(name) if has_presence else getattr(message, name) == default
            if is_required and is_missing:
                validate_proto_required_fields(request)
            elif has_messages and not is_missing:
                value = getattr(message, name)
                waiting.extend(value if is_many else (value,))


def require_fields(request: ProtobufMessage) -> None:
    """Refuse a request that lacks required members, in words, and name them as JSON does. Raises InvalidParamsError."""
    try:
        check_required_fields(request)
    except InvalidParamsError as error:
        faults = (error.data or {}).get("errors", [])
        for fault in faults:
            fault["field"] = re.sub("_([a-z])", lambda match: match[1].upper(), fault["field"])
            if fault["field"] == "message.role":  # an unknown role is read as none
                fault["message"] = 'Must be "ROLE_USER".'
        named = " ".join(f"{fault['field']}: {fault['message']}" for fault in faults)
        raise InvalidParamsError(named, {"errors": faults}) from None


@cache
def _fields_of(kind: Descriptor) -> tuple[tuple[str, bool, bool, bool, bool, object], ...]:
    """Return the fields to check: required ones, and messages of A2A's own, which may have required fields."""
    fields = []
    for field in kind.fields:
        is_required = _REQUIRED in field.GetOptions().Extensions[field_behavior]
        inner = field.message_type
        has_messages = (
            inner is not None and inner.file.package == kind.file.package and not inner.GetOptions().map_entry
        )
        if is_required or has_messages:
            is_many = bool(getattr(field, "is_repeated", None) or getattr(field, "label", None) == _REPEATED)
            has_presence = field.has_presence and not is_many
            default: object = [] if is_many else None if inner is not None else field.default_value
            fields.append((field.name, is_required, has_messages, is_many, has_presence, default))
    return tuple(fields)
