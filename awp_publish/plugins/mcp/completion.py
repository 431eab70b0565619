"""Completion of arguments (specification, Server/Utilities/Completion)."""

import asyncio
from collections.abc import Sequence
from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from awp_publish.plugins.mcp.exchange import RequestContext, WireResult, exchange_of
from awp_publish.plugins.mcp.prompts import PromptHandlers, logger
from awp_publish.plugins.mcp.resources import Resources

MAX_VALUES: Final = 100
"""Values in one answer at most."""


class CompletionHandler:
    """Answers `completion/complete`. `timeout` is in seconds."""

    def __init__(self, prompts: PromptHandlers, resources: Resources, timeout: float) -> None:
        self._prompts = prompts
        self._resources = resources
        self._timeout = timeout

    async def complete(self, context: RequestContext, params: types.CompleteRequestParams) -> WireResult:
        """Suggest values for an argument. Raises MCPError."""
        argument, others = params.argument, (params.context.arguments if params.context is not None else None) or {}
        ref = params.ref
        ref_name = ref.name if isinstance(ref, types.PromptReference) else ref.uri
        values: Sequence[str] | None = None
        try:
            async with asyncio.timeout(self._timeout):
                if isinstance(ref, types.PromptReference):
                    completer = await self._prompts.completion_of(context, ref_name, argument.name)
                else:
                    completer = self._resources.completion_of(ref_name, argument.name)
                if completer is not None:
                    complete, choices = completer
                    values = await complete(argument.name, argument.value, others) if complete is not None else None
                    values = _matching(choices, argument.value) if values is None else values
        except MCPError:
            raise
        except Exception as error:
            request_id = exchange_of(context).request_id
            logger.exception("complete= of %s failed (request_id=%s)", argument.name, request_id)
            words = "did not answer in time" if isinstance(error, TimeoutError) else "failed"
            raise MCPError(types.INTERNAL_ERROR, f"The completion of {argument.name[:100]} {words}.") from error
        if values is None:
            detail = f'This site has no prompt or template "{ref_name[:200]}" with an argument "{argument.name[:100]}".'
            raise MCPError(types.INVALID_PARAMS, detail)
        completion = {"values": list(values[:MAX_VALUES]), "total": len(values), "hasMore": len(values) > MAX_VALUES}
        return {"completion": completion, "resultType": "complete"}


def _matching(choices: Sequence[str], value: str) -> list[str]:
    """Return the choices that begin with the typed text, then those that contain it, ignoring case."""
    typed = value.casefold()
    matching = [choice for choice in choices if typed in choice.casefold()]
    return sorted(matching, key=lambda choice: not choice.casefold().startswith(typed))
