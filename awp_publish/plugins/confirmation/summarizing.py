"""What a person reads before they confirm a call: in the words of the site's own function, of its template, or in ours.

A function gets no secrets. In the text that it returns, invisible characters are made visible, but only the function
knows which parts are values of the caller.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException

from awp_publish.calls.call import Call
from awp_publish.calls.threads import run_in_thread
from awp_publish.model import Action, JsonObject
from awp_publish.plugins.confirmation.quoting import cut, visible
from awp_publish.plugins.confirmation.summaries import in_order, summarizer
from awp_publish.problems import HandlerFailed, Problem, raised
from awp_publish.schema.redaction import input_redactor

logger: Final = logging.getLogger("awp_publish.calls")

MAX_SUMMARY: Final = 2000
"""Characters of a summary by a function of the site."""


class Summaries:
    """Summarises the calls of one action. `codes` are the site's own problem codes, with their recovery."""

    def __init__(self, action: Action, codes: Mapping[str, str]) -> None:
        self._action = action
        self._codes = codes
        self._summarize = summarizer(action)
        self._redact = input_redactor(action.inputs)
        self._in_order = in_order(action.inputs)
        words = action.confirmation_summary
        self._takes_call = callable(words) and takes_call(words)

    async def of(self, call: Call) -> str:
        """Return what a call would do. Raises HandlerFailed if the site's own function fails or takes too long."""
        words, inputs = self._action.confirmation_summary, self._in_order(call.input)
        return await self._ask(words, inputs, call) if callable(words) else self._summarize(inputs)

    async def _ask(self, words: Callable[..., object], inputs: JsonObject, call: Call) -> str:
        """Ask the site's own function."""
        action = self._action
        if self._redact is not None:
            inputs = self._redact(inputs)
        make = partial(words, inputs, call) if self._takes_call else partial(words, inputs)

        def make_here() -> object:
            try:
                return make()
            except StopIteration as error:  # a future cannot hold it, so that the caller would wait forever
                raise RuntimeError("The summary raised StopIteration.") from error

        limit = asyncio.timeout(action.timeout)
        try:
            async with limit:
                made = make() if inspect.iscoroutinefunction(words) else await run_in_thread(make_here)
                summary = await made if inspect.isawaitable(made) else made
            if not isinstance(summary, str) or not summary.strip():
                raise TypeError(f"A summary must be a non-empty text, not {type(summary).__name__}.")
        except Problem:
            raise
        except HTTPException as error:
            raise raised(error, self._codes) from error
        except Exception as error:
            how = "took too long" if limit.expired() else "failed"
            where = (action.id, how, call.request_id)
            logger.exception("the summary of a confirmation of action %s %s (request_id=%s)", *where)
            raise HandlerFailed(f"The summary for the confirmation of action {action.id} {how}.") from error
        return cut(visible, summary, MAX_SUMMARY)


def takes_call(summary: Callable[..., object]) -> bool:
    """Return True if a summary function takes the input and the call, not the input alone."""
    try:
        parameters = inspect.signature(summary).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return (
        sum(parameter.kind in positional and parameter.default is inspect.Parameter.empty for parameter in parameters)
        > 1
    )
