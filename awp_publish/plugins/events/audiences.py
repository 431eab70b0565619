"""Who sees an occurrence: audiences, the log of each, and the cursors with which readers go on."""

import base64
from dataclasses import replace
from hashlib import sha256
from typing import TypeAlias

import orjson

from awp_publish.calls.call import Principal
from awp_publish.model import KNOWN, PUBLIC, Event
from awp_publish.problems import DeclarationError
from awp_publish.schema.options import AUDIENCE, check

Positions: TypeAlias = dict[str, tuple[str, int]]
"""For each log, the epoch and the number of the last entry that was read."""


def read_audience(subject: str, audience: str | Principal, people: str | None = "") -> str:
    """Return an audience in its canonical form: public, known, principal:KEY or scope:NAME. Raises DeclarationError.

    `people` are those whom an id without an issuer means, None if there are several kinds.
    """
    if isinstance(audience, str) and audience.startswith("principal:") and audience != "principal:":
        audience = Principal(audience.removeprefix("principal:"))
    if isinstance(audience, Principal):
        if not audience.issuer and people is None:
            raise DeclarationError(
                subject,
                f'audience: "{audience.id}" may mean somebody else to each of the site\'s authenticators.',
                "Give a Principal with its issuer, such as current_caller(); people= names an authenticator's.",
            )
        return f"principal:{(audience if audience.issuer else replace(audience, issuer=people or '')).key}"
    if isinstance(audience, str) and audience in (PUBLIC, KNOWN):
        return audience
    if isinstance(audience, str) and audience.startswith(("principal:", "scope:")):
        if not audience.partition(":")[2]:
            raise DeclarationError(
                subject, f"audience: {audience!r} names nobody.", 'Write "principal:ID" or "scope:NAME".'
            )
        return audience
    return f"scope:{check(subject, AUDIENCE, audience, 'audience')}"


def logs_for(event: Event, caller: Principal | None) -> tuple[str, ...]:
    """Return the logs of an event that a caller may read; `caller` is None for unknown callers."""
    audiences = [PUBLIC]
    if caller is not None:
        audiences += [KNOWN, f"principal:{caller.key}", *(f"scope:{scope}" for scope in sorted(caller.scopes))]
    return tuple(log_of(event.id, audience) for audience in audiences)


def log_of(event_id: str, audience: str) -> str:
    """Return the name of the log that has the events of one audience."""
    return f"{event_id}:{sha256(audience.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def write_cursor(positions: Positions) -> str:
    """Encode positions as one opaque text."""
    parts: list[object] = [next((log.rpartition(":")[0] for log in positions), "")]
    parts += [[log.rpartition(":")[2], epoch, number] for log, (epoch, number) in sorted(positions.items())]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def read_cursor(event: Event, cursor: str) -> Positions | None:
    """Return the positions of a cursor, or None if it is not a valid cursor of this event."""
    try:
        of_event, *parts = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        positions = {f"{event.id}:{log}": (epoch, number) for log, epoch, number in parts}
    except (ValueError, TypeError):
        return None
    good = (
        type(position[0]) is str and type(position[1]) is int and 0 <= position[1] < 2**53
        for position in positions.values()
    )
    return positions if of_event == event.id and all(good) else None
