"""Reading a document from bytes or text: is it JSON, in UTF-8, without surprises, and free of secrets?

What is wrong with the text is noticed by `read` on the way, and the table says what each remark means.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from jsonschema_rs import Draft202012Validator, FancyRegexOptions

from awp_publish.checks.engine import Check, Finding, Flaw, child, depth_exceeds, shown

DEEPEST = 200
RFC_8259 = "RFC 8259 (JSON)"


@dataclass(slots=True)
class Reading:
    """What reading gave: the document, unless it could not be read, and what was noticed on the way."""

    document: Mapping[str, object] | None = None
    findings: list[Finding] = field(default_factory=list)
    size: int = 0

    def note(self, check: str, pointer: str, message: str) -> None:
        """Keep a remark of the check with this id."""
        self.findings.append(BY_ID[check].finding(Flaw(pointer, message)))


@dataclass(slots=True)
class _Surprises:
    """Collects, while a text is parsed, what a parser usually keeps silent about."""

    repeated: list[tuple[dict[str, object], str]] = field(default_factory=list)
    not_numbers: list[str] = field(default_factory=list)

    def object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(pairs)
        if len(result) < len(pairs):
            names = [name for name, _ in pairs]
            self.repeated.extend((result, name) for name in result if names.count(name) > 1)
        return result

    def constant(self, name: str) -> float:
        self.not_numbers.append(name)
        return float(name.replace("Infinity", "inf"))


def read(data: bytes | str | Mapping[str, object]) -> Reading:
    """Read a document; whatever is wrong becomes a finding."""
    reading = Reading(size=_size(data))
    text = _decoded(data, reading) if isinstance(data, bytes) else data
    value = _parsed(text, reading) if isinstance(text, str) else text
    if reading.findings and value is None:
        return reading
    if not isinstance(value, Mapping):
        reading.note("json-object", "", f"The document is {shown(value)} and not an object.")
    elif depth_exceeds(value, DEEPEST):
        reading.note("json-depth", "", f"The document is nested more than {DEEPEST} deep.")
    else:
        reading.document = value if isinstance(value, dict) else dict(value)
    return reading


def _size(data: bytes | str | Mapping[str, object]) -> int:
    """Count the bytes of a text; an object that was never a text has none."""
    if isinstance(data, str):
        return len(data.encode("utf-8", "replace"))
    return len(data) if isinstance(data, bytes) else 0


def _decoded(data: bytes, reading: Reading) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        reading.note("json-utf8", "", f"Byte {error.start} (0x{data[error.start]:02x}) is not UTF-8: {error.reason}.")
        return None


def _parsed(text: str, reading: Reading) -> object:
    if text.startswith("\ufeff"):
        reading.note("json-bom", "", "The document begins with a byte order mark.")
        text = text[1:]
    surprises = _Surprises()
    try:
        value: object = json.loads(text, object_pairs_hook=surprises.object, parse_constant=surprises.constant)
    except RecursionError:
        reading.note("json-depth", "", "The document is nested too deeply to be read.")
        return None
    except ValueError as error:
        reading.note("json-syntax", "", f"The document is not JSON: {error}.")
        return None
    _note_surprises(value, surprises, reading)
    return value


def _note_surprises(value: object, surprises: _Surprises, reading: Reading) -> None:
    if not surprises.repeated and not surprises.not_numbers:
        return
    places = {id(inner): pointer for pointer, inner in everything(value)}
    for owner, name in surprises.repeated:
        pointer = child(places[id(owner)], name) if id(owner) in places else ""
        reading.note("json-duplicate-key", pointer, f"The member {shown(name)} is given more than once.")
    for pointer, inner in everything(value):
        if isinstance(inner, float) and not math.isfinite(inner):
            reading.note("json-number", pointer, "This is not a JSON number: NaN or Infinity.")


def everything(value: object) -> Iterator[tuple[str, object]]:
    """Yield every value in a value with its pointer, in document order and without recursion."""
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        pointer, inner = waiting.pop()
        yield pointer, inner
        if isinstance(inner, (dict, list, Mapping)):
            waiting.extend((child(pointer, token), item) for token, item in reversed(list(_tokens(inner))))


def _tokens(value: Mapping[str, object] | list[object]) -> Iterable[tuple[object, object]]:
    return value.items() if isinstance(value, Mapping) else enumerate(value)


SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"
    r"|\b(?:ghp|gho|ghs|ghu)_[A-Za-z0-9]{30,}|\bgithub_pat_\w{30,}|\bglpat-[\w-]{20,}"
    r"|\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|\bsk-(?:[a-z]+-)*[A-Za-z0-9_]{24,}"
    r"|\bA(?:KIA|SIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\b(?:Bearer|Basic) (?=[\w.~+/-]*\d)[\w.~+/-]{20,}"
    r"|\bhttps?://[^\s/@:{}]+:[^\s/@:{}]+@"
)
_SECRET_NAME = re.compile(
    r"(?:^|[_-])(?:password|passwd|secret|api_?key|access_?token|refresh_?token|private_?key|client_?secret)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])[\w.~+/=-]{16,}")


def secrets(document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find texts that look like keys, tokens or passwords; the text itself is not repeated."""
    for pointer, value in everything(document):
        if not isinstance(value, str) or len(value) < 8:
            continue
        if SECRETS.search(value):
            yield Flaw(pointer, "This text looks like a key or token.")
        elif _SECRET_VALUE.fullmatch(value) and _SECRET_NAME.search(pointer.rpartition("/")[2]):
            yield Flaw(pointer, "This member is named like a secret and holds something like one.")


