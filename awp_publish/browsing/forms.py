"""The entry list of a form (HTML 4.10.21.4, "constructing the entry list"): what a form would send, in tree order."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import quote_plus

import jsonschema_rs

from awp_publish.browsing.addresses import Address, is_absolute_url
from awp_publish.browsing.markup import Control, Markup, Place, kind_of
from awp_publish.browsing.state import (
    SCALED,
    Overlay,
    bounds_of,
    display_size,
    is_checked,
    number_of,
    options_of,
    selected_options,
    step_of,
    value_of,
)

BUTTONS: Final = frozenset({"submit", "image", "reset", "button"})
NEVER_SENT: Final = frozenset({"object", "output", "fieldset"})
_WITH_DIRECTION: Final = frozenset(
    {"hidden", "text", "search", "tel", "url", "email", "password", "submit", "textarea"}
)
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL"})
_STRONG: Final = _RIGHT_TO_LEFT | {"L"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One name and its value. `is_file`: a file input; nothing can be chosen, so it is empty and nameless."""

    name: str
    value: str
    is_file: bool = False


def construct_entries(
    form: Place, submitter: Control | None, overlay: Overlay, markup: Markup, charset: str
) -> list[Entry]:
    """What the form sends when `submitter` (None: nobody's button) submits it, in this encoding."""
    entries: list[Entry] = []
    for control in markup.controls_of(form):
        if not _takes_part(control, submitter, overlay, markup):
            continue
        entries.extend(_entries_of(control, overlay, charset))
    return entries


def _takes_part(control: Control, submitter: Control | None, overlay: Overlay, markup: Markup) -> bool:
    kind = kind_of(control.node)
    if kind in NEVER_SENT or control.disabled or control.in_datalist:
        return False
    if kind in BUTTONS:
        return submitter is not None and control.place == submitter.place
    return kind not in ("checkbox", "radio") or is_checked(control, overlay, markup)


def _entries_of(control: Control, overlay: Overlay, charset: str) -> Iterator[Entry]:
    node, kind, name = control.node, kind_of(control.node), control.name
    if kind == "image":
        prefix = f"{name}." if name else ""
        yield from (Entry(prefix + axis, "0") for axis in ("x", "y"))
    elif not name:
        return
    elif kind == "select":
        yield from (Entry(name, option.value) for option in selected_options(control, overlay) if not option.disabled)
    elif kind in ("checkbox", "radio"):
        yield Entry(name, node.attributes.get("value", "on"))
    elif kind == "file":
        yield Entry(name, "", is_file=True)
    elif kind == "hidden" and name.lower() == "_charset_":
        yield Entry(name, charset)
    else:
        yield Entry(name, _plain_value(control, kind, overlay))
        yield from _direction_entry(control, kind, overlay)


def _plain_value(control: Control, kind: str, overlay: Overlay) -> str:
    return control.node.attributes.get("value", "") if kind in BUTTONS else value_of(control, overlay)


def _direction_entry(control: Control, kind: str, overlay: Overlay) -> Iterator[Entry]:
    dirname = control.node.attributes.get("dirname", "")
    if dirname and kind in _WITH_DIRECTION and control.node.tag != "button":
        yield Entry(dirname, direction_of(control, kind, overlay))


def direction_of(control: Control, kind: str, overlay: Overlay) -> str:
    """Whether a control's text runs `ltr` or `rtl` (HTML 3.2.6.4): by the nearest `dir` that says so."""
    node = control.node
    while node is not None:
        said = node.attributes.get("dir", "").lower()
        if said in ("ltr", "rtl"):
            return said
        if said == "auto" and node is control.node:
            return _direction_of_text(value_of(control, overlay))
        if kind == "tel" and node is control.node:
            return "ltr"
        if node.parent is None:
            break
        node = node.parent
    return "ltr"


def _direction_of_text(text: str) -> str:
    strong = next((unicodedata.bidirectional(c) for c in text if unicodedata.bidirectional(c) in _STRONG), "L")
    return "rtl" if strong in _RIGHT_TO_LEFT else "ltr"


