"""MessagePack of the AWP door (extra "awp"): what JSON can say, no more, so that one message means one thing."""

import math
from collections.abc import Callable, Iterable, Sequence

import msgpack
import orjson

from awp_publish.problems import NotJson
from awp_publish.serve.json_text import parse_json


def read_msgpack(packed: bytes) -> object:
    """The value of a MessagePack message. Raises NotJson for what JSON could not say, or could say in two ways."""
    try:
        value = msgpack.unpackb(packed, object_pairs_hook=_read_pairs, list_hook=_read_list, ext_hook=_refuse_extension)
        return parse_json(orjson.dumps(_read_list([value])[0]))
    except NotJson:
        raise
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError, MemoryError) as error:
        raise NotJson(f"The body is not usable MessagePack: {str(error)[:200] or type(error).__name__}.") from error


def write_msgpack(value: object, default: Callable[[object], object]) -> bytes:
    """A message. Raises TypeError, ValueError or OverflowError for what MessagePack cannot say."""
    packed: bytes = msgpack.packb(value, default=default, unicode_errors="replace")
    return packed


def _read_pairs(pairs: Sequence[tuple[object, object]]) -> dict[object, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJson("The body has the same name twice in one object.")
    _check_numbers(found.values())
    return found


def _read_list(items: list[object]) -> list[object]:
    _check_numbers(items)
    return items


def _check_numbers(values: Iterable[object]) -> None:
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise NotJson("The body holds a number that is not finite.")


def _refuse_extension(code: int, _: bytes) -> object:
    raise NotJson(f"The body holds extension type {code}, which JSON does not have.")
