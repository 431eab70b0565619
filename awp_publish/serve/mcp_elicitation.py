"""Confirmation by asking the person at the client (specification, Client/Elicitation), where the client can.

From 2026-07-28 on a server asks by answering a call with `input_required`: the client asks its user, then sends the
call again with the reply and with `requestState`, in which the token travels that the question was asked with. Up to
2025-11-25 a server has to send a request of its own, for which a stateless endpoint has no way back; there, and where a
client cannot ask, the problem carries the token.
"""

from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from awp_publish.policy.call import Call
from awp_publish.problems import ConfirmationExpired, ConfirmationRequired, InvalidEnvelope, Problem

QUESTION: Final = "confirmation"
"""The name of our one question among the `inputRequests`."""

ASKED: Final = (ConfirmationRequired, ConfirmationExpired)
"""The refusals after which a person is asked. Whoever brings a wrong or spent token is told so."""

NO: Final = "Do not repeat the call unless your user asks for it anew."

_NO_FIELDS: Final[Mapping[str, object]] = {"type": "object", "properties": {}}
"""The form of a question that is answered with yes or no alone."""


def ask_person(problem: Problem, context: ServerRequestContext[Any, Any]) -> dict[str, Any] | None:
    """The result that has the client ask its user; None if it cannot, or if an agreement is not all that is lacking."""
    question = problem.members.get("confirmation")
    if not isinstance(problem, ASKED) or not isinstance(question, dict) or not _can_ask(context):
        return None
    form = {"mode": "form", "message": question["summary"], "requestedSchema": _NO_FIELDS}
    return {
        "resultType": "input_required",
        "inputRequests": {QUESTION: {"method": "elicitation/create", "params": form}},
        "requestState": question["token"],
    }


def _can_ask(context: ServerRequestContext[Any, Any]) -> bool:
    """A client that names neither form nor url can show forms."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def read_reply(call: Call, params: Mapping[str, Any]) -> None:
    """Put the confirmation on a call that was sent again with its user's reply.

    Raises ConfirmationRequired if they did not agree, and InvalidEnvelope for a reply to something else.
    """
    if params.get("inputResponses") is None or params.get("requestState") is None:
        return
    sent = types.CallToolRequestParams.model_validate(params, by_name=False)
    reply = (sent.input_responses or {}).get(QUESTION)
    if not isinstance(reply, types.ElicitResult):
        raise InvalidEnvelope(f"inputResponses: has no reply to the question {QUESTION}.")
    if reply.action != "accept":
        raise ConfirmationRequired("The person who was asked did not agree.", recovery=NO)
    call.confirmation = sent.request_state
