"""Forms, and what their submission sends (HTML 4.10.21)."""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote_plus

from awp_publish.browsing.addresses import WebAddress
from awp_publish.browsing.markup import Control, Markup, Place, kind_of
from awp_publish.browsing.overlay import Overlay, is_checked, selected_options, value_of
from awp_publish.browsing.values import BLANKS
from awp_publish.pages.input_types import BUTTONS

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
            return "rtl" if next((bidi for bidi in classes if bidi in _STRONG), "L") != "L" else "ltr"
        if node.parent is None or (node is control.node and kind == "tel"):
            break
        node = node.parent
    return "ltr"


def is_submit_button(control: Control) -> bool:
    """Return True for a control that submits its form when it is activated (4.10.18.5)."""
    return kind_of(control.node) in ("submit", "image")
