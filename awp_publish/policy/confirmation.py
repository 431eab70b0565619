"""Human confirmation (agent.json section 9): the first call says what would happen, the second brings a signed token.

A token is bound to its caller, action and input, expires, and is spent with the call it admits, in every process.
"""

import logging
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final

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
    """What a call would do: in the site's words if it has any, else its description and its input."""
    try:
        if isinstance(action.confirmation_summary, str):
            return action.confirmation_summary.format_map(_Shown(given))
        if action.confirmation_summary is not None:
            return str(action.confirmation_summary(given))
    except Exception:
        logger.exception("the confirmation_summary of action %s failed", action.id)
    return _in_our_words(action, given)


def _in_our_words(action: Action, given: JsonObject) -> str:
    hidden = _secret_names(action.inputs)
    shown = [f"{name}: {'(hidden)' if name in hidden else _show(value)}" for name, value in given.items()]
    words = [f"{action.name}: {action.description.strip().splitlines()[0].rstrip('.')}."]
    words += [f"With {', '.join(shown)}."] if shown else []
    words += ["This cannot be undone."] if action.sensitivity == "irreversible" or action.reversible is False else []
    return " ".join(words)


def _show(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _secret_names(schema: JsonObject) -> frozenset[str]:
    """Inputs that JSON Schema marks as never to be shown."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return frozenset()
    return frozenset(
        name
        for name, facts in properties.items()
        if isinstance(facts, Mapping) and (facts.get("writeOnly") or facts.get("format") == "password")
    )


class _Shown(dict[str, object]):
    """The input as a template shows it; what was not given shows as such."""

    def __missing__(self, name: str) -> str:
        return "(not given)"
