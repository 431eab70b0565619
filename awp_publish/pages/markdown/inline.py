"""Running text: emphasis, links, images, code and controls."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

from awp_publish.pages.forms import FormFields, form_method, is_secret, read_form
from awp_publish.pages.landmarks import is_permalink
from awp_publish.pages.markdown.escaping import code_span, collapse, escape_text
from awp_publish.pages.markdown.joining import BREAK, CLOSE, Mark, Piece, join_pieces
from awp_publish.pages.markdown.visible import BLOCKS, PREFORMATTED, VisibleNodes
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.tree import written_in

MAX_OPTIONS: Final = 40
"""Options of a choice that are listed."""

MAX_VALUE: Final = 1_000
"""Characters of a value that is shown."""

_LIMITS: Final = ("min", "max", "step", "minlength", "maxlength", "pattern", "accept")
_MAX_REPEATED: Final = 3
"""Hidden fields that are repeated for each button of a form."""

_ENCTYPES: Final = ("multipart/form-data", "text/plain")

CONTROLS: Final = frozenset({"input", "button", "textarea", "select"})
_BUTTONS: Final = frozenset(("button", "image", "reset", "submit"))

MAX_INLINE_DEPTH: Final = 60
"""Levels of nested elements; of deeper ones only the text is written."""

_EMPHASIS: Final[Mapping[str, str]] = {
    "b": "**",
    "strong": "**",
    "em": "_",
    "i": "_",
    "cite": "_",
    "dfn": "_",
    "var": "_",
    "del": "~~",
    "s": "~~",
    "strike": "~~",
}
_CODE: Final = frozenset({"code", "kbd", "samp", "tt"}) | PREFORMATTED
_SCRIPTS: Final = {
    "sup": str.maketrans("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ"),
    "sub": str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎"),
}
"""Digits and signs that have superscript and subscript characters."""

_PLAIN: Final = "!#$%&'*+,-./:;=?@_~[]()"
_FIT: Final = re.compile(r"[A-Za-z0-9!#$%&'*+,\-./:;=?@_~\[\]]*")
"""Characters of an address that are not changed in a link."""

_SCHEMES: Final = ("http:", "https:", "mailto:", "tel:", "ftp:", "sms:", "geo:")


class Inline:
    """Writes running text of one page at `url`, whose relative addresses are resolved against `base`."""

    def __init__(
        self,
        url: str,
        base: str,
        visible: VisibleNodes,
        formulas: Mapping[int, str],
        names: AccessibleNames,
        distinct: Mapping[int, str],
    ) -> None:
        self._url, self._base = url, base
        self._names, self._distinct = names, distinct
        self._visible = visible
        self._formulas = formulas
        self.later: set[int] = set()
        """Nodes that are written elsewhere."""
        self._forms: dict[int, FormFields] = {}
        self._submits: dict[int, int] = {}
        """For a button that is the only visible part of its form, that form."""
        self._origin = ""
        with suppress(ValueError):
            parts = urlsplit(base)
            self._origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""

    def line(self, nodes: Iterable[int], linked: bool = False, break_with: str = " ") -> str:
        """Return the text of nodes on a single line."""
        pieces = [piece for node in nodes for piece in self.pieces(node, linked=linked)]
        return break_with.join(line for lines in join_pieces(pieces) for line in lines)

    def address(self, href: str) -> str | None:
        """Return an absolute address, encoded for a link; None for one that readers cannot follow, such as a script.

        A link to a place on the page itself stays a fragment.
        """
        href = href.replace("\n", "").strip()
        if href.startswith("#"):
            found = href
        elif href.startswith("/") and not href.startswith("//") and self._origin:
            found = self._origin + href
        elif href.startswith("https://"):
            found = href
        else:
            try:
                found = urljoin(self._base, href)
            except ValueError:
                return None
            if not found.lower().startswith(_SCHEMES):
                return None
        # Characters that would end a link are percent-encoded, and so are parentheses that do not pair.
        if _FIT.fullmatch(found):
            return found
        fit = quote(found, safe=_PLAIN)
        if fit.count("(") != fit.count(")") or ")" in fit.partition("(")[0]:
            fit = fit.replace("(", "%28").replace(")", "%29")
        return fit

    def pieces(self, node: int, depth: int = 0, linked: bool = False) -> list[Piece]:
        """Return the pieces for a node. `linked` means inside of a link, where there can be no other link."""
        tree = self._visible.tree
        tag, given = tree.tags[node], tree.attributes[node]
        if not tag:
            return [escape_text(collapse(tree.texts[node]), in_brackets=linked)]
        if self._formulas and node in self._formulas:
            return [Mark("markdown", code_span(self._formulas[node]))]
        if node in self.later or not self._visible.shows(node):
            return []
        if depth >= MAX_INLINE_DEPTH:
            return [escape_text(f" {self._visible.plain_text(node)} ", in_brackets=linked)]
        if tag not in _OWN_WRITING:
            before: list[Piece] = []
            if tag == "form" and not self.read_form(node).is_button:
                before = [Mark("control", f"[form: {', '.join((self.target(node), *self.hidden(node)))}]"), " "]
            pieces = [*before, *self._inside(node, depth, linked)]
            return [BREAK, *pieces, BREAK] if tag in BLOCKS else pieces
        if tag == "a":
            if "href" in given and is_permalink(tree, node):
                return []
            address = self.address(given["href"]) if "href" in given and not linked else None
            if address is None:
                return self._inside(node, depth, linked)
            paragraphs = join_pieces(self._inside(node, depth, True))
            text = " ".join(line for lines in paragraphs for line in lines)
            if node in self._distinct or not any(map(str.isalnum, text)):  # of a symbol its name says more
                text = escape_text(self.name(node), True) or text
            if not text:
                return []
            # White space at the ends of a link's text goes around the link.
            held = tree.children(node)
            space = [" "] if held and tree.texts[held[0]][:1].isspace() else []
            after = [" "] if held and tree.texts[held[-1]][-1:].isspace() else []
            return [*space, link_to(text, address), *after]
        if tag == "br":
            return [BREAK]
        if tag in _EMPHASIS:
            return [Mark(_EMPHASIS[tag]), *self._inside(node, depth, linked), CLOSE]
        if tag == "img":  # without a description it is decoration, or its content is unknown
            described = given.get("alt") if "alt" in given else given.get("aria-label") or given.get("title")
            text = escape_text(collapse(described or "").strip(), in_brackets=True)
            source = given.get("src") or given.get("data-src") or ""
            address = self.address(source) if source else None
            return [Mark("markdown", f"![{text}]({address})" if address else text)] if text else []
        if tag in CONTROLS:
            control = self._control(node)
            return [" ", *control, " "] if control else []
        if tag in _CODE or tag == "math":
            text = (
                self._visible.raw_text(node)
                if tag != "math"
                else given.get("alttext") or self._visible.plain_text(node)
            )
            span = code_span(text)
            return [Mark("markdown", span)] if span else []
        if tag in _SCRIPTS:
            text = written_in(tree, node) if len(tree.children(node)) == 1 else ""
            if text and _SCRIPTS[tag].keys() >= set(map(ord, text)):
                return [text.translate(_SCRIPTS[tag])]
            return self._inside(node, depth, linked)
        if tag == "q":
            return ["“", *self._inside(node, depth, linked), "”"]
        if tag == "svg":
            titles = (self._visible.plain_text(child) for child in tree.children(node) if tree.tags[child] == "title")
            label = given.get("aria-label") or (next(titles, "") if given.get("role") == "img" else "")
            return [escape_text(collapse(label), in_brackets=linked)]
        if linked or tag == "wbr":
            return []
        if tag == "iframe":
            address = self.address(given["src"]) if given.get("src") else None
            title = given.get("title") or given.get("name") or "embedded page"
        else:
            sources = (tree.attributes[child].get("src") for child in (node, *tree.children(node)))
            address = self.address(next(filter(None, sources), "about:blank"))
            title = given.get("aria-label") or given.get("title") or tag
        return [link_to(escape_text(collapse(title).strip(), True), address)] if address else []

    def _inside(self, node: int, depth: int, linked: bool) -> list[Piece]:
        tree, pieces = self._visible.tree, list[Piece]()
        if (only := self._visible.only(node)) is not None:
            return [escape_text(collapse(only), linked)]
        for child in self._visible.children(node):
            if tree.tags[child]:
                pieces += self.pieces(child, depth + 1, linked)
            else:
                pieces.append(escape_text(collapse(tree.texts[child]), linked))
        return pieces

    def read_form(self, form: int) -> FormFields:
        """Return the parts of a form. If it is no more than a button, the button will describe it."""
        found = self._forms.get(form)
        if found is None:
            found = self._forms[form] = read_form(form, self._visible.visibility)
            if found.is_button:
                self._submits.update(dict.fromkeys(found.buttons, form))
        return found

    def target(self, form: int) -> str:
        """Return method and address of a form as code, with its content type if that matters."""
        given = self._visible.attributes[form]
        method = form_method(given)
        address = self.address(given.get("action", "").strip() or self._url) or self._url
        code = code_span(f"{method} {address}")
        kind = given.get("enctype", "").strip().lower()
        return f"{code} as {code_span(kind)}" if method == "POST" and kind in _ENCTYPES else code

    def hidden(self, form: int) -> list[str]:
        """Return the hidden fields of a form: names and values, but only the names of session secrets."""
        listed = []
        for one in self.read_form(form).hidden:
            given = self._visible.attributes[one]
            name, value = given["name"], given.get("value", "")
            shown = "a secret of the session" if is_secret(name) else self._value(value)
            listed.append(f"{code_span(name)}: {shown}")
        return listed

    def _value(self, value: str) -> str:
        if len(value) > MAX_VALUE:
            return f"{len(value)} characters"
        return code_span(value) or "“”"

    def _control(self, node: int) -> list[Piece]:
        """Return the description of a control: its kind, its name and its value. Empty for a hidden one."""
        tags, attributes = self._visible.tags, self._visible.attributes
        tag, given = tags[node], attributes[node]
        kind = (given.get("type") or "text").strip().lower() if tag == "input" else tag
        if kind == "hidden":
            return []
        if kind in _BUTTONS:
            text = escape_text(self.name(node), in_brackets=True)
            off = " (disabled)" if "disabled" in given else ""
            own = f" {self._pair(given, '')}" if given.get("name") and kind != "reset" else ""
            parts = [f"button{own}: {text}{off}" if text or own else f"button{off}"]
            form = self._submits.get(node)
            if form is not None:
                fields = self.read_form(form)  # if there are many hidden fields, only the first button lists them
                is_listed = fields.buttons[0] == node or len(fields.hidden) <= _MAX_REPEATED
                parts += (self.target(form), *(self.hidden(form) if is_listed else ["the same hidden fields"]))
            elif given.get("formaction") and (address := self.address(given["formaction"])) is not None:
                form = self._named_form(given)
                if form is None:
                    around = islice(self._visible.around(node), MAX_INLINE_DEPTH)
                    form = next((one for one in around if tags[one] == "form"), node)
                method = given.get("formmethod", "").strip().upper() or form_method(attributes[form])
                parts.append(code_span(f"{method} {address}"))
            elif (form := self._named_form(given)) is not None:
                parts.append(f"of the form {self.target(form)}")
            return [Mark("control", f"[{', '.join(parts)}]")]
        if kind in ("checkbox", "radio"):
            is_on = "checked" in given
            sign = ("[x]" if is_on else "[ ]") if kind == "checkbox" else ("(x)" if is_on else "( )")
            mark = Mark("control" if kind == "checkbox" else "markdown", sign)
            pair: list[Piece] = [Mark("markdown", self._pair(given, "on")), " "] if given.get("name") else []
            if (form := self._named_form(given)) is not None:
                pair += [Mark("control", f"[of the form {self.target(form)}]"), " "]
            label = self._names.unwritten(node)
            return [" ", mark, " ", *pair, f"{escape_text(label)} " if label else ""]
        if tag == "select":
            options = [one for one in self._visible.walk(node) if tags[one] == "option"]
            chosen = [one for one in options if "selected" in attributes[one]]
            if not chosen and "multiple" not in given:
                chosen = options[:1]
            marked, listed = set(chosen), list[str]()
            for one in options[:MAX_OPTIONS]:
                name = collapse(attributes[one].get("label") or self._visible.plain_text(one)).strip()
                value = attributes[one].get("value", name)
                notes = ([code_span(value) or "“”"] if value != name else []) + (["selected"] if one in marked else [])
                if "disabled" in attributes[one]:
                    notes.append("disabled")
                if name or value:
                    listed.append(escape_text(name, in_brackets=True) + (f" ({', '.join(notes)})" if notes else ""))
            if len(options) > MAX_OPTIONS:
                listed.append(f"and {len(options) - MAX_OPTIONS} more")
            kind = "choice of several" if "multiple" in given else "choice"
            content = ", ".join(listed)
        else:
            value = given.get("value", "") if tag == "input" else self._visible.plain_text(node)
            text = escape_text(collapse(value).strip(), in_brackets=True)
            content = f"“{text}”" if text else ""
            kind = "text area" if tag == "textarea" else kind if kind == "file" else f"{kind} field"
        label = self._names.unwritten(node)
        facts = (
            f"{escape_text(kind, in_brackets=True)} {code_span(given.get('name', ''))}".strip(),
            f"“{escape_text(label, in_brackets=True)}”" if label else "",
            "required" if "required" in given else "",
            "disabled" if "disabled" in given else "",
            "read-only" if "readonly" in given else "",
            f"of the form {self.target(form)}" if (form := self._named_form(given)) is not None else "",
            *(f"{limit} {code_span(given[limit])}" for limit in _LIMITS if given.get(limit)),
        )
        facts_text = ", ".join(fact for fact in facts if fact)
        return [Mark("control", f"[{facts_text}: {content}]" if content else f"[{facts_text}]")]

    def _named_form(self, given: Mapping[str, str]) -> int | None:
        """Return the form that a control names in its attribute `form`."""
        form = self._visible.tree.find_id(given["form"]) if given.get("form") else None
        return form if form is not None and self._visible.tags[form] == "form" else None

    def _pair(self, given: Mapping[str, str], usual: str) -> str:
        """Return the name of a control, and the value that it sends unless it is the usual one."""
        value = given.get("value", usual)
        return f"{code_span(given['name'])}={self._value(value)}" if value != usual else code_span(given["name"])

    def name(self, node: int) -> str:
        """Return the name of an element, which tells it apart from others."""
        text = "" if self._visible.tags[node] == "input" else self._visible.plain_text(node)
        return self._distinct.get(node) or self._names.name(node, text) or self._names.named(node)


_OWN_WRITING: Final = (
    {"a", "br", "img", "svg", "iframe", "video", "audio", "math", "q", "wbr"} | _EMPHASIS.keys() | _CODE | CONTROLS
) | _SCRIPTS.keys()
"""Elements for which `Inline.pieces` writes more than their content."""


def link_to(text: str, address: str) -> Mark:
    """Return a link (CommonMark 0.31.2, section 6.3) with a text in Markdown. Titles mostly repeat the text."""
    return Mark("markdown", f"[{text}]({address})")