# --- The three encodings of a form's entry list (HTML 4.10.21.7 and 4.10.21.8, URL 5.2) ---

URLENCODED: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
PLAIN: Final = "text/plain"
ENCTYPES: Final = (URLENCODED, MULTIPART, PLAIN)

_BREAKS: Final = re.compile(r"\r\n|\r|\n")
_IN_NAMES: Final = str.maketrans({"\n": "%0A", "\r": "%0D", '"': "%22"})
# What labels of encodings mean in HTML (Encoding, section 4.2) where Python thinks otherwise.
_LABELS: Final = dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii"), "windows-1252")
_LEGACY: Final = re.compile(
    r"windows-125[0-8]|iso-8859-(?:[2-9]|1[013-6])|koi8-[ru]|gbk|gb18030|big5|euc-jp|euc-kr|shift_jis"
    r"|iso-2022-jp|ibm866|macintosh"
)


def pick_charset(*labels: str | None) -> str:
    """The first label that is a known encoding; UTF-8 for none, and instead of UTF-16, which forms never send."""
    for label in labels:
        name = (label or "").strip().lower()
        name = _LABELS.get(name, name)
        if _LEGACY.fullmatch(name):
            return name
        if name.startswith(("utf-", "utf8")):
            break
    return "UTF-8"


def encode_urlencoded(entries: Sequence[Entry], charset: str) -> str:
    """`name=value&...`, of a query or of a body."""
    return "&".join(f"{_quote(entry.name, charset)}={_quote(entry.value, charset)}" for entry in entries)


def encode_multipart(entries: Sequence[Entry], charset: str) -> tuple[str, bytes]:
    """The media type with its boundary, and the body (RFC 7578)."""
    parts = [_part(entry, charset) for entry in entries]
    boundary = _boundary(parts)
    marked = b"".join(b"--%b\r\n%b\r\n" % (boundary, part) for part in parts)
    return f"{MULTIPART}; boundary={boundary.decode()}", marked + b"--%b--\r\n" % boundary


def encode_plain(entries: Sequence[Entry], charset: str) -> bytes:
    """Lines of `name=value`, for people rather than for programs (4.10.21.8)."""
    return b"".join(_encode(f"{_crlf(entry.name)}={_crlf(entry.value)}", charset) + b"\r\n" for entry in entries)


def _quote(text: str, charset: str) -> str:
    return quote_plus(_encode(_crlf(text), charset), safe="*").replace("~", "%7E")


def _part(entry: Entry, charset: str) -> bytes:
    name = _encode(_crlf(entry.name).translate(_IN_NAMES), charset)
    head = b'Content-Disposition: form-data; name="%b"' % name
    if entry.is_file:
        return head + b'; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n'
    return head + b"\r\n\r\n" + _encode(_crlf(entry.value), charset)


def _boundary(parts: Sequence[bytes]) -> bytes:
    """A line that no part has in it, made of the parts, so that the same form has the same bytes."""
    joined = b"".join(parts)
    digest = hashlib.sha256(joined).hexdigest()
    while (boundary := f"----form{digest[:32]}".encode()) in joined:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return boundary


def _crlf(text: str) -> str:
    return _BREAKS.sub("\r\n", text)


def _encode(text: str, charset: str) -> bytes:
    """Characters that the encoding lacks become `&#8364;` (Encoding, the error mode "html")."""
    return text.encode(charset, "xmlcharrefreplace")


# --- What a form asks for when it is submitted (HTML 4.10.21.3, "form submission algorithm") ---

METHODS: Final = ("get", "post", "dialog")


@dataclass(frozen=True, slots=True)
class Submission:
    """A form ready to be sent: `action` as it is written ("" is the page itself), its method, type and entries."""

    action: str
    method: str
    enctype: str
    charset: str
    entries: list[Entry] = field(repr=False)

    def address(self, action: Address) -> Address:
        """The address that is asked for: a GET form replaces the query of its action, the fragment stays."""
        if self.method != "get":
            return action
        return action.with_query(encode_urlencoded(self.entries, self.charset))

    def body(self) -> tuple[str, bytes]:
        """The media type and the body of a POST form."""
        if self.enctype == MULTIPART:
            return encode_multipart(self.entries, self.charset)
        if self.enctype == PLAIN:
            return PLAIN, encode_plain(self.entries, self.charset)
        return URLENCODED, encode_urlencoded(self.entries, self.charset).encode("ascii")


