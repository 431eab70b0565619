"""The option `confirm` of an action, and how long a person's confirmation is valid."""

import re
from contextlib import suppress
from dataclasses import dataclass
from string import Formatter
from typing import Annotated, TypeAlias, cast

from pydantic import PlainValidator

from awp_publish.model import Summary
from awp_publish.schema.handlers import accepts
from awp_publish.schema.options import Duration, check_text, strict


def read_confirm(value: object) -> bool | Summary | None:
    """Read whether a person confirms each call; a template or a function makes the question."""
    if value is None or isinstance(value, bool):
        return value
    if callable(value) and not isinstance(value, type) and any(accepts(value, count) for count in (1, 2)):
        return cast(Summary, value)
    if not isinstance(value, str):
        raise ValueError(
            'must be True, False, a text such as "Order {copies} of {title}", or a function of the input '
            "or of the input and the call"
        )
    check_text(value)
    try:
        parts = [(name, spec or "") for _, name, spec, _ in Formatter().parse(value) if name is not None]
    except ValueError as error:
        raise ValueError(f"{value!r} has a brace that does not close; write {{{{ for a brace itself") from error
    for name, spec in parts:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"{{{name}}} is not the name of an input")
        fits = not spec
        for sample in (1, 1.5, "text"):  # none fits a format with names of inputs, which would depend on their values
            with suppress(ValueError):
                fits = fits or bool(format(sample, spec))
        if not fits:
            raise ValueError(f"{{{name}:{spec}}} has a format that neither a number nor a text takes")
    return value


Confirm: TypeAlias = Annotated[bool | Summary | None, PlainValidator(read_confirm)]


@strict
@dataclass(frozen=True, slots=True)
class Confirmation:
    """A person agrees to each call with `confirm`. `within` is how long their confirmation is valid."""

    within: Duration = "10m"
