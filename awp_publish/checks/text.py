"""Texts: parsing documents, secrets in them, and timestamps.

`read` reports faults in the text of a document while parsing it; the rows explain these findings.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson

from awp_publish.checks.engine import ERROR, WARNING, Check, Finding, JsonObject, Specification, finding, shown
from awp_publish.schema.pointers import child
from awp_publish.schema.reading import depth_exceeds

MAX_DEPTH: Final = 200

ANY_DOCUMENT: Final = Specification("any", "RFC 8259 (JSON)")
row = ANY_DOCUMENT.row

NOT_UTF8: Final = row(
    "json-utf8", ERROR, "8.1", "The document is encoded in UTF-8.", hint="Save and serve the document as UTF-8."
)
BYTE_ORDER_MARK: Final = row(
    "json-bom",
    ERROR,
    "8.1",
    "The document does not begin with a byte order mark.",
    hint="Save the document without a byte order mark.",
)
NOT_JSON: Final = row(
    "json-syntax",
    ERROR,
    "2",
    "The document is JSON.",
    hint="Correct the syntax at the place named; comments and trailing commas are not JSON.",
)
NOT_A_NUMBER: Final = row(
    "json-number", ERROR, "6", "NaN and Infinity are not JSON.", hint="Write null or leave the member out."
)
TOO_DEEP: Final = row(
    "json-depth",
    ERROR,
    "9",
    f"Arrays and objects are nested at most {MAX_DEPTH} deep; readers set such limits.",
    hint="Make the document flatter.",
)
NOT_AN_OBJECT: Final = row(
    "json-object",
    ERROR,
    "AWAS 1.0, AWP agent.json section 5, WoA draft-00 section 4",
    "The document is an object.",
    hint="Put the members into one object.",
)
REPEATED_MEMBER: Final = row(
    "json-duplicate-key",
    WARNING,
    "4",
    "A name occurs once in an object; readers disagree about which of two values counts.",
    hint="Keep one of the members.",
)


@dataclass(slots=True)
class ParsedDocument:
    """A parsed document (None if that failed), the findings, and the size of the text in bytes."""

    document: dict[str, object] | None = None
    findings: list[Finding] = field(default_factory=list)
    size: int = 0

    def note(self, check: Check, pointer: str, message: str) -> None:
        self.findings.append(check.complete(finding(pointer, message)))


def read(data: bytes | str | Mapping[str, object]) -> ParsedDocument:
    """Parse a document; whatever is wrong becomes a finding."""
    reading = ParsedDocument()
    try:
        value = _parse(data, reading) if isinstance(data, bytes | str) else _plain(data)
    except RecursionError:
        reading.note(TOO_DEEP, "", "The document is nested too deeply to be read.")
        return reading
    if reading.findings and value is None:
        return reading
    if not isinstance(value, dict):
        reading.note(NOT_AN_OBJECT, "", f"The document is {shown(value)} and not an object.")
    elif depth_exceeds(value, MAX_DEPTH):
        reading.note(TOO_DEEP, "", f"The document is nested more than {MAX_DEPTH} deep.")
    else:
        reading.document = value
    return reading


def _parse(data: bytes | str, reading: ParsedDocument) -> object:
    encoded = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    reading.size = len(encoded)
    try:
        value: object = orjson.loads(encoded)
        if orjson.dumps(value) == encoded:  # A text that round-trips byte for byte has none of these faults.
            return value
    except (orjson.JSONDecodeError, TypeError):
        pass
    if isinstance(data, bytes):
        try:
            data = data.decode("utf-8")
        except UnicodeDecodeError as error:
            at = error.start
            reading.note(NOT_UTF8, "", f"Byte {at} (0x{data[at]:02x}) is not UTF-8: {error.reason}.")
            return None
    if data.startswith("\ufeff"):
        reading.note(BYTE_ORDER_MARK, "", "The document begins with a byte order mark.")
        data = data[1:]
    repeated: list[tuple[dict[str, object], str]] = []
    constants: list[str] = []

    def pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(pairs)
        if len(result) < len(pairs):
            counted = Counter(name for name, _ in pairs)
            repeated.extend((result, name) for name, count in counted.items() if count > 1)
        return result

    def constant(name: str) -> float:
        constants.append(name)
        return float(name.replace("Infinity", "inf"))

    try:
        value = json.loads(data, object_pairs_hook=pairs, parse_constant=constant)
    except ValueError as error:
        reading.note(NOT_JSON, "", f"The document is not JSON: {error}.")
        return None
    if repeated:
        places = {id(inner): pointer for pointer, inner in everything(value) if isinstance(inner, dict)}
        for owner, name in repeated:
            # The object itself may be the lost value of a repeated member.
            pointer = child(places[id(owner)], name) if id(owner) in places else ""
            reading.note(REPEATED_MEMBER, pointer, f"The member {shown(name)} is given more than once.")
    for pointer, inner in everything(value) if constants else ():
        if isinstance(inner, float) and not math.isfinite(inner):
            reading.note(NOT_A_NUMBER, pointer, "This is not a JSON number: NaN or Infinity.")
    return value


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def everything(value: object) -> Iterator[tuple[str, object]]:
    """Yield every value within a value with its pointer, in document order. Does not recurse."""
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        pointer, inner = waiting.pop()
        yield pointer, inner
        if isinstance(inner, dict):
            waiting += [(child(pointer, name), item) for name, item in reversed(inner.items())]
        elif isinstance(inner, list):
            waiting += [(f"{pointer}/{i}", inner[i]) for i in range(len(inner) - 1, -1, -1)]


_SECRET: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"
    r"|\b(?:ghp|gho|ghs|ghu)_[A-Za-z0-9]{30,}|\bgithub_pat_\w{30,}|\bglpat-[\w-]{20,}"
    r"|\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|\bsk-(?:[a-z]+-)*[A-Za-z0-9_]{24,}"
    r"|\bA(?:KIA|SIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\b(?:Bearer|Basic) (?=[\w.~+/-]*\d)[\w.~+/-]{20,}"
    r"|\bhttps?://[^\s/@:{}]+:[^\s/@:{}]+@"
)
_MARKS: Final = (
    *("PRIVATE KEY-----", "eyJ", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "k_live_", "k_test_", "sk-"),
    *("AKIA", "ASIA", "AIza", "xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "Bearer ", "Basic ", "@"),
)
"""Every match of the expression contains one of these, which are found in a tenth of its time."""
_SHORTEST: Final = len("http://a:b@")
_SECRET_NAME: Final = re.compile(
    r"(?:^|[_-])(?:password|passwd|secret|api_?key|access_?token|refresh_?token|private_?key|client_?secret)$",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])[\w.~+/=-]{16,}")


@ANY_DOCUMENT.check(
    "document-secret",
    WARNING,
    "WoA draft-00 section 6; the documents of all specifications are public",
    hint="Remove it, and replace the key if it is a real one.",
)
def secrets(document: JsonObject) -> Iterator[Finding]:
    """No key, token or password stands in the document."""
    # Most documents contain no secret. So first all distinct names and texts are collected, without their places, by a
    # recursive function, which is three times as fast as a loop with a stack.
    names: set[str] = set()
    texts: set[str] = set()

    def collect(values: Iterable[object], depth: int) -> None:
        for value in values:
            if type(value) is str:
                if len(value) >= _SHORTEST:
                    texts.add(value)
            elif type(value) is dict and depth:
                names.update(value)
                collect(value.values(), depth - 1)
            elif type(value) is list and depth:
                collect(value, depth - 1)

    collect([document], MAX_DEPTH)
    together = "\n".join(texts)
    is_suspect = any(mark in together for mark in _MARKS)
    if not (is_suspect and any(map(_SECRET.search, texts))) and not any(map(_SECRET_NAME.search, names)):
        return
    for pointer, text in everything(document):
        if not isinstance(text, str):
            continue
        if _SECRET.search(text):
            yield finding(pointer, "This text looks like a key or token.")
        elif _SECRET_VALUE.fullmatch(text) and _SECRET_NAME.search(pointer.rpartition("/")[2]):
            yield finding(pointer, "The name says that this is a secret, and the text looks like one.")


UNKNOWN: Final = row(
    "document-unknown",
    WARNING,
    "awp_publish",
    "The document is recognised as one of those that can be checked.",
    hint="Say which it is: check_document(document, kind).",
)


def judge(reading: ParsedDocument, kind: Specification) -> list[Finding]:
    """Return the findings about the text of a document, and about its members as those of its kind."""
    findings = list(reading.findings)
    if reading.document is not None:
        findings += ANY_DOCUMENT.judge(reading.document)
        findings += kind.judge(reading.document)
    return findings


_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:[.,]\d+)?)?"
_ZONE = r"(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_TIMESTAMP: Final = re.compile(rf"{_DATE}(?:[Tt ]{_TIME}{_ZONE}?)?", re.ASCII)


def is_timestamp(text: str) -> bool:
    """Return True for a date, or a date and time of day, in the notation of ISO 8601 and RFC 3339."""
    return _TIMESTAMP.fullmatch(text) is not None