def prepare_submission(
    form: Place, submitter: Control | None, overlay: Overlay, markup: Markup, charset: str | None
) -> Submission:
    """What submitting a form sends. `charset` is the page's encoding where its answer said one.

    The button that submits may say another address, method and type than its form (`formaction` and so on).
    """
    node = markup.forms[form]
    said = node.attributes
    over = submitter.node.attributes if submitter is not None else {}
    labels: list[str | None] = [*said.get("accept-charset", "").replace(",", " ").split()]
    encoding = pick_charset(*(labels or [charset or markup.charset]))
    return Submission(
        action=over.get("formaction", said.get("action", "")).strip("\t\n\f\r "),
        method=_keyword(over.get("formmethod", said.get("method")), METHODS),
        enctype=_keyword(over.get("formenctype", said.get("enctype")), ENCTYPES),
        charset=encoding,
        entries=construct_entries(form, submitter, overlay, markup, encoding),
    )


def _keyword(said: str | None, known: tuple[str, ...]) -> str:
    """An enumerated attribute: what is not known is as good as the first one."""
    return said.lower() if said is not None and said.lower() in known else known[0]


def is_submit_button(control: Control) -> bool:
    """Whether activating a control submits its form (4.10.18.5)."""
    return kind_of(control.node) in ("submit", "image")


def default_button(form: Place, markup: Markup) -> Control | None:
    """The first submit button of a form: what Enter in a field presses (4.10.21.2)."""
    return next((control for control in markup.controls_of(form) if is_submit_button(control)), None)


# --- Regular expressions from strangers, by an engine that cannot be made slow ---
# jsonschema-rs brings one that runs in linear time (Rust's `regex`, the engine of the reference implementation too).
# It has no lookaround and no back references: a pattern with those is not compiled. Python's `re` could hang for
# hours.

