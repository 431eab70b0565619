"""Regular expressions from strangers, by an engine that cannot be made slow.

jsonschema-rs brings one that runs in linear time (Rust's `regex`, the engine of the reference implementation too). It
has no lookaround and no back references: a pattern with those is not compiled. Python's `re` could hang for hours.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

import jsonschema_rs

_OPTIONS: Final = jsonschema_rs.RegexOptions(size_limit=1_000_000)

Matches: TypeAlias = Callable[[str], bool]


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Matches | None:
    """Whether a text has a match anywhere in it, as a function; None for what is not such a pattern."""
    try:
        validator = jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=_OPTIONS)
    except ValueError:  # not a pattern, too large, or not even text
        return None
    return validator.is_valid
