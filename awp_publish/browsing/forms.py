"""Forms: their submission (HTML 4.10.21), patterns of agents and pages, and constraint validation."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import quote_plus

import jsonschema_rs

from awp_publish.browsing.addresses import WebAddress
from awp_publish.browsing.markup import (
    BLANKS,
    SCALED,
    Control,
    Markup,
    Overlay,
    Place,
    display_size,
    is_checked,
    kind_of,
    number_of,
    options_of,
    selected_options,
    value_of,
)

BUTTONS: Final = frozenset({"submit", "image", "reset", "button"})
NEVER_SENT: Final = frozenset({"object", "output", "fieldset"})
_URLENCODED: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_PLAIN: Final = "text/plain"
_ENCTYPES: Final = (_URLENCODED, _MULTIPART, _PLAIN)
_METHODS: Final = ("get", "post", "dialog")

_WITH_DIRECTION: Final = frozenset(
    {"hidden", "text", "search", "tel", "url", "email", "password", "submit", "textarea"}
)
_STRONG: Final = frozenset({"L", "R", "AL"})
_BREAKS: Final = re.compile(r"\r\n|\r|\n")
_IN_NAMES: Final = str.maketrans({"\n": "%0A", "\r": "%0D", '"': "%22"})
# Labels of encodings that HTML (Encoding, section 4.2) interprets differently from Python.
_LABELS: Final = dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii"), "windows-1252")
_LEGACY: Final = re.compile(
    r"windows-125[0-8]|iso-8859-(?:[2-9]|1[013-6])|koi8-[ru]|gbk|gb18030|big5|euc-jp|euc-kr|shift_jis"
    r"|iso-2022-jp|ibm866|macintosh"
)


@dataclass(frozen=True, slots=True)
class FormEntry:
    """A name and its value. `is_file`: a file input; since no file can be chosen, it is empty and nameless."""

    name: str
    value: str
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    """A form ready to be sent: `action` as it is written ("" is the page itself), method, encoding type and entries."""

    action: str
    method: str
    enctype: str
    charset: str
    entries: list[FormEntry] = field(repr=False)

    def address(self, action: WebAddress) -> WebAddress:
        """Return the address of the request: a GET form replaces the query of its action and keeps the fragment."""
        return action if self.method != "get" else action.with_query(self._encode_pairs())

    def body(self) -> tuple[str, bytes]:
        """Return the media type and the body of a POST form (4.10.21.7, 4.10.21.8)."""
        if self.enctype == _PLAIN:  # lines for people rather than for programs
            lines = (f"{_crlf(entry.name)}={_crlf(entry.value)}\r\n" for entry in self.entries)
            return _PLAIN, b"".join(self._encode(line) for line in lines)
        if self.enctype != _MULTIPART:
            return _URLENCODED, self._encode_pairs().encode("ascii")
        parts = []  # RFC 7578
        for entry in self.entries:
            head = b'Content-Disposition: form-data; name="%b"' % self._encode(_crlf(entry.name).translate(_IN_NAMES))
            if entry.is_file:
                parts.append(head + b'; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n')
            else:
                parts.append(head + b"\r\n\r\n" + self._encode(_crlf(entry.value)))
        # The boundary does not occur in any part, and is derived from the parts so that equal forms have equal bytes.
        joined = b"".join(parts)
        digest = hashlib.sha256(joined).hexdigest()
        while (boundary := f"----form{digest[:32]}".encode()) in joined:
            digest = hashlib.sha256(digest.encode()).hexdigest()
        body = b"".join(b"--%b\r\n%b\r\n" % (boundary, part) for part in parts)
        return f"{_MULTIPART}; boundary={boundary.decode()}", body + b"--%b--\r\n" % boundary

    def _encode_pairs(self) -> str:
        """Return `name=value&...`, for a query or a body (URL 5.2)."""
        pairs = ((entry.name, entry.value) for entry in self.entries)
        return "&".join(
            "=".join(quote_plus(self._encode(_crlf(text)), safe="*").replace("~", "%7E") for text in pair)
            for pair in pairs
        )

    def _encode(self, text: str) -> bytes:
        """Encode a text; characters that the encoding lacks become `&#8364;` (Encoding, the error mode "html")."""
        return text.encode(self.charset, "xmlcharrefreplace")


def _crlf(text: str) -> str:
    return _BREAKS.sub("\r\n", text)


def prepare_submission(
    form: Place, submitter: Control | None, overlay: Overlay, markup: Markup, page_charset: str | None
) -> Submission:
    """Return what submitting a form by one of its buttons (None: without one) sends (4.10.21.3).

    The button may override the form's address, method and type (`formaction` and so on). `page_charset` is the page's
    encoding if its response declared one.
    """
    attributes = markup.forms[form].attributes
    over = submitter.node.attributes if submitter is not None else {}
    # The first label of a known encoding; UTF-8 by default, and instead of UTF-16, which forms never send.
    labels = attributes.get("accept-charset", "").replace(",", " ").split()
    charset = "UTF-8"
    for label in labels or [page_charset or markup.charset or ""]:
        name = label.strip().lower()
        name = _LABELS.get(name, name)
        if _LEGACY.fullmatch(name):
            charset = name
        if _LEGACY.fullmatch(name) or name.startswith(("utf-", "utf8")):
            break
    method = over.get("formmethod", attributes.get("method", "")).lower()
    enctype = over.get("formenctype", attributes.get("enctype", "")).lower()
    return Submission(
        action=over.get("formaction", attributes.get("action", "")).strip(BLANKS),
        method=method if method in _METHODS else _METHODS[0],
        enctype=enctype if enctype in _ENCTYPES else _ENCTYPES[0],
        charset=charset,
        entries=list(_construct_entries(form, submitter, overlay, markup, charset)),
    )


def _construct_entries(
    form: Place, submitter: Control | None, overlay: Overlay, markup: Markup, charset: str
) -> Iterator[FormEntry]:
    """Yield the entries of a form in tree order (4.10.21.4, "constructing the entry list")."""
    for control in markup.controls_of(form):
        node, kind, name = control.node, kind_of(control.node), control.name
        if kind in NEVER_SENT or control.disabled or control.in_datalist:
            continue
        if kind in BUTTONS and (submitter is None or control.place != submitter.place):
            continue
        if kind in ("checkbox", "radio") and not is_checked(control, overlay, markup):
            continue
        if kind == "image":
            prefix = f"{name}." if name else ""
            yield from (FormEntry(prefix + axis, "0") for axis in ("x", "y"))
        elif not name:
            continue
        elif kind == "select":
            chosen = selected_options(control, overlay)
            yield from (FormEntry(name, option.value) for option in chosen if not option.disabled)
        elif kind in ("checkbox", "radio"):
            yield FormEntry(name, node.attributes.get("value", "on"))
        elif kind == "file":
            yield FormEntry(name, "", is_file=True)
        elif kind == "hidden" and name.lower() == "_charset_":
            yield FormEntry(name, charset)
        else:
            value = node.attributes.get("value", "") if kind in BUTTONS else value_of(control, overlay)
            yield FormEntry(name, value)
            dirname = node.attributes.get("dirname", "")
            if dirname and kind in _WITH_DIRECTION and node.tag != "button":
                yield FormEntry(dirname, _direction_of(control, kind, overlay))


def _direction_of(control: Control, kind: str, overlay: Overlay) -> str:
    """Return the direction of a control's text, `ltr` or `rtl` (HTML 3.2.6.4), from the nearest `dir`."""
    node = control.node
    while node is not None:
        direction = node.attributes.get("dir", "").lower()
        if direction in ("ltr", "rtl"):
            return direction
        if node is control.node and direction == "auto":
            classes = map(unicodedata.bidirectional, value_of(control, overlay))
            return "rtl" if next((found for found in classes if found in _STRONG), "L") != "L" else "ltr"
        if node.parent is None or (node is control.node and kind == "tel"):
            break
        node = node.parent
    return "ltr"


