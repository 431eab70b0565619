"""Suggestions of values for the arguments of prompts and the placeholders of pages: `complete=`."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, Final

from awp_publish.calls.threads import run_in_thread
from awp_publish.model import Complete
from awp_publish.problems import DeclarationError, InvalidOutput
from awp_publish.schema.handlers import name_of
from awp_publish.schema.options import listing
from awp_publish.schema.reading import options, resolved


def read_complete(subject: str, declared: object, names: Sequence[str]) -> Complete:
    """Read `complete=`: a function, or a mapping from arguments to functions. Raises DeclarationError."""
    remedy = "Give a function that takes what is typed so far, or a mapping from argument names to such functions."
    if not names:
        raise DeclarationError(subject, "complete: there are no arguments to complete.", "Leave it out.")
    by_name = declared if isinstance(declared, Mapping) else dict.fromkeys(names, declared)
    arities = dict[str, int]()
    for name, function in by_name.items():
        if name not in names:
            raise DeclarationError(subject, f'complete: there is no argument "{name}".', f"There are {listing(names)}.")
        if not callable(function):
            raise DeclarationError(subject, f"complete: {function!r} is not a function.", remedy)
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise DeclarationError(subject, f"complete: {name_of(function)} cannot be read.", remedy) from error
        most = 2 if isinstance(declared, Mapping) else 3
        kinds = [parameter.kind for parameter in parameters]
        positional = sum(
            kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds
        )
        arities[name] = most if inspect.Parameter.VAR_POSITIONAL in kinds else positional
        if not 1 <= arities[name] <= most:
            raise DeclarationError(subject, f"complete: {name_of(function)} takes {positional} arguments.", remedy)

    async def complete(argument: str, value: str, others: Mapping[str, str]) -> Sequence[str] | None:
        suggest: Any = by_name.get(argument)
        if suggest is None:
            return None
        values = (
            (value, others) if isinstance(declared, Mapping) or arities[argument] == 1 else (argument, value, others)
        )
        taken: tuple[object, ...] = values[: arities[argument]]
        if inspect.iscoroutinefunction(suggest):
            answer = await suggest(*taken)
        else:
            answer = await run_in_thread(partial(suggest, *taken))
            if inspect.isawaitable(answer):
                answer = await answer
        if isinstance(answer, (str, bytes, Mapping)) or not isinstance(answer, Iterable):
            raise InvalidOutput("complete= must return a list of strings.")
        return [str(value.value if isinstance(value, Enum) else value) for value in islice(answer, MAX_SUGGESTIONS)]

    return complete


MAX_SUGGESTIONS: Final = 10_000
"""Suggestions that are counted at most."""


def choices_of(schema: object, root: Mapping[str, Any]) -> tuple[str, ...]:
    """Return all values that a schema allows, as texts, or nothing unless it lists them."""
    facts = resolved(schema, root)
    if facts.get("type") == "boolean":
        return ("true", "false")
    return tuple(str(value) for value in options(facts, root) if not isinstance(value, (dict, list)))
