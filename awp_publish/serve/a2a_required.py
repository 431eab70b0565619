"""Fields that A2A requires of a request (`google.api.field_behavior` in a2a.proto), looked for where they can be.

The SDK looks at every field of every message, so the data of a part, in which nothing can be required, costs it more
than all the rest of a request. Here is only found out whether anything is missing; what is missing, the SDK says.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from a2a.utils.proto_utils import validate_proto_required_fields
from google.api.field_behavior_pb2 import FieldBehavior, field_behavior
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

_REQUIRED: Final = FieldBehavior.Value("REQUIRED")
_REPEATED: Final = 3
"""`FieldDescriptor.LABEL_REPEATED`, by which protobuf before 6.31 tells what `is_repeated` does."""


class _Field(NamedTuple):
    """A field that is worth a look: `is_required` itself, or with messages inside (`leads_on`) that require some."""

    name: str
    is_required: bool
    leads_on: bool
    is_many: bool
    has_presence: bool
    default: object


def check_required_fields(request: Message) -> None:
    """Refuse a request that lacks what is required. Raises InvalidParamsError, with every field that is missing."""
    if _lacks_any(request):
        validate_proto_required_fields(request)


def _lacks_any(message: Message) -> bool:
    for field in _fields_of(message.DESCRIPTOR):
        if field.is_required and _is_missing(message, field):
            return True
        if field.leads_on and any(map(_lacks_any, _messages_in(message, field))):
            return True
    return False


def _is_missing(message: Message, field: _Field) -> bool:
    if field.has_presence:
        return not message.HasField(field.name)
    value = getattr(message, field.name)
    return not value if field.is_many else bool(value == field.default)


def _messages_in(message: Message, field: _Field) -> Iterable[Message]:
    if field.is_many:
        values: Iterable[Message] = getattr(message, field.name)
        return values
    return (getattr(message, field.name),) if message.HasField(field.name) else ()


# --- What the descriptors say, once for each kind of message ---


@cache
def _fields_of(kind: Descriptor) -> tuple[_Field, ...]:
    fields = (_read(field) for field in kind.fields)
    return tuple(field for field in fields if field.is_required or field.leads_on)


def _read(field: FieldDescriptor) -> _Field:
    is_many = bool(getattr(field, "is_repeated", None) or getattr(field, "label", None) == _REPEATED)
    inner = field.message_type
    leads_on = inner is not None and not _is_map(inner) and any(map(_is_required, _reached(inner)))
    default = None if inner is not None or is_many else field.default_value
    return _Field(field.name, _is_required(field), leads_on, is_many, field.has_presence and not is_many, default)


def _is_required(field: FieldDescriptor) -> bool:
    return _REQUIRED in field.GetOptions().Extensions[field_behavior]


def _is_map(kind: Descriptor) -> bool:
    """A request has no map but those of JSON values, in which nothing is required."""
    return bool(kind.GetOptions().map_entry)


def _reached(kind: Descriptor) -> Iterator[FieldDescriptor]:
    """Every field of a kind of message, and of those inside of it; JSON values hold each other."""
    waiting, seen = [kind], set()
    while waiting:
        one = waiting.pop()
        if one.full_name not in seen:
            seen.add(one.full_name)
            yield from one.fields
            waiting += [field.message_type for field in one.fields if field.message_type is not None]
