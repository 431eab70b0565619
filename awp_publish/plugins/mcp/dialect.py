"""What accompanies a call at the MCP door, and the door's words for it.

The members of other doors' envelopes are in the request's `_meta`: `awp/idempotencyKey`, `awp/confirmation`,
`awp/receipts` and `awp/session`; or in the HTTP headers that all doors accept. Models can write neither, so what they
have to send are optional arguments, beside those of the action.
"""

from collections.abc import Mapping
from typing import Any, Final

from awp_publish.calls.call import KEY
from awp_publish.http.calling import Dialect
from awp_publish.model import Action
from awp_publish.problems import InvalidEnvelope, code_of

CONFIRMATION: Final = "confirmation"
RECEIPTS: Final = "receipts"
SESSION: Final = "session"

META: Final = "awp/"
"""Prefix of our keys in `_meta` (specification, Basic/General fields)."""

DIALECT: Final = Dialect(
    input="arguments",
    places={
        "input": "put its members directly into arguments",
        "arguments": "put its members directly into arguments",
        "idempotency_key": f"send it in the request's _meta, as {META}idempotencyKey",
        "confirmation": f"send it in the request's _meta, as {META}confirmation",
        "receipts": f"send them in the request's _meta, as {META}receipts",
    },
    recoveries={
        "CONFIRMATION_REQUIRED": (
            "Show confirmation.summary to your user. Only if they agree, call the tool again with the same arguments "
            "and confirmation.token as the argument confirmation (or as "
            f"{META}confirmation in the request's _meta)."
        ),
        "PREREQUISITE_REQUIRED": (
            "Call the tools listed in missing, unless they have already succeeded, then call this one again. If you "
            "are not authenticated, add the argument receipts: a list of the receipts below their answers (or "
            f"{META}receipts in the request's _meta). Do not repeat a call only to get its receipt."
        ),
        code_of(InvalidEnvelope.slug): (
            f"In the request's _meta send {META}confirmation and {META}idempotencyKey as strings, {META}receipts as a "
            "list of strings."
        ),
    },
)


def members_of(action: Action, meta: Mapping[str, Any] | None) -> dict[str, object]:
    """Return what accompanies a call in the `_meta` of its request, under the names of other doors' envelopes."""
    if not meta:
        return {}
    key = action.idempotency.key_field if action.idempotency is not None else KEY
    names = {key: "idempotencyKey", CONFIRMATION: CONFIRMATION, RECEIPTS: RECEIPTS, SESSION: SESSION}
    return {name: meta[META + written] for name, written in names.items() if META + written in meta}
