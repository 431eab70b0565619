"""Prompts (specification, Server/Prompts).

Arguments are texts in this protocol; numbers for a prompt's function are parsed from them. Writing a prompt is not a
call of an action: no gate applies to it, and it may take as long as a call.
"""

import asyncio
import logging
from typing import Final

import mcp_types as types
import orjson
from mcp.shared.exceptions import MCPError

from awp_publish.model import Prompt
from awp_publish.plugin import Context
from awp_publish.plugins.mcp.exchange import RequestContext, WireResult, exchange_of
from awp_publish.plugins.mcp.resources import Completion, Readers
from awp_publish.plugins.mcp.results import content_block, text_block
from awp_publish.plugins.mcp.tool_list import LISTED
from awp_publish.problems import InvalidOutput, Problem
from awp_publish.schema import media

logger: Final = logging.getLogger("awp_publish.calls")

ROLES: Final = ("user", "assistant")


class PromptHandlers:
    """Lists and writes the prompts of a catalog. `timeout` is in seconds."""

    def __init__(self, door: Context) -> None:
        self._prompts = {prompt.id: prompt for prompt in door.catalog.prompts}
        self._readers = Readers(door)
        self._timeout = door.settings.limits.timeout

    async def list_prompts(self, context: RequestContext, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `prompts/list`: those that the caller may see."""
        listed, cache_scope = [], "public"
        for prompt in self._prompts.values():
            action = self._readers.find(prompt.action)
            if action is not None and not action.is_public:
                cache_scope = "private"
                if not await self._readers.may_see(context, action):
                    continue
            entry: WireResult = {"name": prompt.id, "title": prompt.name}
            if prompt.description:
                entry["description"] = prompt.description
            if prompt.arguments:
                entry["arguments"] = [
                    {"name": argument.name, "required": argument.required}
                    | ({"description": argument.description} if argument.description else {})
                    for argument in prompt.arguments
                ]
            listed.append(entry)
        return {"prompts": listed, **LISTED, "cacheScope": cache_scope}

    async def _find(self, context: RequestContext, name: str) -> Prompt | None:
        prompt = self._prompts.get(name)
        admitted = prompt is None or await self._readers.admit(context, self._readers.find(prompt.action))
        return prompt if admitted else None

    async def completion_of(self, context: RequestContext, name: str, argument: str) -> Completion | None:
        """Return how an argument of a prompt is completed, or None for an unknown prompt or argument."""
        prompt = await self._find(context, name)
        for declared in prompt.arguments if prompt is not None else ():
            if prompt is not None and declared.name == argument:
                return prompt.complete, declared.choices
        return None

    async def get_prompt(self, context: RequestContext, params: types.GetPromptRequestParams) -> WireResult:
        """Answer `prompts/get`. Raises MCPError."""
        prompt = await self._find(context, params.name)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f'This site has no prompt "{params.name[:100]}".')
        arguments: dict[str, object] = {**(params.arguments or {})}
        missing = [
            argument.name for argument in prompt.arguments if argument.required and argument.name not in arguments
        ]
        if missing:
            raise MCPError(types.INVALID_PARAMS, f"The prompt needs {', '.join(missing)}.")
        exchange = exchange_of(context)
        try:
            async with asyncio.timeout(self._timeout):
                written = orjson.loads(await prompt.write(arguments))
            messages = [["user", written]] if isinstance(written, str) else written
            if not isinstance(messages, list) or not all(map(_is_message, messages)):
                raise InvalidOutput(
                    "A prompt must be a string, or a list of pairs of a role and a string; base64 has its media type "
                    "as a third item."
                )
        except Problem as problem:
            code = types.INTERNAL_ERROR if problem.status >= 500 else types.INVALID_PARAMS
            raise MCPError(code, problem.detail, exchange.describe(problem)) from problem
        except Exception as error:
            logger.exception("prompt %s failed (request_id=%s)", prompt.id, exchange.request_id)
            words = "did not answer in time" if isinstance(error, TimeoutError) else "failed"
            raise MCPError(types.INTERNAL_ERROR, f"The prompt {prompt.id} {words}.") from error
        described = {"description": prompt.description} if prompt.description else {}
        rendered = list[WireResult]()
        for role, text, *kind in messages:
            place = f"{prompt.id}/{len(rendered)}"
            block = content_block(text, kind[0].encode("ascii"), place) if kind else None
            rendered.append({"role": role, "content": text_block(text) if block is None else block})
        return {**described, "messages": rendered, "resultType": "complete"}


def _is_message(message: object) -> bool:
    """Return True for a role and a string, and for a role, base64 and its media type."""
    if not isinstance(message, list) or not all(isinstance(part, str) for part in message):
        return False
    if len(message) == 3 and not media.media_type_of(message[2].encode("utf-8", "replace")):
        return False
    return len(message) in (2, 3) and message[0] in ROLES