_OPTIONS: Final = jsonschema_rs.RegexOptions(size_limit=1_000_000)
_LONGEST: Final = 1_000
_ESCAPE: Final = re.compile(r"\\(?:([dDwWsS]|[pP]\{[^}]*\})|u\{[^}]*\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_SET: Final = "\x01"
"""Stands for an escape that means many characters, such as `\\d`."""
_ANYWHERE, _IN_CLASS_ONLY, _NEVER = "\x02", "\x03", "\x04"
_KNOWN: Final = frozenset("^$\\.*+?()[]{}|/bBnrtvf0123456789ckxu")
_RESERVED: Final = frozenset("-&!#%,:;<=>@`~")
"""What may be escaped (ECMAScript, SyntaxCharacter), and what inside of a class only (ClassSetReservedPunctuator)."""
_FLAGS: Final = re.compile(r"\(\?[a-zA-Z-]+\)")
_DOUBLE: Final = r"(?!&&|!!|##|\$\$|%%|\*\*|\+\+|,,|\.\.|::|;;|<<|==|>>|\?\?|@@|\^\^|``|~~)"
_CHARACTER: Final = _DOUBLE + r"[^\[\](){}/|\-\x01\x04]"
_CLASS: Final = re.compile(rf"\[\^?(?:{_CHARACTER}-{_CHARACTER}|{_CHARACTER}|{_SET})*\]")
_PART: Final = re.compile(r"\\.|[\[\]]", re.DOTALL)
_WORD: Final = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
_IN_CLASS: Final = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": _WORD}
_OUTSIDE: Final = {**_IN_CLASS, r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"}

Matches: TypeAlias = Callable[[str], bool]


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Matches | None:
    """Whether a text has a match anywhere in it, as a function; None for what is not such a pattern.

    As in Rust and Python, `\\d` and `\\w` are digits and letters of any script.
    """
    return _compile(_widen(pattern))


@lru_cache(maxsize=256)
def compile_constraint(pattern: str) -> Matches | None:
    """Whether a text is matched as a whole by the `pattern` of an input (HTML 4.10.5.3.6); None where there is none.

    Browsers read it with the flag `v`, under which many a pattern that was good before is none. Classes inside of
    classes, which that flag brought, are not judged.
    """
    if len(pattern) > _LONGEST or not _is_read_by_browsers(pattern) or _compile(pattern) is None:
        return None
    return _compile(f"^(?:{pattern})$")


def _compile(pattern: str) -> Matches | None:
    try:
        validator = jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=_OPTIONS)
    except ValueError:  # not a pattern, too large, or not even text
        return None
    return validator.is_valid


def _widen(pattern: str) -> str:
    parts: list[str] = []
    end = depth = 0
    for match in _PART.finditer(pattern):
        part = match[0]
        parts += pattern[end : match.start()], (_IN_CLASS if depth else _OUTSIDE).get(part, part)
        depth = max(0, depth + (part == "[") - (part == "]"))
        end = match.end()
    return "".join(parts) + pattern[end:]


def _is_read_by_browsers(pattern: str) -> bool:
    """ECMAScript, flag `v`: `[\\w-]` and `[(]` need a backslash, `\\_` must have none, and `(?i)` is nothing."""
    rest = _CLASS.sub("", _ESCAPE.sub(_stand_in, pattern))
    return not {"[", "]", _IN_CLASS_ONLY, _NEVER} & set(rest) and _FLAGS.search(rest) is None


def _stand_in(escape: re.Match[str]) -> str:
    """One character for an escape: of many characters, good anywhere, good in a class, good nowhere."""
    if escape[1]:
        return _SET
    known = escape[0][1]
    return _ANYWHERE if known in _KNOWN else _IN_CLASS_ONLY if known in _RESERVED else _NEVER


# --- Constraint validation (HTML 4.10.20): why a browser would show a message instead of sending a form ---
# Patterns are judged by an engine without backtracking, so neither a page nor an agent can make them slow; one that
# needs backtracking counts as satisfied, as a broken one does in a browser. The server judges for itself anyway.

_EMAIL: Final = re.compile(
    r"[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,1000}"
    r"@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
_ONE_LINE: Final = frozenset({"text", "search", "tel", "url", "email", "password"})
_WITH_LENGTH: Final = _ONE_LINE | {"textarea"}
_REQUIRABLE: Final = _WITH_LENGTH | SCALED - {"range"}
_NEVER_READONLY: Final = frozenset({"checkbox", "radio", "file", "color", "range", "select"})

Check: TypeAlias = Callable[[Control, str, Mapping[str, str], str, Overlay, Markup], str | None]


def find_faults(form: Place, overlay: Overlay, markup: Markup) -> Iterator[tuple[Control, str]]:
    """The controls of a form that a browser would complain of, each with the first reason; a radio group once."""
    asked: set[str] = set()
    for control in markup.controls_of(form):
        is_radio = kind_of(control.node) == "radio"
        if _is_barred(control) or (is_radio and control.name in asked):
            continue
        if is_radio and control.name:  # a nameless one is a group of its own
            asked.add(control.name)
        reason = fault_of(control, overlay, markup)
        if reason is not None:
            yield control, reason


def _is_barred(control: Control) -> bool:
    """4.10.20.1: what is not looked at."""
    kind = kind_of(control.node)
    readonly = "readonly" in control.node.attributes and kind not in _NEVER_READONLY
    return kind in BUTTONS | NEVER_SENT | {"hidden"} or control.disabled or control.in_datalist or readonly


def fault_of(control: Control, overlay: Overlay, markup: Markup) -> str | None:
    """The first reason why a control's value is not valid."""
    kind, attributes = kind_of(control.node), control.node.attributes
    if kind in ("select", "checkbox", "radio", "file"):
        missing = "required" in attributes or kind == "radio"
        return _missing_choice(kind, control, overlay, markup) if missing else None
    value = value_of(control, overlay)
    if not value:
        return "a value is required" if "required" in attributes and kind in _REQUIRABLE else None
    reasons = (
        _type_fault(kind, value, attributes),
        _length_fault(control, kind, value, overlay),
        _pattern_fault(kind, value, attributes),
        _range_fault(kind, value, attributes),
    )
    return next((reason for reason in reasons if reason), None)


def _missing_choice(kind: str, control: Control, overlay: Overlay, markup: Markup) -> str | None:
    if kind == "file":
        return "a file is required, and files cannot be chosen here"
    if kind == "checkbox":
        return None if is_checked(control, overlay, markup) else "it must be checked"
    if kind == "radio":
        group = markup.radio_group(control)
        required = any("required" in member.node.attributes for member in group)
        answered = any(is_checked(member, overlay, markup) for member in group)
        return "one of the group must be selected" if required and not answered else None
    placeholder = _placeholder_option(control)
    chosen = [option for option in selected_options(control, overlay) if option.number != placeholder]
    return None if chosen else "an option must be selected"


def _placeholder_option(control: Control) -> int | None:
    """The first option of a one-line menu, when it is empty, says "please choose" (4.10.7)."""
    options = options_of(control.node)
    if "multiple" in control.node.attributes or display_size(control.node) != 1 or not options:
        return None
    is_child = any(child is options[0].node for child in control.node.children)
    return 0 if options[0].value == "" and is_child else None


def _type_fault(kind: str, value: str, attributes: Mapping[str, str]) -> str | None:
    if kind == "email":
        parts = value.split(",") if "multiple" in attributes else [value]
        return None if all(_EMAIL.fullmatch(part) for part in parts) else "it is not an email address"
    if kind == "url":
        return None if is_absolute_url(value) else "it is not an absolute URL"
    return None


def _length_fault(control: Control, kind: str, value: str, overlay: Overlay) -> str | None:
    """Lengths bind what a user wrote, not what the page came with (4.10.18.3); they count UTF-16 units."""
    if kind not in _WITH_LENGTH or control.place not in overlay:
        return None
    length = utf16_length(value)
    shortest, longest = (length_of(control.node.attributes.get(name)) for name in ("minlength", "maxlength"))
    if shortest is not None and length < shortest:
        return f"it is shorter than {shortest} characters"
    return f"it is longer than {longest} characters" if longest is not None and length > longest else None


def utf16_length(value: str) -> int:
    """The length as browsers count it."""
    return len(value.encode("utf-16-le", "surrogatepass")) // 2


def length_of(said: str | None) -> int | None:
    """A minlength or maxlength, None where there is none."""
    digits = (said or "").strip()
    return int(digits[:12]) if digits.isascii() and digits.isdigit() else None


def _pattern_fault(kind: str, value: str, attributes: Mapping[str, str]) -> str | None:
    said = attributes.get("pattern")
    if said is None or kind not in _ONE_LINE:
        return None
    matches = compile_constraint(said)
    parts = value.split(",") if kind == "email" and "multiple" in attributes else [value]
    if matches is None or all(matches(part) for part in parts):
        return None
    return attributes.get("title") or f"it does not match the pattern {said}"


def _range_fault(kind: str, value: str, attributes: Mapping[str, str]) -> str | None:
    number = number_of(kind, value)
    if number is None or kind == "range":
        return None
    smallest, largest = bounds_of(kind, attributes)
    if kind == "time" and smallest is not None and largest is not None and largest < smallest:
        outside = largest < number < smallest
        return f"it is not between {attributes['min']} and {attributes['max']}" if outside else None
    if smallest is not None and number < smallest:
        return f"it is less than {attributes.get('min', 0)}"
    if largest is not None and number > largest:
        return f"it is more than {attributes.get('max', 100)}"
    return None if _is_on_a_step(kind, number, attributes) else "it is not one of the allowed steps"


def _is_on_a_step(kind: str, number: Decimal, attributes: Mapping[str, str]) -> bool:
    """Beyond the precision of numbers there is nothing to complain of, as in browsers."""
    step, base = step_of(kind, attributes)
    try:
        return step is None or abs(number - base) % step == 0
    except InvalidOperation:  # so many steps cannot be counted
        return True