CHECKS = (
    Check(
        "json-utf8",
        "error",
        f"{RFC_8259} section 8.1",
        "The document is encoded in UTF-8.",
        "Save and serve the document as UTF-8.",
    ),
    Check(
        "json-bom",
        "error",
        f"{RFC_8259} section 8.1",
        "The document does not begin with a byte order mark.",
        "Save the document without a byte order mark.",
    ),
    Check(
        "json-syntax",
        "error",
        f"{RFC_8259} section 2",
        "The document is JSON.",
        "Repair the syntax at the place named; comments and trailing commas are not JSON.",
    ),
    Check(
        "json-number",
        "error",
        f"{RFC_8259} section 6",
        "NaN and Infinity are not JSON.",
        "Write null or leave the member out.",
    ),
    Check(
        "json-depth",
        "error",
        f"{RFC_8259} section 9",
        f"Arrays and objects are nested at most {DEEPEST} deep; readers set such limits.",
        "Make the document flatter.",
    ),
    Check(
        "json-object",
        "error",
        "AWAS 1.0, AWP agent.json section 5, WoA draft-00 section 4",
        "The document is an object.",
        "Put the members into one object.",
    ),
    Check(
        "json-duplicate-key",
        "warning",
        f"{RFC_8259} section 4",
        "A name occurs once in an object; readers disagree about which of two values counts.",
        "Keep one of the members.",
    ),
    Check(
        "document-secret",
        "warning",
        "WoA draft-00 section 6; the documents of all specifications are public",
        "No key, token or password stands in the document.",
        "Remove it, and replace the key if it is a real one.",
        secrets,
    ),
    Check(
        "document-unknown",
        "warning",
        "awp_publish",
        "The document is recognised as one of those that can be checked.",
        "Say which it is: check_document(document, kind).",
    ),
)

BY_ID = {check.id: check for check in CHECKS}


LONGEST_PATTERN = 5000
BACKTRACK_LIMIT = 100_000
SPELLINGS = (("[^]", r"[\s\S]"), ("[]", "(?!)"), ("(?<", "(?P<"), ("(?P<=", "(?<="), ("(?P<!", "(?<!"))
_NAMED_BACK_REFERENCE = re.compile(r"\\k<(\w+)>")


@lru_cache(maxsize=2048)
def is_pattern(pattern: str) -> bool:
    """Say whether a text can be compiled as a regular expression."""
    return len(pattern) > LONGEST_PATTERN or _compiled(pattern) is not None or _python_compiles(pattern)


def matches(pattern: str, text: str) -> bool | None:
    """Say whether an expression occurs in a text; None where that cannot be told."""
    validator = _compiled(pattern) if len(pattern) <= LONGEST_PATTERN else None
    if validator is None:
        return None
    try:
        return validator.is_valid(text)
    except ValueError:
        return None


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> Draft202012Validator | None:
    try:
        options = FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
        return Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return None


def _python_compiles(pattern: str) -> bool:
    for theirs, ours in SPELLINGS:
        pattern = pattern.replace(theirs, ours)
    pattern = _NAMED_BACK_REFERENCE.sub(r"(?P=\1)", pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:[.,]\d+)?)?"
_ZONE = r"(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_TIMESTAMP = re.compile(rf"{_DATE}(?:[Tt ]{_TIME}{_ZONE}?)?", re.ASCII)


def is_timestamp(text: str) -> bool:
    """Say whether a text is a date, or a date and a time of day."""
    return _TIMESTAMP.fullmatch(text) is not None


READING_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
READING_WORDS = frozenset(("get", "list", "search", "find", "read", "view", "show", "check", "track", "fetch", "look"))
READING_WORDS |= {"lookup", "count", "preview", "query", "browse", "compare", "validate", "estimate", "calculate"}
READING_WORDS |= {"quote", "describe", "status", "history", "undo", "restore"}
GRAVE_WORDS = frozenset(
    ("delete", "remove", "cancel", "pay", "purchase", "order", "checkout", "buy", "destroy", "erase")
)
GRAVE_WORDS |= {"purge", "wipe", "refund", "transfer", "terminate", "unsubscribe", "drop"}
# In prose "order" and "drop" mean too much: there they count only as the first word ("Order the basket").
GRAVE_VERBS = re.compile(
    r"\A\W*(?:order|orders|place an order|buy|buys|transfer|transfers|terminate|terminates)\b"
    r"|\b(?:delete|deletes|remove|removes|cancel|cancels|pay for|pays for|purchases?|checkout|check out|erases?|"
    r"destroys?|permanently)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def grave_word(identifier: object, description: object, method: object) -> str | None:
    """Give the method or word that tells of consequences, or None for an action that only reads or seems harmless."""
    if isinstance(method, str) and method.upper() == "DELETE":
        return "DELETE"
    if isinstance(method, str) and method.upper() in READING_METHODS:
        return None
    words = [word.lower() for word in _WORD.findall(identifier)] if isinstance(identifier, str) else []
    if words and words[0] in READING_WORDS:
        return None
    found = next((word for word in words if word in GRAVE_WORDS), None)
    if found or not isinstance(description, str):
        return found
    match = GRAVE_VERBS.search(description[:300])
    return match[0].strip().lower() if match else None
