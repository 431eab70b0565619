"""The WoA invocation envelope (section 5.1), and what else of ours may stand in it or in the headers beside it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from awp_publish.model import Action, JsonObject
from awp_publish.policy.call import Call
from awp_publish.policy.idempotency import read_key
from awp_publish.problems import (
    AgentMismatch,
    EnvelopeNotAnObject,
    InvalidEnvelope,
    InvalidIdempotencyKey,
    InvalidInput,
    MissingInput,
    Problem,
    Violation,
)
from awp_publish.serve.reply import Fields

CONFIRMATION: Final = (b"awp-confirmation", "confirmation")
RECEIPTS: Final = (b"awp-receipt", "receipts")
"""Header and member of the envelope, of which either is enough."""


class Envelope(NamedTuple):
    """A readable envelope. `members` are all of it."""

    agent: str
    operation: str | None
    input: JsonObject
    members: JsonObject


def read_envelope(document: object, url_agent: str | None) -> Envelope:
    """Agent, operation, input, and the whole. Raises the Problem that says what is wrong."""
    if not isinstance(document, dict):
        raise EnvelopeNotAnObject(f"The body is {_kind(document)}, not an object.")
    agent = document.get("agent", url_agent)
    if not isinstance(agent, str):
        raise _wrong_member(document, "agent")
    if url_agent is not None and agent != url_agent:
        raise AgentMismatch(f'The URL names agent "{url_agent[:100]}", the envelope "{agent[:100]}".')
    operation = document.get("operation")
    if not isinstance(operation, str) and "operation" in document:
        raise _wrong_member(document, "operation")
    given = document.get("input")
    if not isinstance(given, dict):
        raise _wrong_input(document)
    return Envelope(agent, operation, given, document)


def _wrong_member(document: Mapping[str, object], name: str) -> Problem:
    if name not in document:
        return InvalidEnvelope(f"{name}: is missing, and the URL does not name an agent either.")
    return InvalidEnvelope(f"{name}: must be a string, not {_kind(document[name])}.")


def _wrong_input(document: Mapping[str, object]) -> Problem:
    if "input" not in document:
        return MissingInput("The envelope has no member input.")
    detail = f"must be an object, not {_kind(document['input'])}"
    return InvalidInput(f"The input {detail}.", errors=[Violation("", detail)])


def _kind(value: object) -> str:
    """A JSON value's kind, in words."""
    return _KINDS.get(type(value), "a number")


_KINDS: Final = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


# --- What the gates want to know ---


def read_admission(call: Call, members: Mapping[str, object], fields: Fields) -> None:
    """Put key, confirmation and receipts on a call, from the headers or from the envelope. Raises a Problem."""
    call.idempotency_key = _read_key(call.action, members, fields)
    call.confirmation = _read_one(members, fields, *CONFIRMATION)
    call.receipts = _read_receipts(members, fields)


def _read_key(action: Action, members: Mapping[str, object], fields: Fields) -> str | None:
    name = action.idempotency.key_field if action.idempotency else "idempotency_key"
    header = fields.get(b"idempotency-key")
    member = _text(members, name)
    if header is None:
        return member
    key = header.decode("latin-1")
    if member is not None and read_key(member) != read_key(key):
        raise InvalidIdempotencyKey(f"The header Idempotency-Key and the envelope's member {name} differ.")
    return key


def _read_one(members: Mapping[str, object], fields: Fields, header: bytes, name: str) -> str | None:
    sent = fields.get(header)
    return _text(members, name) if sent is None else sent.decode("latin-1").strip()


def _read_receipts(members: Mapping[str, object], fields: Fields) -> tuple[str, ...]:
    header, name = RECEIPTS
    if header not in fields and name not in members:
        return ()
    sent = [part.strip() for part in fields.get(header, b"").decode("latin-1").split(",")]
    listed = members.get(name, [])
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise InvalidEnvelope(f"{name}: must be a list of strings.")
    return tuple(receipt for receipt in (*sent, *listed) if receipt)


def _text(members: Mapping[str, object], name: str) -> str | None:
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidEnvelope(f"{name}: must be a string, not {_kind(value)}.")
    return value
