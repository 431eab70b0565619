"""Confirmation by the client's user (specification, Client/Elicitation).

Since 2026-07-28 a server asks by answering a call with `input_required`: the client asks its user, then sends the call
again with the reply and with `requestState`, which carries the token of the question. In 2025-06-18 and 2025-11-25 it
sends the client a request in the stream that answers the call, and gets the reply in a POST of its own. That may reach
another worker, so the reply travels through the store; and what a client can do is said only in `initialize`, so it is
a part of the session's id, which the client sends with every message. The worker keeps nothing.
"""

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import Any, Final

import mcp_types as types
import orjson

from awp_publish.calls.call import Call
from awp_publish.http.client_address import client_address
from awp_publish.http.exchange import HOLDS_THREAD
from awp_publish.http.streams import OpenStreams
from awp_publish.plugin import Context
from awp_publish.plugins.mcp.exchange import McpExchange, RequestContext, WireResult, is_modern
from awp_publish.plugins.mcp.stopping import wait_for
from awp_publish.problems import ConfirmationRequired, Problem, RateLimited
from awp_publish.stores.store import Add, Look, Store, Swap

QUESTION: Final = "confirmation"
"""The name of our only question among the `inputRequests`."""

SESSION_FIELD: Final = b"mcp-session-id"
CAN_ASK: Final = ".elicitation"
"""The end of the id of a session whose client can ask its user with a form."""

ASKED_SINCE: Final = "2025-06-18"
"""The first revision with elicitation."""

MAX_QUESTIONS: Final = 3
"""How often one call asks, if what a person agreed to has changed meanwhile. Then it is answered with the token."""

MIN_POLL: Final = 0.05
MAX_POLL: Final = 1.0
"""Seconds between two looks for the reply."""

_ID: Final = "awp-question-"
_PENDING: Final = b"?"
_REPLIES: Final = frozenset({"accept", "decline", "cancel"})


def question_for(problem: Problem, context: RequestContext) -> WireResult | None:
    """Return the result that makes the client ask its user, or None if it cannot, or if more than consent is missing.

    A client that names neither form nor url can show forms. A call with a wrong or spent token is refused instead.
    """
    question = _question_of(problem)
    if question is None:
        return None
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    can_ask = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
    if not is_modern(context) or not can_ask:
        return None
    requests = {QUESTION: input_request(question["summary"])}
    return {"resultType": "input_required", "inputRequests": requests, "requestState": question["token"]}


def input_request(summary: str) -> WireResult:
    """Return one of the `inputRequests`, which asks for consent."""
    return {"method": "elicitation/create", "params": {"mode": "form", **_form(summary)}}


def _form(summary: str) -> WireResult:
    """Return a form with nothing to fill in, so that it can only be accepted or declined."""
    return {"message": summary, "requestedSchema": {"type": "object", "properties": {}}}


def not_agreed(reply: str) -> ConfirmationRequired:
    """Return the refusal of a call to which its client's user has not agreed: by "decline", "cancel", or no reply."""
    detail = {
        "decline": "The user declined.",
        "cancel": "The user closed the question without an answer.",
    }.get(reply, "The person who was asked has not replied.")
    return ConfirmationRequired(detail, recovery="Do not repeat the call unless your user asks for it again.")


def agreed_token(params: Mapping[str, Any]) -> str | None:
    """Return the token of the question to which a call brings its user's consent, None if it brings no reply.

    Raises ConfirmationRequired if they did not agree. Without a reply they are asked again.
    """
    if params.get("inputResponses") is None or params.get("requestState") is None:
        return None
    sent = types.CallToolRequestParams.model_validate(params, by_name=False)
    reply = (sent.input_responses or {}).get(QUESTION)
    if not isinstance(reply, types.ElicitResult):
        return None
    if reply.action != "accept":
        raise not_agreed(reply.action)
    return sent.request_state


