"""The WoA REST door: `POST /agents/{agent_id}/invoke` (draft-gaikwad-woa-00, sections 4.3.1, 5.1 and 5.2)."""

import re
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final
from urllib.parse import parse_qs, parse_qsl

from awp_publish.http.accept import accepts
from awp_publish.http.calling import CallEndpoint, Dialect, not_an_object
from awp_publish.http.exchange import Scope
from awp_publish.http.request import DoorRequest
from awp_publish.http.strict_json import json_kind
from awp_publish.model import Catalog
from awp_publish.plugin import Answer, Context, Endpoints
from awp_publish.plugins.woa.problems import AgentMismatch, MissingInput, NotAcceptable
from awp_publish.problems import InvalidEnvelope

DIALECT: Final = Dialect(
    places={
        "agent": "it belongs in the envelope, beside input",
        "operation": "it belongs in the envelope, beside input",
        "input": "put its members directly into input",
        "idempotency_key": "send it beside input, as idempotency_key, or in the header Idempotency-Key",
        "confirmation": "send it beside input, as confirmation, or in the header AWP-Confirmation",
        "receipts": "send them beside input, as receipts, or in the header AWP-Receipt",
        "session": "send it beside input, or in the header AWP-Session",
    }
)


class InvokeAddress:
    """Matches requests against the invocation URL template and finds the agent that they name."""

    def __init__(self, template: str) -> None:
        self._template = template
        path, _, query = template.partition("?")
        self._path = re.compile(_as_pattern(path))
        pairs = parse_qsl(query, keep_blank_values=True)
        self._query = [(name, re.compile(_as_pattern(value))) for name, value in pairs if "{agent_id}" in value]
        self._fixed = [(name, value) for name, value in pairs if "{agent_id}" not in value]

    def calls(self, catalog: Catalog) -> Mapping[str, str]:
        """Return the invocation paths of all agents, by path. Empty if the path alone does not name the agent."""
        if "?" in self._template or "{agent_id}" not in self._template:
            return {}
        return {self._template.replace("{agent_id}", agent.id): agent.id for agent in catalog.agents}

    def match(self, path: str, query_string: bytes) -> re.Match[str] | None:
        """Return the match of a request's path, None if the request is not an invocation.

        If the path has a placeholder, it may also be a path of the application's, so the template's query is required.
        """
        matched = self._path.fullmatch(path)
        if matched is None or not self._path.groups or not self._fixed:
            return matched
        query = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
        return matched if all(value in query.get(name, ()) for name, value in self._fixed) else None

    def agent_of(self, matched: re.Match[str], query_string: bytes) -> str | None:
        """Return the agent that the URL names, None if it names none."""
        if self._path.groups:
            return matched["agent_id"]
        if not self._query:
            return None
        query = parse_qs(query_string.decode("latin-1"))
        matches = (pattern.fullmatch(value) for name, pattern in self._query for value in query.get(name, ()))
        return next((match["agent_id"] for match in matches if match), None)


def _as_pattern(text: str) -> str:
    return re.escape(text).replace(re.escape("{agent_id}"), r"(?P<agent_id>[^/]+)")


DOOR: Final = "woa"


def open_woa(context: Context) -> Endpoints:
    """Open the door at one address of the site. Agents for a limited audience are found as unknown ones are."""
    door, address = WoaDoor(context), InvokeAddress(context.catalog.paths.invoke)
    public = address.calls(context.catalog.public)

    def find(scope: Scope, path: str) -> Answer | None:
        matched = address.match(path, scope["query_string"])
        return None if matched is None else partial(door, named=address.agent_of(matched, scope["query_string"]))

    return Endpoints(
        exact={path: partial(door.answer, agent_id) for path, agent_id in public.items()},
        find={re.split("[{?]", context.catalog.paths.invoke)[0]: find},
        claims=address.calls(context.catalog),
    )


class WoaDoor(CallEndpoint):
    """Answers invocation requests: POST with a JSON body, and a JSON answer (WoA section 4.3.1)."""

    methods = "POST, OPTIONS"
    usage = "Invoke with POST"
    dialect: ClassVar[Dialect] = DIALECT

    def __init__(self, context: Context) -> None:
        super().__init__(DOOR, context)
        self._offered, self._absent = self._invoker.offers.at(DOOR), self._invoker.absent

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Run one invocation. `named` is the agent that the URL names."""
        accept = request.fields.get(b"accept", b"*/*")
        if accept != b"*/*" and not accepts(accept, "application/json"):
            accept_text = accept[:100].decode("latin-1")
            raise NotAcceptable(f'The answer is application/json, which "Accept: {accept_text}" rules out.')

        # The envelope (section 5.1)
        envelope, size = await self.read_object(request)
        agent, operation, inputs = envelope.get("agent", named), envelope.get("operation"), envelope.get("input")
        if agent is not named or agent is None:
            if not isinstance(agent, str):
                if "agent" not in envelope:
                    raise InvalidEnvelope("agent: is missing, and the URL does not name an agent either.")
                raise InvalidEnvelope(f"agent: must be a string, not {json_kind(agent)}.")
            if named is not None and agent != named:
                raise AgentMismatch(f'The URL names agent "{named[:100]}", the envelope "{agent[:100]}".')
        if type(operation) is not str and "operation" in envelope:
            raise InvalidEnvelope(f"operation: must be a string, not {json_kind(operation)}.")
        action = self._offered.get((agent, operation), self._absent)
        if action is None:
            raise self._invoker.offers.unknown(DOOR, agent, operation)
        if not isinstance(inputs, dict):
            if "input" not in envelope:
                misnamed = self.dialect.misnamed(envelope)
                instead = f": its {misnamed} has to be called input" if misnamed else ""
                raise MissingInput(f"The envelope has no member input{instead}.")
            raise not_an_object(inputs)

        unknown = partial(self._invoker.offers.unknown, DOOR, agent, operation) if self._absent is not None else None
        request.call = call = self._calls.make(action, inputs, request, envelope, size=size, unknown=unknown)
        await self._invoker.run(call, request.deliver)
