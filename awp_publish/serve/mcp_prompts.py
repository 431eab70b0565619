"""The site's prompts as MCP prompts (specification, Server/Prompts). A site that declares none does not speak of them.

Arguments are texts in this protocol; what a prompt's function takes as a number is read from one. Writing a prompt is
no call of an action: no gate stands before it, and it is given as long as a call would be.
"""

import asyncio
import logging
from typing import Any, Final, TypeAlias

import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from awp_publish.model import Catalog, Prompt
from awp_publish.problems import InvalidOutput, Problem
from awp_publish.serve.mcp_lists import exchange_of
from awp_publish.serve.mcp_tools import LIST_TTL

logger: Final = logging.getLogger("awp_publish.calls")

ROLES: Final = ("user", "assistant")

Context: TypeAlias = ServerRequestContext[Any, Any]
WireResult: TypeAlias = dict[str, Any]


class PromptLists:
    """Lists and writes the prompts of a catalog. `timeout` in seconds."""

    def __init__(self, catalog: Catalog, timeout: float) -> None:
        self._prompts = {prompt.id: prompt for prompt in catalog.prompts}
        self._timeout = timeout

    async def list_prompts(self, _context: Context, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `prompts/list`."""
        listed = [_describe(prompt) for prompt in self._prompts.values()]
        return {"prompts": listed, "ttlMs": LIST_TTL, "cacheScope": "public", "resultType": "complete"}

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> WireResult:
        """Answer `prompts/get`. Raises MCPError."""
        prompt = self._prompts.get(params.name)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f'This site has no prompt "{params.name[:100]}".')
        given: dict[str, object] = {**(params.arguments or {})}
        missing = [one.name for one in prompt.arguments if one.required and one.name not in given]
        if missing:
            raise MCPError(types.INVALID_PARAMS, f"The prompt needs {', '.join(missing)}.")
        described = {"description": prompt.description} if prompt.description else {}
        return {**described, "messages": await self._write(prompt, given, context), "resultType": "complete"}

    async def _write(self, prompt: Prompt, given: dict[str, object], context: Context) -> list[WireResult]:
        exchange = exchange_of(context)
        try:
            async with asyncio.timeout(self._timeout):
                return _messages(orjson.loads(await prompt.write(given)))
        except Problem as problem:
            code = types.INTERNAL_ERROR if problem.status >= 500 else types.INVALID_PARAMS
            raise MCPError(code, problem.detail, orjson.loads(exchange.describe(problem))) from problem
        except Exception as error:
            logger.exception("prompt %s failed (request_id=%s)", prompt.id, exchange.request_id)
            words = "did not answer in time" if isinstance(error, TimeoutError) else "failed"
            raise MCPError(types.INTERNAL_ERROR, f"The prompt {prompt.id} {words}.") from error


def _describe(prompt: Prompt) -> WireResult:
    described: WireResult = {"name": prompt.id, "title": prompt.name}
    if prompt.description:
        described["description"] = prompt.description
    if prompt.arguments:
        described["arguments"] = [
            {"name": one.name, "required": one.required} | ({"description": one.description} if one.description else {})
            for one in prompt.arguments
        ]
    return described


def _messages(written: object) -> list[WireResult]:
    pairs = [["user", written]] if isinstance(written, str) else written
    if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        raise InvalidOutput("A prompt is a text, or a list of pairs of a role and a text.")
    return [{"role": role, "content": {"type": "text", "text": text}} for role, text in pairs]


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and pair[0] in ROLES and isinstance(pair[1], str)