def _question_of(result: object) -> Mapping[str, str] | None:
    """Return the question of a refusal that only lacks consent: its token, its summary and when it expires."""
    question = result.members.get("confirmation") if isinstance(result, ConfirmationRequired) else None
    return question if isinstance(question, dict) else None


class Questions:
    """The questions to clients of 2025-06-18 and 2025-11-25 at one public address of a site."""

    def __init__(self, door: Context) -> None:
        self._is_needed = any(action.needs_confirmation for action in door.catalog.actions)
        self._store: Store = door.guards.store
        self._streams = OpenStreams("questions")
        self._proxies = door.admission.trusted_proxies

    def begin_session(self, exchange: McpExchange, message: Mapping[str, Any]) -> None:
        """Give the client that sends `initialize` the id of a session, if it can ask its user."""
        params = message.get("params")
        capabilities = params.get("capabilities") if isinstance(params, dict) else None
        elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
        if not self._is_needed or not isinstance(elicitation, dict) or HOLDS_THREAD in exchange.scope:
            return
        if "form" in elicitation or "url" not in elicitation:
            exchange.session_id = (secrets.token_hex(16) + CAN_ASK).encode()

    def question_for(self, exchange: McpExchange, context: RequestContext, result: object) -> Mapping[str, str] | None:
        """Return the question to be sent in the stream that answers the call, None if its client cannot be asked."""
        version = context.protocol_version
        if is_modern(context) or version < ASKED_SINCE or exchange.questions >= MAX_QUESTIONS:
            return None
        session = exchange.fields.get(SESSION_FIELD, b"").strip()
        if not session.endswith(CAN_ASK.encode()) or HOLDS_THREAD in exchange.scope:
            return None
        if b"text/event-stream" not in exchange.fields.get(b"accept", b"").lower():
            return None
        return _question_of(result)

    async def ask(self, exchange: McpExchange, call: Call, question: Mapping[str, str]) -> bool:
        """Ask the client's user. Returns True for a yes.

        False means that nobody could be asked: the call has to be answered with the token. Raises ClientDisconnect, and
        ConfirmationRequired if the person did not agree, or has not replied as long as the question is valid.
        """
        exchange.questions += 1
        seconds = (datetime.fromisoformat(question["expires_at"]) - datetime.now(UTC)).total_seconds()
        question_id = _ID + secrets.token_urlsafe(24)
        with ExitStack() as place:
            try:
                address = client_address(exchange.scope, exchange.fields, self._proxies)
                place.enter_context(self._streams.hold(call.principal, address))
            except RateLimited:
                return False
            await self._store.run((Add(question_id, _PENDING, seconds),))
            form = _form(question["summary"])
            request = {"jsonrpc": "2.0", "id": question_id, "method": "elicitation/create", "params": form}
            await exchange.send_event(orjson.dumps(request))
            try:
                reply = await wait_for(self._wait_for_reply(question_id), exchange.receive, seconds)
            except TimeoutError:
                raise not_agreed("") from None
            finally:
                with suppress(Problem):
                    await self._store.run((Swap(question_id, _PENDING, None),))
        if reply in (b"decline", b"cancel"):
            raise not_agreed(reply.decode())
        return reply == b"accept"

    async def _wait_for_reply(self, question_id: str) -> bytes | None:
        pause = MIN_POLL
        while (reply := (await self._store.run((Look(question_id),))).seen[0]) == _PENDING:
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, MAX_POLL)
        return reply if isinstance(reply, bytes) else None

    async def take(self, message: Mapping[str, Any]) -> bool:
        """Take the reply to a question, whichever worker has asked it. Returns False for any other message.

        Raises StoreUnavailable.
        """
        question_id, result = message.get("id"), message.get("result")
        if "method" in message or type(question_id) is not str or not question_id.startswith(_ID):
            return False
        action = result.get("action") if isinstance(result, dict) else None
        reply = action if isinstance(action, str) and action in _REPLIES else "error"
        # It is kept as long as the call that waits for it may take to look; an unknown question is nobody's.
        await self._store.run((Swap(question_id, _PENDING, reply.encode(), 60.0),))
        return True