def is_submit_button(control: Control) -> bool:
    """Return True for a control that submits its form when it is activated (4.10.18.5)."""
    return kind_of(control.node) in ("submit", "image")


# --- Regular expressions of agents and pages ---
# jsonschema-rs includes an engine that runs in linear time (Rust's `regex`, as in the reference implementation). It has
# no lookaround and no back references; patterns with those are not compiled. Python's `re` could hang for hours.

Matches: TypeAlias = Callable[[str], bool]

_OPTIONS: Final = jsonschema_rs.RegexOptions(size_limit=1_000_000)
_MAX_PATTERN: Final = 1_000
_PART: Final = re.compile(r"\\.|[\[\]]", re.DOTALL)
_WORD: Final = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
_IN_CLASS: Final = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": _WORD}
_OUTSIDE: Final = {**_IN_CLASS, r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"}

# The syntax of ECMAScript with the flag `v`: each escape is first replaced by one character.
_ESCAPE: Final = re.compile(r"\\(?:([dDwWsS]|[pP]\{[^}]*\})|u\{[^}]*\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_SET, _ANYWHERE, _IN_CLASS_ONLY, _NEVER = "\x01", "\x02", "\x03", "\x04"
"""An escape for several characters (`\\d`); for one that may be escaped anywhere; only in a class; nowhere."""
_KNOWN: Final = frozenset("^$\\.*+?()[]{}|/bBnrtvf0123456789ckxu")
_RESERVED: Final = frozenset("-&!#%,:;<=>@`~")
"""Characters that may be escaped (SyntaxCharacter), and those only in a class (ClassSetReservedPunctuator)."""
_FLAGS: Final = re.compile(r"\(\?[a-zA-Z-]+\)")
_DOUBLE: Final = r"(?!&&|!!|##|\$\$|%%|\*\*|\+\+|,,|\.\.|::|;;|<<|==|>>|\?\?|@@|\^\^|``|~~)"
_CHARACTER: Final = _DOUBLE + r"[^\[\](){}/|\-\x01\x04]"
_CLASS: Final = re.compile(rf"\[\^?(?:{_CHARACTER}-{_CHARACTER}|{_CHARACTER}|{_SET})*\]")


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Matches | None:
    """Return a function that searches a text for a pattern, or None if the pattern is invalid or unsupported.

    As in Rust and Python, `\\d` and `\\w` are digits and letters of any script.
    """
    parts: list[str] = []
    end = depth = 0
    for match in _PART.finditer(pattern):
        part = match[0]
        parts += pattern[end : match.start()], (_IN_CLASS if depth else _OUTSIDE).get(part, part)
        depth = max(0, depth + (part == "[") - (part == "]"))
        end = match.end()
    return _compile("".join(parts) + pattern[end:])


def find_match(pattern: str, text: str) -> str | None:
    """Return the first match of a pattern (see `compile_pattern`) in a text, or None.

    The engine only reports whether there is a match. The end of the match is found by bisection; the match is then
    extended to the left step by step, and to the right by at most `_MOST_GROWTH` characters.
    """
    somewhere, begins, is_whole = (compile_pattern(one) for one in (pattern, f"^(?:{pattern})", f"^(?:{pattern})$"))
    if somewhere is None or begins is None or is_whole is None or not somewhere(text):
        return None
    low, high = 0, len(text)
    while low < high:  # the shortest prefix of the text that has a match
        middle = (low + high) // 2
        low, high = (low, middle) if somewhere(text[:middle]) else (middle + 1, high)
    end, start, high = low, 0, low
    while start < high:  # and the last position in it from which the pattern matches
        middle = (start + high + 1) // 2
        start, high = (middle, high) if somewhere(text[middle:end]) else (start, middle - 1)
    while start > 0 and begins(text[start - 1 :]):
        start -= 1
    most = min(len(text), end + _MOST_GROWTH)
    end = next((place for place in range(most, end, -1) if is_whole(text[start:place])), end)
    return text[start:end]


_MOST_GROWTH: Final = 200


@lru_cache(maxsize=256)
def _compile_constraint(pattern: str) -> Matches | None:
    """Return a function that matches the `pattern` of an input to a whole text (HTML 4.10.5.3.6), or None if invalid.

    Browsers use the flag `v`, with which many older patterns are invalid: `[\\w-]` and `[(]` need a backslash, `\\_`
    must not have one, and `(?i)` is not allowed. Nested classes, which the flag introduced, are not checked.
    """

    def stand_in(escape: re.Match[str]) -> str:
        known = escape[0][1]
        return _SET if escape[1] else _ANYWHERE if known in _KNOWN else _IN_CLASS_ONLY if known in _RESERVED else _NEVER

    if len(pattern) > _MAX_PATTERN:
        return None
    rest = _CLASS.sub("", _ESCAPE.sub(stand_in, pattern))
    if {"[", "]", _IN_CLASS_ONLY, _NEVER} & set(rest) or _FLAGS.search(rest) or _compile(pattern) is None:
        return None
    return _compile(f"^(?:{pattern})$")


def _compile(pattern: str) -> Matches | None:
    try:
        return jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=_OPTIONS).is_valid
    except ValueError:  # not a pattern, too large, or not valid Unicode
        return None


# --- Constraint validation (HTML 4.10.20) ---
# Required values, lengths, ranges and patterns are checked, so that an agent learns of mistakes at once; the site
# checks the rest. The engine does not backtrack, so neither a page nor an agent can make it slow. A pattern that needs
# backtracking counts as satisfied, as an invalid one does in a browser.

_ONE_LINE: Final = frozenset({"text", "search", "tel", "url", "email", "password"})
_WITH_LENGTH: Final = _ONE_LINE | {"textarea"}
_REQUIRABLE: Final = _WITH_LENGTH | SCALED - {"range"}
_CHOICES: Final = frozenset({"select", "checkbox", "radio", "file"})
_NEVER_READONLY: Final = _CHOICES | {"color", "range"}


def find_faults(form: Place, overlay: Overlay, markup: Markup) -> Iterator[tuple[Control, str]]:
    """Find the controls of a form about which a browser would complain, with the first reason; a radio group once."""
    groups: set[str] = set()
    for control in markup.controls_of(form):
        kind, attributes = kind_of(control.node), control.node.attributes
        readonly = "readonly" in attributes and kind not in _NEVER_READONLY
        barred = kind in BUTTONS or kind in NEVER_SENT or kind == "hidden"  # 4.10.20.1
        if barred or control.disabled or control.in_datalist or readonly:
            continue
        if kind == "radio" and control.name:  # without a name it is a group of its own
            if control.name in groups:
                continue
            groups.add(control.name)
        if kind in _CHOICES:
            reason = _missing_choice(control, kind, overlay, markup)
        elif value := value_of(control, overlay):
            written = control.place in overlay
            reason = _fault_of(kind, value, attributes, written=written)
        else:
            reason = "a value is required" if "required" in attributes and kind in _REQUIRABLE else None
        if reason is not None:
            yield control, reason


def _missing_choice(control: Control, kind: str, overlay: Overlay, markup: Markup) -> str | None:
    if kind == "radio":
        group = markup.radio_group(control)
        required = any("required" in member.node.attributes for member in group)
        answered = any(is_checked(member, overlay, markup) for member in group)
        return "one of the group must be selected" if required and not answered else None
    if "required" not in control.node.attributes:
        return None
    if kind == "file":
        return "a file is required, and files cannot be uploaded here"
    if kind == "checkbox":
        return None if is_checked(control, overlay, markup) else "it must be checked"
    # An empty first option of a one-line menu is a placeholder ("please choose") and not a choice (4.10.7).
    options, placeholder = options_of(control.node), None
    if options and "multiple" not in control.node.attributes and display_size(control.node) == 1:
        is_child = any(child is options[0].node for child in control.node.children)
        placeholder = 0 if options[0].value == "" and is_child else None
    chosen = [option for option in selected_options(control, overlay) if option.number != placeholder]
    return None if chosen else "an option must be selected"


def _fault_of(kind: str, value: str, attributes: Mapping[str, str], *, written: bool) -> str | None:
    """Return the first of length, pattern and range that a value violates."""
    # Length limits apply to what a user has written, not to the initial value (4.10.18.3).
    if written and kind in _WITH_LENGTH:
        length = utf16_length(value)
        shortest, longest = (length_of(attributes.get(name)) for name in ("minlength", "maxlength"))
        if shortest is not None and length < shortest:
            return f"it is shorter than {shortest} characters"
        if longest is not None and length > longest:
            return f"it is longer than {longest} characters"
    if "pattern" in attributes and kind in _ONE_LINE:
        matches = _compile_constraint(attributes["pattern"])
        parts = value.split(",") if kind == "email" and "multiple" in attributes else [value]
        if matches is not None and not all(map(matches, parts)):
            return attributes.get("title") or f"it does not match the pattern {attributes['pattern']}"
    number = number_of(kind, value)
    if number is None or kind == "range":  # a slider is always within its bounds
        return None
    smallest, largest = (number_of(kind, attributes.get(name, "")) for name in ("min", "max"))
    if kind == "time" and smallest is not None and largest is not None and largest < smallest:  # across midnight
        outside = largest < number < smallest
        return f"it is not between {attributes['min']} and {attributes['max']}" if outside else None
    if smallest is not None and number < smallest:
        return f"it is less than {attributes['min']}"
    return f"it is more than {attributes['max']}" if largest is not None and number > largest else None


def utf16_length(value: str) -> int:
    """Return the length of a text in UTF-16 units, as browsers count it."""
    return len(value.encode("utf-16-le", "surrogatepass")) // 2


def length_of(attribute: str | None) -> int | None:
    """Return a minlength or maxlength, or None if there is none."""
    digits = (attribute or "").strip()
    return int(digits[:12]) if digits.isascii() and digits.isdigit() else None
