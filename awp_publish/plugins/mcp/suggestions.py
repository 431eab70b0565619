"""Values that are suggested for an argument: those of the declared function, otherwise matching choices."""

from collections.abc import Mapping, Sequence

from awp_publish.model import Complete


def matching(choices: Sequence[str], value: str) -> list[str]:
    """Return the choices that begin with the typed text, then those that contain it, ignoring case."""
    typed = value.casefold()
    first = [choice for choice in choices if choice.casefold().startswith(typed)]
    return first + [
        choice for choice in choices if typed in choice.casefold() and not choice.casefold().startswith(typed)
    ]


async def suggest(
    complete: Complete | None, choices: Sequence[str], argument: str, value: str, others: Mapping[str, str]
) -> Sequence[str]:
    """Return suggestions: of the declared function, otherwise the matching choices."""
    suggested = await complete(argument, value, others) if complete is not None else None
    return matching(choices, value) if suggested is None else suggested
