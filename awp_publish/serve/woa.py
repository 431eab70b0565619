"""The WoA REST door: `POST /agents/{agent_id}/invoke` (draft-gaikwad-woa-00, sections 4.3.1, 5.1 and 5.2)."""

import re
from functools import partial
from typing import Final

from awp_publish.invoke import Invoker
from awp_publish.model import Catalog, Door
from awp_publish.policy.call import Call
from awp_publish.problems import MethodNotAllowed, NotAcceptable, Problem, UnsupportedMediaType
from awp_publish.serve.admission import Admission
from awp_publish.serve.cors import Cors
from awp_publish.serve.credentials import read_credentials, refuse_foreign_pages
from awp_publish.serve.envelope import read_admission, read_envelope
from awp_publish.serve.exchange import Exchange, Telling
from awp_publish.serve.json_text import parse_json
from awp_publish.serve.reply import Fields, Receive, Scope, Send, accepts, read_fields, send_reply
from awp_publish.serve.request_body import HungUp, read_body, wait_for_hang_up

PROTOCOL: Final = "woa"
VERSION: Final = "1"
METHODS: Final = "POST, OPTIONS"
_JSON_TYPE: Final = re.compile(rb'application/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)


def door_of(invoke_path: str) -> Door:
    """What the documents may say about this door."""
    return Door(PROTOCOL, VERSION, invoke_path)


class WoaDoor:
    """Answers invocation requests for one catalog."""

    def __init__(self, catalog: Catalog, invoker: Invoker, admission: Admission) -> None:
        self._invoker = invoker
        self._admission = admission
        self._cors = Cors(admission.allow_origins)
        self._telling = Telling(catalog)

    async def answer(self, agent_id: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; `agent_id` is the agent that the URL names."""
        fields = read_fields(scope["headers"])
        if scope["method"] == "OPTIONS":
            await send_reply(self._cors.preflight(fields, METHODS), send)
            return
        exchange = Exchange(self._telling, scope, fields, self._cors.headers(fields), send)
        try:
            call = await self._read_call(exchange, scope, receive, agent_id)
        except HungUp:
            return
        except Problem as problem:
            self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            await exchange.deliver(problem)
            return
        exchange.call = call
        await self._invoker.run(call, exchange.deliver)

    async def _read_call(self, exchange: Exchange, scope: Scope, receive: Receive, agent_id: str | None) -> Call:
        fields = exchange.fields
        _check_request(scope["method"], fields)
        refuse_foreign_pages(fields, self._admission.own_hosts)
        body = await read_body(scope, fields, receive, self._admission.max_body_bytes)
        envelope = read_envelope(parse_json(body), agent_id)
        action = self._invoker.find(envelope.agent, envelope.operation)
        gone = partial(wait_for_hang_up, receive)
        call = Call(action, envelope.input, exchange.request_id, PROTOCOL, scope, gone)
        if self._invoker.is_guarded(action):
            call.credentials = partial(read_credentials, scope, fields, self._admission.trusted_proxies)
            read_admission(call, envelope.members, fields)
        return call


def _check_request(method: str, fields: Fields) -> None:
    """WoA section 4.3.1: POST, a body of type application/json, and an answer that is JSON."""
    if method != "POST":
        raise MethodNotAllowed(f"Invoke with POST, not {method[:20]}.", headers=[("Allow", METHODS)])
    accept = fields.get(b"accept")
    if accept is not None and not accepts(accept, "application/json"):
        raise NotAcceptable(f'The answer is application/json, which "Accept: {_shown(accept)}" rules out.')
    content_type = fields.get(b"content-type", b"")
    if content_type != b"application/json" and not _JSON_TYPE.fullmatch(content_type.strip()):
        named = f'"{_shown(content_type)}"' if content_type else "no Content-Type"
        raise UnsupportedMediaType(f"The body must be application/json in UTF-8; the request has {named}.")
    if fields.get(b"content-encoding", b"identity") != b"identity":
        raise UnsupportedMediaType("The body must not be content-encoded.")


def _shown(value: bytes) -> str:
    return value[:100].decode("latin-1")
