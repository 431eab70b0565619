"""Results of tool calls: what a call came to, in the client's revision (specification, Server/Tools).

Up to 2025-11-25 a structured result is an object, so other outputs are listed with an `outputSchema` whose one member
is `result`. From 2026-07-28 on it may be any JSON value except null, which the SDK takes for a missing result: an
output that may be null is wrapped there too. Headers that gates and routes add are in the HTTP response, and again in
the result's `_meta`, for clients that have no access to HTTP headers.
"""

from collections.abc import Mapping
from types import MappingProxyType, NoneType
from typing import Final
from urllib.parse import quote

import mcp_types as types
import orjson
from mcp.shared.exceptions import MCPError

from awp_publish.calls.call import PART_OF_ANSWER, RECEIPT, SESSION_HEADER, Call, Outcome, Result
from awp_publish.plugins.mcp.dialect import META
from awp_publish.plugins.mcp.elicitation import question_for
from awp_publish.plugins.mcp.exchange import McpExchange, RequestContext, WireResult, is_modern
from awp_publish.plugins.mcp.tool_list import STRUCTURED_SINCE, Tool
from awp_publish.problems import Problem, SessionUnknown, UnknownAgent
from awp_publish.schema import media

_PLAIN_ANSWER: Final = (
    b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":%b}],"isError":false,'
    b'"_meta":{%b"' + META.encode() + b'requestId":"%b"},"structuredContent":%b,"resultType":"complete"}}'
)
"""The answer to a plain call of an action whose output is an object, equal to what `Results.render` makes."""


_UNMATCHED: Final = (
    "This is the answer: the call has taken effect, so do not repeat it. Only its form is not that of the outputSchema."
)
"""What follows an answer that clients would refuse, and hide from their models, if it were not marked as an error."""


class Results:
    """Renders results. With `challenges`, a refusal for want of credentials is an error with an HTTP status."""

    stamp: Mapping[str, object] = MappingProxyType({})
    """The server information in every result of the stateless generation, which the SDK would copy for each."""
    _stamped = b""

    def __init__(self, *, challenges: bool) -> None:
        self._challenges = challenges

    def set_stamp(self, stamp: Mapping[str, object]) -> None:
        self.stamp, self._stamped = stamp, orjson.dumps(stamp)[1:-1] + b","

    def write_plain(self, message_id: object, request_id: str, body: bytes) -> bytes:
        """Return the message with an output that is an object, for a plain call."""
        text = orjson.dumps(body.decode())
        return _PLAIN_ANSWER % (orjson.dumps(message_id), text, self._stamped, request_id.encode(), body)

    def render(
        self, exchange: McpExchange, tool: Tool, context: RequestContext, result: Result, call: Call | None = None
    ) -> WireResult:
        """Render a result, of a `call` with what its gates have added to the answer.

        An answer is structured, and the same JSON is its text; of a string, the text is the string itself. What is not
        text is content of its own, and so is a text with a file name. A problem is text for the model, and in `_meta`
        for programs; it is not structured content, which some clients always validate against the tool's outputSchema.
        Raises MCPError for a challenge.
        """
        if isinstance(result, UnknownAgent):
            raise MCPError(types.INVALID_PARAMS, result.detail)
        if isinstance(result, Problem) and (question := question_for(result, context)) is not None:
            return {**question, "_meta": self.stamp}
        added = call.headers if call is not None else ()
        meta = {**(self.stamp if is_modern(context) else {}), **exchange.meta_for(result, added)}
        rendered: WireResult = {"content": [], "isError": isinstance(result, Problem), "_meta": meta}
        if isinstance(result, Problem):
            rendered["content"] = [self._describe(exchange, context, result, meta)]
        else:
            _put_output(rendered, exchange, tool, context, result)
            rendered["content"] += _header_texts(tool, result)
        if call is not None:
            rendered["content"] += _added_texts(call)
        if is_modern(context):
            rendered["resultType"] = "complete"
        return rendered

    def _describe(
        self, exchange: McpExchange, context: RequestContext, problem: Problem, meta: WireResult
    ) -> WireResult:
        """Return a problem as text for the model, and put it into `meta`. Raises MCPError for a challenge."""
        body = exchange.render(problem)
        described = orjson.loads(body)
        is_challenge = any(name.lower() == "www-authenticate" for name, _ in problem.headers)
        is_challenge &= not isinstance(problem, SessionUnknown)  # which no authorization server can remedy
        if self._challenges and problem.status in (401, 403) and is_challenge:
            exchange.refusal = problem
            raise MCPError(types.INVALID_REQUEST, problem.detail, described)
        # Server/Tools, multi-round-trip requests
        if problem.slug == "confirmation-tampered" and (context.params or {}).get("requestState") is not None:
            raise MCPError(types.INVALID_PARAMS, problem.detail, described)
        meta[f"{META}problem"] = described
        return text_block(body.decode())


