"""What progress bars and gauges show, in words: browsers draw their values, and show what is in them to nobody."""

import re
from collections.abc import Mapping
from typing import Final

MEASURES: Final = frozenset(("meter", "progress"))
_NUMBER: Final = re.compile(r"\s*(-?(?:\d{1,20}\.?\d{0,20}|\.\d{1,20}))\s*\Z", re.ASCII)


def measure_of(attributes: Mapping[str, str]) -> str:
    """Return the value and its limit (HTML, 4.10.13 and 4.10.14), "" if there is no value."""
    value, limit = (_NUMBER.match(attributes.get(name, "")) for name in ("value", "max"))
    return "" if value is None else f"{value[1]} of {limit[1] if limit else 1}"
