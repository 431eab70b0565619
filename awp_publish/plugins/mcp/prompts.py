"""Prompts (specification, Server/Prompts).

Arguments are texts in this protocol; numbers for a prompt's function are parsed from them. Writing a prompt is not a
call of an action: no gate applies to it, and it may take as long as a call.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

import mcp_types as types
import orjson
from mcp.shared.exceptions import MCPError

from awp_publish.model import Prompt
from awp_publish.plugin import Context
from awp_publish.plugins.mcp.exchange import RequestContext, WireResult, exchange_of
from awp_publish.plugins.mcp.resources import Readers
from awp_publish.plugins.mcp.results import content_block
from awp_publish.plugins.mcp.suggestions import suggest
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

    async def complete(
        self, context: RequestContext, name: str, argument: str, value: str, others: Mapping[str, str]
    ) -> Sequence[str] | None:
        """Return values for an argument of a prompt, or None for an unknown prompt or argument."""
        prompt = await self._find(context, name)
        arguments = prompt.arguments if prompt is not None else ()
        declared_argument = next((declared for declared in arguments if declared.name == argument), None)
        if prompt is None or declared_argument is None:
            return None
        return await suggest(prompt.complete, declared_argument.choices, argument, value, others)

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
            said = [["user", written]] if isinstance(written, str) else written
            if not isinstance(said, list) or not all(
                isinstance(message, list)
                and all(isinstance(part, str) for part in message)
                and (
                    len(message) == 2
                    or (len(message) == 3 and media.media_type_of(message[2].encode("utf-8", "replace")))
                )
                and message[0] in ROLES
                for message in said
            ):
                raise InvalidOutput(
                    "A prompt must be a string, or a list of pairs of a role and a string; base64 has its media type "
                    "as a third item."
                )
        except Problem as problem:
            code = types.INTERNAL_ERROR if problem.status >= 500 else types.INVALID_PARAMS
            raise MCPError(code, problem.detail, orjson.loads(exchange.render(problem))) from problem
        except Exception as error:
            logger.exception("prompt %s failed (request_id=%s)", prompt.id, exchange.request_id)
            words = "did not answer in time" if isinstance(error, TimeoutError) else "failed"
            raise MCPError(types.INTERNAL_ERROR, f"The prompt {prompt.id} {words}.") from error
        described = {"description": prompt.description} if prompt.description else {}
        messages = list[WireResult]()
        for role, data, *kind in said:
            place = f"{prompt.id}/{len(messages)}"
            block = content_block(data, kind[0].encode("ascii"), place) if kind else None
            messages.append({"role": role, "content": {"type": "text", "text": data} if block is None else block})
        return {**described, "messages": messages, "resultType": "complete"}
