"""The notation of rate limits: "30/minute", "100/hour by ip", "10/hour for unknown"."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias, cast

from pydantic import PlainValidator

from awp_publish.model import RateLimit

_RATE: Final = re.compile(
    r"\s*([0-9]{1,9})\s*(?:/|per)\s*(?:([0-9]{1,9})\s*)?([a-z]+?)s?"
    r"(?: (by ip|by user|in total)(?:, ([0-9]{1,6}) at a time)?)?"
    r"(?: for (\S+|unsigned impostor))?\s*",
    re.IGNORECASE,
)

_UNITS: Final[Mapping[str, Literal["s", "m", "h", "d"]]] = {"second": "s", "minute": "m", "hour": "h", "day": "d"}

_COUNTED: Final = {"by ip": "ip", "by user": "user", "in total": "global"}
"""Phrases in a limit that say how it is counted, and the corresponding scope."""


def read_rate(text: object) -> RateLimit:
    """Read a limit: "30/minute", "9 per 5 minutes", "100/hour by ip", "10/hour for unknown". Raises ValueError."""
    if not isinstance(text, str):
        raise ValueError('write a rate limit as "30/minute"')
    matched = _RATE.fullmatch(text)
    if matched is None and re.search(r"[;,|]", text):
        raise ValueError(f"{text!r} holds several limits; an action has one")
    if matched is None:
        raise ValueError(f'{text!r} is not a rate limit; write it as "30/minute"')
    requests, count, unit = int(matched[1]), int(matched[2] or 1), _UNITS.get(matched[3].lower())
    if unit is None or requests < 1 or count < 1:
        raise ValueError(f"{text!r} must be at least one request in seconds, minutes, hours or days")
    scope, lease = _COUNTED.get((matched[4] or "").lower()), int(matched[5] or 0)
    if matched[5] and (scope != "global" or not 0 < lease < requests):
        raise ValueError(f"{text!r}: only calls in total are taken several at a time, and fewer than the limit")
    whom = (matched[6] or "").lower().rstrip("/")
    if whom:
        check_agent(whom)
    return RateLimit(requests, count, unit, scope, whom, lease)


def check_rate(value: object) -> str:
    """Check that a text is a rate limit, and return it."""
    read_rate(value)
    return cast(str, value)


def check_agent(value: str) -> str:
    """Check a label of callers (Web Bot Auth), or an agent's directory given by its address or host."""
    is_label = value in ("verified", "unknown", "unsigned impostor")
    if is_label or re.fullmatch(r"(https?://)?[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?(/\S*)?", value):
        return value.rstrip("/")
    raise ValueError(f'{value!r} is neither "verified", "unknown" nor an agent such as "https://signer.example"')


Rate: TypeAlias = Annotated[str, PlainValidator(check_rate)]
