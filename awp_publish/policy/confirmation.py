"""Human confirmation (agent.json section 9): the first call says what would happen, the second brings a signed token.

A token is bound to its caller, action and input, expires, and is spent with the call it admits, in every process.
"""

import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, cast

import orjson

from awp_publish.model import Action, JsonObject
from awp_publish.policy.call import Call, Demand, Gate, Outcome
from awp_publish.policy.idempotency import fingerprint_of
from awp_publish.policy.tokens import Expired, NotOurs, Tokens
from awp_publish.problems import (
    ConfirmationExpired,
    ConfirmationForeign,
    ConfirmationMismatch,
    ConfirmationRequired,
    ConfirmationSpent,
    ConfirmationTampered,
    Problem,
)
from awp_publish.stores.store import Add, Look, Seen

logger: Final = logging.getLogger("awp_publish.calls")

MARGIN: Final = 86400.0
"""Seconds that a spent token is remembered beyond its lifetime, so that no clock set back makes it good again."""

HIDDEN: Final = "(hidden)"
LONGEST_VALUE: Final = 100
"""Characters of one input that a summary shows."""


def confirmation_gate(action: Action, tokens: Tokens | None) -> Gate | None:
    """The gate that asks for a confirmation; None if the action needs none."""
    if tokens is None or not action.needs_confirmation:
        return None
    return partial(_confirm, action, tokens)


def _confirm(action: Action, tokens: Tokens, call: Call) -> Demand:
    fingerprint = fingerprint_of(call.input)
    ask = partial(_ask, action, tokens, call, fingerprint)
    if call.confirmation is None:
        raise ask(ConfirmationRequired, f"Action {action.id} is done only after a person has agreed.")
    facts = _read(tokens, call.confirmation, ask)
    if facts.get("action") != action.id or facts.get("caller") != call.caller_id:
        raise ask(ConfirmationForeign, "The confirmation is another caller's or another action's.")
    if facts.get("input") != fingerprint:
        raise ask(ConfirmationMismatch, "The input is not the one that was confirmed.")

    def judge(seen: tuple[Seen, ...], holds: bool) -> Outcome | None:
        if seen and seen[0] is not None:
            raise ask(ConfirmationSpent, "The confirmation admitted a call before.")
        return None

    spent = f"spent:{facts.get('id')}"
    return Demand((Add(spent, b"1", tokens.lifetime + MARGIN),), (Look(spent),), judge)


def _read(tokens: Tokens, token: str, ask: "partial[Problem]") -> JsonObject:
    try:
        return tokens.read(token)
    except Expired:
        raise ask(ConfirmationExpired, "The confirmation is too old.") from None
    except NotOurs:
        raise ask(ConfirmationTampered, "The confirmation was not given by this site, or was changed since.") from None


def _ask(action: Action, tokens: Tokens, call: Call, fingerprint: str, kind: type[Problem], detail: str) -> Problem:
    """Every refusal brings the question along, with a token for the answer yes."""
    facts = {"id": secrets.token_urlsafe(12), "action": action.id, "caller": call.caller_id, "input": fingerprint}
    token, expires = tokens.write(facts)
    confirmation = {
        "token": token,
        "summary": summarize(action, call.input),
        "expires_at": datetime.fromtimestamp(expires, UTC).isoformat().replace("+00:00", "Z"),
    }
    return kind(detail, members={"confirmation": confirmation})


# --- What would happen, in plain language ---


def summarize(action: Action, given: JsonObject) -> str:
    """What a call would do: in the site's words if it has any, else its description and its input.

    What the schema marks as never to be shown is hidden, but for a function of the site's, which knows what it does.
    """
    shown = cast(JsonObject, _veil([action.inputs], given, action.inputs))
    try:
        if isinstance(action.confirmation_summary, str):
            return action.confirmation_summary.format_map(_Shown(shown))
        if action.confirmation_summary is not None:
            return str(action.confirmation_summary(given))
    except Exception:
        logger.exception("the confirmation_summary of action %s failed", action.id)
    return _in_our_words(action, shown)


def _in_our_words(action: Action, given: JsonObject) -> str:
    shown = [f"{name}: {_show(value)}" for name, value in given.items()]
    words = [f"{action.name}: {action.description.strip().splitlines()[0].rstrip('.')}."]
    words += [f"With {', '.join(shown)}."] if shown else []
    words += ["This cannot be undone."] if action.is_irreversible else []
    return " ".join(words)


def _show(value: object) -> str:
    text = HIDDEN if value is HIDDEN else f'"{value}"' if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


class _Shown(dict[str, object]):
    """The input as a template shows it; what was not given shows as such."""

    def __missing__(self, name: str) -> str:
        return "(not given)"


# --- What is never shown: inputs that JSON Schema marks as writeOnly or as a password, however deep ---


def _veil(schemas: Sequence[object], value: object, root: JsonObject) -> object:
    """A value without what any of its schemas marks."""
    parts = _parts(schemas, root)
    if any(part.get("writeOnly") is True or part.get("format") == "password" for part in parts):
        return HIDDEN
    if isinstance(value, Mapping):
        return {name: _veil(_member(parts, name), inner, root) for name, inner in value.items()}
    if isinstance(value, list):
        return [_veil(_item(parts, index), inner, root) for index, inner in enumerate(value)]
    return value


def _parts(schemas: Sequence[object], root: JsonObject) -> list[JsonObject]:
    """The schemas and all that they refer to or are combined of, each once."""
    found: list[JsonObject] = []
    waiting = list(schemas)
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict) or any(schema is one for one in found):
            continue
        found.append(schema)
        waiting += [_referred(schema.get("$ref"), root), *(schema.get(name) for name in ("if", "then", "else"))]
        for name in ("allOf", "anyOf", "oneOf"):
            waiting += _list(schema, name)
    return found


def _referred(pointer: object, root: JsonObject) -> object:
    """What "#/$defs/Card" means."""
    found: object = root if isinstance(pointer, str) and pointer.startswith("#") else None
    for step in str(pointer).split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def _member(parts: Sequence[JsonObject], name: str) -> list[object]:
    named = [table[name] for part in parts if name in (table := _table(part, "properties"))]
    patterns = [pair for part in parts for pair in _table(part, "patternProperties").items()]
    named += [schema for pattern, schema in patterns if _matches(pattern, name)]
    return named or [part.get("additionalProperties") for part in parts]


def _item(parts: Sequence[JsonObject], index: int) -> list[object]:
    listed = [schemas[index] for part in parts if index < len(schemas := _list(part, "prefixItems"))]
    return listed or [part.get("items") for part in parts]


def _matches(pattern: str, name: str) -> bool:
    """What only other dialects of regular expressions can read may match: to hide too much does no harm."""
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return True


def _table(schema: JsonObject, keyword: str) -> JsonObject:
    found = schema.get(keyword)
    return found if isinstance(found, dict) else {}


def _list(schema: JsonObject, keyword: str) -> Sequence[object]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else ()
