"""Prerequisites (agent.json section 11): a success hands out a signed receipt, a dependent call has to carry it."""

from collections.abc import Iterable
from typing import Final

from awp_publish.model import Action
from awp_publish.policy.call import Call, Gate
from awp_publish.policy.tokens import Expired, NotOurs, Tokens
from awp_publish.problems import PrerequisiteRequired

RECEIPT: Final = b"awp-receipt"
MOST_RECEIPTS: Final = 50
"""Receipts that one call may carry; more are not read."""


def prerequisite_gate(action: Action, tokens: Tokens | None) -> Gate | None:
    """The gate that wants a receipt of every action this one depends on; None if none is enforced."""
    if tokens is None or not action.enforce_prerequisites or not action.depends_on:
        return None

    def gate(call: Call) -> None:
        proven = frozenset(_proven(tokens, call))
        missing = [needed for needed in action.depends_on if needed not in proven]
        if missing:
            raise PrerequisiteRequired(
                f"Action {action.id} needs a receipt of {', '.join(missing)}; none that was sent is valid.",
                members={"missing": missing},
            )

    return gate


def hand_out_receipt(tokens: Tokens, call: Call) -> tuple[bytes, bytes]:
    """The header that proves that a call has succeeded."""
    token, _ = tokens.write({"action": call.action.id, "caller": call.caller_id})
    return RECEIPT, token.encode("ascii")


def _proven(tokens: Tokens, call: Call) -> Iterable[str]:
    """The actions that the call's receipts stand for. What nobody in particular did, anybody may build upon."""
    for receipt in call.receipts[:MOST_RECEIPTS]:
        try:
            facts = tokens.read(receipt)
        except (NotOurs, Expired):
            continue
        if facts.get("caller") in ("", call.caller_id):
            yield str(facts.get("action"))
