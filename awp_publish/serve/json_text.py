"""JSON text from strangers, read without guessing.

JSON leaves duplicate names, huge numbers and lone surrogates to the reader, and readers differ (RFC 8259 sections 4,
6, 8). What two parsers could understand differently is refused, as I-JSON (RFC 7493) asks.
"""

import json
import math
from collections import Counter
from typing import Final

import orjson

from awp_publish.problems import NotJson

DEEPEST: Final = 200
"""Levels of nesting that are taken; RFC 8259 section 9 leaves the limit to us, and encoders give up soon after."""

_LARGEST: Final = 2**63


def parse_json(body: bytes) -> object:
    """The value of a JSON text. Raises NotJson that says what is wrong."""
    if body.count(b"{") + body.count(b"[") > DEEPEST:
        return _parse_strictly(body)
    try:
        value: object = orjson.loads(body)
        # What is written as it was read can be read in one way only. Names that were there twice are not written again.
        if orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER) == body:
            return value
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    return _parse_strictly(body)


def _parse_strictly(body: bytes) -> object:
    """The slow way, which looks at every name and number and has words for what is wrong."""
    try:
        value: object = _DECODER.decode(body.decode("utf-8"))
        if b"\\u" in body:
            orjson.dumps(value)  # refuses lone surrogates, which only an escape can bring in
    except NotJson:
        raise
    except UnicodeDecodeError as error:
        raise NotJson(f"The body is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}.") from error
    except json.JSONDecodeError as error:
        raise NotJson(f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from error
    except RecursionError as error:
        raise NotJson("The body is nested too deeply.") from error
    except TypeError as error:
        raise NotJson("The body holds a lone surrogate, or is nested too deeply.") from error
    if body.count(b"{") + body.count(b"[") > DEEPEST and _is_deeper(value, DEEPEST):
        raise NotJson(f"The body is nested too deeply: {DEEPEST} levels are taken.")
    return value


def _is_deeper(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        return False
    return levels == 0 or any(_is_deeper(member, levels - 1) for member in inner)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in times if times[name] > 1)
        raise NotJson(f'The body has the name "{_printable(twice)}" twice in one object.')
    return found


def _printable(text: str) -> str:
    return text[:100].encode("utf-8", "replace").decode()


def _whole_number(text: str) -> int:
    if len(text) > 20 or not -_LARGEST <= (number := int(text)) < _LARGEST:
        raise NotJson(f"The body holds the number {text[:30]}, which is beyond 64 bits.")
    return number


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotJson(f"The body holds the number {text[:30]}, which is beyond a double.")
    return number


def _no_constant(name: str) -> object:
    raise NotJson(f"The body holds {name}, which is not JSON.")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_whole_number, parse_float=_number, parse_constant=_no_constant
)
