"""The option `idempotency` of an action."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

from pydantic import PlainValidator

from awp_publish.model import Idempotency
from awp_publish.schema.options import check_duration

ENVELOPE: Final = frozenset({"agent", "operation", "input", "confirmation", "receipts"})
"""Members of a call's envelope that cannot hold the idempotency key."""


def read_idempotency(value: object) -> Idempotency | None:
    """Read an idempotency window: "24h", True for 24 hours, {"window": "24h", "key_field": "..."} or an Idempotency."""
    if value is None or isinstance(value, bool):
        return Idempotency() if value else None
    if isinstance(value, str):
        value = {"window": value}
    if isinstance(value, Mapping) and set(value) <= {"window", "key_field"}:
        value = Idempotency(**value)
    if not isinstance(value, Idempotency) or not isinstance(value.window, str) or not isinstance(value.key_field, str):
        raise ValueError('write idempotency as True, "24h" or {"window": "24h", "key_field": "idempotency_key"}')
    if value.key_field in ENVELOPE or not re.fullmatch(r"[!-~]+", value.key_field):
        raise ValueError(f"key_field {value.key_field!r} means something else in a call; choose another name")
    check_duration(value.window)
    return value


Window: TypeAlias = Annotated[Idempotency | None, PlainValidator(read_idempotency)]
