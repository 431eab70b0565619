"""Confirmation by the client's user (specification, Client/Elicitation).

Since 2026-07-28 a server asks by answering a call with `input_required`: the client asks its user, then sends the call
again with the reply and with `requestState`, which carries the token of the question. Up to 2025-11-25 a server has to
send a request of its own, which a stateless endpoint cannot do; in these revisions, and if a client cannot ask, the
problem carries the token.
"""

from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from awp_publish.calls.call import Call
from awp_publish.plugins.mcp.exchange import RequestContext, WireResult
from awp_publish.problems import ConfirmationExpired, ConfirmationRequired, ConfirmationStale, Problem

QUESTION: Final = "confirmation"
"""The name of our only question among the `inputRequests`."""


def question_for(problem: Problem, context: RequestContext) -> WireResult | None:
    """Return the result that makes the client ask its user, or None if it cannot, or if more than consent is missing.

    A client that names neither form nor url can show forms. A call with a wrong or spent token is refused instead.
    """
    question = problem.members.get("confirmation")
    asks = (ConfirmationRequired, ConfirmationExpired, ConfirmationStale)
    if not isinstance(problem, asks) or not isinstance(question, dict):
        return None
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    can_ask = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS or not can_ask:
        return None
    yes_or_no = {"type": "object", "properties": {}}
    form = {"mode": "form", "message": question["summary"], "requestedSchema": yes_or_no}
    return {
        "resultType": "input_required",
        "inputRequests": {QUESTION: {"method": "elicitation/create", "params": form}},
        "requestState": question["token"],
    }


def read_reply(call: Call, params: Mapping[str, Any]) -> None:
    """Set the confirmation of a call that was sent again with its user's reply. Without a reply they are asked again.

    Raises ConfirmationRequired if they did not agree.
    """
    if params.get("inputResponses") is None or params.get("requestState") is None:
        return
    sent = types.CallToolRequestParams.model_validate(params, by_name=False)
    reply = (sent.input_responses or {}).get(QUESTION)
    if not isinstance(reply, types.ElicitResult):
        return
    if reply.action != "accept":
        recovery = "Do not repeat the call unless your user asks for it anew."
        raise ConfirmationRequired("The person who was asked did not agree.", recovery=recovery)
    call.confirmation = sent.request_state
