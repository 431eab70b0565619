"""Strict JSON from untrusted sources.

JSON parsers differ on duplicate names, huge numbers and lone surrogates (RFC 8259 sections 4, 6, 8). A text that two
parsers could understand differently is refused, as in I-JSON (RFC 7493).
"""

import json
import math
import re
from codecs import BOM_UTF8
from collections import Counter
from typing import Final

import orjson

from awp_publish.problems import NotJson
from awp_publish.schema.reading import depth_exceeds

MAX_DEPTH: Final = 200
"""The maximum nesting depth. RFC 8259 section 9 leaves it to the parser; encoders fail at little more."""

_INT64_LIMIT: Final = 2**63

_WHITE_SPACE: Final = b" \t\r\n"


def parse_json(body: bytes) -> object:
    """Return the value of a JSON text. Raises NotJson."""
    # A text of depth N has at least 2 * N brackets, so a short text cannot be too deep.
    if len(body) > 2 * MAX_DEPTH and body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        return _parse_strictly(body)
    try:
        value: object = orjson.loads(body)
        # A text that a round trip reproduces is unambiguous: the second of two equal names would be missing. Comparing
        # without white space, even that inside strings, still shows any missing member.
        written = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
        if written == body or written.translate(None, _WHITE_SPACE) == body.translate(None, _WHITE_SPACE):
            return value
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    return _parse_strictly(body)


def _parse_strictly(body: bytes) -> object:
    """Parse with Python's own decoder, which checks every name and number. Raises NotJson with the cause."""
    if body.startswith(BOM_UTF8):
        raise NotJson("The body begins with a byte order mark, which is not JSON: send it without.")
    try:
        value: object = _DECODER.decode(body.decode("utf-8"))
        if b"\\u" in body:
            orjson.dumps(value)  # raises for lone surrogates, which can only come from an escape
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
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and depth_exceeds(value, MAX_DEPTH):
        raise NotJson(f"The body is nested too deeply: {MAX_DEPTH} levels are accepted.")
    return value


def is_rpc_id(value: object) -> bool:
    """Return True for the id of a JSON-RPC request: a string or an integer (JSON-RPC 2.0, section 4)."""
    return type(value) in (str, int)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in times if times[name] > 1)
        shown = twice[:100].encode("utf-8", "replace").decode()
        raise NotJson(f'The body has the name "{shown}" twice in one object.')
    return members


def _whole_number(text: str) -> int:
    if len(text) > 20 or not -_INT64_LIMIT <= (number := int(text)) < _INT64_LIMIT:
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

_UTF8_PARAMETERS: Final = re.compile(
    rb"""(\s*+;\s*+(charset\s*=\s*"?utf-?8"?|(?!charset)[^\s;=",]++\s*=\s*([^\s;=",]++|"[^"]*+"))?+)*+\s*+""",
    re.IGNORECASE,
)
"""Parameters of a media type, of which only the charset matters (RFC 2046, section 1); one may be empty (RFC 9110,
section 5.6.6).
"""


def is_json(content_type: bytes, *further: bytes) -> bool:
    """Return True for application/json, or another of these types, with no charset but UTF-8 (RFC 8259 section 8.1)."""
    if content_type == b"application/json":
        return True
    media_type, semicolon, parameters = content_type.partition(b";")
    return (
        media_type.strip().lower() in (b"application/json", *further)
        and _UTF8_PARAMETERS.fullmatch(semicolon + parameters) is not None
    )


def json_kind(value: object) -> str:
    """Return the name of a JSON value's type, with an article."""
    return KIND_NAMES.get(type(value), "a number")


KIND_NAMES: Final = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
