"""Checking a value, and saying in the words of a site owner what is wrong with it."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from awp_publish.problems import DeclarationError

T = TypeVar("T")

_NO_SUCH_OPTION: Final = "there is no such option"
_WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": _NO_SUCH_OPTION,
    "unexpected_keyword_argument": _NO_SUCH_OPTION,
    "string_type": "must be text",
    "bool_type": "must be True or False",
    "bool_parsing": "must be True or False",
    "tuple_type": "must be a list",
    "sequence_str": "must be a list, not one text",
    "mapping_type": "must be a dictionary",
    "dict_type": "must be a dictionary",
    "is_instance_of": "must be a list",  # of our annotations only Sequence is checked by pydantic in this way
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "string_pattern_mismatch": 'must look like "1.0"',  # only a site's version has a pattern of pydantic's
}
"""pydantic's kinds of error in our words; its own words for every other."""


def check(subject: str, adapter: TypeAdapter[T], value: object, field: str = "", known: Iterable[str] = ()) -> T:
    """Check a value against an adapter. Raises DeclarationError that names the subject and the field.

    `known` are the options there are, among which a misspelt one may be found.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise DeclarationError(subject, _in_words(error, field, known)) from error


def _in_words(error: ValidationError, field: str, known: Iterable[str]) -> str:
    wrong = error.errors(include_url=False)
    first = wrong[0]
    where = ".".join(str(part) for part in (field, *first["loc"]) if part not in ("", "[key]"))
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    said = _said(first) + _meant(first, known)
    end = "" if said.endswith("?") and not more else "."
    return f"{where}: {said}{more}{end}" if where else f"{said}{more}{end}"


def _said(error: ErrorDetails) -> str:
    if error["type"] == "dataclass_type":
        return f"must be {error['ctx']['class_name']}(...) or a dictionary of its fields"
    if error["type"] == "literal_error":
        return f"must be {error['ctx']['expected']}, not {error['input']!r}"
    return _WORDS.get(error["type"], error["msg"].removeprefix("Value error, ").replace("Input should", "must"))


def _meant(error: ErrorDetails, known: Iterable[str]) -> str:
    if error["type"] != "extra_forbidden":
        return ""
    close = get_close_matches(str(error["loc"][-1]), known, n=1)
    return f'; did you mean "{close[0]}"?' if close else ""