def _put_output(
    rendered: WireResult, exchange: McpExchange, tool: Tool, context: RequestContext, result: Outcome
) -> None:
    """Put the output of an action into a result: as content for the model and, where it may be, structured."""
    output = orjson.loads(result.body) if result.output is None else result.output
    if tool.suits is not None and not tool.suits(output):
        rendered |= {"isError": True, "content": [text_block(result.body.decode()), text_block(_UNMATCHED)]}
        rendered["_meta"][f"{META}answer"] = output
        return
    shaped = {"result": output} if tool.is_wrapped else output
    block: WireResult | None = None
    if type(output) is str:
        text = output
        if (kind := dict(result.headers[::-1]).get(media.HEADER)) is not None:
            block = content_block(output, kind, f"{tool.action.id}/{exchange.request_id}")
    else:
        text = orjson.dumps(shaped).decode() if tool.is_wrapped else result.body.decode()
    rendered["content"] = [text_block(text) if block is None else block]
    is_structured = not isinstance(shaped, (str, NoneType)) if is_modern(context) else isinstance(shaped, dict)
    is_structured = (is_structured and block is None) or "outputSchema" in tool.entry
    if is_structured and context.protocol_version >= STRUCTURED_SINCE:
        rendered["structuredContent"] = shaped
        if tool.is_wrapped:
            rendered["_meta"][f"{META}wrapped"] = True


def _header_texts(tool: Tool, result: Outcome) -> list[WireResult]:
    """Return the headers that are part of an answer as text, since a model does not see `_meta`."""
    own = PART_OF_ANSWER | tool.action.answer_headers if result.headers else frozenset[bytes]()
    lines = [f"{name.decode()}: {value.decode('latin-1')}" for name, value in result.headers if name in own]
    return [text_block("\n".join(lines))] if lines else []


def _added_texts(call: Call) -> list[WireResult]:
    """Return what the gates have added and the model has to send again: a receipt, a session."""
    added, texts = dict(call.headers), list[WireResult]()
    if (receipt := added.get(RECEIPT)) is not None and not call.known_as:
        texts.append(text_block(f"receipt: {receipt.decode()}"))
    if (begun := added.get(SESSION_HEADER)) is not None:
        texts.append(text_block(f"session: {begun.decode()}\nSend it as the argument session from now on."))
    return texts


def text_block(text: str) -> WireResult:
    return {"type": "text", "text": text}


def content_block(output: str, header: bytes, place: str) -> WireResult | None:
    """Return the content block of an answer that is not JSON, or None for text without a file name.

    `header` is the answer's media type and name, `place` the default name of a file.
    """
    kind, name = media.read_header(header)
    family = kind.partition("/")[0]
    if media.is_text(kind) and not name:
        return None
    if family in ("image", "audio"):
        return {"type": family, "data": output, "mimeType": kind}
    uri = f"attachment:///{quote(f'{place}/{name}' if name else place)}"
    content = "text" if media.is_text(kind) else "blob"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, content: output}}
